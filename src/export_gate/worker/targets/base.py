"""What a target is: a module that converts the exported program and loads the result as a runner."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from export_gate.contract import ModelContract
from export_gate.observation import Artifact, OutputLeaf
from export_gate.worker.export import Exported
from export_gate.worker.reference import Runner

HASH_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What every target of one export shares."""

    contract: ModelContract
    exported: Exported | None
    """None where an existing artifact is verified."""
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

    @property
    def program(self) -> Any:
        """The ExportedProgram; only called where there is one."""
        if self.exported is None:
            raise AssertionError("no exported program in this context")
        return self.exported.program


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """An artifact ready to run."""

    run: Runner
    facts: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    run_checked: Runner | None = None
    """The same artifact with its own run-time input checks on; None where there is no such switch."""
    affine: bool = False
    """Whether the artifact's own graph is affine in the input; only looked for where the basis points are tried."""


class TargetModule(Protocol):
    """A module of this package."""

    def convert(self, context: Context, options: Any) -> Path | None:
        """Write the artifact; None where there is no file."""

    def load(self, context: Context, options: Any, path: Path | None) -> Loaded:
        """Load the artifact (or the program itself) for running."""


def describe_artifact(path: Path, root: Path) -> Artifact:
    """Digest and size of an artifact and of the external data beside it; paths relative to `root` where inside."""
    files = [path, *sorted(path.parent.glob(f"{path.name}.data*"))]
    digests = {_relative(file, root): digest_file(file) for file in files}
    whole = next(iter(digests.values())) if len(digests) == 1 else _digest_of(digests.values())
    return Artifact(
        path=_relative(path, root),
        sha256=whole,
        size_bytes=sum(file.stat().st_size for file in files),
        files=digests,
    )


def digest_file(path: Path) -> str:
    """sha256 of a file's bytes, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(HASH_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _digest_of(digests: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _relative(path: Path, root: Path) -> str:
    resolved, top = path.resolve(), root.resolve()
    return resolved.relative_to(top).as_posix() if top in resolved.parents else str(path)
