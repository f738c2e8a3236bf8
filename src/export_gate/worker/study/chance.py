"""Distinguish chance from memory: the same sequence of calls in two copies of the process, each with its own seeds.

What depends on earlier calls alone is the same in both; what differs is drawn. Every kind of input is tried, since a
model may draw for some of them only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
import torch

from export_gate.wall.observation import Comparison, HygieneObservation
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.specs import tensor_leaves, total_elements
from export_gate.worker.leaves.compare import compare_leaf
from export_gate.worker.leaves.values import Leaf, PackedLeaf, pack, unpack
from export_gate.worker.model.factory import seed_everything
from export_gate.worker.model.hygiene import unseeded_runner, worst_by_output, worst_differences
from export_gate.worker.process.children import CAN_FORK
from export_gate.worker.process.isolated import Isolated
from export_gate.worker.study.subject import Subject

SHOWN = 1 << 16
"""Elements of an output that cross the pipe; the digest is of all."""
LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The answer of one copy to one call."""

    digest: str = ""
    leaves: tuple[PackedLeaf, ...] = ()
    drew: bool = False
    """Whether torch's global generator moved."""
    generator: str = ""
    """Digest of its state after the call."""
    died: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """The answers of two copies of one process to the same calls, compared."""

    outputs: tuple[Comparison, ...] = ()
    """Outputs that differ between them, the worst each."""
    draws: bool = False
    """Whether forward draws from torch's global generator as its caller left it: it does not seed it itself."""


def observe_chance(cases: Sequence[ControlCase], subject: Subject) -> Chance | None:
    """Run each kind of input twice in a row in two copies, and compare call by call; None if there is no fork."""
    if not CAN_FORK:
        return None
    calls = [case for case in kinds_of(cases, subject) for _ in range(2)]
    numbered = list(enumerate(calls))
    with _copy(subject, 1).begun(numbered) as one, _copy(subject, 2).begun(numbered) as other:
        # Once one copy alone died, as at its time limit, what is left of it has other earlier calls than the other one.
        pairs = list(takewhile(lambda pair: pair[0].died == pair[1].died, zip(one(), other(), strict=True)))
    return Chance(
        outputs=worst_by_output(comparison for pair in pairs for comparison in differences(*pair)),
        draws=any(first.drew and first.generator != second.generator for first, second in pairs),
    )


def without_confusion(facts: HygieneObservation, chance: Chance | None) -> HygieneObservation:
    """The facts with chance and memory distinguished, as far as two copies could be compared.

    Where both copies agree, repeats that differ do so because of earlier calls, wherever the model keeps them.
    """
    if chance is None:
        return facts
    # Once chance is seen, nothing can be said of state: its effects would look the same.
    if chance.outputs:
        found = worst_by_output((*facts.nondeterministic, *chance.outputs))
        return replace(facts, nondeterministic=found, state_effects=(), draws=chance.draws)
    effects = worst_by_output((*facts.nondeterministic, *facts.state_effects))
    return replace(facts, nondeterministic=(), state_effects=effects, draws=chance.draws)


def kinds_of(cases: Sequence[ControlCase], subject: Subject) -> tuple[ControlCase, ...]:
    """The smallest input with elements of each family, and the first of each source; in their order."""
    leaves = tensor_leaves(subject.contract)
    smallest: dict[tuple[str, str], tuple[int, ControlCase]] = {}
    for case in cases:
        is_generated = case.group == "generated"
        count = total_elements(subject.contract, case.sizes) if is_generated and leaves else 1
        kind = (case.group, case.family if is_generated else "")
        if count and case.group != "affine" and (kind not in smallest or count < smallest[kind][0]):
            smallest[kind] = (count, case)
    return tuple(case for _, case in smallest.values())


def _copy(subject: Subject, seed: int) -> Isolated[tuple[int, ControlCase], Said]:
    run = unseeded_runner(subject.module)

    def call(given: tuple[int, ControlCase]) -> Said:
        number, case = given
        # Another seed for each call too: with one seed, a model that draws would answer every repeat alike.
        seed_everything(1000 * seed + number)
        before = torch.get_rng_state()
        try:
            leaves = run(subject.call(case))
        except (Exception, SystemExit):  # noqa: BLE001 - eager's refusals are recorded where its references are made
            return Said()
        after = torch.get_rng_state()
        return replace(
            said_of(leaves),
            drew=not torch.equal(before, after),
            generator=hashlib.sha256(after.numpy().tobytes()).hexdigest(),
        )

    return Isolated(kind=Said, call=call, died=lambda *_: Said(died=True), limit_s=LIMIT_S)


def _digest(leaves: Sequence[Leaf]) -> str:
    """A digest of names, dtypes, shapes and values; all NaNs are equal."""
    total = hashlib.sha256()
    for leaf in leaves:
        total.update(f"{leaf.name} {leaf.dtype} {leaf.constant}".encode())
        if leaf.value is not None:
            is_number = leaf.value == leaf.value
            total.update(f"{leaf.value.shape}".encode())
            # NaNs may differ in their payload, so their places are added instead.
            total.update(np.where(is_number, leaf.value, np.zeros_like(leaf.value)).tobytes())
            total.update(np.packbits(is_number).tobytes())
    return total.hexdigest()


def _shown(leaf: Leaf) -> Leaf:
    if leaf.value is None or leaf.value.size <= SHOWN:
        return leaf
    return replace(leaf, value=leaf.value.reshape(-1)[:: leaf.value.size // SHOWN])


def said_of(leaves: Sequence[Leaf]) -> Said:
    """The answer as it crosses a pipe."""
    return Said(digest=_digest(leaves), leaves=tuple(pack(_shown(leaf)) for leaf in leaves))


def differences(one: Said, other: Said) -> tuple[Comparison, ...]:
    """The outputs in which two answers differ; all of them if one call raised."""
    if one.digest == other.digest:
        return ()
    first, second = (tuple(unpack(leaf) for leaf in said.leaves) for said in (one, other))
    found = worst_differences([(first, second)])
    if found or not first:
        return found
    # The elements that differ are not among those shown.
    return tuple(
        replace(compare_leaf(leaf, leaf), mismatched_elements=1) for leaf in first[:1] if leaf.value is not None
    )
