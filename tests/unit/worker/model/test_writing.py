"""The line that writes is found whatever it writes to and however."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from worker_samples import written_module

from export_gate.wall.source import SourceLine
from export_gate.worker.leaves.values import Call
from export_gate.worker.model.state import snapshot_state
from export_gate.worker.model.state_changes import state_changes
from export_gate.worker.model.writing import inputs_stamp, state_stamp, writing_line

MODEL = """
import torch
from torch import nn

def clear(rows):
    rows[0] = 0
    return rows

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))
        self.count, self.log = 0, []

    def forward(self, x):
        y = x + 1
        return y

class InPlace(Model):
    def forward(self, x):
        y = x * 1
        x.mul_(2)
        return x + y

class ThroughAView(Model):
    def forward(self, x):
        return clear(x[1:]) + 1

class Counter(Model):
    def forward(self, x):
        y = x + self.count
        self.count += 1
        return y

class Buffer(Model):
    def forward(self, x):
        with torch.no_grad():
            self.seen.add_(1)
        return x

class Log(Model):
    def forward(self, x):
        self.log.append(float(x.sum()))
        return x

class New(Model):
    def forward(self, x):
        self.cached = x
        return x
"""


@pytest.fixture
def models(tmp_path: Path) -> Any:
    """The user's module."""
    with written_module(tmp_path, "written_models", MODEL) as module:
        yield module


def _call() -> Call:
    return Call(args=(torch.ones(3, 2),))


def _text(line: SourceLine | None) -> str:
    return line.text if line else ""


@pytest.mark.parametrize(
    ("name", "text"), [("InPlace", "x.mul_(2)"), ("ThroughAView", "rows[0] = 0"), ("Model", ""), ("Counter", "")]
)
def test_a_write_to_an_input_has_its_line(name: str, text: str, models: Any, tmp_path: Path):
    """Through a view and in another function, too; a copy is no write."""
    model, call = getattr(models, name)(), _call()
    assert _text(writing_line(lambda: model(*call.args), inputs_stamp(call), (tmp_path,))) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Counter", "self.count += 1"),
        ("Buffer", "self.seen.add_(1)"),
        ("Log", "self.log.append(float(x.sum()))"),
        ("New", "self.cached = x"),
    ],
)
def test_a_write_to_state_has_its_line(name: str, text: str, models: Any, tmp_path: Path):
    """Attributes, buffers, containers, and what was not there before."""
    used, fresh, call = getattr(models, name)(), getattr(models, name)(), _call()
    before = snapshot_state(used)
    used(*call.args)
    changes = state_changes(before, used)

    assert changes
    assert _text(writing_line(lambda: fresh(*call.args), state_stamp(fresh, changes), (tmp_path,))) == text


def test_another_tracer_stays(models: Any, tmp_path: Path):
    """Coverage tools and debuggers trace too, and an exception must not end that."""

    def tracer(*_: object) -> Callable[..., Any] | None:
        return None

    def fails() -> None:
        raise ValueError

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with pytest.raises(ValueError):
            writing_line(fails, inputs_stamp(_call()), (tmp_path,))
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
