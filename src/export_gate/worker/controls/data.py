"""Control inputs from data files."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from export_gate.wall.contract import DataSource, ModelContract
from export_gate.wall.errors import UserError
from export_gate.worker.controls.check import check_values, solve_sizes
from export_gate.worker.controls.columns import Column, batches, drawn_paths, pick, read_columns, stack_values
from export_gate.worker.controls.files import load_arrays
from export_gate.worker.controls.record import ControlCase, Group, case_name, sanitized
from export_gate.worker.controls.sample import choose_samples
from export_gate.worker.controls.stream import Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCases:
    """The cases of one file, and what the report says about them."""

    cases: tuple[ControlCase, ...]
    notes: tuple[str, ...] = ()


def data_cases(contract: ModelContract, base: Path, number: int) -> FileCases:
    """Cases of `controls.data[number]`.

    Raises:
        UserError: the file, a key, an array or a value is not what the contract says.
    """
    source = contract.controls.data[number]
    place = f"models.{contract.name}.controls.data[{number}]: {source.path}"
    arrays = load_arrays(place, base / source.path)
    columns = read_columns(contract, place, arrays, source.inputs)
    indices = _choose(contract, place, source, arrays, len(columns[0]))
    cases = tuple(
        stacked_case(contract, place, columns, batch, label=f"data.{stem(source.path)}-{turn}", group="data")
        for turn, batch in enumerate(batches(contract, columns, indices), 1)
    )
    return FileCases(cases=cases, notes=_notes(contract, source.path, columns))


def stacked_case(
    contract: ModelContract, place: str, columns: Sequence[Column], batch: Sequence[int], *, label: str, group: Group
) -> ControlCase:
    """One case made of these samples.

    Raises:
        UserError: their shape or values are not what the contract says.
    """
    # Now, so that a mistake in the file is reported before anything runs.
    tensors = [(column, column.stack(batch)) for column in columns]
    sizes = solve_sizes(contract, place, [(c.path, c.spec, tuple(tensor.shape)) for c, tensor in tensors])
    for column, tensor in tensors:
        check_values(f"{place}: samples {min(batch)} to {max(batch)}", column.path, column.spec.at(sizes), tensor)
    name = case_name(label, sizes)
    return ControlCase(
        name=name,
        family=group,
        group=group,
        sizes=sizes,
        # Stacked again at each call, so that cases that wait take no memory.
        make=partial(stack_values, contract, columns, batch, name, sizes),
    )


def stem(path: str) -> str:
    """The file's name without its suffix, fit for a case name."""
    return sanitized(Path(path).stem)


def _choose(
    contract: ModelContract, place: str, source: DataSource, arrays: Mapping[str, Any], available: int
) -> Sequence[int]:
    # Looked up even if all samples are taken, so that a wrong key is always reported.
    labels = _column_of(place, "stratify", source.stratify, arrays, available) or [""] * available
    groups = _column_of(place, "group", source.group, arrays, available) or list(range(available))
    if source.count is None:
        return range(available)
    if source.count > available:
        raise UserError(
            f"{place}: count: expected at most the {available} samples of the file, got {source.count}",
            "Lower `count`, or leave it out to take all.",
        )
    return choose_samples(source.count, labels, groups, Stream(contract.controls.seed, "samples", source.path))


def _column_of(
    place: str, role: str, key: str | None, arrays: Mapping[str, Any], available: int
) -> list[Hashable] | None:
    if key is None:
        return None
    found = pick(f"{place}: {role}", arrays, key)
    values = found.numpy() if isinstance(found, torch.Tensor) else np.asarray(found)
    if values.shape != (available,):
        raise UserError(
            f"{place}: {role}: expected '{key}' to have one value for each of the {available} samples, got shape"
            f" {list(values.shape)}",
            "Write one value per sample.",
        )
    return list(values.tolist())


def _notes(contract: ModelContract, path: str, columns: Sequence[Column]) -> tuple[str, ...]:
    drawn = drawn_paths(contract, columns)
    return (f"{path}: not in the file, drawn instead: {', '.join(drawn)}",) if drawn else ()
