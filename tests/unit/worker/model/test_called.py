"""Callables and TorchScript as references: their parameters, their modules, their state."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from export_gate.wall.contract import ModelContract, make_target
from export_gate.wall.errors import UserError
from export_gate.worker.leaves.values import Call
from export_gate.worker.model.called import Called
from export_gate.worker.model.factory import Factory, bind, forward_parameters, load_factory
from export_gate.worker.model.float64 import in_float64
from export_gate.worker.model.hygiene import observe_hygiene, training_modules, unseeded_runner, weight_digest
from export_gate.worker.model.reference import module_runner

X = torch.linspace(-1, 1, 6).reshape(2, 3)
SHARED = nn.Linear(3, 3).eval()
COUNTS = [0]


class Net(nn.Module):
    """A layer, dropout and a buffer that forward may write to."""

    def __init__(self, *, counts: bool = False) -> None:
        super().__init__()
        self.layer, self.drop, self.counts = nn.Linear(3, 3), nn.Dropout(0.5), counts
        self.register_buffer("calls", torch.zeros(()))
        self.number = 0

    def forward(self, x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        """Scaled, and counted where asked."""
        if self.counts:
            self.calls += 1
            self.number += 1
        return self.drop(self.layer(x)) * scale + self.calls + self.number

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        """Another way in."""
        return self.forward(x, 1.0)


class Pipeline:
    """An object that is called."""

    def __init__(self) -> None:
        self.net = Net().eval()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """What the network inside returns."""
        found: torch.Tensor = self.net(x)
        return found


def closure(net: nn.Module) -> Callable[..., Any]:
    """A function that reads a variable of this one."""

    def reference(x: torch.Tensor, scale: float = 1.0) -> Any:
        return net(x) * scale

    return reference


def counting() -> Callable[..., Any]:
    """A function with a number of its own."""
    calls = 0

    def reference(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return x + calls

    return reference


def shared(x: torch.Tensor) -> Any:
    """Reads a module of the file's."""
    return SHARED(x)


def counted(x: torch.Tensor) -> torch.Tensor:
    """Writes to a list of the file's."""
    COUNTS[0] += 1
    return x + COUNTS[0]


def scripted(*, counts: bool = False) -> Any:
    """TorchScript that was compiled."""
    return torch.jit.script(Net(counts=counts).eval())


def loaded(folder: Path) -> Any:
    """TorchScript that was saved and loaded again."""
    torch.jit.save(scripted(counts=True), folder / "net.ts")
    return torch.jit.load(folder / "net.ts")


def made(make: Callable[..., Any]) -> nn.Module:
    """What the gate makes of it."""
    return Factory(make=make, reference="m:make", kwargs={}, base=Path(), takes_callables=True)()


@torch.jit.script
def doubled(x: torch.Tensor, offset: float = 0.5) -> torch.Tensor:
    """A TorchScript function."""
    return x * 2 + offset


CALLABLES: dict[str, tuple[Callable[[], Any], list[str], int]] = {
    "compiled": (scripted, ["x", "scale"], 1),
    "traced": (lambda: torch.jit.trace(nn.Sequential(nn.Linear(3, 3), nn.Tanh()).eval(), X), ["input"], 1),
    "TorchScript function": (lambda: doubled, ["x", "offset"], 0),
    "function": (lambda: closure(Net().eval()), ["x", "scale"], 1),
    "partial": (lambda: partial(torch.add, other=1.0), ["args"], 0),
    "partial of a module": (lambda: partial(lambda net, x: net(x), Net().eval()), ["x"], 1),
    "method": (lambda: Net().eval().encode, ["x"], 1),
    "object": (Pipeline, ["x"], 1),
    "builtin": (lambda: torch.sigmoid, ["args"], 0),
    "of a global": (lambda: shared, ["x"], 1),
}


@pytest.mark.parametrize("name", CALLABLES)
def test_any_callable_is_a_reference(name: str):
    """It is called as it is, with its own parameters; the modules that it reads are submodules, in eval mode."""
    make, names, modules = CALLABLES[name]
    module = made(make)
    assert isinstance(module, Called)
    parameters = forward_parameters(module)
    assert [parameter.name for parameter in parameters][: len(names)] == names
    assert len(module._modules) == modules
    assert bool(weight_digest(module)) is bool(modules)
    assert training_modules(module) == ((), 0)
    (leaf,) = module_runner(module, {})(bind({names[0] if modules else "x": X}, parameters))
    torch.manual_seed(20261020)
    assert leaf.value is not None
    assert leaf.value.shape == (2, 3)
    (again,) = module_runner(copy.deepcopy(module), {})(bind({names[0] if modules else "x": X}, parameters))
    assert (again.value == leaf.value).all()


@pytest.mark.parametrize("name", ["compiled", "traced", "function", "method", "object"])
def test_the_reference_is_computed_in_float64_too(name: str):
    """The noise of a difference is known for a callable as for a module, and only its own weights are widened."""
    (leaf,) = in_float64(made(CALLABLES[name][0]), Call(args=(X,), kwargs={}))
    assert leaf.dtype == "float64"


def test_what_all_instances_share_keeps_its_dtype():
    """A module in the file is not widened, because the reference would be changed afterwards."""
    in_float64(made(lambda: shared), Call(args=(X,), kwargs={}))
    assert SHARED.weight.dtype is torch.float32


@pytest.mark.parametrize(
    ("make", "acting"),
    [
        (lambda: torch.jit.script(Net()), "module.drop (Dropout)"),
        (lambda: closure(Net()), "net.drop (Dropout)"),
        (lambda: Net().encode, "self.drop (Dropout)"),
    ],
)
def test_train_mode_is_seen_inside(make: Callable[[], Any], acting: str):
    """Train mode is noticed in TorchScript and in the modules that a function reads."""
    names, count = training_modules(made(make))
    assert acting in names
    assert count > 1


@pytest.mark.parametrize("freeze", [torch.jit.freeze, torch.jit.optimize_for_inference])
def test_frozen_torchscript_is_a_reference(freeze: Callable[[Any], Any]):
    """It has neither weights nor a mode any more."""
    module = made(lambda: freeze(torch.jit.script(nn.Sequential(nn.Linear(3, 3), nn.ReLU()).eval())))
    facts = observe_hygiene(module, unseeded_runner(module), [lambda: Call(args=(X,), kwargs={})] * 3)
    assert (facts.train_module_count, facts.nondeterministic, facts.state_changed) == (0, (), ())


STATEFUL: dict[str, Callable[[], Any]] = {
    "compiled": lambda: scripted(counts=True),
    "variable": counting,
    "global": lambda: counted,
    "method": lambda: Net(counts=True).eval().encode,
}


@pytest.mark.parametrize("name", [*STATEFUL, "loaded"])
def test_state_is_seen_and_restored(name: str, tmp_path: Path):
    """State is noticed in buffers and attributes of TorchScript, in variables of functions, and in their modules."""
    COUNTS[0] = 0
    module = made(STATEFUL.get(name, lambda: loaded(tmp_path)))
    run = unseeded_runner(module)
    facts = observe_hygiene(module, run, [lambda: Call(args=(X,), kwargs={})] * 3)
    assert facts.state_changed
    assert facts.nondeterministic or facts.state_effects
    COUNTS[0] = 0
    (after,) = run(Call(args=(X,), kwargs={}))
    COUNTS[0] = 0
    (fresh,) = unseeded_runner(made(STATEFUL.get(name, lambda: loaded(tmp_path))))(Call(args=(X,), kwargs={}))
    assert after.value is not None
    assert (after.value == fresh.value).all()


@pytest.mark.parametrize("found", [3, None, "text", nn.Linear, torch.ones(2)])
def test_other_values_are_no_reference(found: Any):
    """A class most likely needs `()` after it."""
    with pytest.raises(UserError, match=r"expected a torch\.nn\.Module or a callable"):
        made(lambda: found)


def test_callables_are_for_artifacts_alone(tmp_path: Path):
    """If one target is exported, the factory must return a module."""
    (tmp_path / "refs.py").write_text("import torch\ndef make():\n    return torch.sigmoid\n", encoding="utf-8")
    given = make_target("onnx", artifact="m.onnx")
    contract = ModelContract(name="m", factory="refs.py:make", inputs={}, targets=(given, make_target("pt2")))
    with pytest.raises(UserError, match=r"expected a torch\.nn\.Module$"):
        load_factory(contract, tmp_path)()
    alone = ModelContract(name="m", factory="refs.py:make", inputs={}, targets=(given,))
    assert isinstance(load_factory(alone, tmp_path)(), Called)
