"""Control inputs with promised outputs, from golden files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from export_gate.wall.contract import GoldenSource, ModelContract
from export_gate.wall.errors import UserError
from export_gate.worker.controls.columns import Column, allowed_rows, batches, drawn_paths, pick, read_columns
from export_gate.worker.controls.data import FileCases, stacked_case, stem
from export_gate.worker.controls.files import load_arrays
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.leaves.values import as_leaf


def golden_cases(contract: ModelContract, base: Path, number: int) -> FileCases:
    """Cases of `controls.golden[number]`.

    Arrays of the declared shape are one call, if their first axis has an allowed length; otherwise they are cut into
    batches, and the outputs with them. With an axis of samples before the declared shape, each sample is one call.

    Raises:
        UserError: the file, a key, an array or a value is not what the contract says, or outputs are missing.
    """
    source = contract.controls.golden[number]
    place = f"models.{contract.name}.controls.golden[{number}]: {source.path}"
    arrays = load_arrays(place, base / source.path)
    columns = read_columns(contract, place, arrays, source.inputs)
    drawn = drawn_paths(contract, columns)
    if drawn:
        raise UserError(
            f"{place}: expected every tensor input, '{drawn[0]}' is not in `inputs`",
            "Expected outputs only hold for whole inputs; add its key.",
        )
    outputs = _outputs(contract, place, source, arrays)
    everything = tuple(range(len(columns[0])))
    # A call of the file's own size first: cut into batches, an output that mixes rows would not be what was promised.
    whole = columns[0].rows and len(everything) in allowed_rows(contract, columns[0].spec.shape[0], len(everything))
    parts = [everything] if whole else batches(contract, columns, everything)
    cases: list[ControlCase] = []
    for turn, part in enumerate(parts, 1):
        case = stacked_case(contract, place, columns, part, label=f"golden.{stem(source.path)}-{turn}", group="golden")
        promised = {
            name: value if whole else _part(place, name, value, columns, part) for name, value in outputs.items()
        }
        leaves = tuple(as_leaf(name, value) for name, value in promised.items())
        cases.append(replace(case, expected=leaves, golden=number))
    return FileCases(cases=tuple(cases))


def _outputs(
    contract: ModelContract, place: str, source: GoldenSource, arrays: Mapping[str, Any]
) -> dict[str, torch.Tensor]:
    """Leaf name -> all expected values: as mapped, else the declared outputs, else every key that is not an input."""
    inputs = set(source.inputs.values()) or set(contract.inputs)
    declared = [output.name for output in contract.outputs]
    keys = source.outputs or {name: name for name in declared or [key for key in arrays if key not in inputs]}
    if not keys:
        raise UserError(
            f"{place}: expected outputs beside the inputs, the file has only {', '.join(arrays)}",
            "Store each output under its name, or map it with `outputs`.",
        )
    return {name: _tensor(place, name, pick(f"{place}: outputs", arrays, key)) for name, key in keys.items()}


def _tensor(place: str, name: str, array: Any) -> torch.Tensor:
    try:
        return array if isinstance(array, torch.Tensor) else torch.from_numpy(array.copy())
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{place}: output '{name}': expected numbers, got dtype {getattr(array, 'dtype', type(array).__name__)}",
            "Map the outputs with `outputs: {name: key in the file}`.",
        ) from error


def _part(place: str, name: str, value: torch.Tensor, columns: Sequence[Column], part: Sequence[int]) -> torch.Tensor:
    """The expected values of these samples."""
    samples = len(columns[0])
    if value.dim() == 0 or len(value) != samples:
        raise UserError(
            f"{place}: output '{name}': expected {samples} samples along the first axis, got shape {list(value.shape)}",
            "Inputs that make several calls need outputs for each.",
        )
    return value[list(part)] if columns[0].rows else value[part[0]]
