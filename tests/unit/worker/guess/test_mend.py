"""What a guess becomes by the exception that forward raised on it."""

# ruff: noqa: ANN001, D101, D102 - the models are what users write

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from export_gate.starter.text import spec_text
from export_gate.wall.contract import SequenceSpec
from export_gate.worker.guess.describe import _describe
from export_gate.worker.guess.edits import Case, leaves_of
from export_gate.worker.guess.layers import Option, tensor
from export_gate.worker.guess.mend import mended
from export_gate.worker.guess.outputs import FIRST
from export_gate.worker.guess.watch import Argument, Failed, watch


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


class Packed(Model):
    """Wants the longest sequence first."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, 3, batch_first=True)

    def forward(self, ids, ids_lens):
        packed = nn.utils.rnn.pack_padded_sequence(self.table(ids), ids_lens, batch_first=True)
        return self.rnn(packed)[1][-1]


class Frames(Model):
    def forward(self, feats, n_frames):
        keep = torch.arange(feats.shape[1]) < n_frames[:, None]
        return self.wide(feats) * keep[..., None]


class Longest(Model):
    """As many steps as the longest sequence has."""

    def forward(self, feats, lengths):
        keep = torch.arange(lengths.max()) < lengths[:, None]
        return self.wide(feats) * keep[..., None]


class Fixed(Model):
    def forward(self, image, lengths):
        return self.conv(image).mean((2, 3)) * lengths[:, None]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (
            Packed,
            [
                "ids {dtype: int64, shape: [batch, seq], range: [0, 6]}",
                "ids_lens {dtype: int64, shape: [batch], range: [1, seq], order: decreasing}",
            ],
        ),
        (
            Frames,
            [
                "feats {dtype: float32, shape: [batch, seq, 12], range: [-3, 3]}",
                "n_frames {dtype: int64, shape: [batch], range: [1, seq]}",
            ],
        ),
        (
            Longest,
            [
                "feats {dtype: float32, shape: [batch, seq, 12], range: [-3, 3]}",
                "lengths {dtype: int64, shape: [batch], range: [seq, seq]}",
            ],
        ),
        (
            Fixed,
            [
                "image {dtype: float32, shape: [batch, 3, 32, 32], range: [0, 1]}",
                "lengths {dtype: int64, shape: [batch], range: [1, 8]}",
            ],
        ),
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
    """Ids, axes, ranks, widths, lengths, further parameters and bytes are found within a few attempts."""
    monkeypatch.setattr("export_gate.worker.guess.describe.try_export", lambda _bench, trial: trial)
    found = _describe(model())
    assert [f"{guess.name} {spec_text(guess.spec)}" for guess in found.inputs] == expected
    assert found.verdict == "works"


def test_failure_names_the_inputs_behind_each_tensor():
    """They are found through views and arithmetic, up to torch's function that raised."""
    left, right = torch.zeros(2, 3), torch.zeros(2, 4)
    failed = watch(lambda: (left.T * 2).matmul(right.T + left.sum()), {("left",): left, ("right", 0): right})
    assert failed is not None
    assert failed.function == "matmul"
    assert [argument.origins for argument in failed.arguments] == [(("left",),), (("left",), ("right", 0))]
    assert [argument.shape for argument in failed.arguments] == [(3, 2), (4, 2)]


def test_call_that_runs_did_not_fail():
    """There is nothing to change."""
    assert watch(lambda: torch.zeros(2) + 1, {}) is None


MESSAGES = (
    "Given groups=1, weight of size [4, 3, 3, 3], expected input[2, 0, 32, 32] to have 3 channels, but got 0 channels",
    "The size of tensor a (0) must match the size of tensor b (9) at non-singleton dimension 4",
    "if input is 2D, then offsets has to be None",
    "index 9 is out of bounds for dimension 7 with size 0",
    "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
    "not enough values to unpack (expected 3, got 2)",
    "input.dim() = 9 is not equal to len(dims) = 1",
    "Kernel size can't be greater than actual input size",
    "You have to specify extra, or provide 'x'",
    "mat1 and mat2 must have the same dtype, but got Long and Bool index",
    "Expected 6, got 9",
)
SHAPES = st.lists(st.integers(0, 33), max_size=5).map(tuple)
ORIGINS = st.lists(st.sampled_from([("x",), ("pair", 0), ("pair", 1)]), unique=True).map(tuple)
ARGUMENTS = st.builds(
    Argument, shape=SHAPES, is_floating=st.booleans(), dtype=st.sampled_from(["float32", "int64"]), origins=ORIGINS
)
FUNCTIONS = ("", "embedding", "embedding_bag", "__getitem__", "one_hot", "conv2d", "stft", "linear", "matmul", "cat")


@given(
    message=st.sampled_from(MESSAGES) | st.text(),
    function=st.sampled_from(FUNCTIONS),
    arguments=st.lists(ARGUMENTS, max_size=3).map(tuple),
    numbers=st.lists(st.integers(-2, 9), max_size=2).map(tuple),
)
@settings(deadline=None)
def test_any_failure_is_read_without_another(message: str, function: str, arguments, numbers):
    """Whatever forward raises, the rules give guesses with the same inputs, and sizes of at least one."""
    x = tensor("float32", "batch", "seq", 8, within=(-3.0, 3.0))
    options = {
        "x": Option(spec=x, reason=""),
        "pair": Option(spec=SequenceSpec(kind="list", items=(x, tensor("int64", within=(0.0, 1.0)))), reason=""),
    }
    failed = Failed(
        error=ValueError(message), function=function, arguments=arguments, numbers=numbers, line="", nothing=(),
        layer=None,
    )  # fmt: skip
    for guess in mended(Case(options=options, failed=failed, offered=lambda _name: None)):
        leaves = leaves_of(guess)
        assert set(leaves) == {("x",), ("pair", 0), ("pair", 1)}
        assert all(size.at(FIRST) > 0 for spec in leaves.values() for size in spec.shape)
