"""Entries that are placeholders rather than results: -1e9 in a masked logit, the extreme of a dtype.

They would set the scale of all other entries, so that nothing else could exceed its tolerance. They are compared on
their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from export_gate.wall.observation import SentinelNorms

Array = npt.NDArray[Any]

FAR = 1e4
"""An entry beyond this many times the median magnitude is a placeholder."""
EXTREME = 0.999
"""So is one beyond this share of the dtype's largest value."""
SAMPLE = 4096
"""Entries that a first look takes; most outputs have no placeholder and need no second one."""


def sentinels(e: Array) -> npt.NDArray[np.bool_] | None:
    """Which of the flat floats are placeholders; None if none is. Zeros do not count towards the median."""
    if e.dtype.kind != "f" or e.size < 2:  # noqa: PLR2004 - one entry has no company
        return None
    with np.errstate(all="ignore"):
        largest = max(abs(float(e.min())), abs(float(e.max())))
        step = max(1, e.size // SAMPLE)
        extreme = EXTREME * float(np.finfo(e.dtype).max)
        # A tenth, because the median of a sample is only near that of all.
        if largest < extreme and largest <= FAR / 10 * _median(np.abs(e[::step])):  # false for a NaN
            return None
        magnitude = np.abs(e)
        finite = np.isfinite(magnitude)
        far = finite & ((magnitude > FAR * _median(magnitude)) | (magnitude >= extreme))
    # If all of them are far, they are the output itself; so are the peaks of probabilities, which are of many sizes.
    if not far.any() or far[finite].all() or (largest <= 1 and np.ptp(e[far])):
        return None
    return far


def sentinel_norms(e: Array, a: Array, far: npt.NDArray[np.bool_]) -> SentinelNorms:
    """Compare eager's placeholders with the artifact's entries at the same places."""
    with np.errstate(all="ignore"):
        gaps = np.abs(np.subtract(a[far], e[far], dtype=np.float64))
    finite = np.isfinite(gaps)
    return SentinelNorms(
        count=int(far.sum()),
        max_abs_diff=float(gaps[finite].max(initial=0.0)),
        expected_max_abs=float(np.abs(e[far].astype(np.float64)).max()),
    )


def _median(magnitude: Array) -> float:
    """The median of the finite entries that are not zero; zero if there are none."""
    some = magnitude[np.isfinite(magnitude) & (magnitude > 0)]
    return float(np.median(some.astype(np.float64))) if some.size else 0.0
