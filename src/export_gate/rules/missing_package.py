"""A target's package that the project's environment lacks: what to say and what to do."""

from __future__ import annotations

from export_gate.rules.wording import plain, targets_key
from export_gate.wall.contract import ModelContract
from export_gate.wall.observation import Failure


def missing_package_cause(failure: Failure) -> str:
    """The worker's whole message on one line: it names the interpreter and the `pip install` line."""
    return f"a package is missing: {' '.join(plain(failure.message).split())}"


def missing_package_hint(contract: ModelContract, target: str) -> str:
    """The target's packages belong into the project's environment, not into the gate's."""
    return (
        f"Install the package into the environment of the project's interpreter (`python:` in the config or `--python` "
        f"choose it), or take `{target}` out of {targets_key(contract)}."
    )
