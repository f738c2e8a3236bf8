"""Artifacts that the contract names, to be verified instead of ones that the gate makes."""

from __future__ import annotations

from pathlib import Path

from export_gate.wall.contract import ModelContract, Target
from export_gate.wall.errors import UserError


def require_artifacts(contract: ModelContract, base: Path) -> None:
    """Check that the files named by the contract's `artifact` keys exist.

    Raises:
        UserError: one is missing.
    """
    for target in contract.targets:
        path = existing_artifact(target, base)
        if path is not None and not path.is_file():
            found = "that is a folder" if path.is_dir() else "there is none"
            raise UserError(
                f"models.{contract.name}.targets.{target.name}.artifact: expected a file at {path}, {found}",
                "write it before the gate runs, or take `artifact` out to verify a program that the gate exports",
            )


def existing_artifact(target: Target, base: Path) -> Path | None:
    """The file to verify instead of an export, if the contract names one."""
    return None if target.artifact is None else base / target.artifact
