"""Create fresh nn.Module instances with a named factory, and bind values to forward's parameters."""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from export_gate.wall.contract import ModelContract
from export_gate.wall.errors import UserError
from export_gate.worker.leaves.values import Call, Values
from export_gate.worker.model.called import Called, can_be_called
from export_gate.worker.model.importing import at_line, import_place, working_in
from export_gate.worker.process.failures import describe
from export_gate.worker.process.integrity import guarded

SEED = 20261020
"""Seed of every factory call and every forward call, so that twins are identical."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of forward."""

    name: str
    kind: inspect._ParameterKind
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Factory:
    """A callable of the project that creates the model, with the contract's arguments."""

    make: Callable[..., Any]
    reference: str
    kwargs: dict[str, Any]
    base: Path
    force_eval: bool = False
    takes_callables: bool = False
    """Whether any callable will do: nothing is exported."""
    adapt: Callable[[torch.nn.Module], None] | None = None
    """Lets each instance take the contract's inputs, if its forward does not take them as they are."""

    def __call__(self) -> torch.nn.Module:
        """Create a fresh instance under fixed seeds.

        Raises:
            UserError: the factory raises, exits, or returns nothing that can be checked.
        """
        seed_everything()
        try:
            with working_in(self.base):
                made = guarded(self.make)(**self.kwargs)
        # Not an Exception: a factory that is a whole script would end the process without a word.
        except SystemExit as error:
            raise UserError(
                f"factory {self.reference!r} called sys.exit({error.code!r}): it must return the model",
                "raise an exception instead, or name a factory that is not a script",
            ) from error
        except Exception as error:
            at = at_line(error, self.base)
            raise UserError(
                f"factory {self.reference!r} raised {type(error).__name__}: {describe(error)}{at}",
                f"call it with the project's interpreter, {sys.executable}, in {self.base}",
            ) from error
        # The wrapper keeps the factory, because functions cannot be copied: a twin is made anew.
        if self.takes_callables and can_be_called(made):
            made = Called(made, self)
        if not isinstance(made, torch.nn.Module):
            other = " or a callable" if self.takes_callables else ""
            only = "; any callable will do only where every target has an `artifact`" if can_be_called(made) else ""
            raise UserError(
                f"factory {self.reference!r} returned {_article(made)}, expected a torch.nn.Module{other}",
                f"return the module itself, its weights loaded and in eval mode{only}",
            )
        if self.adapt is not None:
            self.adapt(made)
        return made.eval() if self.force_eval else made


def load_factory(contract: ModelContract, base: Path) -> Factory:
    """The contract's factory, imported; where every target is a file, it may make any callable.

    Raises:
        UserError: it cannot be imported or called with the contract's `kwargs`.
    """
    made = load_attribute(contract.factory, base, "factory")
    if not callable(made):
        raise UserError(
            f"factory {contract.factory!r} is {_article(made)}, expected a function or class",
            "name a callable that creates the model, not a value",
        )
    require_factory(made, contract.factory)
    try:
        inspect.signature(made).bind(**contract.kwargs)
    except TypeError as error:
        raise UserError(
            f"factory {contract.factory!r} cannot be called with kwargs {contract.kwargs}: {error}; "
            f"its parameters are {inspect.signature(made)}",
            f"write `models.{contract.name}.kwargs` as the factory takes them",
        ) from error
    except ValueError:
        pass  # builtins do not have a signature to check
    return Factory(
        make=made,
        reference=contract.factory,
        kwargs=contract.kwargs,
        base=base,
        takes_callables=bool(contract.targets) and all(target.artifact for target in contract.targets),
    )


def factory_package(contract: ModelContract) -> str:
    """The top-level package that the factory is in; empty for a file."""
    place = contract.factory.rpartition(":")[0]
    return "" if place.endswith(".py") else place.partition(".")[0]


def require_factory(made: Any, reference: str) -> None:
    """Refuse a module in place of a function that creates one.

    Raises:
        UserError: it is an instance of nn.Module.
    """
    if isinstance(made, torch.nn.Module):
        raise UserError(
            f"factory {reference!r} is an nn.Module itself ({type(made).__name__}), "
            "expected a function or class that makes one",
            "add a function that returns it, such as `def make_model(): return ...`, and name that one",
        )


def load_attribute(reference: str, base: Path, role: str) -> Any:
    """Load the object that `module:attribute` or `path/to/file.py:attribute` names; `role` is its name in messages.

    Raises:
        UserError: the module cannot be imported or does not have the attribute.
    """
    place, _, attribute = reference.rpartition(":")
    module = import_place(place, base, f"{role} {reference!r}")
    found: Any = module
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise UserError(
                f"{role} {reference!r}: {place} has no attribute {name!r}; {_nearest(name, vars(module))}",
                f"name a function or class of {place}",
            )
        found = getattr(found, name)
    return found


def seed_everything(seed: int = SEED) -> None:
    """Seed torch, numpy and Python's `random`: with the same seed before every call, unless chance is looked for."""
    _seed_torch(seed)
    np.random.seed(seed)  # noqa: NPY002 - the legacy global generator is what models use
    random.seed(seed)


def _seed_torch(seed: int) -> None:
    """Seed every device, as `torch.manual_seed` does, which takes a millisecond where there is none but the CPU.

    For a CUDA that has not started yet it formats a stack trace and queues the seed (torch 2.13).
    """
    if torch.backends.cuda.is_built() or torch.backends.mps.is_built():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def is_scripted(module: torch.nn.Module) -> bool:
    """Whether the model is or contains TorchScript."""
    return any(isinstance(part, torch.jit.ScriptModule) for part in module.modules())


def forward_parameters(module: torch.nn.Module) -> tuple[Parameter, ...]:
    """The parameters of the module's forward."""
    return tuple(
        Parameter(name=p.name, kind=p.kind, required=p.default is p.empty)
        for p in inspect.signature(module.forward).parameters.values()
    )


def check_inputs(contract: ModelContract, parameters: Sequence[Parameter]) -> None:
    """Compare the contract's inputs with forward's parameters.

    Raises:
        UserError: a declared input is not a parameter, a required parameter is not declared, or the order differs.
    """
    named = [p for p in parameters if p.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)]
    # `*args` or `**kwargs` may take any further name.
    open_ended = len(named) < len(parameters)
    signature = f"forward({', '.join(_spelling(p) for p in parameters)})"
    unknown = [name for name in contract.inputs if name not in {p.name for p in named}]
    if unknown and not open_ended:
        raise UserError(
            f"input {unknown[0]!r} is not a parameter of {signature}; {_nearest(unknown[0], [p.name for p in named])}",
            f"name `models.{contract.name}.inputs` as forward's parameters are named",
        )
    missing = [p.name for p in named if p.required and p.name not in contract.inputs]
    if missing:
        raise UserError(
            f"parameter {missing[0]!r} of {signature} is not declared under `inputs`",
            f"add it to `models.{contract.name}.inputs`, as a tensor or as a constant",
        )
    positional = [p.name for p in named if p.kind is not inspect.Parameter.KEYWORD_ONLY and p.name in contract.inputs]
    declared = [name for name in contract.inputs if name in positional]
    if declared != positional:
        raise UserError(
            f"inputs are declared as {', '.join(declared)}, but the order of {signature} is {', '.join(positional)}",
            f"write `models.{contract.name}.inputs` in forward's order",
        )


def bind(values: Values, parameters: Sequence[Parameter]) -> Call:
    """Bind values to the arguments of one call: by position up to the first gap, the rest by name."""
    kinds = {p.name: p.kind for p in parameters}
    has_varargs = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    order = [p.name for p in parameters]
    for name, value in values.items():
        kind = kinds.get(name)
        # An unnamed parameter can only be one of `*args`, which take what is left by position.
        by_position = kind is not inspect.Parameter.KEYWORD_ONLY if kind is not None else has_varargs
        if by_position and not kwargs and (kind is None or order.index(name) == len(args)):
            args.append(value)
        else:
            kwargs[name] = value
    return Call(args=tuple(args), kwargs=kwargs)


def _spelling(parameter: Parameter) -> str:
    stars: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return f"{stars.get(parameter.kind, '')}{parameter.name}" + (
        "" if parameter.required or parameter.kind in stars else "=..."
    )


def _article(value: Any) -> str:
    if value is None:
        return "None"
    name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _nearest(name: str, names: Iterable[str]) -> str:
    import difflib

    public = [known for known in names if not known.startswith("__")]
    close = difflib.get_close_matches(name, public, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"it has {', '.join(sorted(public)[:8])}" if public else "it has none"
