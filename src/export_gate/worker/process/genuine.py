"""Modules, classes and functions with which the gate decides in the project's process: its own, and those it calls."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any

from export_gate.worker.process.replaced import ABSENT, Place

OWN = "export_gate"
FOREIGN = (
    "builtins", "dataclasses", "hashlib", "io", "itertools", "json", "json.encoder", "math", "os", "pathlib", "typing",
    "numpy", "numpy._core._methods", "numpy._core.fromnumeric", "numpy._core.numeric", "numpy._core.shape_base",
    "numpy._core._ufunc_config", "numpy.lib._index_tricks_impl", "numpy.lib._shape_base_impl", "torch",
)  # fmt: skip
"""Modules whose functions the gate decides with; of torch and the builtins, what the gate names (see `_names_used`)."""
FOREIGN_CLASSES = (("torch", "Tensor"), ("json.encoder", "JSONEncoder"), ("pathlib", "Path"), ("pathlib", "PurePath"))


def _own_modules() -> list[types.ModuleType]:
    return [module for name, module in sys.modules.items() if name == OWN or name.startswith(f"{OWN}.")]


def _own_classes() -> list[type]:
    held = {id(v): v for module in _own_modules() for v in vars(module).values() if isinstance(v, type)}
    return [cls for cls in held.values() if cls.__module__.startswith(OWN)]


def own_places() -> Iterator[Place]:
    """Modules with all they hold, and without a builtin of their own that the gate's code names; classes."""
    builtins = vars(sys.modules["builtins"])
    for module in _own_modules():
        own = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
        absent = [name for name in _names_in(_functions_in([vars(module), *map(_space, own)])) if name in builtins]
        held = dict(vars(module))
        # Every watch sets it; `_leave` compares it by itself.
        held.pop("_CURRENT", None)
        yield _place(module.__name__, module, {**dict.fromkeys(absent, ABSENT), **held})
    for cls in _own_classes():
        held = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__", "__doc__")}
        yield _place(f"{cls.__module__}.{cls.__qualname__}", cls, held)


def own_functions() -> list[types.FunctionType]:
    """Every function of the gate's that is loaded."""
    return _functions_in([vars(holder) for holder in (*_own_modules(), *_own_classes())])


def _space(value: Any) -> Any:
    return vars(value) if isinstance(value, type) else {}


def _functions_in(spaces: Iterable[Any]) -> list[types.FunctionType]:
    held = [_unwrapped(value) for space in spaces for value in space.values()]
    functions = {id(value): value for value in held if isinstance(value, types.FunctionType)}
    return [function for function in functions.values() if function.__module__.startswith(OWN)]


def _unwrapped(value: Any) -> Any:
    """The function below a method, a property or a cache."""
    for name in ("__func__", "fget", "__wrapped__"):
        value = vars(value).get(name, value) if name == "__wrapped__" and hasattr(value, "__dict__") else value
        value = getattr(value, name, value) if isinstance(value, (staticmethod, classmethod, property)) else value
    return value


def foreign_places() -> Iterator[Place]:
    """Modules and classes of others with what the gate calls of them."""
    used = _names_used()
    for name in FOREIGN:
        module = sys.modules.get(name)
        if module is not None:
            # These are what numpy's public functions call in turn, so the gate's code does not name them.
            has_all = name.startswith("numpy.")
            held = {n: v for n, v in vars(module).items() if callable(v) and (has_all or n in used)}
            yield _place(name, module, held)
    for name, attribute in FOREIGN_CLASSES:
        cls = getattr(sys.modules.get(name), attribute, None)
        if cls is not None:
            names = {n for n in used if hasattr(cls, n) and not n.startswith("__")}
            yield _place(f"{name}.{attribute}", cls, {n: vars(cls).get(n, ABSENT) for n in names})


def _place(name: str, owner: Any, held: MutableMapping[str, Any]) -> Place:
    there = {name: value for name, value in held.items() if name in vars(owner)}
    names = tuple(there)
    return Place(
        name=name,
        owner=owner,
        names=names,
        values=tuple(there.values()),
        absent=tuple(name for name in held if name not in there),
    )


@functools.cache
def _names_used() -> frozenset[str]:
    """Every global and attribute that the gate's code names."""
    return _names_in(own_functions())


def _names_in(functions: Iterable[types.FunctionType]) -> frozenset[str]:
    waiting = [function.__code__ for function in functions]
    names: set[str] = set()
    while waiting:
        code = waiting.pop()
        names.update(code.co_names)
        waiting += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return frozenset(names)
