"""Control inputs from a function of the project: `{name: arguments of forward}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from export_gate.wall.contract import ConstantSpec, DictSpec, ModelContract, SequenceSpec, Spec, TensorSpec
from export_gate.wall.errors import UserError
from export_gate.worker.controls.check import check_dtype, check_values, solve_sizes
from export_gate.worker.controls.layout import clone
from export_gate.worker.controls.record import ControlCase, case_name, sanitized
from export_gate.worker.controls.specs import build_values, is_floating
from export_gate.worker.leaves.values import Values
from export_gate.worker.model.factory import load_attribute
from export_gate.worker.model.importing import working_in
from export_gate.worker.process.failures import describe
from export_gate.worker.process.integrity import guarded

FAMILY = "function"
Tensors = list[tuple[str, TensorSpec, torch.Tensor]]
"""Input path, what was declared, what was given."""


def function_cases(contract: ModelContract, base: Path) -> tuple[ControlCase, ...]:
    """Cases of `controls.function`; none if it is not set.

    Raises:
        UserError: the function cannot be called, or a case is not what the contract declares.
    """
    reference = contract.controls.function
    if reference is None:
        return ()
    place = f"models.{contract.name}.controls.function: {reference}"
    cases: list[ControlCase] = []
    for name, given in _call(contract, reference, base, place).items():
        where = f"{place}: case '{name}'"
        values, shapes = _bind(contract, where, given)
        sizes = solve_sizes(contract, where, [(path, spec, tuple(tensor.shape)) for path, spec, tensor in shapes])
        for path, spec, tensor in shapes:
            # A float outside its range is written on purpose: the range bounds what the gate draws.
            bounded = replace(spec.at(sizes), range=None) if is_floating(spec) else spec.at(sizes)
            check_values(where, path, bounded, tensor)
        case = ControlCase(
            name=case_name(f"function.{sanitized(str(name))}", sizes),
            family=FAMILY,
            group="function",
            sizes=sizes,
            # Copied twice: now, because the function may keep its tensors, and for each run, because forward may write
            # to them.
            make=partial(clone, clone(values)),
        )
        cases.append(case)
    return tuple(cases)


def _call(contract: ModelContract, reference: str, base: Path, place: str) -> Mapping[Any, Any]:
    function = load_attribute(reference, base, f"models.{contract.name}.controls.function")
    if not callable(function):
        raise UserError(f"{place}: expected a function, got {_kind(function)}", "Name a callable without parameters.")
    try:
        # No devices: by default, it would save the generator of every GPU.
        with torch.random.fork_rng(devices=[]), torch.no_grad(), working_in(base):
            made = guarded(function)()
    except Exception as error:
        raise UserError(
            f"{place}: expected a dict of cases, it raised {type(error).__name__}: {describe(error)}",
            "Make the function run without arguments.",
        ) from error
    if not isinstance(made, Mapping):
        raise UserError(
            f"{place}: expected a dict of cases, got {_kind(made)}",
            "Return {name: tuple of forward's arguments} or {name: dict of them}.",
        )
    return made


def _bind(contract: ModelContract, where: str, given: Any) -> tuple[Values, Tensors]:
    """The case's values by input name, constants filled in, and its tensors with their specs."""
    named = _by_name(contract, where, given)
    tensors: Tensors = []
    for name, spec in contract.inputs.items():
        if name in named:
            _match(where, name, spec, named[name], tensors)
    by_path = {path: tensor for path, _, tensor in tensors}
    return build_values(contract, lambda path, _: by_path[path]), tensors


def _by_name(contract: ModelContract, where: str, given: Any) -> dict[str, Any]:
    needed = [name for name, spec in contract.inputs.items() if not isinstance(spec, ConstantSpec)]
    if isinstance(given, Mapping):
        missing = [name for name in needed if name not in given]
        unknown = [str(name) for name in given if name not in contract.inputs]
        if missing or unknown:
            raise UserError(
                f"{where}: expected the inputs {', '.join(needed)}, got {', '.join(map(str, given)) or 'none'}",
                "Name each declared input; constants may be left out.",
            )
        return dict(given)
    if not isinstance(given, (tuple, list)):
        raise UserError(
            f"{where}: expected a tuple or dict of forward's arguments, got {_kind(given)}",
            "Write a single argument as `(x,)`.",
        )
    # Without the constants, or with them.
    for names in (needed, list(contract.inputs)):
        if len(names) == len(given):
            return dict(zip(names, given, strict=True))
    raise UserError(
        f"{where}: expected {len(needed)} arguments ({', '.join(needed)}), got {len(given)}",
        "Give each declared input in forward's order; constants may be left out.",
    )


def _match(where: str, path: str, spec: Spec, value: Any, tensors: Tensors) -> None:
    """Collect the tensors of one argument, checked against its spec."""
    match spec:
        case TensorSpec():
            _require(isinstance(value, torch.Tensor), where, path, f"a {spec.dtype} tensor", value)
            check_dtype(where, path, spec, value)
            tensors.append((path, spec, value))
        case SequenceSpec():
            fits = isinstance(value, (list, tuple)) and len(value) == len(spec.items)
            _require(fits, where, path, f"a {spec.kind} of {len(spec.items)} items", value)
            for index, (item, part) in enumerate(zip(spec.items, value, strict=True)):
                _match(where, f"{path}.{index}", item, part, tensors)
        case DictSpec():
            # In that order, because torch flattens a dict in the order of its keys.
            fits = isinstance(value, Mapping) and list(value) == list(spec.items)
            _require(fits, where, path, f"a dict with the keys {', '.join(spec.items)}, in that order", value)
            for key, item in spec.items.items():
                _match(where, f"{path}.{key}", item, value[key], tensors)
        case ConstantSpec() if spec.dtype is not None:
            pass  # a tensor of the contract's own, whatever is given for it
        case ConstantSpec():
            fits = type(value) is type(spec.value) and value == spec.value
            _require(fits, where, path, f"the constant {spec.value!r}, or nothing", value)


def _require(condition: bool, where: str, path: str, expected: str, value: Any) -> None:
    if not condition:
        raise UserError(
            f"{where}: input '{path}': expected {expected}, got {_kind(value)}", "Give what `inputs` declares."
        )


def _kind(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)} items"
    if isinstance(value, Mapping):
        return f"a dict with the keys {', '.join(map(str, value))}"
    return f"{value!r}" if isinstance(value, (bool, int, float, str, type(None))) else f"a {type(value).__name__}"
