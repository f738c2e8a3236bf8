"""Describe a package that a target needs and the project's environment lacks."""

from __future__ import annotations

from export_gate.rules.wording import plain, targets_key
from export_gate.wall.contract import ModelContract
from export_gate.wall.observation import Failure


def missing_package_cause(failure: Failure) -> str:
    """The worker's whole message on one line: it names the interpreter and the `pip install` line."""
    return f"a package is missing: {' '.join(plain(failure.message).split())}"


def missing_package_hint(contract: ModelContract, target: str) -> str:
    """The target's packages belong in the project's environment, not in the gate's."""
    return (
        "Install the package into the environment of the project's interpreter (set with `python:` in the config or "
        f"`--python`), or remove `{target}` from {targets_key(contract)}."
    )
