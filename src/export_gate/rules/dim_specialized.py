"""A declared dim that the exported program fixed to one size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from export_gate.rules.base import Finding, Rule
from export_gate.rules.keys import axis_key
from export_gate.rules.measure import Measured
from export_gate.wall.contract import Dim, ModelContract
from export_gate.wall.observation import DimFound, ModelObservation
from export_gate.wall.sizes import parse_size


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each dim: a violation if it was promised (strict), a warning if it was left to torch (auto).

    An axis that is a sum of dims was promised if each of them was.
    """
    contract, observation = measured.contract, measured.observation
    for dim in contract.dims:
        found = [axis for axis in observation.dims if axis.dim == dim.name and is_specialized(axis)]
        if found and dim.mode != "static":
            hint = _hint(f"models.{contract.name}.dims.{dim.name}", dim, found[0])
            yield _finding(contract, f"dim '{dim.name}'", dim.mode == "auto", found, hint)
    for name, dims in sums(contract, observation).items():
        found = [axis for axis in observation.dims if axis.dim == name and is_specialized(axis)]
        if found:
            yield _finding(contract, f"size '{name}'", any(dim.mode == "auto" for dim in dims), found, f"{IN_MODEL}.")


def sums(contract: ModelContract, observation: ModelObservation) -> dict[str, tuple[Dim, ...]]:
    """The observed axes that are sums of dims, as they are written, with their dims."""
    declared = {dim.name: dim for dim in contract.dims}
    found: dict[str, tuple[Dim, ...]] = {}
    for name in (axis.dim for axis in observation.dims if axis.dim not in declared):
        with suppress(ValueError, KeyError):  # of a dim that the contract does not have any more
            found[name] = tuple(declared[dim] for dim in parse_size(name).factors)
    return found


def _finding(contract: ModelContract, what: str, is_auto: bool, found: Sequence[DimFound], hint: str) -> Finding:
    first = found[0]
    return RULE.finding(
        contract.name,
        (f"declared {first.declared[0]}..{first.declared[1]}, but the exported program is fixed to {first.found[0]}"),
        hint=hint,
        severity="warning" if is_auto else "violation",
        at=f"{what}, axis {first.axis}",
        occurrences=len(found),
        key=axis_key(contract, first.dim) or axis_key(contract, first.axis),
        details=tuple(
            f"{axis.axis}: declared {axis.declared[0]}..{axis.declared[1]}, found {axis.found[0]}" for axis in found
        ),
    )


IN_MODEL = (
    "Look for a hard-coded number (reshape, view, expand, a buffer of that size), an `int(...)` of a size or a branch "
    "on a size in the model"
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
    return f"{IN_MODEL}. If the size is meant to be fixed, declare {fixed}."


def is_specialized(found: DimFound) -> bool:
    """Whether an axis that was declared with several sizes has only one left."""
    return found.declared[0] != found.declared[1] and found.specialized


RULE = Rule(
    name="dim-specialized",
    severity="violation",
    summary="A dim that was declared with a range has one size in the exported program.",
    stage="export",
    waivable=(),
    owner="torch.export",
    cause="size-guard",
    check=check,
)
