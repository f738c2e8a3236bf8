"""Find the node at which a conversion or a runtime stopped, which messages name without the user's own words."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from export_gate.wall.nodes import GuiltyNode
from export_gate.worker.model.dtype_lines import lines_naming
from export_gate.worker.nodes.file import FileGraph
from export_gate.worker.nodes.program import described, nodes_of
from export_gate.worker.process.failures import chain_of

LOCAL = "node"
"""What torch.onnx calls the node that it translates, in each function that does (torch 2.13 and 2.14)."""

NAMED = re.compile(r"Name:'([^']+)'|\bin node \(([^)]+)\)|\bnode with name '([^']+)'")
"""How ONNX Runtime names a node at which it stops, while it runs and while it loads a file (1.20 to 1.32)."""


def stopped_node(error: BaseException | None, roots: tuple[Path, ...]) -> GuiltyNode | None:
    """The node in the innermost frame that has one, of the exception or of what led to it; None without one."""
    for raised in () if error is None else chain_of(error):
        for frame, _ in reversed(list(traceback.walk_tb(raised.__traceback__))):
            node = frame.f_locals.get(LOCAL)
            if isinstance(node, torch.fx.Node):
                return described(node, roots)
    return None


def named_node(
    message: str, path: Path | None, made_from: Callable[[], Any] | None, roots: tuple[Path, ...]
) -> GuiltyNode | None:
    """The program's node behind the node of a file that a runtime's message names; None if it is not known.

    Args:
        message: the runtime's.
        path: the ONNX file.
        made_from: returns what the file was made from, as the converter decomposed it; None if it was handed in.
        roots: the project's folders.
    """
    named = NAMED.search(message)
    if named is None or path is None or path.suffix != ".onnx" or made_from is None:
        return None
    graph, wanted = FileGraph.read(path), next(filter(None, named.groups()))
    names = graph.origins([at for at, node in enumerate(graph.model.graph.node) if node.name == wanted])
    nodes = nodes_of(made_from().graph_module)
    node = next((nodes[name] for name in names if name in nodes), None)
    if node is None:
        return None
    dtype = _dtype_of(node)
    return replace(described(node, roots), dtype=dtype, dtype_lines=lines_naming(dtype, roots))


def _dtype_of(node: torch.fx.Node) -> str:
    values = (given.meta.get("val") for given in node.all_input_nodes)
    return next((str(value.dtype).removeprefix("torch.") for value in values if isinstance(value, torch.Tensor)), "")
