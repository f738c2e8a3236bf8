"""Wrap callables and TorchScript in modules, so that the gate can check them like any eager model.

They are references only: torch.export takes neither, so every target of the model must be an artifact.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from export_gate.worker.model.views import FOREIGN, package_of, variables_of

DEPTH = 4
"""How deep modules are looked for in a callable's objects."""
OWN_NAME = "module"


class Called(torch.nn.Module):  # type: ignore[misc] # torch has no types here
    """Calls what a factory returned in place of a module; the modules that it reads are submodules."""

    def __init__(self, call: Callable[..., Any], remake: Callable[[], Called]) -> None:
        super().__init__()
        self.training = False  # it has no mode of its own; its submodules keep theirs
        self.is_scripted = isinstance(call, (torch.jit.ScriptModule, torch.jit.ScriptFunction))
        self.variables = variables_of(call)
        self.remake = remake
        signature = inspect.Signature(list(parameters_of(call)))

        def forward(*args: Any, **kwargs: Any) -> Any:
            return call(*args, **kwargs)

        forward.__signature__ = signature  # type: ignore[attr-defined] # inspect reads it
        self.forward = forward
        # Not `add_module`, which refuses names with a dot: these are paths.
        self._modules |= _modules(call, self.variables)

    def __deepcopy__(self, _memo: dict[int, Any]) -> Called:
        """Another one from the factory: functions cannot be copied."""
        return self.remake()

    def double(self) -> Called:
        """Widen the weights, except those of global variables, which all instances share."""
        for name, module in self._modules.items():
            # Those of global ones stay as they are: `InFloat64` lifts them where an operator reads them.
            place = self.variables.places.get(name)
            if module is not None and not (place and place.is_global):
                module.double()
        return self

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The weights, under the names that they have in the one module that is called, if it is one."""
        modules = [module for module in self._modules.values() if module is not None]
        if len(modules) == 1:
            return modules[0].state_dict(*args, **kwargs)
        return super().state_dict(*args, **kwargs)


def can_be_called(made: Any) -> bool:
    """Whether it can be the reference of artifacts in place of an nn.Module; a class most likely lacks its `()`."""
    return isinstance(made, torch.jit.ScriptModule) or (
        callable(made) and not isinstance(made, (type, torch.nn.Module))
    )


def parameters_of(call: Any) -> Iterator[inspect.Parameter]:
    """The parameters of a callable: from the schema of TorchScript; any arguments if nothing declares them."""
    if isinstance(call, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        yield from _scripted(call.forward.schema if isinstance(call, torch.jit.ScriptModule) else call.schema)
        return
    try:
        yield from inspect.signature(call).parameters.values()
    except ValueError:  # a builtin, such as torch.sigmoid
        yield inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)


def _scripted(schema: Any) -> Iterator[inspect.Parameter]:
    # A ScriptFunction has no `self`.
    arguments = schema.arguments[1:] if schema.arguments and schema.arguments[0].name == "self" else schema.arguments
    for argument in arguments:
        default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
        kind = inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        yield inspect.Parameter(argument.name, kind, default=default, annotation=str(argument.type))


def _modules(call: Any, variables: Mapping[str, Any]) -> dict[str, torch.nn.Module | None]:
    """The modules that a callable reads, by the variable that holds them; each once."""
    roots = {OWN_NAME: call} if isinstance(call, torch.nn.Module) else variables
    found = [pair for name, value in roots.items() for pair in _inside(name, value, DEPTH)]
    # A module that two variables hold must count once, or its weights would count twice.
    known: dict[int, str] = {}
    for name, module in found:
        known.setdefault(id(module), name)
    return {name: module for name, module in found if known[id(module)] == name}


def _inside(name: str, value: Any, depth: int) -> Iterator[tuple[str, torch.nn.Module]]:
    if isinstance(value, torch.nn.Module):
        yield name, value
    elif depth and isinstance(value, (list, tuple, dict)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _inside(f"{name}.{key}", item, depth - 1)
    elif depth and hasattr(value, "__dict__") and package_of(value) not in FOREIGN and not isinstance(value, type):
        for key, item in vars(value).items():
            yield from _inside(f"{name}.{key}", item, depth - 1)
