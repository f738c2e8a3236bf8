"""One control input from an .npz file, as `--save-case` and `controls --save` write it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from export_gate.wall.contract import ModelContract, TensorSpec
from export_gate.worker.controls.check import check_dtype, check_values, solve_sizes
from export_gate.worker.controls.columns import pick
from export_gate.worker.controls.files import load_arrays
from export_gate.worker.controls.layout import clone
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.specs import build_values, is_floating, tensor_leaves

FAMILY = "file"


def file_case(contract: ModelContract, base: Path, name: str) -> ControlCase:
    """The control input in a file, named as the file is from the config's folder.

    Raises:
        UserError: an input is missing, or is not what the contract declares.
    """
    place = f"models.{contract.name}: --case {name}"
    arrays = load_arrays(place, base / name)
    leaves = tensor_leaves(contract)
    tensors = {path: _tensor(spec, pick(place, arrays, path)) for path, spec in leaves}
    for path, spec in leaves:
        check_dtype(place, path, spec, tensors[path])
    sizes = solve_sizes(contract, place, [(path, spec, tuple(tensors[path].shape)) for path, spec in leaves])
    for path, spec in leaves:
        # As in a function's inputs, a float outside its range is there on purpose.
        bounded = replace(spec.at(sizes), range=None) if is_floating(spec) else spec.at(sizes)
        check_values(place, path, bounded, tensors[path])
    values = build_values(contract, lambda path, _: tensors[path])
    return ControlCase(name=name, family=FAMILY, group="data", sizes=sizes, make=partial(clone, values))


def _tensor(spec: TensorSpec, array: object) -> torch.Tensor:
    """The array's values; bfloat16, which NumPy lacks, is stored as float32."""
    tensor = array if isinstance(array, torch.Tensor) else torch.from_numpy(np.asarray(array).copy())
    is_widened = spec.dtype == "bfloat16" and tensor.dtype == torch.float32
    return tensor.to(torch.bfloat16) if is_widened else tensor
