"""All mutations of one file, in an order of which any first part is a fair sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from export_gate.wall.strength import MUTATION_KINDS
from export_gate.worker.controls.stream import Stream
from export_gate.worker.mutants.anatomy import Anatomy, Array
from export_gate.worker.mutants.attributes import attribute_mutations
from export_gate.worker.mutants.constants import constant_mutations
from export_gate.worker.mutants.operators import operator_mutations
from export_gate.worker.mutants.record import Mutation
from export_gate.worker.mutants.structure import baked_dims, cast_mutations, output_mutations
from export_gate.worker.mutants.weights import weight_mutations

Member = TypeVar("Member")


def plan_mutations(graph: Anatomy, seed: int, reference: Mapping[str, Array]) -> tuple[Mutation, ...]:
    """One of each kind in turn, and within a kind of each operator in turn.

    Args:
        graph: The file's.
        seed: Chooses elements of weights and the order.
        reference: The values of sizes that differ between inputs, at the reference input.
    """
    found = (
        *weight_mutations(graph, seed),
        *constant_mutations(graph),
        *operator_mutations(graph),
        *attribute_mutations(graph),
        *baked_dims(graph, reference),
        *cast_mutations(graph),
        *output_mutations(graph),
    )
    kinds = [[mutation for mutation in found if mutation.kind == kind] for kind in MUTATION_KINDS]
    return _in_turn([_by_operator(members, seed) for members in kinds])


def _by_operator(members: Sequence[Mutation], seed: int) -> tuple[Mutation, ...]:
    """Mutations of one kind: the operators in turn, each with its own in a seeded order."""
    groups: dict[str, list[Mutation]] = {}
    for mutation in members:
        groups.setdefault(mutation.operator, []).append(mutation)
    names = _shuffled(sorted(groups), Stream(seed, "mutants", members[0].kind)) if groups else []
    return _in_turn([_shuffled(groups[name], Stream(seed, "mutants", members[0].kind, name)) for name in names])


def _in_turn(groups: Sequence[Sequence[Mutation]]) -> tuple[Mutation, ...]:
    longest = max(map(len, groups), default=0)
    return tuple(group[turn] for turn in range(longest) for group in groups if turn < len(group))


def _shuffled(members: list[Member], stream: Stream) -> list[Member]:
    return [members[place] for place in stream.permutation(len(members))]
