"""All mutations of one file, in an order of which any first part is a fair sample."""

from __future__ import annotations

from collections.abc import Mapping

from export_gate.worker.controls.stream import Stream
from export_gate.worker.mutants.anatomy import Anatomy, Array
from export_gate.worker.mutants.attributes import attribute_mutations
from export_gate.worker.mutants.constants import constant_mutations
from export_gate.worker.mutants.operators import operator_mutations
from export_gate.worker.mutants.record import Mutation
from export_gate.worker.mutants.structure import baked_dims, cast_mutations, output_mutations
from export_gate.worker.mutants.weights import weight_mutations


def plan_mutations(graph: Anatomy, seed: int, reference: Mapping[str, Array]) -> tuple[Mutation, ...]:
    """One of each kind and operator in turn; within these in a seeded order.

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
    groups: dict[tuple[str, str], list[Mutation]] = {}
    for mutation in found:
        groups.setdefault((mutation.kind, mutation.operator), []).append(mutation)
    shuffled = [_shuffled(members, Stream(seed, "mutants", *key)) for key, members in sorted(groups.items())]
    longest = max(map(len, shuffled), default=0)
    return tuple(group[turn] for turn in range(longest) for group in shuffled if turn < len(group))


def _shuffled(members: list[Mutation], stream: Stream) -> list[Mutation]:
    return [members[place] for place in stream.permutation(len(members))]
