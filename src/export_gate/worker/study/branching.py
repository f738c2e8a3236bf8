"""Choose further control inputs by an export's guards: declared sizes that take another branch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from export_gate.wall.contract import ModelContract
from export_gate.wall.observation import Branch
from export_gate.worker.controls.build import reference_sizes
from export_gate.worker.controls.generate import drawn_case, main_family
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.search import Tuples, search_sizes, sizes_at
from export_gate.worker.controls.sizes import Sizes
from export_gate.worker.export.branches import Bools, Guard, Integers
from export_gate.worker.study.refused_guard import breaking_sizes, line_of

LIMIT = 16
"""Sizes of one export that are run because of its guards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branching:
    """What the guards of one export ask for."""

    cases: tuple[ControlCase, ...]
    """Not among the control inputs so far."""
    branches: tuple[Branch, ...]


def branching(
    contract: ModelContract,
    guards: Sequence[Guard],
    fixed: Mapping[str, int],
    cases: Sequence[ControlCase],
    roots: tuple[Path, ...] = (),
) -> Branching:
    """Sizes that break each guard: the smallest, and the one nearest to the reference.

    Args:
        contract: Its plainest draw is made at those sizes.
        guards: Of the export.
        fixed: Dims that the export fixes.
        cases: Its control inputs so far, some of which may break a guard as well.
        roots: The project's folders, in which the line of a guard lies.
    """
    chosen: list[Sizes] = []
    for guard in guards:
        chosen += [sizes for sizes in _breaking(contract, guard, fixed) if sizes not in chosen]
    family = main_family(contract)
    made = [drawn_case(contract, family, 1, sizes) for sizes in chosen[:LIMIT]]
    known = {case.name for case in cases}
    every = (*cases, *(case for case in made if case.name not in known))
    return Branching(
        cases=every[len(cases) :],
        branches=tuple(
            replace(branch, sizes=breaking_sizes(contract, guard, fixed))
            for guard in guards
            if (branch := _branch(guard, every, roots)).cases
        ),
    )


def _breaking(contract: ModelContract, guard: Guard, fixed: Mapping[str, int]) -> Iterator[Sizes]:
    tuples = search_sizes(contract, fixed, guard.dims)
    count = len(next(iter(tuples.values())))
    broken = guard.is_broken(tuples, count)
    if broken.any():
        yield _least(tuples, broken, _total(tuples))
        yield _least(tuples, broken, _distance(tuples, {**reference_sizes(contract), **fixed}))


def _least(tuples: Tuples, among: Bools, cost: Integers) -> Sizes:
    """The tuple of least cost; those without an empty dim first, since nothing can differ there."""
    empty = np.any([column == 0 for column in tuples.values()], axis=0)
    # `lexsort` takes its last key first.
    order = np.lexsort((cost, empty, ~among))
    return sizes_at(tuples, int(order[0]))


def _total(tuples: Tuples) -> Integers:
    total: Integers = np.stack(list(tuples.values())).sum(axis=0)
    return total


def _distance(tuples: Tuples, reference: Sizes) -> Integers:
    total: Integers = np.stack([abs(column - reference[name]) for name, column in tuples.items()]).sum(axis=0)
    return total


def _branch(guard: Guard, cases: Sequence[ControlCase], roots: tuple[Path, ...]) -> Branch:
    broken = tuple(case.name for case in cases if bool(guard.is_broken(case.sizes)[0]))
    return Branch(words=guard.words, cases=broken, dims=guard.dims, source=line_of(guard, roots))


def with_swept(branch: Branch, guards: Sequence[Guard], swept: Sequence[ControlCase]) -> Branch:
    """The branch with the inputs of a sweep that take it."""
    own = [guard for guard in guards if guard.words == branch.words]
    met = (case.name for case in swept if any(bool(guard.is_broken(case.sizes)[0]) for guard in own))
    return replace(branch, swept=tuple(met))
