"""Live views of state that no `__dict__` holds: the variables that a function reads, and TorchScript's attributes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch

from export_gate.worker.process.scanning import codes_of

FOREIGN = {*sys.stdlib_module_names, "torch", "numpy"}
"""Packages whose functions and objects are not looked into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A place that a function reads: a variable of an outer function, a global, or a bound argument."""

    read: Callable[[], Any]
    write: Callable[[Any], None]
    is_global: bool = False


class Variables(MutableMapping[str, Any]):
    """What a callable reads besides its arguments, by name and as it is now."""

    def __init__(self, places: Mapping[str, Variable]) -> None:
        self.places = places

    def __getitem__(self, name: str) -> Any:
        return self.places[name].read()

    def __setitem__(self, name: str, value: Any) -> None:
        self.places[name].write(value)

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{name} cannot be taken from a function")

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


class ScriptAttributes(MutableMapping[str, Any]):
    """Parameters, buffers, attributes and submodules of a TorchScript module, which it holds in C++."""

    def __init__(self, module: torch.jit.ScriptModule) -> None:
        self.module = module
        # A class written as a subclass of ScriptModule holds its compiled module inside.
        own: Any = getattr(module, "_actual_script_module", module)
        kinds = torch._C.ConcreteModuleType.from_jit_type(own._c._type()).get_attributes()  # noqa: SLF001 - no other way
        held = [name for name, _ in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False))]
        children = [name for name, _ in module.named_children()]
        others = [name for name in kinds if name != "training" and not name.startswith("_")]
        self.names = list(dict.fromkeys((*held, *others, *children)))

    def __getitem__(self, name: str) -> Any:
        return getattr(self.module, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self.module, name, value)

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{name} cannot be taken from TorchScript")

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def variables_of(call: Any) -> Variables:
    """What a callable of the project reads: through partials, methods, and functions of its package that it names."""
    reading = Reading()
    reading.visit(call)
    return Variables(reading.found)


def package_of(value: Any) -> str:
    """The top package of a function, or of an object's class."""
    module = value.__module__ if isinstance(value, FunctionType) else type(value).__module__
    return str(module).partition(".")[0]


@dataclass(slots=True)
class Reading:
    """A walk through the functions of one package."""

    found: dict[str, Variable] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    package: str = ""
    """That of the first function: what others keep to themselves is not this callable's state."""

    def visit(self, call: Any) -> None:
        """Note what a callable reads."""
        if id(call) in self.seen:
            return
        self.seen.add(id(call))
        if isinstance(call, functools.partial):
            bound = {**{f"argument-{index}": value for index, value in enumerate(call.args)}, **call.keywords}
            for name, value in bound.items():
                self.add(name, _fixed(value))
            self.visit(call.func)
        elif isinstance(call, MethodType):
            self.add("self", _fixed(call.__self__))
            self.visit(call.__func__)
        elif isinstance(call, FunctionType):
            self.package = self.package or package_of(call)
            for name, place in _of_function(call) if package_of(call) == self.package not in FOREIGN else ():
                self.add(name, place)
        elif callable(call) and not isinstance(call, (type, ModuleType)):
            self.add(type(call).__name__, _fixed(call))

    def add(self, name: str, place: Variable) -> None:
        """Note a place; a function in it is looked into instead."""
        value = place.read()
        if isinstance(value, (FunctionType, MethodType, functools.partial)):
            self.visit(value)
        elif not isinstance(value, (type, ModuleType)):
            self.found.setdefault(name, place)


def _of_function(function: FunctionType) -> Iterator[tuple[str, Variable]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if _is_filled(cell):
            yield name, _cell(cell)
    for name in (name for code in codes_of(function.__code__) for name in code.co_names):
        # `co_names` has attributes too, so an attribute named as a global counts as a read; that costs a snapshot, no
        # more.
        if name in function.__globals__ and not name.startswith("__"):
            yield name, _global(function.__globals__, name)


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - raises where nothing was assigned yet
    except ValueError:
        return False
    return True


# Each place is made by a call: a lambda in the loops above would read the last variable of the loop.
def _cell(cell: Any) -> Variable:
    return Variable(read=lambda: cell.cell_contents, write=lambda value: setattr(cell, "cell_contents", value))


def _global(names: dict[str, Any], name: str) -> Variable:
    return Variable(read=lambda: names[name], write=lambda value: names.__setitem__(name, value), is_global=True)


def _fixed(value: Any) -> Variable:
    return Variable(read=lambda: value, write=lambda _: None)
