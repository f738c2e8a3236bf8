"""Let a module's forward take the contract's plain inputs: fixed tensors and built objects are created inside it.

Eager and the export see the same forward, so an artifact's inputs are the tensors that the contract names and nothing
else; torch does not have to know an object, such as a cache, that is built from them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MethodType
from typing import Any

import torch

from export_gate.wall.contract import ConstantSpec, DictSpec, ModelContract, SequenceSpec, Spec, TensorSpec
from export_gate.wall.errors import UserError
from export_gate.wall.inputs import parts
from export_gate.worker.leaves.values import plain
from export_gate.worker.model.factory import load_attribute

Change = Callable[[Any], Any]
"""Turns an input as the contract has it into the argument that forward takes."""


def input_changes(contract: ModelContract, base: Path) -> dict[str, Change]:
    """The changes of those inputs that have one.

    Raises:
        UserError: what `build` names cannot be imported, or is not callable.
    """
    found = {
        name: _change(spec, f"models.{contract.name}.inputs.{name}", base) for name, spec in contract.inputs.items()
    }
    return {name: change for name, change in found.items() if change is not None}


def builds_objects(contract: ModelContract) -> bool:
    """Whether forward takes any object that is built from tensors."""
    return any(_builds(spec) for spec in contract.inputs.values())


def adapt(module: torch.nn.Module, changes: Mapping[str, Change], *, is_output_kept: bool) -> None:
    """Replace the module's forward by one that changes these inputs first.

    Objects that are returned, such as caches, are taken apart unless `is_output_kept`: torch would put them together
    again while it decomposes the program, and trips over the constants that their classes make (torch 2.13:
    "Constant tensor lifted_tensor_4 is not in the constants dictionary").

    It is a method, because a copy of the module must call the copy's forward: `copy.deepcopy` binds methods anew.
    """
    if not changes:
        return
    own = module.__dict__.get("forward")
    # The method is bound at the call: bound here, a copy would call it on this module.
    method = own.__func__ if isinstance(own, MethodType) and own.__self__ is module else None
    parameters = inspect.signature(module.forward).parameters.values()
    names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]

    @functools.wraps(type(module).forward)
    def forward(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        is_bound = own is not None and method is None
        call = own if is_bound else (method or type(self).forward).__get__(self)
        args = (
            tuple(_changed(changes, name, value) for name, value in zip(names, args, strict=False)) + args[len(names) :]
        )
        returned = call(*args, **{name: _changed(changes, name, value) for name, value in kwargs.items()})
        return returned if is_output_kept else _plain_output(returned)

    # A forward of the instance's own has another signature than that of its class.
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    forward.__signature__ = inspect.Signature([this, *parameters])  # type: ignore[attr-defined] # inspect reads it
    module.forward = MethodType(forward, module)


def _plain_output(returned: Any) -> Any:
    """The output in plain containers; a lone object keeps the name that its leaves have."""
    # By exact type: a named tuple is an object here, whose leaves are named after its fields.
    is_nested = isinstance(returned, (Mapping, list)) or type(returned) is tuple
    found = plain(returned)
    return found if is_nested or found is returned else {"output": found}


def _builds(spec: Spec) -> bool:
    is_built = isinstance(spec, (SequenceSpec, DictSpec)) and spec.build is not None
    return is_built or any(map(_builds, parts(spec).values()))


def _changed(changes: Mapping[str, Change], name: str, value: Any) -> Any:
    return changes[name](value) if name in changes else value


def _change(spec: Spec, place: str, base: Path) -> Change | None:
    match spec:
        case TensorSpec():
            return None
        case ConstantSpec():
            return None if spec.dtype is None else _fixed(torch.tensor(spec.value, dtype=getattr(torch, spec.dtype)))
    changes = {key: _change(part, f"{place}.{key}", base) for key, part in parts(spec).items()}
    build = None if spec.build is None else _load(spec.build, base, f"{place}.build")
    if build is None and not any(changes.values()):
        return None
    return functools.partial(_rebuilt, {key: change for key, change in changes.items() if change is not None}, build)


def _fixed(tensor: torch.Tensor) -> Change:
    return lambda _: tensor


def _rebuilt(parts: Mapping[Any, Change], build: Callable[..., Any] | None, value: Any) -> Any:
    if isinstance(value, Mapping):
        changed: Any = {key: parts[key](item) if key in parts else item for key, item in value.items()}
    else:
        changed = type(value)([parts[i](item) if i in parts else item for i, item in enumerate(value)])
    return changed if build is None else build(changed)


def _load(reference: str, base: Path, role: str) -> Callable[..., Any]:
    found = load_attribute(reference, base, role)
    if not callable(found):
        raise UserError(
            f"{role} {reference!r}: expected a class or function, got a {type(found).__name__}",
            "name what makes the object from the tuple, list or dict below it",
        )
    made: Callable[..., Any] = found
    return made
