"""Measure eager's own noise at a float mismatch: the same call in float64, in another layout, and one ulp away.

Only after a mismatch, since it costs several forwards. The definition is `wall/noise.py`'s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from export_gate.wall.contract import Tolerance
from export_gate.wall.equivalence import failing_norms, is_excused
from export_gate.wall.noise import FLAT_FAMILIES, AxisNoise, Noise
from export_gate.wall.observation import Comparison
from export_gate.worker.controls.layout import channels_last, map_tensors, noncontiguous, tensors_in
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.stream import Stream
from export_gate.worker.leaves.compare import flat_reals
from export_gate.worker.leaves.totals import layout_of
from export_gate.worker.leaves.values import Leaf, Values
from export_gate.worker.study.laboratory import Laboratory, attempt

Array = npt.NDArray[Any]
Maxima = npt.NDArray[np.float64]
"""One maximum for each index of the tolerance axis; one in all if there is no axis."""

JITTER_DRAWS = 8
BRANCH_DRAWS = 4
SEED = 20261020
IMAGE_RANKS = (4, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One output whose values differ: eager's leaf and the artifact's."""

    comparison: Comparison
    expected: Leaf
    actual: Leaf
    keep: npt.NDArray[np.bool_] | None = None
    """The elements that count; None is all of them."""


def numbers_of(output: str, expected: Sequence[Leaf], actual: Sequence[Leaf]) -> tuple[Leaf, Leaf] | None:
    """One output of both sides; None if one of them lacks it, or has no numbers there."""
    pairs = ((e, a) for e in expected for a in actual if e.name == a.name == output)
    found = next(pairs, None)
    return found if found and found[0].value is not None and found[1].value is not None else None


def measured(
    pairs: Sequence[Pair], case: ControlCase, tolerance: Callable[[str], Tolerance], laboratory: Laboratory
) -> tuple[Noise, ...]:
    """The noise at each pair, measured until it excuses the difference; empty if there is no float64 result.

    Args:
        pairs: outputs of one control input that exceed their tolerance.
        case: the control input.
        tolerance: maps an output's dtype to its tolerance.
        laboratory: runs eager again.
    """
    if not pairs:
        return ()
    exact = {leaf.name: leaf for leaf in attempt(lambda: laboratory.widened(case.make())) or ()}
    gauges = [
        Gauge.start(pair, exact[pair.comparison.output], tolerance(pair.expected.dtype), case)
        for pair in pairs
        if _shape(exact.get(pair.comparison.output)) == pair.comparison.expected_shape
    ]
    gauges = _at_other_branches(gauges, pairs, case, tolerance, laboratory)
    for kind, values in _perturbed(case):
        # Before each draw, because it costs a forward: most differences are excused after one or two.
        if all(gauge.is_excused for gauge in gauges):
            break
        again = attempt(lambda values=values: laboratory.again(values))  # type: ignore[misc] # bound per turn
        for gauge, leaf in _paired(gauges, again or ()):
            gauge.add(kind, leaf)
    return tuple(gauge.noise() for gauge in gauges)


def _at_other_branches(
    gauges: list[Gauge],
    pairs: Sequence[Pair],
    case: ControlCase,
    tolerance: Callable[[str], Tolerance],
    laboratory: Laboratory,
) -> list[Gauge]:
    """The gauges, with the float64 result of the other branch where that is what the artifact has taken."""
    if all(gauge.is_excused for gauge in gauges):
        return gauges
    other = {
        leaf.name: leaf for leaf in attempt(lambda: laboratory.widened_otherwise(case.make(), _beside(case))) or ()
    }
    found = []
    for gauge in gauges:
        name = gauge.comparison.output
        pair = next(pair for pair in pairs if pair.comparison.output == name)
        if not gauge.is_excused and _shape(other.get(name)) == pair.comparison.expected_shape:
            turned = Gauge.start(pair, other[name], tolerance(pair.expected.dtype), case)
            found.append(turned if turned.is_excused else gauge)
        else:
            found.append(gauge)
    return found


@dataclass(slots=True, kw_only=True)
class Gauge:
    """The maxima of one output, as far as they are known."""

    comparison: Comparison
    tolerance: Tolerance
    case: ControlCase
    expected: Array
    """Flat reals of eager's leaf."""
    layout: tuple[int, int, int]
    finite: npt.NDArray[np.bool_]
    """Entries that are finite in eager, artifact and float64."""
    distance: Maxima
    maxima: dict[str, Maxima]
    """f64, layout, jitter."""
    draws: int = 0

    @classmethod
    def start(cls, pair: Pair, exact: Leaf, tolerance: Tolerance, case: ControlCase) -> Gauge:
        """A gauge with the distances that float64 gives."""
        shape, axis = pair.comparison.expected_shape, tolerance.axis
        has_axis = axis is not None and -len(shape) <= axis < len(shape)
        e, a, m = (_reals(leaf) for leaf in (pair.expected, pair.actual, exact))
        parts = e.size // max(math.prod(shape), 1)
        layout = layout_of(shape, axis if has_axis else None, parts)
        finite = np.isfinite(e) & np.isfinite(a) & np.isfinite(m)
        if pair.keep is not None:
            # A complex element is two reals.
            finite &= np.repeat(pair.keep.reshape(-1), parts)
        none = np.zeros(layout[1])
        return cls(
            comparison=pair.comparison,
            tolerance=tolerance,
            case=case,
            expected=e,
            layout=layout,
            finite=finite,
            distance=_maxima(a, m, finite, layout),
            # A copy, because `add` writes into both.
            maxima={"f64": _maxima(e, m, finite, layout), "layout": none, "jitter": none.copy()},
        )

    def add(self, kind: str, leaf: Leaf) -> None:
        """Take in eager's answer to a perturbed input."""
        self.draws += kind == "jitter"
        other = _reals(leaf)
        finite = self.finite & np.isfinite(other)
        np.maximum(self.maxima[kind], _maxima(other, self.expected, finite, self.layout), out=self.maxima[kind])

    @property
    def is_excused(self) -> bool:
        """Whether what is known excuses the difference."""
        return is_excused(self.comparison, self.tolerance, self.noise())

    def noise(self) -> Noise:
        """The record."""
        indices = [norm.index for norm in failing_norms(self.comparison, self.tolerance) if norm.index is not None]
        whole = {kind: float(maxima.max(initial=0.0)) for kind, maxima in self.maxima.items()}
        return Noise(
            output=self.comparison.output,
            case=self.case.name,
            distance=float(self.distance.max(initial=0.0)),
            draws=self.draws,
            is_flat=self.case.family in FLAT_FAMILIES,
            per_axis=tuple(
                AxisNoise(
                    index=index,
                    distance=float(self.distance[index]),
                    **{kind: float(maxima[index]) for kind, maxima in self.maxima.items()},
                )
                for index in indices
            ),
            **whole,
        )


def _maxima(one: Array, other: Array, finite: Array, layout: tuple[int, int, int]) -> Maxima:
    with np.errstate(all="ignore"):
        gap = np.where(finite, np.abs(one - other), 0.0).reshape(layout)
    maxima: Maxima = gap.max(axis=(0, 2), initial=0.0)
    return maxima


def _perturbed(case: ControlCase) -> Iterator[tuple[str, Values]]:
    """Inputs that are the same but for layout or rounding."""
    # The layout first: it is one forward, and is all that inputs without floats have.
    values = case.make()
    yield "layout", _other_layout(values)
    yield from (("jitter", moved) for moved in jittered(case))


def jittered(case: ControlCase) -> Iterator[Values]:
    """The input with its floating elements moved by 0 or 1 ulp, in several draws; none if it has no such element."""
    if any(tensor.is_floating_point() or tensor.is_complex() for _, tensor in tensors_in(case.make())):
        for draw in range(JITTER_DRAWS):
            stream = Stream(SEED, case.name, f"jitter-{draw}")
            yield map_tensors(case.make(), lambda tensor, stream=stream: _moved(tensor, stream))  # type: ignore[misc] # bound per draw


def _beside(case: ControlCase) -> Iterator[Values]:
    """Inputs beside this one, at which conditions are as inexact as here: zeros stay exact."""
    for draw in range(BRANCH_DRAWS):
        stream = Stream(SEED, case.name, f"beside-{draw}")
        yield map_tensors(case.make(), lambda tensor, stream=stream: _moved(tensor, stream, zeros=False))  # type: ignore[misc] # bound per draw


def _other_layout(values: Values) -> Values:
    has_image = any(tensor.dim() in IMAGE_RANKS for _, tensor in tensors_in(values))
    changed: Values = channels_last(values) if has_image else noncontiguous(values)
    return changed


def _moved(tensor: torch.Tensor, stream: Stream, *, zeros: bool = True) -> torch.Tensor:
    """Each floating element moved up by 0 or 1 ulp (zeros by one of the largest element's), at random."""
    if tensor.is_complex():
        return torch.view_as_complex(_moved(torch.view_as_real(tensor), stream, zeros=zeros)).clone()
    if not tensor.is_floating_point():
        return tensor
    flat = tensor.reshape(-1)
    up = stepped(flat, torch.inf)
    # The step beside 0 is too small to change any sum, so that zeros would have no noise.
    up = torch.where(flat == 0, torch.finfo(flat.dtype).eps * _scale(flat), up) if zeros else up
    coins = torch.from_numpy(stream.integers(0, 1, flat.numel())).bool()
    return torch.where(coins, up, flat).reshape(tensor.shape)


def stepped(tensor: torch.Tensor, towards: float) -> torch.Tensor:
    """Each float, and both parts of each complex number, moved by one ulp."""
    if tensor.is_complex():
        return torch.view_as_complex(stepped(torch.view_as_real(tensor), towards))
    return torch.nextafter(tensor, torch.full_like(tensor, towards)) if tensor.is_floating_point() else tensor


def _scale(flat: torch.Tensor) -> float:
    """The largest finite magnitude; 1 of zeros alone."""
    finite = flat[torch.isfinite(flat)]
    return float(finite.abs().max()) or 1.0 if finite.numel() else 1.0


def _shape(leaf: Leaf | None) -> tuple[int, ...] | None:
    return None if leaf is None or leaf.value is None or leaf.value.dtype.kind not in "fc" else leaf.value.shape


def _reals(leaf: Leaf) -> Array:
    assert leaf.value is not None
    reals: Array = flat_reals(leaf.value).astype(np.float64)
    return reals


def _paired(gauges: Sequence[Gauge], again: Sequence[Leaf]) -> Iterator[tuple[Gauge, Leaf]]:
    by_name = {leaf.name: leaf for leaf in again}
    for gauge in gauges:
        leaf = by_name.get(gauge.comparison.output)
        if leaf is not None and _shape(leaf) == gauge.comparison.expected_shape:
            yield gauge, leaf
