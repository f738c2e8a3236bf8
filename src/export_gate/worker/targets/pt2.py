"""The program saved to a .pt2 archive, loaded again and run."""

from __future__ import annotations

from pathlib import Path

import torch

from export_gate.wall.contract import Target
from export_gate.worker.controls.basis import packs_rows
from export_gate.worker.export.affine import is_affine_graph
from export_gate.worker.model.reference import module_runner
from export_gate.worker.targets.base import Context, Loaded, files
from export_gate.worker.targets.calling import as_exported

__all__ = ["convert", "files", "load"]


def convert(context: Context, target: Target) -> Path | None:
    """Save the program, decomposed first where asked."""
    path = context.folder / target.file_name
    program = context.exported.program
    if target.option("decompose", bool):
        program = program.run_decompositions()
    torch.export.save(program, path)
    return path


def load(context: Context, target: Target, path: Path | None) -> Loaded:
    """Load the archive; its module shares nothing with the program in memory."""
    assert path is not None
    program = torch.export.load(path)
    run = module_runner(program.module(), context.names)
    return Loaded(
        # The gate's own program takes the reference's call as it is.
        run=as_exported(run, program, context.contract) if target.artifact else run,
        facts={"decomposed": "yes" if target.option("decompose", bool) else "no"},
        affine=context.has_basis and is_affine_graph(program, by_row=packs_rows(context.contract) is not None),
    )
