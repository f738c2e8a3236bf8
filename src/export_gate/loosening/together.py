"""Compare what several keys say together: positions, and keys that have a meaning only with others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from export_gate.loosening.compare import RARE, Step, arrow, shown
from export_gate.wall.contract import Bound, DictSpec, Dim, ModelContract, SequenceSpec, Size, Spec, TensorSpec
from export_gate.wall.sizes import highest, lowest
from export_gate.wall.tolerance import is_inexact


def by_name(items: Sequence[Any]) -> dict[str, Any]:
    """Records by their names or paths. Paths may repeat: the second one of a file is another entry."""
    names: dict[str, Any] = {}
    for item in items:
        name = item.name if hasattr(item, "name") else item.path
        while name in names:
            name = f"{name} again"
        names[name] = item
    return names


def order(before: Sequence[str], after: Sequence[str]) -> Iterator[Step]:
    """Names that stand for positions: in another order, each promise is about another value."""
    if [name for name in before if name in after] != [name for name in after if name in before]:
        yield "loosened", "", f"order {arrow(tuple(before), tuple(after))}"


SWEPT = 512
"""Up to that size a plain input is tried at every size of a dim, whatever its range."""


def dim(before: Dim, after: Dim) -> Iterator[Step]:
    """A size of the range that gets an export of its own, and the one size of a static dim."""
    if own := [size for size in after.separate if size in before.sizes and size not in before.separate]:
        verb = "is" if len(own) == 1 else "are"
        yield "loosened", "separate", f"{', '.join(map(shown, own))} {verb} no longer verified in the main export"
    if is_static(before, after):
        yield from _one_size(before, after)
    elif after.max > SWEPT and len(after.sizes) > RARE * len(before.sizes):
        key, old, new = next(
            (key, old, new)
            for key in ("max", "min", "multiple_of")
            if (old := getattr(before, key)) != (new := getattr(after, key))
        )
        what = f"{arrow(old, new)}, so that sizes of the old range are rarely tried"
        yield "loosened", key.replace("_", "-"), what


def is_static(before: Dim, after: Dim) -> bool:
    """Whether only one size was verified, and still is."""
    return before.mode == after.mode == "static"


def _one_size(before: Dim, after: Dim) -> Iterator[Step]:
    """The example is the size; without one, the range and its steps choose it."""
    if before.example == after.example is not None:
        return
    for key in ("min", "max", "multiple_of", "example"):
        old, new = getattr(before, key), getattr(after, key)
        if old != new:
            yield "loosened", key.replace("_", "-"), f"{arrow(old, new)}, so that another size may be the one verified"


def tensor(before: TensorSpec, after: TensorSpec) -> Iterator[Step]:
    """Allowed values that are no longer listed: only normal draws are tried without a range, and rarely they in one."""
    old = before.values or before.positions
    if not old or after.values or after.positions:
        return
    if after.range is None:
        yield "loosened", "values", f"{arrow(old, 'all')}, without a range"
    elif _are_rare(before, after, after.range):
        yield "loosened", "values", f"{arrow(old, 'all')}, so that the old ones are rarely drawn"


def _are_rare(before: TensorSpec, after: TensorSpec, bounds: tuple[Bound, Bound]) -> bool:
    """Whether listed values are between the ends of a range, which are always tried, and among many others."""
    inner = [value for value in before.values if value not in bounds]
    is_small = not is_inexact(after.dtype) and all(isinstance(end, (int, float)) for end in bounds)
    count = after.bounds[1] - after.bounds[0] + 1 if is_small and after.bounds else math.inf
    return bool(inner or before.positions) and count > RARE * max(len(before.values), 1)


def lengths(before: ModelContract, after: ModelContract) -> Iterator[Step]:
    """Axes that had a fixed length and now follow a dim whose sizes do not include it."""
    dims = {each.name: each for each in after.dims}
    now = dict(_tensors("inputs", after.inputs))
    for key, spec in _tensors("inputs", before.inputs):
        # Another number of axes is reported by `fixed_axes`.
        if key not in now or len(now[key].shape) != len(spec.shape):
            continue
        gone = [
            shown(old)
            for old, new in zip(spec.shape, now[key].shape, strict=True)
            if not old.factors and new.factors and not _can_be(new, old.offset, dims)
        ]
        if gone:
            what = f"{arrow(spec.shape, now[key].shape)}, which {', '.join(gone)} is no size of"
            yield "loosened", f"{key}.shape", what


def ties(before: ModelContract, after: ModelContract) -> Iterator[Step]:
    """Axes that had a fixed length and now vary with others: that length is verified only where those have it too."""
    old, new = dict(_axes(before)), dict(_axes(after))
    for (key, axis), now in new.items():
        was = old.get((key, axis))
        if was is None or was.factors or not now.factors:
            continue
        tied = [
            f"axis {other[1]} of {other[0]}"
            for other, size in new.items()
            if size.factors.keys() & now.factors.keys() and (old.get(other), size) != (was, now)
        ]
        if tied:
            yield "loosened", f"{key}.shape", f"axis {axis} {arrow(was, now)}, which varies with {tied[0]}"


def default_sizes(before: ModelContract, after: ModelContract) -> Iterator[Step]:
    """Sizes of a list in whose place the default ones are tried."""
    dims = {each.name: each for each in after.dims if each.sizes}
    for name, tried in before.controls.sizes.items():
        if name in dims and name not in after.controls.sizes:
            all_ = dims[name].sizes
            default = {*all_[:2], *all_[-2:], dims[name].example}
            if gone := [shown(size) for size in tried if size not in default]:
                yield "loosened", f"controls.sizes.{name}", f"without {', '.join(gone)}"


def _axes(contract: ModelContract) -> Iterator[tuple[tuple[str, int], Size]]:
    for key, spec in _tensors("inputs", contract.inputs):
        yield from (((key, axis), size) for axis, size in enumerate(spec.shape))


def _tensors(key: str, specs: Mapping[str, Spec] | Sequence[Spec]) -> Iterator[tuple[str, TensorSpec]]:
    """Every tensor below, by its place in the config."""
    named = isinstance(specs, Mapping)
    parts = specs.items() if isinstance(specs, Mapping) else enumerate(specs)
    for name, spec in parts:
        place = f"{key}.{name}" if named else f"{key}[{name}]"
        match spec:
            case TensorSpec():
                yield place, spec
            case DictSpec() | SequenceSpec():
                yield from _tensors(f"{place}.items", spec.items)


def _can_be(size: Size, length: int, dims: Mapping[str, Dim]) -> bool:
    """Whether the size can have that value; for several dims, only the ends are compared."""
    if size.dim is None:
        ranges = {name: dims[name].sizes for name in size.factors}
        return lowest(size, ranges)[0] <= length <= highest(size, ranges)[0]
    steps, rest = divmod(length - size.offset, size.factors[size.dim])
    declared = dims[size.dim]
    return not rest and (steps in declared.sizes or steps in declared.separate)
