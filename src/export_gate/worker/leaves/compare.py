"""Compare expected and actual output leaves: compute every number that a verdict depends on.

It needs only NumPy, so that recorded outputs can be compared again without torch. Arrays are read in blocks: in
addition to its inputs, a comparison keeps one float64 per element (for the quantiles), and nothing of that size if the
arrays are identical.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from export_gate.wall.contract import Tolerance
from export_gate.wall.equivalence import first_fault
from export_gate.wall.observation import AxisNorms, CaseResult, Comparison, NonfiniteCount, Structure
from export_gate.worker.leaves.sentinels import sentinel_norms, sentinels
from export_gate.worker.leaves.totals import QUANTILES_PER_MILLE, Totals, layout_of
from export_gate.worker.leaves.values import Leaf

Array = npt.NDArray[Any]

AXIS_NORMS_LIMIT = 256
"""Longer axes keep only the norms that can decide a verdict."""


def compare_case(
    case: str,
    expected: Sequence[Leaf],
    actual: Sequence[Leaf],
    axis: int | None = None,
    keep: Mapping[str, npt.NDArray[np.bool_]] = MappingProxyType({}),
) -> CaseResult:
    """Compare all leaves of one control input; for leaves that are not numbers, only the structure is compared.

    Args:
        case: the control input.
        expected: eager's leaves.
        actual: an artifact's leaves.
        axis: the tolerance axis.
        keep: output -> bool of its shape: the elements that are compared. Outputs that are missing are compared whole.
    """
    wanted, found = tuple(_mark(leaf) for leaf in expected), tuple(_mark(leaf) for leaf in actual)
    if wanted != found:
        return CaseResult(case=case, structure=Structure(expected=wanted, actual=found))
    pairs = zip(expected, actual, strict=True)
    return CaseResult(
        case=case, outputs=tuple(compare_leaf(e, a, axis, keep.get(e.name)) for e, a in pairs if e.value is not None)
    )


def agree(
    expected: Sequence[Leaf],
    actual: Sequence[Leaf],
    tolerance: Callable[[str], Tolerance],
    kept: Mapping[str, npt.NDArray[np.bool_]] = MappingProxyType({}),
) -> bool:
    """Whether all leaves are equivalent within the tolerance of each dtype, NaN and infinity in the same places.

    Args:
        expected: eager's.
        actual: an artifact's.
        tolerance: of each dtype.
        kept: output -> bool of its shape, the elements that are compared; of other outputs all are.
    """
    result = compare_case("", expected, actual, None, kept)
    faulty = (first_fault(each, tolerance(each.expected_dtype), "match") for each in result.outputs)
    return result.structure is None and not any(faulty)


def compare_leaf(
    expected: Leaf, actual: Leaf, axis: int | None = None, keep: npt.NDArray[np.bool_] | None = None
) -> Comparison:
    """Compare two leaves with numeric values; elements outside `keep` (bool of their shape) count as equal zeros.

    Floats are subtracted in float64: exact for float32 and narrower unless the exponents lie far apart, then rounded
    once (relative error 2**-53). Integers are subtracted exactly. Complex numbers count as pairs of reals; counts and
    `where` stay those of the complex elements. Source: the definition in README.md, "What 'verified' means".
    """
    expected = _as_counted(expected, actual)
    if expected.value is None or actual.value is None:
        raise ValueError(f"leaf {expected.name!r} is not numeric")
    head = Comparison(
        output=expected.name,
        expected_dtype=expected.dtype,
        actual_dtype=actual.dtype,
        expected_shape=expected.value.shape,
        actual_shape=actual.value.shape,
    )
    is_comparable = head.expected_dtype == head.actual_dtype and head.expected_shape == head.actual_shape
    if not is_comparable or expected.value.size == 0:
        return head
    if keep is None:
        return _measure(replace(head, elements=expected.value.size), expected.value, actual.value, axis)
    e, a = (np.where(keep, value, np.zeros((), value.dtype)) for value in (expected.value, actual.value))
    return _measure(replace(head, elements=int(keep.sum())), e, a, axis)


def _mark(leaf: Leaf) -> str:
    constant = f" {leaf.constant}" if leaf.constant else ""
    return f"{leaf.name}:{leaf.dtype}{constant}" if leaf.value is None else leaf.name


def _as_counted(expected: Leaf, actual: Leaf) -> Leaf:
    """A Python float counts as float32, which artifacts return for it, unless it is too large for float32."""
    if not (expected.python and expected.dtype == "float64" and actual.dtype == "float32"):
        return expected
    assert expected.value is not None
    with np.errstate(over="ignore"):
        rounded = expected.value.astype(np.float32)
    fits = bool(np.isfinite(rounded) == np.isfinite(expected.value))
    return replace(expected, dtype="float32", value=rounded if fits else expected.value)


def _measure(head: Comparison, expected: Array, actual: Array, axis: int | None) -> Comparison:
    e, a = flat_reals(expected), flat_reals(actual)
    parts = e.size // expected.size
    rank = expected.ndim
    has_axis = axis is not None and -rank <= axis < rank
    far = sentinels(e) if parts == 1 else None
    unequal = 0
    # Before placeholders are set to zero, since unequal ones are a mismatch too.
    is_same = _is_identical(e, a)
    if far is not None:
        apart = far & np.isfinite(a)
        unequal = int(np.count_nonzero(e[apart] != a[apart]))
        head = replace(head, sentinels=sentinel_norms(e, a, far))
        e, a = np.where(far, e.dtype.type(0), e), np.where(apart, a.dtype.type(0), a)
    scale = _finite_scale(e) if is_same and not has_axis else None
    if scale is not None:
        zeros = (0.0,) * len(QUANTILES_PER_MILLE)
        top1 = 1.0 if _has_rows(expected) else None
        return replace(head, expected_max_abs=scale, error_quantiles=zeros, top1_agreement=top1)
    totals = Totals.of(e, a, layout_of(expected.shape, axis if has_axis else None, parts), parts)
    at = totals.largest_at
    return replace(
        head,
        max_abs_diff=float(totals.largest),
        expected_max_abs=float(totals.scale_norms.max()),
        where=None if at is None else _index(at // parts, expected.shape),
        expected_at=None if at is None else float(e[at]),
        actual_at=None if at is None else float(a[at]),
        mismatched_elements=totals.mismatched + unequal,
        nonfinite_mismatched=totals.nonfinite_mismatched,
        nonfinite_where=None if totals.nonfinite_at is None else _index(totals.nonfinite_at, expected.shape),
        expected_nonfinite=_count(totals.expected_nonfinite),
        actual_nonfinite=_count(totals.actual_nonfinite),
        error_quantiles=totals.quantiles(),
        top1_agreement=_top1_agreement(expected, actual) if _has_rows(expected) else None,
        per_axis=_axis_norms(totals) if has_axis else (),
    )


def flat_reals(array: Array) -> Array:
    """All elements in C order as integers or real floats: bool as uint8, complex as (real, imaginary)."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "b":
        return flat.view(np.uint8)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _is_identical(e: Array, a: Array) -> bool:
    bits = np.dtype(f"u{e.dtype.itemsize}")
    return e.dtype == a.dtype and bool(np.array_equal(e.view(bits), a.view(bits)))


def _finite_scale(e: Array) -> float | None:
    """The largest |e|, or None if an element is not finite."""
    low, high = e.min().item(), e.max().item()
    return float(max(abs(low), abs(high))) if math.isfinite(low) and math.isfinite(high) else None


def _axis_norms(totals: Totals) -> tuple[AxisNorms, ...]:
    """Norms of each index; for a long axis, only those that no other index dominates.

    Index i dominates j if its difference is at least as large and its norm at most as large. Under any tolerance, j
    then fails only if i fails as well, so the verdict is the same without j.
    """
    gaps, scales = totals.gap_norms, totals.scale_norms
    kept = range(len(gaps)) if len(gaps) <= AXIS_NORMS_LIMIT else _undominated(gaps, scales)
    return tuple(AxisNorms(index=i, max_abs_diff=float(gaps[i]), expected_max_abs=float(scales[i])) for i in kept)


def _undominated(gaps: Array, scales: Array) -> list[int]:
    # `lexsort` takes its last key first: by norm, and of equal ones the largest difference first.
    order = np.lexsort((-gaps.astype(np.float64), scales))
    before = np.maximum.accumulate(gaps[order])  # norms grow along `order`, so only a larger difference still matters
    is_kept = np.concatenate([[True], before[1:] > before[:-1]])
    return sorted(order[is_kept].tolist())


def _has_rows(array: Array) -> bool:
    return array.ndim > 0 and array.shape[-1] > 1 and array.dtype.kind != "c"


def _top1_agreement(expected: Array, actual: Array) -> float:
    return float(np.mean(_top1(expected) == _top1(actual)))


def _top1(array: Array) -> Array:
    """Index of each row's largest entry that is not NaN; -1 if all are NaN."""
    top: Array = np.asarray(array.argmax(axis=-1))
    if array.dtype.kind != "f" or not np.isnan(np.take_along_axis(array, top[..., None], axis=-1)).any():
        return top  # argmax stops at the first NaN, so none of the rows has one
    numbers = ~np.isnan(array)
    filled = np.where(numbers, array, -np.inf)
    top = filled.argmax(axis=-1)
    only_neginf = np.take_along_axis(filled, top[..., None], axis=-1)[..., 0] == -np.inf
    top = np.where(only_neginf, numbers.argmax(axis=-1), top)
    return np.where(numbers.any(axis=-1), top, -1)


def _index(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(position, shape))


def _count(counts: npt.NDArray[np.int64]) -> NonfiniteCount:
    return NonfiniteCount(nan=int(counts[0]), posinf=int(counts[1]), neginf=int(counts[2]))
