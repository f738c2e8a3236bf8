"""A declared dim that the exported program fixed to one size."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.contract import ModelContract
from export_gate.observation import DimFound, ModelObservation
from export_gate.rules.base import Finding, Rule


def check(contract: ModelContract, observation: ModelObservation) -> Iterator[Finding]:
    """One finding for each dim: a violation if it was promised (strict), a warning if it was left to torch (auto)."""
    for dim in contract.dims:
        found = [axis for axis in observation.dims if axis.dim == dim.name and is_specialized(axis)]
        if not found or dim.mode == "static":
            continue
        first = found[0]
        (low, high), size = first.declared, first.found[0]
        key = f"models.{contract.name}.dims.{dim.name}"
        yield Finding(
            rule=RULE.name,
            severity="warning" if dim.mode == "auto" else "violation",
            model=contract.name,
            message=(
                f"{contract.name}, dim '{dim.name}', axis {first.axis}: declared {low}..{high}, but the exported "
                f"program is fixed to {size}"
            ),
            hint=(
                "Look for a written-out number, an `int(...)` of a size or a branch on a size in the model; a "
                f"reference size of 1 is always fixed, so set `{key}.example` to 2 or more. If one size is meant, set "
                f"`{key}.mode` to `static`."
            ),
            occurrences=len(found),
            details=tuple(
                f"{axis.axis}: declared {axis.declared[0]}..{axis.declared[1]}, found {axis.found[0]}" for axis in found
            ),
        )


def is_specialized(found: DimFound) -> bool:
    """Whether one size is left of an axis that was declared with several."""
    return found.declared[0] != found.declared[1] and (found.specialized or found.found[0] == found.found[1])


RULE = Rule(
    name="dim-specialized",
    severity="violation",
    summary="A dim that was declared with a range has one size in the exported program.",
    check=check,
)
