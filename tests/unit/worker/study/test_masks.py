"""Differences at masked places are excused, and faults in masking are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from inquiry_samples import ONNX, inquire
from torch import nn
from worker_samples import size

from export_gate.wall.contract import Dim, ModelContract, Output, TensorSpec
from export_gate.worker.study.masks import PATTERNS, pattern

BATCH, SEQ = size("batch"), size("seq")
Change = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Encoder(nn.Module):
    """Attention over token embeddings with a mask that keeps; `change` may replace the mask of the scores."""

    def __init__(self, *, pooled: bool = False, causal: bool = False, change: str = "") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(50, 16)
        self.position = nn.Embedding(64, 16)
        self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))
        self.pooled, self.causal, self.change = pooled, causal, change

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """See the class."""
        keep = attention_mask.bool()
        length = input_ids.shape[1]
        h = self.embed(input_ids) + self.position(torch.arange(length))
        scores = self.q(h) @ self.k(h).transpose(1, 2) / 4
        allowed = keep[:, None, :].expand(-1, length, -1)
        if self.causal:
            allowed = allowed & torch.ones(length, length, dtype=torch.bool).tril(
                -1 if self.change == "off by one" else 0
            )
        match self.change:
            case "ignored":
                allowed = torch.ones_like(allowed)
            case "flipped":
                allowed = ~allowed
            case "on queries":
                allowed = keep[:, :, None].expand(-1, -1, length)
            case "of row 0":
                allowed = keep[:1, None, :].expand(len(keep), length, -1)
        low = -1e4 if self.change == "another fill" else torch.finfo(scores.dtype).min
        weights = torch.softmax(scores.masked_fill(~allowed, low), -1)
        if self.change == "nothing at empty rows":
            weights = weights * allowed.any(-1, keepdim=True)
        out = h + weights @ self.v(h)
        if self.change == "other values at pads":
            out = torch.where(keep[..., None], out, out * 3 + 1)
        if not self.pooled:
            return out
        counted = torch.ones_like(keep) if self.change == "pooled over all" else keep
        return (out * counted[..., None]).sum(1) / counted.sum(1, keepdim=True).clamp(min=1)


class Zeroed(Encoder):
    """Promises zeros at switched-off positions."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """See the class."""
        out = super().forward(input_ids, attention_mask)
        return out if self.change == "promise broken" else out * attention_mask[..., None]


def contract(**mask: object) -> ModelContract:
    """Token ids and a mask over up to 12 positions."""
    spec = TensorSpec(dtype="int64", shape=(BATCH, SEQ), range=(0, 1), **mask)  # type: ignore[arg-type] # a key of the spec
    return ModelContract(
        name="m",
        factory="m:make",
        dims=(Dim(name="batch", min=1, max=4), Dim(name="seq", min=1, max=12)),
        inputs={"input_ids": TensorSpec(dtype="int64", shape=(BATCH, SEQ), range=(0, 49)), "attention_mask": spec},
        targets=ONNX,
    )


@pytest.mark.slow
@pytest.mark.parametrize("change", ["other values at pads", "nothing at empty rows", "another fill"])
@pytest.mark.parametrize("causal", [False, True])
def test_other_values_where_the_mask_switches_off_are_excused(change: str, causal: bool):
    """Nobody reads what is at padding, or in a row without any token."""
    found = inquire(contract(), lambda: Encoder(causal=causal), lambda: Encoder(causal=causal, change=change))

    assert found.inquiry.red == set()
    assert found.suspects == 0 or found.inquiry.masked


@pytest.mark.slow
@pytest.mark.parametrize("declared", [{}, {"mask": "keep"}])
@pytest.mark.parametrize("change", ["ignored", "flipped", "on queries", "of row 0"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_fault_in_masking_stays_red(change: str, declared: dict[str, str], causal: bool):
    """What masks excuse does not hide that a mask is applied wrongly."""
    found = inquire(contract(**declared), lambda: Encoder(causal=causal), lambda: Encoder(causal=causal, change=change))

    assert found.is_red


def test_a_causal_mask_that_is_off_by_one_stays_red():
    """Kept positions differ."""
    assert inquire(contract(), lambda: Encoder(causal=True), lambda: Encoder(causal=True, change="off by one")).is_red


@pytest.mark.slow
@pytest.mark.parametrize(("change", "is_red"), [("other values at pads", False), ("pooled over all", True)])
def test_a_pooled_output_is_red_only_if_padding_reaches_it(change: str, is_red: bool):
    """An output without positions is excused only if eager itself moves with switched-off input."""
    found = inquire(contract(), lambda: Encoder(pooled=True), lambda: Encoder(pooled=True, change=change))

    assert found.is_red == is_red


@pytest.mark.slow
def test_a_batch_of_one_row_alone_has_masked_places_too():
    """A dim whose only size is 1 is an axis of the mask nevertheless."""
    base = contract()
    single = replace(
        base,
        dims=(Dim(name="batch", min=1, max=1), base.dims[1]),
        outputs=(Output(name="output", shape=(BATCH, SEQ, size(16))),),
    )

    assert not inquire(single, Encoder, lambda: Encoder(change="other values at pads")).is_red
    assert inquire(single, Encoder, lambda: Encoder(change="ignored")).is_red


def test_a_promised_constant_at_padding_is_compared():
    """Zeros that eager writes at every switched-off position are a promise."""
    found = inquire(contract(mask="keep"), Zeroed, lambda: Zeroed(change="promise broken"))

    assert found.is_red


@pytest.mark.slow
def test_any_compares_rows_without_a_position():
    """`mask: any` says that callers send such rows."""
    healthy = inquire(contract(), Encoder, lambda: Encoder(change="nothing at empty rows"))
    strict = inquire(contract(mask="any"), Encoder, lambda: Encoder(change="nothing at empty rows"))

    assert (healthy.is_red, strict.is_red) == (False, True)


@pytest.mark.slow
def test_where_compares_what_the_mask_keeps_and_all_compares_everything():
    """The contract may say which positions count."""
    base = contract(mask="keep")
    kept = replace(base, outputs=(Output(name="output", where="attention_mask"),))
    every = replace(base, outputs=(Output(name="output", where="all"),))
    artifact = lambda: Encoder(change="other values at pads")  # noqa: E731 - one line beside the two that use it

    assert inquire(kept, Encoder, artifact).suspects == 0
    assert inquire(every, Encoder, artifact).is_red
    assert inquire(kept, Encoder, lambda: Encoder(change="ignored")).is_red


class Renamed(nn.Module):
    """The encoder with a mask whose name says nothing; it may mean padding."""

    def __init__(self, *, drops: bool = False, change: str = "") -> None:
        super().__init__()
        self.inner, self.drops = Encoder(change=change), drops

    def forward(self, input_ids: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        """See the class."""
        return self.inner(input_ids, 1 - valid if self.drops else valid)


@pytest.mark.slow
@pytest.mark.parametrize("drops", [False, True])
def test_the_meaning_of_a_mask_without_a_telling_name_is_found_by_trial(drops: bool):
    """Eager itself shows which value switches a position off."""
    base = contract()
    spec = base.inputs["attention_mask"]
    named = replace(base, inputs={"input_ids": base.inputs["input_ids"], "valid": spec})
    found = inquire(named, lambda: Renamed(drops=drops), lambda: Renamed(drops=drops, change="other values at pads"))

    assert found.inquiry.red == set()
    assert found.inquiry.masked
    assert inquire(named, lambda: Renamed(drops=drops), lambda: Renamed(drops=drops, change="ignored")).is_red


class Typed(nn.Module):
    """Token types: two values, neither of which switches anything off."""

    def __init__(self, *, scale: float = 1.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.token, self.kind, self.scale = nn.Embedding(50, 8), nn.Embedding(2, 8), scale

    def forward(self, input_ids: torch.Tensor, token_type_ids: torch.Tensor) -> torch.Tensor:
        """See the class."""
        h = self.token(input_ids)
        return h + self.kind(token_type_ids) * torch.where(token_type_ids == 0, self.scale, 1.0)[..., None]


def test_an_input_of_two_values_that_is_not_a_mask_excuses_nothing():
    """`token_type_ids` holds 0 and 1 too."""
    base = contract()
    typed = replace(
        base, inputs={"input_ids": base.inputs["input_ids"], "token_type_ids": base.inputs["attention_mask"]}
    )

    assert inquire(typed, Typed, lambda: Typed(scale=1.1)).is_red


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_keep_a_position_in_every_row(name: str):
    """Every trial mask has rows of different lengths; padded ones have a full and a single-token row."""
    kept = pattern(name, (3, 7), 0)

    assert kept.shape == (3, 7)
    assert kept.any(-1).all()
    if name != "holed":
        assert kept.sum(-1).max() == 7
        assert kept.sum(-1).min() == 1
