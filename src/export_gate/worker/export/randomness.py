"""Find operators of an exported program that draw random numbers, whatever a sample of runs shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from export_gate.wall.source import SourceLine
from export_gate.worker.process.failures import lines_of_trace

SWITCHES = ("train", "training")
RATES = ("p", "dropout", "dropout_p")
"""Arguments of torch's operators with which they draw nothing: the switch off, or a rate of zero."""


def random_operators(program: ExportedProgram) -> tuple[str, ...]:
    """Operators that torch tags as nondeterministic under a seed, each once; those inside control flow included.

    Attention has the tag whatever its dropout, dropout whatever its mode: there the arguments decide.
    """
    drawing = (str(node.target) for node in _calls(program.graph_module) if _draws(node))
    return tuple(dict.fromkeys(drawing))


def random_source(program: ExportedProgram, roots: tuple[Path, ...]) -> SourceLine | None:
    """The project's own line that leads to the first such operator, if the program notes one."""
    traces = (node.meta.get("stack_trace") or "" for node in _calls(program.graph_module) if _draws(node))
    lines = (lines_of_trace(trace, roots)[0] for trace in traces)
    return next((line for line in lines if line is not None), None)


def _calls(module: GraphModule) -> Iterator[Node]:
    graphs = [part for part in module.modules() if isinstance(part, GraphModule)]
    return (node for part in graphs for node in part.graph.nodes if node.op == "call_function")


def _draws(node: Node) -> bool:
    target = node.target
    if not isinstance(target, OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    given = arguments_of(node)
    # An operator without a switch counts as switched on, and one without a rate as drawing.
    is_off = any(given.get(name, True) in (False, None) for name in SWITCHES)
    return not is_off and all(given.get(name, 1) != 0 for name in RATES)


def arguments_of(node: Node) -> dict[str, Any]:
    """The operator's arguments by name, defaults included; none of a node that calls something else."""
    if not isinstance(node.target, OpOverload):
        return {}
    schema = node.target._schema.arguments  # noqa: SLF001 - torch has no public name for it
    given = {argument.name: argument.default_value for argument in schema if argument.has_default_value()}
    given.update({argument.name: value for argument, value in zip(schema, node.args, strict=False)})
    return {**given, **node.kwargs}
