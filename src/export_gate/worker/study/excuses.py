"""Differences at masked places: which elements of an output are not compared, and why.

An element is excused in a sample whose mask row is empty, at a position that a mask switches off, or, in an output
without positions, where eager's own value moves with switched-off input. What is left decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from export_gate.wall.observation import MaskReason
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.study.mask_places import Bools, Mask, masks_of, samples, spread
from export_gate.worker.study.masks import FIRST_REDRAW, REDRAWS, Masks, leaves_of

Places = dict[MaskReason, Bools]
NEARLY_ALL = 0.9
"""An output in which this share of the elements moves in every redraw does not ignore what is switched off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excuse:
    """The elements of one output that masks take out of the comparison."""

    masks: tuple[str, ...]
    reasons: tuple[MaskReason, ...]
    dropped: Bools
    """bool of the output's shape."""


def excuse(output: str, shape: tuple[int, ...], case: ControlCase, masks: Masks) -> Excuse | None:
    """What the masks excuse in one output at one control input; None if nothing.

    Args:
        output: the contract's name.
        shape: of the output at this control input.
        case: the control input.
        masks: what is known about them.
    """
    if any(promised.name == output and promised.where == "all" for promised in masks.contract.outputs):
        return None
    return _dropped(output, shape, case, masks, _places)


def switched_off(output: str, shape: tuple[int, ...], case: ControlCase, masks: Masks) -> Excuse | None:
    """The elements that the masks switch off, whether or not the contract promises something there."""
    return _dropped(output, shape, case, masks, _all_places)


def _dropped(
    output: str, shape: tuple[int, ...], case: ControlCase, masks: Masks, places_of: Callable[..., Places]
) -> Excuse | None:
    leaves = leaves_of(case)
    names: list[str] = []
    reasons: list[MaskReason] = []
    dropped = np.zeros(shape, dtype=np.bool_)
    for mask in masks_of(masks.contract):
        off = masks.off(mask, leaves)
        found = {} if off is None or not off.any() else places_of(output, shape, case, mask, masks=masks, off=off)
        for reason, places in found.items():
            # A mask that excuses nothing more is not named.
            if (places & ~dropped).any():
                dropped |= places
                names += [mask.path] if mask.path not in names else []
                reasons += [reason] if reason not in reasons else []
    return Excuse(masks=tuple(names), reasons=tuple(reasons), dropped=dropped) if names else None


def compared(shapes: Mapping[str, tuple[int, ...]], case: ControlCase, masks: Masks) -> dict[str, Bools]:
    """Output -> the elements that are compared, for outputs whose `where` names a mask with the same dims.

    Args:
        shapes: of eager's outputs at this control input.
        case: the control input.
        masks: what is known about them.
    """
    wanted = {o.name: o.where for o in masks.contract.outputs if o.where not in (None, "all") and o.name in shapes}
    leaves = leaves_of(case) if wanted else {}
    known = {mask.path: mask for mask in masks_of(masks.contract)}
    found: dict[str, Bools] = {}
    for output, path in wanted.items():
        mask = known.get(path or "")
        off = None if mask is None else masks.off(mask, leaves)
        if mask is not None and off is not None:
            dropped = spread(off, mask, masks.axes.get(output, ()), shapes[output])
            empty = samples(np.asarray(off.all(axis=-1)), mask, masks.axes.get(output, ()), shapes[output])
            # An output without positions has samples at least, and those without a position do not count.
            dropped = empty if dropped is None else dropped
            found |= {} if dropped is None else {output: ~dropped}
    return found


def _places(output: str, shape: tuple[int, ...], case: ControlCase, mask: Mask, *, masks: Masks, off: Bools) -> Places:
    axes = masks.axes.get(output, ())
    found: Places = {}
    empty = np.asarray(off.all(axis=-1))
    if mask.spec.mask == "any":  # rows without a position are part of the contract
        off = off & ~empty[..., None]
    elif empty.any():
        at = samples(empty, mask, axes, shape)
        found |= {} if at is None else {"empty-row": at}
    at = spread(off, mask, axes, shape)
    if at is None:
        at = _moving(output, case, mask, off, masks)
        found |= {} if at is None or at.shape != shape else {"moving": at}
    elif not masks.is_constant(mask, output):
        found["off-position"] = at
    return found


def _all_places(
    output: str, shape: tuple[int, ...], case: ControlCase, mask: Mask, *, masks: Masks, off: Bools
) -> Places:
    del case
    axes = masks.axes.get(output, ())
    found: dict[MaskReason, Bools | None] = {
        "empty-row": samples(np.asarray(off.all(axis=-1)), mask, axes, shape),
        "off-position": spread(off, mask, axes, shape),
    }
    return {reason: at for reason, at in found.items() if at is not None}


def _moving(output: str, case: ControlCase, mask: Mask, off: Bools, masks: Masks) -> Bools | None:
    """Elements that move in any of three redraws of switched-off input; None if nearly all do in each."""
    turns: list[Bools] = []
    for turn in range(REDRAWS):
        moved = masks.moved(case.make(), mask, off, dict(case.sizes), FIRST_REDRAW + turn)
        if moved is None or output not in moved:
            return None
        turns.append(moved[output])
    if np.logical_and.reduce(turns).mean() >= NEARLY_ALL:
        return None
    any_of: Bools = np.logical_or.reduce(turns)
    return any_of if any_of.any() else None
