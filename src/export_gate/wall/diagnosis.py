"""Who broke a promise, and why: the words for both, and the experiments that support them."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Union

from export_gate.wall.nodes import NodeTrace
from export_gate.wall.smallest import SmallestInput
from export_gate.wall.source import SourceLine

Owner = Literal[
    "model", "contract", "torch.export", "decomposition", "converter", "runtime-optimisation", "runtime", "artifact",
    "gate",
]  # fmt: skip
"""The part that has to change, or whose bug it is."""
Cause = Literal[
    "export", "size-guard", "size-arithmetic", "conversion", "operator", "rounding", "tie", "special-value",
    "randomness", "state", "ambient", "mutation", "train-mode", "mask", "layout", "weights", "interface", "eager",
    "crash", "resources", "unknown",
]  # fmt: skip
"""Why; `unknown` if no experiment found it."""

RungName = Literal["exported-program", "decomposed", "file-unoptimised", "file", "reference-evaluator"]
"""In the order in which a model becomes what a runtime computes; the last one is another runtime for the same file."""
Answer = Literal["agrees", "differs", "failed", "not-tried"]
"""Compared with eager; `failed`: it raised."""


ExportAnswer = Literal["exported", "narrowed", "differs", "refused", "not-tried"]
"""`narrowed`: not for all sizes that this declares; `differs`: it does not give eager's results at each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTrial:
    """Another declaration of a dim, exported after torch.export refused the contract's."""

    dim: str
    declared: dict[str, Union[int, str]]
    """Key of the dim -> value: `multiple-of`, `min` and `max`, `mode`, or `example`."""
    answer: ExportAnswer = "not-tried"
    constant: int | None = None
    """The size that torch.export fixed the dim to, where it says one."""


MODEL_SWITCHES = MappingProxyType({"attn_implementation": "eager", "experts_implementation": "batched_mm"})
"""What models of transformers call the choice of a kernel -> the choice that is made of plain operators (5.24)."""
ConversionAnswer = Literal["agrees", "differs", "refused", "not-tried"]
"""`agrees`: the file that it makes gives eager's results at the inputs that were tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionTrial:
    """Another way to convert the program, tried after the target's own failed or made a wrong file."""

    option: str
    """Key of the target; those of `MODEL_SWITCHES` are the factory's."""
    value: Union[bool, int, str]
    answer: ConversionAnswer = "not-tried"
    inputs: int = 0
    """Control inputs at which its file was compared with eager."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportGuard:
    """A condition on sizes that torch.export came to need, and that the declared ranges do not promise."""

    holds: str
    """In the contract's dims, e.g. `seq <= 6`."""
    dims: tuple[str, ...]
    broken: str = ""
    """Where declared sizes break it, e.g. `seq > 6`; empty where they do not and torch cannot prove it."""
    sizes: tuple[int, ...] = ()
    """The declared sizes that break a condition on one dim, as far as they were looked at."""
    source: SourceLine | None = None
    """The user's line that asks for it."""
    foreign: SourceLine | None = None
    """The line of another package that it called, which asks for it."""
    function: str = ""
    """The Python function of torch that it called, such as `interpolate`; empty if it called none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One form of the model, run at the control input at which the artifact differs most."""

    name: RungName
    answer: Answer
    max_abs_diff: float | None = None
    """Of the output that is looked at; None without numbers."""
    dtype: str = ""
    """Of that output; empty where it raised, or where no single output is looked at."""
    message: str = ""
    """What it raised, or why it was not tried."""


Change = Literal["no-negative-zeros", "no-zeros", "no-nonfinite"]
"""A change to a control input: -0.0 becomes 0.0, zeros become small numbers, NaN and infinities become 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """An artifact and eager at a control input at which they differ, once its values were changed."""

    change: Change
    agrees: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeTrial:
    """Further draws at a size at which an output differs, and at the nearest size at which it does not."""

    sizes: dict[str, int]
    draws: int
    exceeding: int
    other_sizes: dict[str, int]
    other_draws: int
    other_exceeding: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Experiments on one output, at the control input at which it differs most."""

    output: str
    """Empty where the artifact raised."""
    case: str
    rungs: tuple[Rung, ...] = ()
    changed: tuple[Changed, ...] = ()
    """Changes that could be made to this input."""
    selects: tuple[str, ...] = ()
    """Operators of the program that choose among values, such as argmax and sort."""
    unsettled: int = 0
    """Failing elements at which eager's own answer depends on rounding: it changes in float64, or one ulp away."""
    near: int = 0
    """Failing elements that are unsettled, or beside a step: eager changes one ulp away, float64 not nearer."""
    outside: int = 0
    """Elements outside the tolerance."""
    masks: tuple[str, ...] = ()
    """Mask inputs, if the output differs only where they switch something off, and agrees where they do not."""
    size_trial: SizeTrial | None = None
    smallest: SmallestInput | None = None
    """What the control input was shrunk to; None without time, or if it does not fail when it is run again."""
    trace: NodeTrace | None = None
    """Where along the graph the output goes wrong; None if that was not found out."""
    forked_at: SourceLine | None = None
    """The project's line after which eager goes another way than at an input that agrees; None if it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsCompared:
    """The tensors of a file that was handed in, and the module's parameters and buffers."""

    found: int
    """Tensors of the module that have one of the same name in the file, or else of the same shape."""
    differing: tuple[str, ...] = ()
    """`name: largest difference`, the largest first; at most ten."""
    differing_count: int = 0
    by_name: bool = True
    """Whether names were matched; otherwise values were."""
    missing: int = 0
    """Tensors of the module without a match."""
    quantised: int = 0
    """Nodes of the file that compute with quantised numbers, where the module has none."""
