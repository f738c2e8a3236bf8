"""Many declared size tuples at once, as one array for each dim, to search them for a condition on sizes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from export_gate.wall.contract import Dim, ModelContract
from export_gate.worker.controls.sizes import Sizes, reference_sizes
from export_gate.worker.controls.stream import Stream

EXHAUSTIVE = 1_000_000
"""Up to this many tuples of the dims that matter, all are tried: NumPy takes some 10 ms for them."""
SEEDED = 20_000
LONGEST = 20_000
"""Sizes of one dim that are tried while all others stay."""

Tuples = dict[str, npt.NDArray[np.int64]]


def search_sizes(contract: ModelContract, fixed: Mapping[str, int], dims: Sequence[str]) -> Tuples:
    """Declared sizes of `dims`, all other dims at their reference; `fixed` dims stay as they are.

    All of them where there are few enough, else each dim's sizes alone, the ends and neighbours of pairs, equal and
    neighbouring sizes of two dims, and seeded ones.
    """
    reference = {**reference_sizes(contract), **fixed}
    ranges = {dim.name: _range(dim, reference, fixed) for dim in contract.dims if dim.name in dims}
    if math.prod(map(len, ranges.values())) <= EXHAUSTIVE:
        columns = np.meshgrid(*(np.asarray(sizes, dtype=np.int64) for sizes in ranges.values()), indexing="ij")
        found = {name: column.reshape(-1) for name, column in zip(ranges, columns, strict=True)}
    else:
        found = _sampled(contract, ranges, reference)
    count = next((len(column) for column in found.values()), 1)
    return {dim.name: found.get(dim.name, np.full(count, reference[dim.name])) for dim in contract.dims}


def sizes_at(tuples: Tuples, index: int) -> Sizes:
    """One of the tuples."""
    return {name: int(column[index]) for name, column in tuples.items()}


def _range(dim: Dim, reference: Sizes, fixed: Mapping[str, int]) -> range:
    only = range(reference[dim.name], reference[dim.name] + 1)
    return only if dim.mode == "static" or dim.name in fixed else dim.sizes


def _sampled(contract: ModelContract, ranges: Mapping[str, range], reference: Sizes) -> Tuples:
    blocks = [_seeded(contract, ranges)]
    blocks += [_varied(ranges, reference, {name: _spread(sizes)}) for name, sizes in ranges.items()]
    blocks += [_varied(ranges, reference, pair) for pair in _pairs(ranges)]
    return {name: np.concatenate([block[name] for block in blocks]) for name in ranges}


def _seeded(contract: ModelContract, ranges: Mapping[str, range]) -> Tuples:
    seed = contract.controls.seed
    return {
        name: sizes.start + sizes.step * Stream(seed, "sizes", name).integers(0, len(sizes) - 1, SEEDED)
        for name, sizes in ranges.items()
    }


def _pairs(ranges: Mapping[str, range]) -> Iterator[Tuples]:
    for one, other in itertools.combinations(ranges, 2):
        ends = [(*sizes[:2], *sizes[-2:]) for sizes in (ranges[one], ranges[other])]
        first, second = np.meshgrid(*(np.asarray(sizes, dtype=np.int64) for sizes in ends))
        yield {one: first.reshape(-1), other: second.reshape(-1)}
        near = _spread(ranges[one])
        for step in (-1, 0, 1):
            inside = _is_in(near + step, ranges[other])
            yield {one: near[inside], other: near[inside] + step}


def _is_in(values: npt.NDArray[np.int64], sizes: range) -> npt.NDArray[np.bool_]:
    inside: npt.NDArray[np.bool_] = (values >= sizes[0]) & (values <= sizes[-1])
    # Only ranges with a step (`multiple-of`) lose any here.
    inside &= (values - sizes.start) % sizes.step == 0
    return inside


def _spread(sizes: range) -> npt.NDArray[np.int64]:
    """At most `LONGEST` of the sizes, evenly."""
    return np.asarray(sizes[:: -(-len(sizes) // LONGEST)], dtype=np.int64)


def _varied(ranges: Mapping[str, range], reference: Sizes, varied: Tuples) -> Tuples:
    count = len(next(iter(varied.values())))
    return {name: varied.get(name, np.full(count, reference[name])) for name in ranges}
