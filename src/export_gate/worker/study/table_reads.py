"""Measure how much of a file's tables the control inputs read, if the file's table is not the program's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from export_gate.wall.observation import TableRead
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.specs import tensor_leaves
from export_gate.worker.leaves.values import flatten, to_numpy
from export_gate.worker.onnx_file.gathered import Gathered, gathered_tables
from export_gate.worker.study.laboratory import Laboratory
from export_gate.worker.targets.base import Context


def table_reads(
    path: Path, context: Context, laboratory: Laboratory, cases: Sequence[ControlCase]
) -> tuple[TableRead, ...]:
    """Tables of an ONNX file that differ from all weights in some bit, and that the inputs do not read in full.

    A table that is the program's cannot be wrong in a row that nobody read.

    Args:
        path: the file.
        context: names its inputs, and has the program if there is one.
        laboratory: has an instance of the model if there is none.
        cases: the control inputs that the file was run on.
    """
    leaves = [leaf for leaf, _ in tensor_leaves(context.contract)]
    names = dict(zip(context.input_names, leaves, strict=True))
    tables = [table for table in gathered_tables(path) if table.input in names]
    own = [to_numpy(tensor) for tensor in _weights(context, laboratory)] if tables else []
    changed = [table for table in tables if not _is_own(table, own)]
    return tuple(found for found in _reads(changed, names, cases) if found.read < found.rows)


def _weights(context: Context, laboratory: Laboratory) -> list[torch.Tensor]:
    if context.program is None:
        return laboratory.weights_of_eager()
    program = context.program.program
    held = (*program.state_dict.values(), *program.constants.values())
    return [tensor for tensor in held if isinstance(tensor, torch.Tensor)]


def _is_own(table: Gathered, own: Iterable[Any]) -> bool:
    values = table.values()
    alike = (weight for weight in own if weight.shape == values.shape and weight.dtype == values.dtype)
    return any(weight.tobytes() == values.tobytes() for weight in alike)


def _reads(tables: Sequence[Gathered], names: Mapping[str, str], cases: Sequence[ControlCase]) -> Iterator[TableRead]:
    read = {id(table): np.zeros(table.rows, bool) for table in tables}
    for case in cases if tables else ():
        values = {leaf.name: leaf.value for leaf in flatten(case.make())}
        for table in tables:
            rows = values[names[table.input]]
            if rows is not None:
                # ONNX counts negative indices from the end, as NumPy does.
                inside = rows[(rows >= -table.rows) & (rows < table.rows)]
                read[id(table)][inside.reshape(-1)] = True
    for table in tables:
        yield TableRead(
            table=table.tensor.name, input=names[table.input], rows=table.rows, read=int(read[id(table)].sum())
        )
