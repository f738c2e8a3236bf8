"""What a guess becomes by the exception that forward raised on it."""

# ruff: noqa: ANN001, D101, D102 - the models are what users write

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from export_gate.starter.text import spec_text
from export_gate.worker.guess.describe import _describe
from export_gate.worker.guess.watch import watch


class Model(nn.Module):
    """Layers for the forwards below."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 4)
        self.conv = nn.Conv2d(3, 4, 3)
        self.line = nn.Conv1d(1, 4, 9)
        self.wide = nn.Linear(12, 2)
        self.position = nn.Parameter(torch.zeros(1, 20, 4))


class Rows(Model):
    def forward(self, thing):
        return self.table(thing.clone())


class ChannelsLast(Model):
    def forward(self, thing):
        return self.conv(thing.permute(0, 3, 1, 2)).mean((2, 3))


class Rank(Model):
    def forward(self, thing):
        return self.line(thing[:, None]).mean(2)


class SideBySide(Model):
    def forward(self, left, right):
        return self.wide(torch.cat([left, right], 1))


class OneHot(Model):
    def forward(self, kind):
        return functional.one_hot(kind, 5).float()


class Length(Model):
    def forward(self, ids):
        return self.table(ids) + self.position


class Asks(Model):
    def forward(self, ids, extra_ids=None):
        if extra_ids is None:
            raise ValueError("You have to specify extra_ids")
        return self.table(ids) + self.table(extra_ids)


class Bytes(Model):
    def forward(self, image):
        return self.conv(image.float() / 255).mean((2, 3))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Rows, ["thing {dtype: int64, shape: [batch, seq], range: [0, 6]}"]),
        (ChannelsLast, ["thing {dtype: float32, shape: [batch, 32, 32, 3], range: [0, 1]}"]),
        (Rank, ["thing {dtype: float32, shape: [batch, 1600], range: [0, 1]}"]),
        (
            SideBySide,
            [
                "left {dtype: float32, shape: [batch, 6], range: [-3, 3]}",
                "right {dtype: float32, shape: [batch, 6], range: [-3, 3]}",
            ],
        ),
        (OneHot, ["kind {dtype: int64, shape: [batch, seq], range: [0, 4]}"]),
        (Length, ["ids {dtype: int64, shape: [batch, 20], range: [0, 6]}"]),
        (
            Asks,
            [
                "ids {dtype: int64, shape: [batch, seq], range: [0, 6]}",
                "extra_ids {dtype: int64, shape: [batch, seq], range: [0, 6]}",
            ],
        ),
        (Bytes, ["image {dtype: uint8, shape: [batch, 3, 32, 32], range: [0, 255]}"]),
    ],
)
def test_exception_says_what_the_guess_should_be(monkeypatch, model: type[nn.Module], expected: list[str]):
    """Ids, axes, ranks, widths, lengths, further parameters and bytes, found within a few attempts."""
    monkeypatch.setattr("export_gate.worker.guess.describe.try_export", lambda _bench, trial: trial)
    found = _describe(model())
    assert [f"{guess.name} {spec_text(guess.spec)}" for guess in found.inputs] == expected
    assert found.verdict == "works"


def test_failure_names_the_inputs_behind_each_tensor():
    """Through views and arithmetic, up to the function of torch that raised."""
    left, right = torch.zeros(2, 3), torch.zeros(2, 4)
    failed = watch(lambda: (left.T * 2).matmul(right.T + left.sum()), {("left",): left, ("right", 0): right})
    assert failed is not None
    assert failed.function == "matmul"
    assert [argument.origins for argument in failed.arguments] == [(("left",),), (("left",), ("right", 0))]
    assert [argument.shape for argument in failed.arguments] == [(3, 2), (4, 2)]


def test_call_that_runs_did_not_fail():
    """Nothing to mend."""
    assert watch(lambda: torch.zeros(2) + 1, {}) is None
