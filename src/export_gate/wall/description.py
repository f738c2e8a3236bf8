"""What the worker can say about a model without a contract: forward's parameters, guessed inputs, a trial of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from export_gate.wall.contract import Dim, Size, Spec

ParameterKind = Literal["positional_only", "positional_or_keyword", "var_positional", "keyword_only", "var_keyword"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """One input as it was guessed."""

    name: str
    spec: Spec
    reason: str
    """What the guess rests on, e.g. `conv: Conv2d(1, 4)` or `its name`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A parameter of forward that a starter config leaves alone."""

    name: str
    kind: ParameterKind
    default: str = ""
    """As Python writes it; empty for `*args` and `**kwargs`."""
    spec: Spec | None = None
    """What could be declared for it; None if nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An output that the trial returned."""

    name: str
    dtype: str
    shape: tuple[Size, ...] | None
    """None where an axis follows no dim."""
    nonfinite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A model as a starter config shows it."""

    signature: str
    """`forward(x, mask=None)`."""
    inputs: tuple[Guess, ...]
    """In forward's order."""
    left_out: tuple[LeftOut, ...] = ()
    dims: tuple[Dim, ...] = ()
    verdict: Literal["works", "fails"]
    """Whether forward ran on the guessed inputs in eval mode."""
    tried: int
    """How many combinations of guesses were tried."""
    sizes: tuple[str, ...] = ()
    """The sizes at which forward ran, per dim: `batch 1, 2, 3, 16`."""
    problem: str = ""
    """Why forward failed: the exception's class and first line, at the likeliest combination."""
    notes: tuple[str, ...] = ()
    """Further findings, each a sentence."""
    outputs: tuple[Found, ...] = ()
    training: int = 0
    """Modules in train mode, as the factory returned them."""
    is_exportable: bool = True
    """Whether torch.export can take it; TorchScript can only be the reference of files."""
