"""The ExportedProgram itself, run through `program.module()`."""

from __future__ import annotations

from pathlib import Path

import torch

from export_gate.wall.contract import Target
from export_gate.worker.controls.basis import packs_rows
from export_gate.worker.export.affine import is_affine_graph
from export_gate.worker.model.reference import module_runner
from export_gate.worker.targets.base import Context, Loaded, files

__all__ = ["convert", "files", "load"]


def convert(context: Context, target: Target) -> Path | None:  # noqa: ARG001 - a target's signature
    """Nothing to write: the program lives in memory."""
    return None


def load(context: Context, target: Target, path: Path | None) -> Loaded:  # noqa: ARG001 - as above; strict is the whole model's
    """The program's own module, with buffers of its own: running it must not change what other targets are made of."""
    program = context.exported.program
    module = program.module()
    _own_buffers(module)
    return Loaded(
        run=module_runner(module, context.names),
        facts={"strict": "yes" if context.contract.strict else "no"},
        affine=context.has_basis and is_affine_graph(program, by_row=packs_rows(context.contract) is not None),
    )


def _own_buffers(module: torch.nn.Module) -> None:
    """Replace each buffer by a copy, one for all the names that it has."""
    copies: dict[int, torch.Tensor] = {}
    for owner in module.modules():
        for name, buffer in list(owner.named_buffers(recurse=False, remove_duplicate=False)):
            setattr(owner, name, copies.setdefault(id(buffer), buffer.clone()))
