"""Compare a program's values with eager's own, operator by operator, to find the first node that differs.

Both sides dispatch to the same operators in the same order, unless the program took another branch. Those that both
have are compared in order; the program's nodes are the ones that dispatched them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from export_gate.wall.nodes import GuiltyNode, NodeTrace
from export_gate.worker.leaves.values import Call
from export_gate.worker.model.factory import seed_everything
from export_gate.worker.nodes.gap import Gap, measure, with_gap
from export_gate.worker.nodes.points import points
from export_gate.worker.nodes.program import array_of, described, flat_inputs, module_of, nodes_of, unmapped, walk
from export_gate.worker.nodes.search import Suspicion, suspicions

BUDGET_BYTES = 256 * 1024 * 1024
"""Eager's values that are kept; operators after that are not compared."""
MOST_OPERATORS = 20_000
"""Operators after that are not compared: the time to align two sequences grows with the square of their length."""
QUIET = frozenset(("detach", "alias", "lift_fresh", "lift_fresh_copy", "_assert_async", "_assert_scalar", "clone"))
"""Operators that compute nothing, of which one side may have more."""


@dataclass(slots=True, kw_only=True)
class Operation:
    """One operator that ran."""

    name: str
    values: tuple[torch.Tensor, ...]
    """Copies of what it returned; empty once the budget is used up."""
    node: str = ""
    """The program's node that dispatched it; empty for eager."""


class Recorder(TorchDispatchMode):  # type: ignore[misc] # torch is untyped here
    """Lists the operators that run, with copies of what they return."""

    def __init__(self, budget_bytes: int) -> None:
        super().__init__()
        self.operations: list[Operation] = []
        self.left_bytes = budget_bytes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator and note it."""
        returned = func(*args, **(kwargs or {}))
        name = str(getattr(func, "_opname", func))
        if name not in QUIET and len(self.operations) < MOST_OPERATORS:
            tensors = [value for value in pytree.tree_leaves(returned) if isinstance(value, torch.Tensor)]
            self.left_bytes -= sum(tensor.nbytes for tensor in tensors)
            # Noted beyond the budget too, without values: the alignment needs every operator.
            kept = tuple(tensor.detach().clone() for tensor in tensors) if self.left_bytes > 0 else ()
            self.operations.append(Operation(name=name, values=kept))
        return returned


@dataclass(slots=True, kw_only=True)
class EagerTrace:
    """A program, to be compared with eager."""

    program: Any
    """Not decomposed: its operators are eager's."""
    roots: tuple[Path, ...]
    budget_bytes: int = BUDGET_BYTES
    module: torch.fx.GraphModule = field(init=False)

    def __post_init__(self) -> None:
        self.module = module_of(self.program)

    def trace(
        self, call: Callable[[], Call], eager: torch.nn.Module, output: int, *, strict_dtype: bool = False
    ) -> NodeTrace | None:
        """Find the first node whose value is not eager's.

        Args:
            call: makes the control input's values afresh, since either side may change them.
            eager: an instance with the program's weights.
            output: place of the output among the program's flat outputs.
            strict_dtype: whether another dtype is a difference.

        Returns:
            None if the node that returns the output has no counterpart in eager, or does not differ from it.
        """
        nodes = nodes_of(self.module)
        end = self._end(output)
        expected = self._paired(call, eager)
        gaps = {name: _gap(theirs, ours, strict_dtype=strict_dtype) for name, theirs, ours in expected}
        if end not in gaps or not gaps[end].is_wrong:
            return None
        before = {name: _nearest(nodes[name], gaps) for name in gaps}
        order = {name: at for at, name in enumerate(nodes)}
        eagers = {name: theirs for name, theirs, _ in expected}
        suspected = suspicions(end, gaps, before, order)
        # One by one: only the first that is confirmed is reported, and each test draws the input anew.
        tested = ((each, self._own_gap(nodes[each.name], eagers, call())) for each in suspected)
        confirmed = next((pair for pair in tested if _is_confirmed(*pair, gaps)), None)
        return NodeTrace(
            beside="eager",
            # Gradual: no node adds the error by itself, it grows along the way.
            origin="gradual" if confirmed is None else "untested" if confirmed[1] is None else "introduced",
            guilty=None if confirmed is None else self._guilty(confirmed[0].name, gaps, confirmed[1]),
            mapped=len(gaps),
            unmapped=unmapped(nodes, gaps),
            points=points([(name, gaps[name]) for name in nodes if name in gaps]),
        )

    def _own_gap(self, node: torch.fx.Node, eagers: Mapping[str, tuple[torch.Tensor, ...]], call: Call) -> Gap | None:
        """How far the node is with eager's values as its inputs; None if it reads what eager does not have."""
        inputs = [other for other in self.module.graph.nodes if other.op == "placeholder"]
        given = dict(zip(inputs, flat_inputs(self.program, call), strict=True))
        for other in node.all_input_nodes:
            values = eagers.get(other.name, ())
            if other.op == "get_attr":
                given[other] = operator.attrgetter(str(other.target))(self.module)
            elif len(values) == 1:
                # A copy, because the operator may write to it.
                given[other] = values[0].clone()
        if not callable(node.target) or any(other not in given for other in node.all_input_nodes):
            return None
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), given.__getitem__)
        try:
            with torch.no_grad():
                returned = node.target(*args, **kwargs)
        except Exception:  # noqa: BLE001 - whatever an operator raises
            return None
        actual = [value for value in pytree.tree_leaves(returned) if isinstance(value, torch.Tensor)]
        return _gap(eagers[node.name], actual, strict_dtype=False)

    def _guilty(self, name: str, gaps: Mapping[str, Gap], own: Gap | None) -> GuiltyNode:
        return with_gap(replace(described(nodes_of(self.module)[name], self.roots), point=name), gaps[name], own)

    def _end(self, output: int) -> str:
        (returned,) = [node for node in self.module.graph.nodes if node.op == "output"]
        leaf = pytree.tree_leaves(returned.args[0])[output]
        return str(getattr(leaf, "name", ""))

    def _paired(
        self, call: Callable[[], Call], eager: torch.nn.Module
    ) -> list[tuple[str, tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]]:
        """The program's nodes with eager's values and their own, in order."""
        theirs, ours = self._eager(call(), eager), self._program(call())
        pairs: dict[str, tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]] = {}
        last = {operation.node: at for at, operation in enumerate(ours)}
        for one, other in _aligned([each.name for each in theirs], [each.name for each in ours]):
            node = ours[other].node
            is_last = last[node] == other  # a node's value is that of the last operator that it dispatches
            if is_last and theirs[one].values and ours[other].values:
                pairs[node] = (theirs[one].values, ours[other].values)
        return [(node, *pair) for node, pair in pairs.items()]

    def _eager(self, call: Call, eager: torch.nn.Module) -> list[Operation]:
        seed_everything()
        with torch.no_grad(), Recorder(self.budget_bytes) as recorder:
            eager(*call.args, **call.kwargs)
        operations: list[Operation] = recorder.operations
        return operations

    def _program(self, call: Call) -> list[Operation]:
        recorder = Recorder(self.budget_bytes)

        def see(node: torch.fx.Node, _: Any) -> None:
            # All operators since the node before were dispatched by this one.
            for operation in recorder.operations[::-1]:
                if operation.node:
                    break
                operation.node = node.name

        with recorder:
            walk(self.program, self.module, call, see)
        operations: list[Operation] = recorder.operations
        return operations


def _aligned(ones: Sequence[str], others: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Places of operators that both sides have, in order."""
    if ones == others:
        yield from zip(range(len(ones)), range(len(others)), strict=True)
        return
    # Without autojunk, which leaves out what is frequent: in a long graph, most operators.
    for block in SequenceMatcher(None, ones, others, autojunk=False).get_matching_blocks():
        yield from ((block.a + step, block.b + step) for step in range(block.size))


def _gap(expected: Sequence[torch.Tensor], actual: Sequence[torch.Tensor], *, strict_dtype: bool) -> Gap:
    """The worst of the values that the operator returned."""
    pairs = [(array_of(one), array_of(other)) for one, other in zip(expected, actual, strict=False)]
    gaps = [measure(e, a, strict_dtype=strict_dtype) for e, a in pairs if e is not None and a is not None]
    return max(gaps, key=lambda gap: gap.error, default=Gap(error=0.0))


def _nearest(node: torch.fx.Node, mapped: Mapping[str, Gap]) -> tuple[str, ...]:
    """The nearest mapped nodes before it."""
    found, seen, waiting = [], set(), list(node.all_input_nodes)
    while waiting:
        other = waiting.pop()
        if other in seen:
            continue
        seen.add(other)
        if other.name in mapped:
            found.append(other.name)
        else:
            waiting += other.all_input_nodes
    return tuple(found)


def _is_confirmed(suspicion: Suspicion, own: Gap | None, gaps: Mapping[str, Gap]) -> bool:
    return suspicion.is_confirmed_by(own or gaps[suspicion.name])
