"""Inputs that the project draws itself, at the gate's sizes: one input alone, or several that depend on each other."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from export_gate.wall.contract import Controls, ModelContract, TensorSpec
from export_gate.wall.errors import UserError
from export_gate.wall.inputs import with_tensors
from export_gate.worker.controls.check import check_dtype, check_values
from export_gate.worker.controls.specs import shape_at, tensor_leaves
from export_gate.worker.controls.stream import Stream
from export_gate.worker.model.factory import load_attribute
from export_gate.worker.model.importing import working_in
from export_gate.worker.process.failures import describe
from export_gate.worker.process.integrity import guarded


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeTensor(TensorSpec):
    """A tensor input with its `make` loaded."""

    function: Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeControls(Controls):
    """Controls with their `make` loaded."""

    joint: Callable[..., Any]


def with_makers(contract: ModelContract, base: Path) -> ModelContract:
    """The contract with each `make` imported.

    Raises:
        UserError: one cannot be imported, or is not callable.
    """
    key = f"models.{contract.name}"
    inputs = with_tensors(contract.inputs, lambda path, spec: _with_maker(spec, f"{key}.inputs.{path}.make", base))
    controls = contract.controls
    if controls.make is not None:
        joint = _load(controls.make, base, f"{key}.controls.make")
        controls = MadeControls(**_fields(controls), joint=joint)
    return replace(contract, inputs=inputs, controls=controls)


def has_makers(contract: ModelContract) -> bool:
    """Whether the project draws any input itself."""
    own = any(spec.make is not None for _, spec in tensor_leaves(contract))
    return own or contract.controls.make is not None


def joint_values(contract: ModelContract, sizes: dict[str, int], case: str) -> dict[str, torch.Tensor]:
    """What `controls.make` draws for this control input, by input path; empty without one.

    Raises:
        UserError: it raises, or returns something else than the contract's inputs.
    """
    controls = contract.controls
    if not isinstance(controls, MadeControls):
        return {}
    place = f"models.{contract.name}.controls.make: {controls.make} at {_sizes(sizes)}"
    # A copy of the sizes, which the function may change.
    made = _called(controls.joint, (dict(sizes), _generator(contract, case, "controls.make")), place)
    leaves = dict(tensor_leaves(contract))
    if not isinstance(made, Mapping) or not made.keys() <= leaves.keys():
        found = ", ".join(map(str, made)) if isinstance(made, Mapping) else type(made).__name__
        raise UserError(f"{place}: expected {{input: array}} with inputs among {', '.join(leaves)}, got {found}")
    return {path: _checked(place, path, leaves[path], array, sizes) for path, array in made.items()}


def made_values(contract: ModelContract, path: str, spec: MadeTensor, sizes: dict[str, int], case: str) -> torch.Tensor:
    """What the input's own `make` draws for this control input.

    Raises:
        UserError: it raises, or returns something else than the declared tensor.
    """
    place = f"models.{contract.name}.inputs.{path}.make: {spec.make} at {_sizes(sizes)}"
    made = _called(spec.function, (shape_at(spec, sizes), _generator(contract, case, path)), place)
    return _checked(place, path, spec, made, sizes)


def _with_maker(spec: TensorSpec, role: str, base: Path) -> TensorSpec:
    return spec if spec.make is None else MadeTensor(**_fields(spec), function=_load(spec.make, base, role))


def _fields(record: Any) -> dict[str, Any]:
    # Not `asdict`, which turns nested records into dicts.
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _load(reference: str, base: Path, role: str) -> Callable[..., Any]:
    found = load_attribute(reference, base, role)
    if not callable(found):
        raise UserError(f"{role} {reference!r}: expected a function, got a {type(found).__name__}")
    function: Callable[..., Any] = guarded(found)

    @functools.wraps(function)
    def in_folder(*arguments: Any) -> Any:
        with working_in(base):
            return function(*arguments)

    return in_folder


def _generator(contract: ModelContract, case: str, place: str) -> np.random.Generator:
    return Stream(contract.controls.seed, case, place).generator()


def _called(function: Callable[..., Any], arguments: tuple[Any, ...], place: str) -> Any:
    try:
        # What the function draws from torch must not move the generator that the model draws from.
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            return function(*arguments)
    except Exception as error:
        raise UserError(f"{place}: it raised {type(error).__name__}: {describe(error)}") from error


def _checked(place: str, path: str, spec: TensorSpec, made: Any, sizes: dict[str, int]) -> torch.Tensor:
    """A fresh contiguous tensor that the contract admits."""
    if not isinstance(made, (np.ndarray, np.generic, torch.Tensor)):
        raise UserError(f"{place}: input '{path}': expected an array, got a {type(made).__name__}")
    tensor = made.clone() if isinstance(made, torch.Tensor) else torch.from_numpy(np.array(made, copy=True))
    check_dtype(place, path, spec, tensor)
    shape = shape_at(spec, sizes)
    if tuple(tensor.shape) != shape:
        raise UserError(f"{place}: input '{path}': expected shape {list(shape)}, got {list(tensor.shape)}")
    check_values(place, path, spec.at(sizes), tensor)
    return tensor.contiguous()


def _sizes(sizes: dict[str, int]) -> str:
    return ", ".join(f"{dim}={size}" for dim, size in sizes.items()) or "its only size"
