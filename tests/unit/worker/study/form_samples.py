"""A model's own forms, as a target makes them, with the file changed as a test says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import nn

from export_gate.wall.contract import ModelContract, Target
from export_gate.wall.observation import OutputLeaf
from export_gate.worker.export.program import export_program
from export_gate.worker.leaves.values import Call
from export_gate.worker.model.factory import forward_parameters
from export_gate.worker.study.rungs import Forms
from export_gate.worker.targets import TARGETS
from export_gate.worker.targets.base import Context


def forms_of(
    module: nn.Module,
    x: torch.Tensor,
    promised: ModelContract,
    folder: Path,
    target: Target,
    *,
    change: Callable[[Any], None] | None = None,
) -> Forms:
    """The forms of a model of one input `x` and one output; `change` edits the ONNX file."""
    exported = export_program(module.eval(), Call(args=(x,)), promised, forward_parameters(module), {})
    context = Context(
        contract=promised,
        program=exported,
        folder=folder,
        input_names=("x",),
        outputs=(OutputLeaf(name="output", dtype="float32", shape=tuple(module(x).shape)),),
        names={},
        metadata={},
        has_basis=False,
    )
    path = TARGETS[target.kind].convert(context, target)
    if change is not None:
        assert path is not None
        edited = onnx.load(str(path))
        change(edited)
        onnx.save(edited, path)
    return Forms(context=context, target=target, path=path, run=TARGETS[target.kind].load(context, target, path).run)
