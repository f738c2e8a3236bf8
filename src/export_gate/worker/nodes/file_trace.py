"""Compare an ONNX file's intermediate values with the nodes of the program that it is made from.

One session returns every value that has a counterpart, in chunks if they do not fit into the memory budget; the program
runs node by node beside it. Then the nodes that come into question get the expected inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from export_gate.wall.nodes import GuiltyNode, NodeTrace
from export_gate.worker.leaves.values import Call
from export_gate.worker.nodes.file import FileGraph, fetch, parents
from export_gate.worker.nodes.gap import Gap, choose_equals, measure, with_gap
from export_gate.worker.nodes.points import points
from export_gate.worker.nodes.program import (
    Stopped,
    array_of,
    described,
    module_of,
    nodes_of,
    operator_of,
    unmapped,
    walk,
)
from export_gate.worker.nodes.search import Suspicion, suspicions
from export_gate.worker.targets.onnx import call_tensors

Array = npt.NDArray[Any]

BUDGET_BYTES = 512 * 1024 * 1024
"""Values of one side that are held at a time."""
FILE_NODES = 16
ABSENT = 4


@dataclass(slots=True, kw_only=True)
class FileTrace:
    """A file, to be compared with its program, whose values are compared once for each control input."""

    program: Any
    """As the converter decomposes it."""
    graph: FileGraph
    input_names: Sequence[str]
    """Of the tensors of a call, in order."""
    providers: Sequence[str]
    roots: tuple[Path, ...]
    optimization: str = "disable"
    budget_bytes: int = BUDGET_BYTES
    module: torch.fx.GraphModule = field(init=False)
    nodes: Mapping[str, torch.fx.Node] = field(init=False)
    mapped: dict[str, str] = field(init=False)
    """The file's value -> the program's node."""
    session: Any = None
    seen: dict[tuple[str, bool], dict[str, Gap]] = field(default_factory=dict)
    """Control input, whether dtypes count -> the file's value -> how far it is from the node's."""

    def __post_init__(self) -> None:
        self.module = module_of(self.program)
        self.nodes = nodes_of(self.module)
        # torch's exporter names a value after the node that it is of; only outputs have the contract's names.
        own = {name: name for name in self.graph.producers if name in self.nodes}
        self.mapped = own | {name: node for name, node in self._outputs() if node in self.nodes}

    def trace(self, case: str, call: Call, output: str, *, strict_dtype: bool = False) -> NodeTrace | None:
        """Find the first node of the file that differs on the way to one of its outputs.

        Args:
            case: name of the control input.
            call: its values.
            output: the graph's own name of the output.
            strict_dtype: whether another dtype is a difference.

        Returns:
            None if the output has no counterpart or does not differ from the program's.
        """
        if output not in self.mapped:
            return None
        gaps = self.seen.get((case, strict_dtype)) or self._compare(call, strict_dtype=strict_dtype)
        self.seen[case, strict_dtype] = gaps
        if output not in gaps or not gaps[output].is_wrong:
            return None
        before = parents(self.graph, gaps)
        order = self.graph.producers
        suspected = suspicions(output, gaps, before, order)
        own = self._own_gaps(suspected, call)
        confirmed = next((each for each in suspected if _is_confirmed(each, own, gaps)), None)
        nearby = _ancestors(output, before)
        guilty = None if confirmed is None else self._guilty(confirmed.name, gaps, own.get(confirmed.name))
        tested = guilty is not None and confirmed is not None and own.get(confirmed.name) is not None
        return NodeTrace(
            beside="program",
            origin="gradual" if guilty is None else "introduced" if tested else "untested",
            guilty=guilty,
            mapped=len(gaps),
            unmapped=unmapped(self.nodes, {self.mapped[name] for name in gaps}),
            points=points([(self.mapped[n], gaps[n]) for n in sorted(nearby, key=order.__getitem__)]),
        )

    def _outputs(self) -> list[tuple[str, str]]:
        """The graph's outputs with the program's, where they are as many."""
        returned = [name for name in self.program.graph_signature.user_outputs if isinstance(name, str)]
        outputs = self.graph.outputs
        pairs = zip(outputs, returned, strict=True) if len(outputs) == len(returned) else ()
        return [(output, node) for output, node in pairs if output in self.graph.producers]

    def _compare(self, call: Call, *, strict_dtype: bool) -> dict[str, Gap]:
        """Run both sides; the program's values wait until they fill the budget, then the file is asked for its own."""
        self.session = self.session or self.graph.tapped(list(self.mapped), self.providers, self.optimization)
        feeds, gaps = self._feeds(call), {}
        values = _by_node(self.mapped)
        waiting: dict[str, Array] = {}
        held_bytes = 0

        def flush() -> None:
            nonlocal held_bytes
            names = [name for node in waiting for name in values[node]]
            for name, actual in fetch(self.session, names, feeds).items():
                gaps[name] = measure(waiting[self.mapped[name]], actual, strict_dtype=strict_dtype)
            waiting.clear()
            held_bytes = 0

        def see(node: torch.fx.Node, value: Any) -> None:
            array = array_of(value) if node.name in values else None
            if array is None:
                return
            nonlocal held_bytes
            waiting[node.name] = array
            held_bytes += array.nbytes
            if held_bytes > self.budget_bytes:
                flush()

        walk(self.program, self.module, call, see)
        flush()
        return gaps

    def _own_gaps(self, suspected: Sequence[Suspicion], call: Call) -> dict[str, Gap | None]:
        """How far each suspect is with the expected inputs; None if this cannot be tried."""
        parts = {each.name: self.graph.part(each.name, self.mapped) for each in suspected}
        wanted = {name for part in parts.values() for name in part.given} | set(parts)
        expected = self._expected({self.mapped[name] for name in wanted if name in self.mapped}, call)
        feeds = self._feeds(call)
        found: dict[str, Gap | None] = {}
        for name, part in parts.items():
            given = {other: expected.get(self.mapped.get(other, ""), feeds.get(other)) for other in part.given}
            arrays = {other: array for other, array in given.items() if array is not None}
            found[name] = None
            if len(arrays) == len(given) and self.mapped[name] in expected:
                found[name] = self._own_gap(name, arrays, expected[self.mapped[name]])
            # Each test is a session of its own, and only the first confirmed suspect is reported.
            if (gap := found[name]) is not None and next(e for e in suspected if e.name == name).is_confirmed_by(gap):
                break
        return found

    def _own_gap(self, name: str, given: Mapping[str, Array], expected: Array) -> Gap | None:
        part = self.graph.part(name, self.mapped)
        try:
            session = self.graph.alone(part, name, given, self.providers)
            actual = fetch(session, [name], given)[name]
            is_tie = any(choose_equals(values, expected, actual) for values in given.values())
            return replace(measure(expected, actual), is_tie=is_tie)
        except Exception:  # noqa: BLE001 - a part of a graph may have no kernel or no types by itself
            return None

    def _expected(self, wanted: set[str], call: Call) -> dict[str, Array]:
        """The program's values of these nodes."""
        found: dict[str, Array] = {}

        def see(node: torch.fx.Node, value: Any) -> None:
            array = array_of(value) if node.name in wanted else None
            if array is not None:
                found[node.name] = array
            if len(found) == len(wanted):
                raise Stopped

        if wanted:
            walk(self.program, self.module, call, see)
        return found

    def _feeds(self, call: Call) -> dict[str, Array]:
        named = zip(self.input_names, call_tensors(call), strict=True)
        return {name: np.ascontiguousarray(tensor.detach().numpy()) for name, tensor in named}

    def _guilty(self, name: str, gaps: Mapping[str, Gap], own: Gap | None) -> GuiltyNode:
        gap, nodes, node = gaps[name], self.graph.part(name, self.mapped).nodes, self.mapped[name]
        origins = self.graph.origins(nodes)
        # Where the converter merges nodes, the value has the name of the last one, and the file's node that of its own.
        own_node = origins[0] if len(origins) == 1 and origins[0] in self.nodes else node
        files = tuple(self.graph.label(at) for at in reversed(nodes[-FILE_NODES:]))
        found = replace(described(self.nodes[own_node], self.roots), point=node, file_nodes=files)
        return with_gap(replace(found, absent=self._absent(own_node)), gap, own)

    def _absent(self, node: str) -> tuple[str, ...]:
        """Operators of the program that the file should have before this node and does not."""
        known = set(self.mapped.values())
        before = (given for given in self.nodes[node].all_input_nodes if given.name in self.nodes)
        return tuple(operator_of(given) for given in before if given.name not in known)[:ABSENT]


def _is_confirmed(suspicion: Suspicion, own: Mapping[str, Gap | None], gaps: Mapping[str, Gap]) -> bool:
    """Whether the error is the node's own; one that could not be tried counts if it is large by itself."""
    if suspicion.name not in own:
        return False
    gap = own[suspicion.name]
    return suspicion.is_confirmed_by(gaps[suspicion.name]) if gap is None else suspicion.is_confirmed_by(gap)


def _by_node(mapped: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for value, node in mapped.items():
        found.setdefault(node, []).append(value)
    return found


def _ancestors(end: str, before: Mapping[str, Sequence[str]]) -> set[str]:
    seen, waiting = {end}, [end]
    while waiting:
        more = [name for name in before.get(waiting.pop(), ()) if name not in seen]
        seen.update(more)
        waiting += more
    return seen
