"""Find the node at which a conversion stopped, which the converter's messages name without the user's own words."""

from __future__ import annotations

import traceback
from pathlib import Path

import torch

from export_gate.wall.nodes import GuiltyNode
from export_gate.worker.nodes.program import described
from export_gate.worker.process.failures import chain_of

LOCAL = "node"
"""What torch.onnx calls the node that it translates, in each function that does (torch 2.13 and 2.14)."""


def stopped_node(error: BaseException | None, roots: tuple[Path, ...]) -> GuiltyNode | None:
    """The node in the innermost frame that has one, of the exception or of what led to it; None without one."""
    for raised in () if error is None else chain_of(error):
        for frame, _ in reversed(list(traceback.walk_tb(raised.__traceback__))):
            node = frame.f_locals.get(LOCAL)
            if isinstance(node, torch.fx.Node):
                return described(node, roots)
    return None
