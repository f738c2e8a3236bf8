"""Compare two interfaces: what is new, and which callers break."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from export_gate.rules.lock.record import LockedDim, LockedModel, LockedTarget, LockedTensor
from export_gate.rules.lock.sizes import axis_size, axis_sizes, dim_sizes
from export_gate.rules.lock.span import Span
from export_gate.wall.contract import Size, TargetName
from export_gate.wall.targets import KIND_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference, in words."""

    what: str
    """`dim 'batch': 1..16 before, 2..16 now`."""
    breaks: str = ""
    """Who breaks: `callers that pass batch=1`; empty if nobody does."""
    target: TargetName | None = None
    output: str | None = None


Dims = Mapping[str, str]
"""Name of a dim before -> its name now."""


def differences(before: LockedModel, after: LockedModel) -> Iterator[Difference]:
    """All differences between two interfaces; none between equal ones."""
    pairs = _pairs(before.inputs, after.inputs)
    dims = _dims(pairs, before, after)
    yield from _dim_ranges(before.dims, after.dims, dims)
    yield from _inputs(before, after)
    for old, new in pairs:
        yield from _input(old, new, before, after, dims)
    yield from _ties(pairs)
    if after.outputs and before.outputs:  # else eager was not observed
        yield from _outputs(before, after)
        for old, new in _pairs(before.outputs, after.outputs):
            yield from _output(old, new, dims)
    yield from _targets(before.targets, after.targets)
    if after.parameters and after.parameters != before.parameters:
        yield Difference(what=f"parameters: {before.parameters} before, {after.parameters} now")


def _pairs(before: Sequence[LockedTensor], after: Sequence[LockedTensor]) -> list[tuple[LockedTensor, LockedTensor]]:
    """Tensors with the same name, and those that were renamed in the same position."""
    # By name first: where inputs only changed places, each is compared with itself.
    now = {tensor.name: tensor for tensor in after}
    pairs = [(tensor, now[tensor.name]) for tensor in before if tensor.name in now]
    return pairs + _renamed(before, after)


def _renamed(before: Sequence[LockedTensor], after: Sequence[LockedTensor]) -> list[tuple[LockedTensor, LockedTensor]]:
    old, new = {tensor.name for tensor in before}, {tensor.name for tensor in after}
    if len(before) != len(after):
        return []
    return [
        (was, now)
        for was, now in zip(before, after, strict=True)
        if was.name not in new and now.name not in old and (was.dtype, len(was.shape)) == (now.dtype, len(now.shape))
    ]


def _dims(pairs: Sequence[tuple[LockedTensor, LockedTensor]], before: LockedModel, after: LockedModel) -> Dims:
    """Dims that kept their name, and those that have a new one on the same axes."""
    found = {name: name for name in before.dims if name in after.dims}
    for old, new in pairs:
        for was, now in zip(old.shape, new.shape, strict=False):
            one, other = axis_size(was), axis_size(now)
            if one is None or other is None or one.dim is None or other.dim is None:
                continue
            # Only from a name that is gone to one that is new: two dims that stay are not one that was renamed.
            is_free = one.dim not in found and one.dim in before.dims and other.dim not in found.values()
            if is_free and other.dim in after.dims and other.dim not in before.dims:
                found[one.dim] = other.dim
    return found


def _dim_ranges(before: Mapping[str, LockedDim], after: Mapping[str, LockedDim], dims: Dims) -> Iterator[Difference]:
    for name, now in dims.items():
        old, new = dim_sizes(before[name]), dim_sizes(after[now])
        label = f"dim '{name}'"
        if name != now:
            yield Difference(what=f"{label} is now called '{now}'")
        missing = old.first_missing(new)
        if missing is not None:
            yield Difference(what=f"{label}: {old} before, {new} now", breaks=f"callers that pass {name}={missing}")
        elif new.first_missing(old) is not None:
            yield Difference(what=f"{label}: {old} before, {new} now")


def _inputs(before: LockedModel, after: LockedModel) -> Iterator[Difference]:
    renamed = _renamed(before.inputs, after.inputs)
    for old, new in renamed:
        yield Difference(what=f"input '{old.name}' is now called '{new.name}'", breaks="callers that pass it by name")
    known = [tensor.name for pair in renamed for tensor in pair]
    was, now = [t.name for t in before.inputs], [t.name for t in after.inputs]
    for name in (n for n in was if n not in now and n not in known):
        yield Difference(what=f"input '{name}' is gone", breaks="callers that pass it")
    for name in (n for n in now if n not in was and n not in known):
        yield Difference(what=f"input '{name}' is new", breaks="callers that do not pass it")
    yield from _order("inputs", was, now, "callers that pass them by position")


def _order(noun: str, was: Sequence[str], now: Sequence[str], breaks: str) -> Iterator[Difference]:
    old, new = [name for name in was if name in now], [name for name in now if name in was]
    if old != new:
        yield Difference(what=f"{noun} in the order {', '.join(old)} before, {', '.join(new)} now", breaks=breaks)


def _input(
    old: LockedTensor, new: LockedTensor, before: LockedModel, after: LockedModel, dims: Dims
) -> Iterator[Difference]:
    label = f"input '{old.name}'"
    if old.dtype != new.dtype:
        yield Difference(what=f"{label}: {old.dtype} before, {new.dtype} now", breaks=f"callers that pass {old.dtype}")
    if len(old.shape) != len(new.shape):
        yield Difference(what=f"{label}: {_shape(old)} before, {_shape(new)} now", breaks="every caller that passes it")
        return
    for axis, (was, now) in enumerate(zip(old.shape, new.shape, strict=True)):
        if not _is_same(was, now, dims):
            yield _input_axis(f"{label}, axis {axis}", (was, now), before, after)
    yield from _values(label, old, new, before, dims)


def _input_axis(label: str, texts: tuple[str, str], before: LockedModel, after: LockedModel) -> Difference:
    was, now = axis_size(texts[0]), axis_size(texts[1])
    old = axis_sizes(was, before.dims) if was else None
    new = axis_sizes(now, after.dims) if now else None
    if old is None or new is None:
        return Difference(what=f"{label}: {texts[0]} before, {texts[1]} now", breaks="callers that rely on its size")
    missing = old.first_missing(new)
    words = tuple(
        text if text == str(sizes) else f"{text} ({sizes})" for text, sizes in zip(texts, (old, new), strict=True)
    )
    return Difference(
        what=f"{label}: {words[0]} before, {words[1]} now",
        breaks="" if missing is None else f"callers that pass size {missing}",
    )


def _values(label: str, old: LockedTensor, new: LockedTensor, before: LockedModel, dims: Dims) -> Iterator[Difference]:
    if old.range is None or new.range is None:
        return
    # Compared under the dims' new names, but shown below as each side wrote them.
    was, now = (Span.of(old.range, dims), Span.of(new.range, {}))
    if str(was) == str(now):
        return
    missing = was.first_outside(now, {dims.get(name, name): dim for name, dim in before.dims.items()})
    yield Difference(
        what=f"{label}: values {Span.of(old.range, {})} before, {now} now",
        breaks=f"callers that pass {missing}" if missing else "",
    )


def _ties(pairs: Sequence[tuple[LockedTensor, LockedTensor]]) -> Iterator[Difference]:
    """Axes that had separate dims and now share one."""
    axes: dict[str, dict[str, str]] = {}
    for old, new in pairs:
        # Not strict: a changed rank is reported elsewhere.
        for axis, (was, now) in enumerate(zip(old.shape, new.shape, strict=False)):
            one, other = axis_size(was), axis_size(now)
            if one and other and one.dim and other.dim:
                axes.setdefault(other.dim, {}).setdefault(one.dim, f"{old.name}[{axis}]")
    for name, places in axes.items():
        if len(places) > 1:
            first, second = list(places.values())[:2]
            yield Difference(
                what=f"{first} and {second} had dims of their own before, and share '{name}' now",
                breaks="callers that pass them in different sizes",
            )


def _outputs(before: LockedModel, after: LockedModel) -> Iterator[Difference]:
    renamed = _renamed(before.outputs, after.outputs)
    for old, new in renamed:
        yield Difference(
            what=f"output '{old.name}' is now called '{new.name}'",
            breaks="callers that use it by name",
            output=old.name,
        )
    known = [tensor.name for pair in renamed for tensor in pair]
    was, now = [t.name for t in before.outputs], [t.name for t in after.outputs]
    for name in (n for n in was if n not in now and n not in known):
        yield Difference(what=f"output '{name}' is gone", breaks="callers that use it", output=name)
    kept = [place for place, name in enumerate(now) if name in was or name in known]
    for place, name in enumerate(now):
        if name not in was and name not in known:
            # A new output behind all others changes no position.
            shifts = any(other > place for other in kept)
            yield Difference(
                what=f"output '{name}' is new{', before others' if shifts else ''}",
                breaks="callers that use outputs by position" if shifts else "",
                output=name,
            )
    yield from _order("outputs", was, now, "callers that use them by position")


def _output(old: LockedTensor, new: LockedTensor, dims: Dims) -> Iterator[Difference]:
    label = f"output '{old.name}'"
    if old.dtype != new.dtype:
        breaks = f"callers that expect {old.dtype}"
        yield Difference(what=f"{label}: {old.dtype} before, {new.dtype} now", breaks=breaks, output=old.name)
    if len(old.shape) != len(new.shape):
        breaks = "every caller that uses it"
        yield Difference(what=f"{label}: {_shape(old)} before, {_shape(new)} now", breaks=breaks, output=old.name)
        return
    for axis, (was, now) in enumerate(zip(old.shape, new.shape, strict=True)):
        if not _is_same(was, now, dims) and axis_size(was) and axis_size(now):
            yield Difference(
                what=f"{label}, axis {axis}: {was} before, {now} now",
                breaks="callers that rely on its size",
                output=old.name,
            )


def _is_same(was: str, now: str, dims: Dims) -> bool:
    """Whether an axis is written the same way, apart from the new name of a dim."""
    size = axis_size(was)
    if size is None:
        return was == now
    factors = {dims.get(name, name): factor for name, factor in size.factors.items()}
    return str(Size(factors=factors, offset=size.offset)) == now


def _targets(before: Mapping[str, LockedTarget], after: Mapping[str, LockedTarget]) -> Iterator[Difference]:
    for name in (name for name in dict.fromkeys((*KIND_NAMES, *before, *after)) if name in {**before, **after}):
        if name not in after:
            yield Difference(what="the target is gone", breaks="callers that load its artifact", target=name)
        elif name not in before:
            yield Difference(what="the target is new", target=name)
        elif before[name].kind != after[name].kind:
            kinds = f"{before[name].kind or name} before, {after[name].kind or name} now"
            yield Difference(what=f"kind {kinds}", breaks="callers that load its artifact", target=name)
        elif after[name].opsets and before[name].opsets:
            yield from _opsets(name, before[name].opsets, after[name].opsets)


def _opsets(target: TargetName, before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[Difference]:
    for domain in sorted({*before, *after}):
        was, now = before.get(domain), after.get(domain)
        if was is None:
            what, breaks = f"operator domain {domain} is new", "runtimes that do not have it"
            yield Difference(what=what, breaks=breaks, target=target)
        elif now is None:
            yield Difference(what=f"operator domain {domain} is gone", target=target)
        elif was != now:
            breaks = f"runtimes that support {domain} only up to {was}" if now > was else ""
            yield Difference(what=f"opset {domain} {was} before, {now} now", breaks=breaks, target=target)


def _shape(tensor: LockedTensor) -> str:
    return f"shape [{', '.join(tensor.shape)}]"
