"""Contracts, fresh models and a desk whose events can be read, for the tests of the worker's stages."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from export_gate.run.observe import Assembly
from export_gate.wall.contract import Job, ModelContract, Size, TensorSpec, make_target
from export_gate.wall.observation import HygieneObservation, ModelObservation
from export_gate.wall.protocol import read_numbered
from export_gate.wall.sizes import parse_size
from export_gate.worker.model.factory import Factory, forward_parameters
from export_gate.worker.process.channel import Channel
from export_gate.worker.process.stages import Desk
from export_gate.worker.study.subject import Subject


def size(text: str | int) -> Size:
    """`batch`, `2*seq+1`, `past+cur` or a number."""
    return parse_size(str(text))


def tensor(*shape: str | int, dtype: str = "float32", **fields: Any) -> TensorSpec:
    """A tensor input of that shape."""
    return TensorSpec(dtype=dtype, shape=tuple(size(axis) for axis in shape), **fields)


def contract(inputs: Mapping[str, Any], *dims: Any, **fields: Any) -> ModelContract:
    """A model named m, for the exported program alone."""
    fields = {"targets": (make_target("exported-program"),), **fields}
    return ModelContract(name="m", factory="m:make", dims=dims, inputs=dict(inputs), **fields)


def subject(module: nn.Module, promised: ModelContract) -> Subject:
    """The module as a fresh instance of the contract's model."""
    factory = Factory(make=lambda: module, reference=promised.factory, kwargs={}, base=Path())
    return Subject(
        contract=promised,
        factory=factory,
        module=module,
        parameters=forward_parameters(module),
        hygiene=HygieneObservation(),
    )


def job(promised: ModelContract, folder: Path, *cases: str) -> Job:
    """A job on the contract in that folder."""
    artifacts = str(folder / "report" / "artifacts" / promised.name)
    return Job(contract=promised, base=str(folder), pythonpath=(), artifacts=artifacts, cases=cases)


@contextmanager
def written_module(folder: Path, name: str, code: str) -> Iterator[Any]:
    """The module of that source, which has a file and is imported within."""
    path = folder / f"{name}.py"
    path.write_text(code)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[name]


class Recorder:
    """A desk whose events go to a file, and what they say."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "events"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.desk = Desk(channel=Channel(descriptor=descriptor, model="m"), roots=(Path(__file__).parent,))

    def observation(self) -> ModelObservation:
        """The model as observed so far."""
        assembly = Assembly()
        for line in self.path.read_bytes().splitlines():
            numbered = read_numbered(line)
            assert numbered is not None
            assembly.apply(numbered[1])
        (found,) = assembly.observation().models
        return found


class Doubled(nn.Module):
    """Twice the input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Any float to the same shape."""
        return 2 * x


class Through(nn.Module):
    """A layer whose input is called x."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the layer makes of it."""
        return self.layer(x)


class Fn(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the class."""
        return self.function(x)
