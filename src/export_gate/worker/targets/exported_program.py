"""The ExportedProgram itself, run through `program.module()`."""

from __future__ import annotations

from pathlib import Path

from export_gate.contract import ExportedProgramTarget
from export_gate.worker.affine import is_affine_graph
from export_gate.worker.controls.basis import packs_rows
from export_gate.worker.reference import module_runner
from export_gate.worker.targets.base import Context, Loaded


def convert(context: Context, options: ExportedProgramTarget) -> Path | None:  # noqa: ARG001 - a target's signature
    """Nothing to write: the program lives in memory."""
    return None


def load(context: Context, options: ExportedProgramTarget, path: Path | None) -> Loaded:  # noqa: ARG001 - as above
    """The program's own module, with buffers of its own: running it must not change what other targets are made of."""
    module = context.program.module()
    for owner in module.modules():
        for name, buffer in list(owner.named_buffers(recurse=False)):
            setattr(owner, name, buffer.clone())
    return Loaded(
        run=module_runner(module, context.names),
        facts={"strict": "yes" if options.strict else "no"},
        affine=context.has_basis and is_affine_graph(context.program, by_row=packs_rows(context.contract) is not None),
    )
