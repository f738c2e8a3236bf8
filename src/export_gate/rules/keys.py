"""Find the key of `export-gate.yml` that a finding is about, so that the finding is shown at its line."""

from __future__ import annotations

from export_gate.rules.base import Finding
from export_gate.wall.contract import ModelContract


def axis_key(contract: ModelContract, axis: str) -> str:
    """The key of what a probe varied: a dim by its name, or the input by `input[axis]`, its name or that of a part."""
    if any(dim.name == axis for dim in contract.dims):
        return f"dims.{axis}"
    # `pyramid.0[1]` is an axis of a part of `pyramid`; the names of inputs themselves have no dots.
    name = (axis.rpartition("[")[0] or axis).partition(".")[0]
    return f"inputs.{name}" if name in contract.inputs else ""


def config_key(finding: Finding) -> str:
    """The key below the model's: the one that the rule names, else the target's or the output's."""
    if finding.key or finding.target is None:
        return finding.key or (f"outputs.{finding.output}" if finding.output is not None else "")
    return f"targets.{finding.target}"
