"""Compare outputs with what a wrong answer would look like: zeros, another input's output, rolled rows.

A tolerance that is larger than these differences cannot fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from export_gate.wall.observation import Contrast
from export_gate.worker.leaves.compare import flat_reals
from export_gate.worker.leaves.values import Leaf

CASES = 6
"""Control inputs looked at for each output."""
LOOKED_AT = 1 << 16
"""Elements that show whether an output takes few values."""
FEWEST_LEVELS = 3
"""Two values always lie on a grid."""
LEAST_STEP, NEAR = 1e-4, 0.02
"""Steps below this share of the largest value may be rounding; how near a gap must be to a multiple of the step."""


def contrasts(outputs: Iterable[tuple[str, Sequence[Leaf]]]) -> tuple[Contrast, ...]:
    """The differences of each floating output at a few control inputs.

    Args:
        outputs: control inputs with eager's leaves. Inputs without spread within a row say little: leave them out.
    """
    return tuple(_contrasts(outputs))


def _contrasts(outputs: Iterable[tuple[str, Sequence[Leaf]]]) -> Iterator[Contrast]:
    earlier: dict[tuple[str, tuple[int, ...]], npt.NDArray[Any]] = {}
    seen: dict[str, int] = {}
    for case, leaves in outputs:
        for leaf in leaves:
            if leaf.value is None or leaf.value.dtype.kind not in "fc" or leaf.value.size < 2:  # noqa: PLR2004 - one element has no rows
                continue
            if seen.get(leaf.name, 0) == CASES:
                earlier = {key: value for key, value in earlier.items() if key[0] != leaf.name}
                continue
            before = earlier.get((leaf.name, leaf.value.shape))
            earlier[leaf.name, leaf.value.shape] = leaf.value
            if before is None:
                continue
            seen[leaf.name] = seen.get(leaf.name, 0) + 1
            yield Contrast(
                output=leaf.name,
                case=case,
                zeros=_distance(leaf.value, np.zeros_like(leaf.value)),
                other=_distance(leaf.value, before),
                rolled=_distance(leaf.value, _rolled(leaf.value)),
                step=grid_step(leaf.value),
            )


def grid_step(value: npt.NDArray[Any]) -> float:
    """The step of the grid on which all values lie; 0 if they are not few or lie on none."""
    flat = flat_reals(value)[:LOOKED_AT].astype(np.float64)
    levels = np.unique(flat[np.isfinite(flat)])
    if not FEWEST_LEVELS <= len(levels) <= flat.size // 2:
        return 0.0
    gaps = np.diff(levels)
    step = float(gaps.min())
    is_grid = step > LEAST_STEP * np.abs(levels).max() and bool(
        np.all(np.abs(gaps / step - np.rint(gaps / step)) < NEAR)
    )
    # The mean over the whole range: a single gap carries the rounding of two values.
    return float((levels[-1] - levels[0]) / np.rint(gaps / step).sum()) if is_grid else 0.0


def _rolled(value: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Rows in another order: along the first axis that is longer than 1."""
    axis = next(index for index, length in enumerate(value.shape) if length > 1)
    return np.roll(value, 1, axis=axis)


def _distance(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
    """The largest finite difference."""
    with np.errstate(all="ignore"):
        gaps = np.abs(np.subtract(flat_reals(one), flat_reals(other), dtype=np.float64))
    return float(gaps[np.isfinite(gaps)].max(initial=0.0))
