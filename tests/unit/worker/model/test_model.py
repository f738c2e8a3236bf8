"""Contracts compared with forward, and values bound to its parameters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from export_gate.wall.contract import ConstantSpec, ModelContract
from export_gate.wall.errors import UserError
from export_gate.worker.model.factory import Factory, Parameter, bind, check_inputs, forward_parameters


def parameters_of(forward: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Parameters of a module with that forward."""
    return forward_parameters(type("Net", (torch.nn.Module,), {"forward": forward})())


def contract(*inputs: str) -> ModelContract:
    """A contract with inputs of those names."""
    return ModelContract(name="net", factory="m:f", inputs={name: ConstantSpec(value=1) for name in inputs}, targets=())


def some_defaults(self: Any, x: Any, y: Any = None, z: Any = None) -> None:
    """A usual forward."""


def keyword_only(self: Any, x: Any, *, scale: Any, bias: Any = 0) -> None:
    """A forward with keyword-only parameters."""


def open_ended(self: Any, x: Any, *more: Any, **named: Any) -> None:
    """A forward that takes anything."""


@pytest.mark.parametrize(
    ("forward", "inputs", "args", "kwargs"),
    [
        (some_defaults, ("x", "y", "z"), ("x", "y", "z"), {}),
        (some_defaults, ("x", "z"), ("x",), {"z": "z"}),
        (keyword_only, ("x", "scale"), ("x",), {"scale": "scale"}),
        (keyword_only, ("scale", "x"), (), {"scale": "scale", "x": "x"}),
        (open_ended, ("x", "a", "b"), ("x", "a", "b"), {}),
    ],
)
def test_values_are_bound_in_the_contracts_order(
    forward: Callable[..., Any], inputs: tuple[str, ...], args: tuple[str, ...], kwargs: dict[str, str]
):
    """Values are bound by position up to the first gap, then by name; leaves keep the contract's order."""
    parameters = parameters_of(forward)
    check_inputs(contract(*inputs), parameters)
    call = bind({name: name for name in inputs}, parameters)
    assert (call.args, call.kwargs) == (args, kwargs)
    assert (*call.args, *call.kwargs.values()) == inputs
    forward(None, *call.args, **call.kwargs)


@pytest.mark.parametrize(
    ("forward", "inputs", "message"),
    [
        (some_defaults, ("x", "mask"), "input 'mask' is not a parameter of forward(x, y=..., z=...); it has x, y, z"),
        (some_defaults, ("y",), "parameter 'x' of forward(x, y=..., z=...) is not declared under `inputs`"),
        (
            some_defaults,
            ("x", "z", "y"),
            "inputs are declared as x, z, y, but the order of forward(x, y=..., z=...) is x, y, z",
        ),
        (keyword_only, ("x",), "parameter 'scale' of forward(x, scale, bias=...) is not declared under `inputs`"),
    ],
)
def test_inputs_that_do_not_fit(forward: Callable[..., Any], inputs: tuple[str, ...], message: str):
    """A wrong name, a missing one and a wrong order are mistakes in the config."""
    with pytest.raises(UserError) as raised:
        check_inputs(contract(*inputs), parameters_of(forward))
    assert str(raised.value) == message
    assert raised.value.hint


def test_factory_makes_twins():
    """Two instances have the same weights, whatever was drawn in between."""
    factory = Factory(make=lambda: torch.nn.Linear(3, 3), reference="m:f", kwargs={}, base=Path())
    first = factory()
    torch.rand(5)
    assert torch.equal(first.weight, factory().weight)


def test_forced_eval_applies_to_every_instance():
    """`train-mode: force-eval` applies to the exported instance as well."""
    factory = Factory(make=torch.nn.Dropout, reference="m:f", kwargs={}, base=Path(), force_eval=True)
    assert not factory().training
