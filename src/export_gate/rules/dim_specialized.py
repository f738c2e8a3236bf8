"""A declared dim that the exported program fixed to one size."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Measured
from export_gate.wall.contract import Dim
from export_gate.wall.observation import DimFound


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each dim: a violation if it was promised (strict), a warning if it was left to torch (auto)."""
    contract, observation = measured.contract, measured.observation
    for dim in contract.dims:
        found = [axis for axis in observation.dims if axis.dim == dim.name and is_specialized(axis)]
        if not found or dim.mode == "static":
            continue
        first = found[0]
        declared = f"{first.declared[0]}..{first.declared[1]}"
        yield Finding(
            rule=RULE.name,
            severity="warning" if dim.mode == "auto" else "violation",
            model=contract.name,
            message=(
                f"{contract.name}, dim '{dim.name}', axis {first.axis}: declared {declared}, but the exported program "
                f"is fixed to {first.found[0]}"
            ),
            hint=_hint(f"models.{contract.name}.dims.{dim.name}", dim, first),
            occurrences=len(found),
            details=tuple(
                f"{axis.axis}: declared {axis.declared[0]}..{axis.declared[1]}, found {axis.found[0]}" for axis in found
            ),
        )


def _hint(key: str, dim: Dim, first: DimFound) -> str:
    size = first.found[0]
    if size == 1:
        return (
            f"torch.export treats size 1 of the reference input as a constant: set `{key}.example` to 2 or more, and "
            f"verify size 1 with `{key}.separate: [1]`."
        )
    is_plain = first.declared == (dim.min, dim.max)  # no factor or offset between the dim and its axis
    fixed = f"`{key}: {{mode: static, min: {size}, max: {size}}}`" if is_plain else f"`{key}.mode: static`"
    return (
        "Look for a hard-coded number (reshape, view, expand, a buffer of that size), an `int(...)` of a size or a "
        f"branch on a size in the model. If the size is meant to be fixed, declare {fixed}."
    )


def is_specialized(found: DimFound) -> bool:
    """Whether an axis that was declared with several sizes has only one left."""
    return found.declared[0] != found.declared[1] and found.specialized


RULE = Rule(
    name="dim-specialized",
    severity="violation",
    summary="A dim that was declared with a range has one size in the exported program.",
    stage="export",
    waivable=(),
    check=check,
)
