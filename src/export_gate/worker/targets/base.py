"""What a target is: a module that converts the exported program and loads the result as a runner."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from export_gate.wall.contract import ModelContract, Target
from export_gate.wall.digest import digest_file
from export_gate.wall.observation import Artifact, OutputLeaf
from export_gate.worker.export.program import Exported
from export_gate.worker.leaves.values import Call, Leaf
from export_gate.worker.model.reference import Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What every target of one export shares."""

    contract: ModelContract
    program: Exported | None
    """None if only existing artifacts are verified."""
    folder: Path
    """Where artifacts are written."""
    input_names: tuple[str, ...]
    """Tensor leaves of the contract's inputs, in order."""
    outputs: tuple[OutputLeaf, ...]
    """Eager's output leaves, in order, under the contract's names."""
    names: dict[str, str]
    """Eager's own leaf name -> the contract's, where they differ."""
    metadata: dict[str, str]
    """The contract, for formats that can carry it."""
    has_basis: bool
    """Whether the affine basis points are among the control inputs, so that an affine graph is worth finding."""
    kept: dict[str, Any] = field(default_factory=dict)
    """What a conversion leaves for experiments after a failure."""

    @property
    def exported(self) -> Exported:
        """The export; used only if there is one."""
        if self.program is None:
            raise AssertionError("no exported program in this context")
        return self.program


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """An artifact ready to run."""

    run: Runner
    facts: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    run_checked: Runner | None = None
    """The same artifact with its own run-time input checks on; None if there is no such switch."""
    affine: bool = False
    """Whether the artifact's own graph is affine in the input; only looked for where the basis points are tried."""


def with_absent(run: Runner, outputs: Sequence[OutputLeaf]) -> Runner:
    """Put eager's None leaves back into what an artifact returns, because its format cannot contain them."""
    absent = [(index, leaf.name) for index, leaf in enumerate(outputs) if leaf.dtype == "None"]

    def complete(call: Call) -> tuple[Leaf, ...]:
        leaves = list(run(call))
        # In ascending order: an index counts the absent ones before it.
        for index, name in absent:
            if name not in [leaf.name for leaf in leaves]:
                leaves.insert(index, Leaf(name=name, dtype="None", value=None))
        return tuple(leaves)

    return complete if absent else run


def absent_notes(outputs: Sequence[OutputLeaf]) -> tuple[str, ...]:
    """Say which outputs the artifact does not have."""
    return tuple(
        f"output {leaf.name!r} is None and is not part of the artifact" for leaf in outputs if leaf.dtype == "None"
    )


class TargetModule(Protocol):
    """A module of this package."""

    def convert(self, context: Context, target: Target) -> Path | None:
        """Write the artifact; return None if the target does not have a file."""

    def files(self, path: Path) -> tuple[Path, ...]:
        """Every file of an artifact, `path` first."""

    def load(self, context: Context, target: Target, path: Path | None) -> Loaded:
        """Load the artifact (or the program itself) for running."""


def files(path: Path) -> tuple[Path, ...]:
    """The files of a format that has one."""
    return (path,)


def describe_artifact(paths: Sequence[Path], root: Path) -> Artifact:
    """Digest and size of an artifact, whose main file comes first; paths relative to `root` where inside."""
    digests = {_relative(path, root): digest_file(path) for path in paths}
    # One file has the digest that any tool shows for it.
    whole = next(iter(digests.values())) if len(digests) == 1 else _digest_of(digests.values())
    return Artifact(
        path=_relative(paths[0], root),
        sha256=whole,
        size_bytes=sum(path.stat().st_size for path in paths),
        files=digests,
    )


def _digest_of(digests: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _relative(path: Path, root: Path) -> str:
    resolved, top = path.resolve(), root.resolve()
    return resolved.relative_to(top).as_posix() if top in resolved.parents else str(path)
