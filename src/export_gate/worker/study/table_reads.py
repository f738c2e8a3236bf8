"""How much of an artifact's tables the control inputs read, where a table is not the program's."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from export_gate.wall.contract import Target
from export_gate.wall.observation import TableRead
from export_gate.worker.controls.layout import tensors_of
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.specs import tensor_leaves
from export_gate.worker.leaves.bits import same_bits
from export_gate.worker.leaves.values import seen_as_numpy, to_numpy
from export_gate.worker.model.factory import bind
from export_gate.worker.model.reference import module_runner
from export_gate.worker.model.tables import RowsRead
from export_gate.worker.nodes.file import FileGraph, fetch
from export_gate.worker.onnx_file.gathered import Gathered, gathered_tables
from export_gate.worker.study.laboratory import Laboratory
from export_gate.worker.targets.base import Context
from export_gate.worker.targets.calling import as_exported
from export_gate.worker.targets.onnx import call_tensors

Bools = npt.NDArray[np.bool_]
MOST_EDITED = 8
"""Rows that further control inputs read."""
MOSTLY = 0.5
"""Share of rows below which a table is an edited copy of another."""
MOST_AXES = 4
"""Of tables whose axes a converter may have moved: four axes have 24 orders, five 120."""


def table_reads(
    target: Target, path: Path, context: Context, laboratory: Laboratory, cases: Sequence[ControlCase]
) -> tuple[TableRead, ...]:
    """Tables of a file that differ from all weights in some bit, and that the inputs do not read in full.

    A table that is the program's cannot be wrong in a row that nobody read. Packages of AOTInductor do not show their
    weights.

    Args:
        target: whose file it is.
        path: the file.
        context: names its inputs, and has the program if there is one.
        laboratory: has an instance of the model if there is none.
        cases: the control inputs that the file was run on.
    """
    if target.kind == "onnx":
        reads = _of_onnx(target, path, context, laboratory, cases)
    elif target.kind == "pt2" and target.artifact is not None:
        reads = _of_program(path, context, laboratory, cases)
    else:
        return ()  # in memory, or a copy that the gate saved itself
    return tuple(found for found in reads if found.read < found.rows)


def edited_rows(path: Path, own: Sequence[torch.Tensor]) -> tuple[int, ...]:
    """Rows of the file's tables that are not the weight's although most others are, the most different first."""
    gaps: dict[int, float] = {}
    for table in gathered_tables(path):
        values = table.values()
        if table.operator != "Gather" or values.dtype.kind != "f" or _is_own(values, own):
            continue
        for weight in (to_numpy(weight) for weight in own if tuple(weight.shape) == values.shape):
            gap = np.abs(values.astype(np.float64) - weight).max(axis=_others(values.ndim, table.axis))
            edited = np.flatnonzero(gap)
            if 0 < len(edited) < MOSTLY * len(gap):
                gaps |= {int(row): max(gaps.get(int(row), 0.0), float(gap[row])) for row in edited}
    return tuple(sorted(gaps, key=lambda row: -gaps[row])[:MOST_EDITED])


def _others(rank: int, axis: int) -> tuple[int, ...]:
    return tuple(other for other in range(rank) if other != axis)


def _of_onnx(
    target: Target, path: Path, context: Context, laboratory: Laboratory, cases: Sequence[ControlCase]
) -> Iterator[TableRead]:
    leaves = [leaf for leaf, _ in tensor_leaves(context.contract)]
    names = dict(zip(context.input_names, leaves, strict=True))
    tables = [table for table in gathered_tables(path) if set(table.inputs) & names.keys()]
    own = _weights(context, laboratory) if tables else []
    changed = [table for table in tables if not _is_own(table.values(), own)]
    if not changed:
        return
    graph = FileGraph.read(path)
    # Values that the file computes; an input's elements are at hand.
    computed = list(dict.fromkeys(table.indices for table in changed if table.indices not in graph.inputs))
    session = graph.tapped(computed, target.option("providers", tuple), "disable")
    read: dict[int, Bools] = {}
    for feeds in _feeds(context, laboratory, cases):
        with contextlib.suppress(Exception):  # the file refuses this input, which is another finding
            _mark(read, changed, {**feeds, **fetch(session, computed, feeds)})
    for number, mask in read.items():
        source = next(name for name in changed[number].inputs if name in names)
        yield TableRead(table=changed[number].tensor.name, input=names[source], rows=mask.size, read=int(mask.sum()))


def _mark(read: dict[int, Bools], tables: Sequence[Gathered], indices: Mapping[str, npt.NDArray[Any]]) -> None:
    """Note what the file itself computes as indices."""
    for number, table in enumerate(tables):
        rows = indices.get(table.indices)
        if rows is not None:
            table.mark(read.setdefault(number, table.unread(rows.shape[-1] if rows.ndim else 1)), rows)


def _feeds(
    context: Context, laboratory: Laboratory, cases: Sequence[ControlCase]
) -> Iterator[dict[str, npt.NDArray[Any]]]:
    for case in cases:
        tensors = call_tensors(bind(case.make(), laboratory.parameters))
        yield {name: to_numpy(tensor) for name, tensor in zip(context.input_names, tensors, strict=True)}


def _of_program(
    path: Path, context: Context, laboratory: Laboratory, cases: Sequence[ControlCase]
) -> Iterator[TableRead]:
    """Of a saved program that was handed in: its own tables, as its operators read them."""
    program = torch.export.load(path)
    held = {**program.state_dict, **program.constants}
    own = laboratory.weights_of_eager()
    tables = {
        name: tensor
        for name, tensor in held.items()
        if isinstance(tensor, torch.Tensor) and tensor.dim() and not _is_own(to_numpy(tensor), own)
    }
    if not tables:
        return
    # Without guards: which rows an input reads is asked here, not whether the program takes it.
    module = program.module(check_guards=False)
    run = as_exported(module_runner(module, context.names), program, context.contract)
    found: dict[tuple[str, str, int], Bools] = {}
    for case in cases:
        values = case.make()
        with contextlib.suppress(Exception), RowsRead(tables, tensors_of(values), found):
            run(bind(values, laboratory.parameters))
    for (table, path_of_input, _), mask in found.items():
        yield TableRead(table=table, input=path_of_input, rows=mask.size, read=int(mask.sum()))


def _weights(context: Context, laboratory: Laboratory) -> list[torch.Tensor]:
    if context.program is None:
        return laboratory.weights_of_eager()
    program = context.program.program
    held = (*program.state_dict.values(), *program.constants.values())
    return [tensor for tensor in held if isinstance(tensor, torch.Tensor)]


def _is_own(values: npt.NDArray[Any], own: Iterable[torch.Tensor]) -> bool:
    """Whether it is one of the weights, perhaps in another shape or with its axes moved, as a converter folds them."""
    orders = itertools.permutations(range(values.ndim)) if values.ndim <= MOST_AXES else [tuple(range(values.ndim))]
    alike = [weight for weight in own if weight.numel() == values.size]
    views = [values.transpose(order) for order in orders]
    return any(same_bits(view, array) for array in map(seen_as_numpy, alike) for view in views)
