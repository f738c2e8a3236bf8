"""Say what a change's own lock does not hold any more of the base's, so that the next change is compared with less."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from export_gate.config import Config
from export_gate.lock.file import lock_path
from export_gate.loosening.compare import arrow
from export_gate.loosening.record import CONFIG, Alteration
from export_gate.rules.lock.difference import differences
from export_gate.rules.lock.facts import UNKNOWN
from export_gate.rules.lock.margin_shrunk import FLOOR, GROWTH
from export_gate.rules.lock.record import Lock, LockedModel, LockedTarget, LockedTensor, Margin
from export_gate.wall.contract import ModelContract, TargetName, Tolerance
from export_gate.wall.equivalence import ratio
from export_gate.wall.tolerance import resolve_tolerance

LARGER = 1.5
"""How many times larger an artifact of the lock must have become to be said; new versions of a converter add little."""


def unlocked(before: Lock, now: Lock | None, past: Config, config: Config) -> Iterator[Alteration]:
    """What the change's own lock says otherwise of models that the config still has. Others are reported as gone.

    Args:
        before: the base's lock.
        now: the change's; None if it has none.
        past: the base's config.
        config: the change's.
    """
    if now is None:
        what = f"{lock_path(config.place).name} is removed, so that no interface is compared after the merge"
        yield Alteration(effect="loosened", model=CONFIG, what=what)
        return
    known = {contract.name: contract for contract in past.models}
    for contract in config.models:
        old, new = before.models.get(contract.name), now.models.get(contract.name)
        if old is not None:
            said = (
                ["removed from the interface lock"]
                if new is None
                else _said(old, new, known.get(contract.name, contract), contract)
            )
            yield from (Alteration(effect="loosened", model=contract.name, what=what) for what in said)


def _said(before: LockedModel, now: LockedModel, past: ModelContract, contract: ModelContract) -> Iterator[str]:
    """What the change's lock says otherwise, so that the next change is compared with less."""
    named = {target.name for target in contract.targets}
    if gone := [
        *_emptied(before, now),
        *(d.name for d in contract.dims if d.name in before.dims and d.name not in now.dims),
        *_vaguer((*before.inputs, *before.outputs), (*now.inputs, *now.outputs)),
    ]:
        yield f"in the interface lock, the model: no {', '.join(gone)} any more"
    for each in differences(before, now):
        if each.breaks and (each.target is None or each.target in named):
            yield f"in the interface lock, {each.target or 'the model'}: {each.what}"
    for name in (name for name in named if name in before.targets and name in now.targets):
        old, new = before.targets[name], now.targets[name]
        if gone := list(_emptied(old, new)):
            yield f"in the interface lock, {name}: no {', '.join(gone)} any more"
        for key in (key for key in old.sizes if new.sizes.get(key, 0) > LARGER * old.sizes[key]):
            yield f"in the interface lock, {name}: {key} {arrow(old.sizes[key], new.sizes[key])} bytes"
        yield from _margins(name, old, new, _lowered(name, before, past, contract))


def _margins(
    target: TargetName, before: LockedTarget, now: LockedTarget, lowered: Mapping[str, float]
) -> Iterator[str]:
    for output in (output for output in before.margins if output in now.margins):
        old, new = before.margins[output], now.margins[output]
        place = f"in the interface lock, {target}:"
        if _is_wider(old, new):
            yield f"{place} worst error of {output} {arrow(old.measured, new.measured)}"
        elif _is_closer(old, new, lowered.get(output, 1.0)):
            yield f"{place} allowed error of {output} {arrow(old.allowed, new.allowed)}"


def _lowered(target: TargetName, before: LockedModel, past: ModelContract, now: ModelContract) -> dict[str, float]:
    """Output -> the share of its old bound that the config still allows, at most 1."""
    return {
        output.name: min(1.0, *_shares(*(resolve_tolerance(each, target, output.dtype) for each in (past, now))))
        for output in before.outputs
    }


def _shares(before: Tolerance, now: Tolerance) -> Iterator[float]:
    for old, new in ((before.atol, now.atol), (before.rtol, now.rtol)):
        yield (new or 0.0) / old if old else 1.0


def _emptied(before: LockedModel | LockedTarget, now: LockedModel | LockedTarget) -> Iterator[str]:
    """Fields without any entry, with which nothing can be compared."""
    for field in dataclasses.fields(before):
        if getattr(before, field.name) and not getattr(now, field.name):
            yield field.name.replace("_", " ")

    if isinstance(before, LockedTarget) and isinstance(now, LockedTarget):
        for name, old, new in (("size", before.sizes, now.sizes), ("margin", before.margins, now.margins)):
            # Without any, it is said above; nothing has grown in comparison with 0 bytes.
            yield from (f"{name} of {key}" for key in old if new and not new.get(key))


def _vaguer(before: Sequence[LockedTensor], now: Sequence[LockedTensor]) -> Iterator[str]:
    """What is not known of a tensor any more, with which nothing can be compared either."""
    known = {tensor.name: tensor for tensor in now}
    for old in before:
        new = known.get(old.name, old)
        if old.range and not new.range:
            yield f"range of {old.name}"
        if any(axis == UNKNOWN != was for was, axis in zip(old.shape, new.shape, strict=False)):
            yield f"shape of {old.name}"


def _is_closer(before: Margin, now: Margin, lowered: float) -> bool:
    """Whether the error is a larger share of its bound than the lowered tolerance makes it: then it can hardly grow."""
    share = ratio(now.measured, now.allowed)
    return share >= FLOOR and share >= GROWTH * ratio(before.measured, before.allowed * lowered)


def _is_wider(before: Margin, now: Margin) -> bool:
    # Of the smaller bound: a larger one would make any error a small share of it.
    allowed = min(now.allowed, before.allowed)
    return now.measured >= GROWTH * before.measured and ratio(now.measured, allowed) >= FLOOR
