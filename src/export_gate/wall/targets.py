"""The kinds of target, one entry each: config, rules, report, kit and worker read here what a kind is.

A kind also has a module of its name, `worker/targets/<name>.py`, which converts, loads and runs it. A model's target is
called like its kind unless the config gives it another name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Union

GuardPolicy = Literal["require", "warn", "ignore"]
Kernels = Mapping[str, tuple[float, float]]
"""dtype -> (atol, rtol)."""

# Source: the textbook protocol for float32; unit roundoff with a small factor for the rest.
SAME_KERNELS: Kernels = {
    "float64": (1e-12, 1e-12),
    "float32": (1e-6, 1e-6),
    "float16": (1e-4, 1e-3),
    "bfloat16": (1e-3, 8e-3),
}
"""Tolerances where the artifact runs eager's own kernels."""
OTHER_KERNELS: Kernels = {
    "float64": (1e-12, 1e-10),
    "float32": (1e-5, 1e-5),
    "float16": (1e-3, 5e-3),
    "bfloat16": (1e-2, 2e-2),
}
"""Tolerances where a runtime brings its own kernels."""


@dataclass(frozen=True, slots=True)
class Switch:
    """true or false."""

    def admits(self, value: object) -> bool:
        """Whether the value is one of these."""
        return isinstance(value, bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole number within bounds."""

    minimum: int
    maximum: int

    def admits(self, value: object) -> bool:
        """Whether the value is one of these."""
        # Not isinstance, which takes `true` for 1.
        return type(value) is int and self.minimum <= value <= self.maximum


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    def admits(self, value: object) -> bool:
        """Whether the value is one of these."""
        return value in self.words


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """At least one word, each of which matches a pattern, none twice."""

    pattern: str
    one: str
    """What a message says was expected of one word."""
    several: str
    """What a message says was expected of all."""

    def admits(self, value: object) -> bool:
        """Whether the value is one of these."""
        return isinstance(value, tuple) and all(isinstance(w, str) and re.fullmatch(self.pattern, w) for w in value)


OptionValue = Union[bool, int, str, None, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A key of the config that only this kind of target has."""

    name: str
    values: Switch | Whole | OneOf | Words
    default: OptionValue = None
    """None leaves the choice to the target's module."""
    text: str
    """What it means, for editors."""
    strongest_first: tuple[OptionValue, ...] = ()
    """Values from the one that checks most to the one that checks least; empty if they check differently."""

    def admits(self, value: object) -> bool:
        """Whether a target can have that value."""
        # None, the default of some, is not among their values.
        return value == self.default or self.values.admits(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetKind:
    """What the gate knows of a kind of target without running one."""

    name: str
    text: str
    """What it is, for editors."""
    options: tuple[Option, ...] = ()
    # Runtimes ignore the ranges that a file declares: of 120 models, 115 ran above their maximum in ONNX Runtime.
    guards: GuardPolicy = "warn"
    """The policy of a target that declares none."""
    # By a function, since dataclasses refuse a dict as default.
    kernels: Kernels = field(default_factory=lambda: OTHER_KERNELS)
    """The tolerances of a target whose model and config declare none."""
    ending: str = ""
    """How the name of its file ends; empty where it is not converted to a file and loaded from it."""
    is_default: bool = False
    """Whether models are verified on it that list no targets."""
    is_in_kit: bool = False
    """Whether a kit has a place for its file."""
    sees_layouts: bool = True
    """Whether it gets inputs as they lie in memory; otherwise they are copied to dense arrays first."""
    packages: tuple[str, ...] = ()
    """Distributions whose versions a report names."""
    preload: tuple[str, ...] = ()
    """Modules that are imported once for all models; one that is missing is imported later, or never.

    With `module:function`, the function is called as well.
    """

    @property
    def has_file(self) -> bool:
        """Only then can a file be handed in, or have a budget."""
        return bool(self.ending)

    def file_name(self, target: str) -> str:
        """Name of the file that is made for a target of this kind: `model.onnx`, or `model-half.onnx` for `half`."""
        return f"model{'' if target == self.name else f'-{target}'}{self.ending}"


_ONNX_OPTIONS = (
    Option(name="opset", values=Whole(minimum=9, maximum=25), text="ONNX opset; by default torch's."),
    Option(
        name="providers",
        values=Words(
            pattern="[A-Za-z0-9]+ExecutionProvider",
            one="an execution provider such as CPUExecutionProvider",
            several="a list of at least one execution provider",
        ),
        default=("CPUExecutionProvider",),
        text="ONNX Runtime execution providers, in order of preference.",
    ),
    Option(
        name="optimization",
        values=OneOf(("disable", "basic", "extended", "all")),
        default="all",
        strongest_first=("all", "extended", "basic", "disable"),
        text="ONNX Runtime's graph optimization level.",
    ),
    Option(
        name="decompose", values=Switch(), default=False, text="Run run_decompositions() before the exporter converts."
    ),
    Option(name="optimize", values=Switch(), default=True, text="Whether torch's exporter optimizes the graph."),
)
# The exporter imports some of these only when it converts, which each child would have to repeat.
_ONNX_MODULES = (
    "onnx",
    "onnx_ir",
    "onnxscript",
    "onnxscript.function_libs.torch_lib.ops",
    "onnxscript.rewriter.onnx_fusions",
    "onnxscript.rewriter.rules.fusion",
    "torch.onnx",
    "torch.onnx._internal.exporter._compat",
    "torch.onnx._internal.exporter._torchlib.ops",
    "onnxruntime",
    "export_gate.worker.targets.onnx_signatures:read_signatures",
)
_STRICT = Option(
    name="strict", values=Switch(), default=False, text="torch.export.export(strict=...), for every target."
)
_DECOMPOSE = Option(name="decompose", values=Switch(), default=False, text="Run run_decompositions() before saving.")
_LAYOUTS = Option(
    name="layouts",
    values=OneOf(("note", "require")),
    default="note",
    strongest_first=("require", "note"),
    text="Whether strided and channels-last inputs must be right: note (default) or require.",
)

KINDS: tuple[TargetKind, ...] = (
    TargetKind(
        name="exported-program",
        text="The ExportedProgram itself.",
        options=(_STRICT,),
        guards="require",
        kernels=SAME_KERNELS,
        is_default=True,
    ),
    TargetKind(
        name="pt2",
        text="The program saved to .pt2, loaded again and run.",
        options=(_DECOMPOSE,),
        guards="require",
        kernels=SAME_KERNELS,
        is_default=True,
        ending=".pt2",
        is_in_kit=True,
        preload=("torch._inductor.ir",),  # whose types the file's writer knows
    ),
    TargetKind(
        name="onnx",
        text="The program converted to ONNX and run by ONNX Runtime.",
        options=_ONNX_OPTIONS,
        is_default=True,
        ending=".onnx",
        is_in_kit=True,
        sees_layouts=False,
        packages=("onnx", "onnxscript", "onnxruntime"),
        preload=_ONNX_MODULES,
    ),
    # Not a default: compiling takes minutes and needs a C++ compiler.
    # The ending is `.aoti.pt2`, because AOTInductor requires `.pt2`.
    TargetKind(
        name="aoti", text="The program compiled by AOTInductor and run.", options=(_LAYOUTS,), ending=".aoti.pt2"
    ),
)
"""Cheapest first: the order in which they are observed and reported."""
KIND_NAMES = tuple(kind.name for kind in KINDS)


def kind_named(name: str) -> TargetKind:
    """The kind of that name.

    Raises:
        ValueError: there is none.
    """
    for kind in KINDS:
        if kind.name == name:
            return kind
    raise ValueError(f"expected one of {', '.join(KIND_NAMES)}, got {name!r:.80}")


LAYOUT_FAMILIES = ("noncontiguous", "channels-last")
"""Families of control inputs that hold the values of another one in another memory layout."""


def is_run_on(kind: str, family: str) -> bool:
    """Whether inputs of that family say anything about targets of that kind."""
    return kind_named(kind).sees_layouts or family not in LAYOUT_FAMILIES
