"""How many small faults of an ONNX file a model's control set notices, and which ones it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from export_gate.wall.source import SourceLine

MutationKind = Literal["weight", "threshold", "constant", "operator", "attribute", "baked-dim", "cast", "output"]
MUTATION_KINDS: tuple[MutationKind, ...] = (
    "weight", "threshold", "constant", "operator", "attribute", "baked-dim", "cast", "output",
)  # fmt: skip
"""In the order of the table."""
Outcome = Literal["caught", "refused", "survived", "equivalent", "untried"]
"""`refused`: the mutant could not be loaded or run; `equivalent`: no random input tells it apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch:
    """A family of inputs that tells a mutant apart."""

    family: str
    caught: int = 0
    """Inputs of it that do."""
    tried: int = 0
    case: str = ""
    """The first of them, by name."""

    def after(self, case: str, *, is_caught: bool) -> Catch:
        """The same with one more input."""
        first = self.case or (case if is_caught else "")
        return replace(self, caught=self.caught + is_caught, tried=self.tried + 1, case=first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One small fault, and whether it was noticed."""

    kind: MutationKind
    operator: str
    """The file's: `Clip`; empty for the graph's interface."""
    node: str
    """The node's name in the file; empty for the graph's interface."""
    change: str
    outcome: Outcome
    module: str = ""
    """Path of the submodule that the node comes from; empty for the model itself."""
    source: SourceLine | None = None
    """The innermost line of the project's own code that leads to the node."""
    caught_by: str = ""
    """The control input that caught it; for `refused` what the runtime said."""
    effect: float = 0.0
    """Of an equivalent one the largest difference from the file itself, as a share of what is allowed."""
    would_catch: tuple[Catch, ...] = ()
    """Of a survivor: what tells it apart, the best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strength:
    """What a model's control set is worth on one ONNX file."""

    model: str
    target: str
    mutants: tuple[Mutant, ...]
    """Those that were tried, in order."""
    planned: int
    """All mutants that the file has."""
    controls: int
    """Control inputs and swept sizes at which mutants were compared."""
    red: int
    """Those at which the file itself differs from eager, which cannot tell."""
    searched: int
    """Random inputs of the search."""
    families: tuple[str, ...]
    """Families of the control inputs."""
    seed: int
    duration_s: float
    """Of trying mutants, without the run before it."""

    @property
    def untried(self) -> int:
        """Mutants that the budget left no time for."""
        return self.planned - len(self.mutants)

    def of(self, *outcomes: Outcome) -> tuple[Mutant, ...]:
        """The mutants with one of these outcomes."""
        return tuple(mutant for mutant in self.mutants if mutant.outcome in outcomes)

    @property
    def share(self) -> float | None:
        """Caught of those that inputs can tell apart, as a percentage; None if there are none."""
        return caught_share(self.mutants)


def caught_share(mutants: Sequence[Mutant]) -> float | None:
    """Caught of those that inputs can tell apart, as a percentage; None if there are none."""
    caught = sum(mutant.outcome in ("caught", "refused") for mutant in mutants)
    told = caught + sum(mutant.outcome == "survived" for mutant in mutants)
    return 100 * caught / told if told else None
