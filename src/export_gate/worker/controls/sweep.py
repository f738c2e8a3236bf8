"""Every size of each dim and many size tuples, with one plain draw each: for a sweep that records only failures."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.wall.contract import ModelContract
from export_gate.worker.controls.generate import drawn_case, main_family
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.sizes import Sizes, reference_sizes
from export_gate.worker.controls.specs import total_elements
from export_gate.worker.controls.stream import Stream

LONGEST = 512
"""Sizes of one dim; of a longer range that many, evenly spread and with both ends."""
TUPLES = 200


def sweep_cases(contract: ModelContract) -> tuple[ControlCase, ...]:
    """The plainest draw at those sizes, in a seeded order so that any first part of them is spread.

    Rounded sizes go wrong at a few sizes of hundreds: `trunc(0.7 * h)` at three heights of 249, say.
    """
    family = main_family(contract)
    unique = {tuple(sizes.values()): sizes for sizes in _sizes(contract)}
    cases = [drawn_case(contract, family, 1, sizes) for sizes in unique.values() if total_elements(contract, sizes)]
    return tuple(cases[place] for place in Stream(contract.controls.seed, "sweep").permutation(len(cases)))


def _sizes(contract: ModelContract) -> Iterator[Sizes]:
    reference = reference_sizes(contract)
    ranges = {dim.name: dim.sizes for dim in contract.dims if _is_swept(contract, dim.name)}
    for name, sizes in ranges.items():
        yield from ({**reference, name: size} for size in _spread(sizes))
    if len(ranges) > 1:
        streams = {name: Stream(contract.controls.seed, "sweep", name) for name in ranges}
        chosen = {name: streams[name].integers(0, len(sizes) - 1, TUPLES) for name, sizes in ranges.items()}
        for turn in range(TUPLES):
            yield {**reference, **{name: sizes[int(chosen[name][turn])] for name, sizes in ranges.items()}}


def _is_swept(contract: ModelContract, name: str) -> bool:
    """Whether to sweep the dim: not if the project lists the sizes to try."""
    dim = contract.dim(name)
    return dim.mode != "static" and name not in contract.controls.sizes and len(dim.sizes) > 1


def _spread(sizes: range) -> list[int]:
    if len(sizes) <= LONGEST:
        return list(sizes)
    last = len(sizes) - 1
    return [sizes[turn * last // (LONGEST - 1)] for turn in range(LONGEST)]
