"""Randomness and memory are distinguished by two copies of the process."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from worker_samples import contract, subject, tensor

from export_gate.wall.contract import Dim
from export_gate.wall.observation import HygieneObservation
from export_gate.worker.controls.build import build_control_set
from export_gate.worker.study.chance import Chance, observe_chance, without_confusion

CALLS = itertools.count(1)
ROWS = contract({"x": tensor("n", 8, range=(-4, 4))}, Dim(name="n", min=1, max=16))


class Model(nn.Module):
    """A function as a model."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[n, 8] to anything."""
        return self.function(x)


def observed(function: Callable[..., Any], tmp_path: Path) -> Chance:
    """What two copies say of the model at its whole control set."""
    found = observe_chance(build_control_set(ROWS, tmp_path).cases, subject(Model(function), ROWS))
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.dropout(x, 0.01),
        lambda x: (x + 1e-6 * torch.rand_like(x)).argmax(1),
        lambda x: x * (torch.rand(x.shape[0], 1) < 0.95),
        lambda x: torch.floor(x * 16 + torch.rand_like(x)) / 16,
        lambda x: x + torch.randn_like(x) * float(x.abs().max() > 3.9),
        lambda x: x * random.random(),
    ],
    ids=["rare-dropout", "ties", "drop-path", "stochastic-rounding", "some-inputs-only", "random-module"],
)
def test_chance_is_found_at_every_kind_of_input(function: Callable[..., Any], tmp_path: Path):
    """Rare noise, noise that only ties show, and noise at some inputs differ between two copies."""
    assert observed(function, tmp_path).outputs


def seeded(x: torch.Tensor) -> torch.Tensor:
    """Seeds its own noise."""
    torch.manual_seed(3)
    return x + torch.rand_like(x)


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [seeded, lambda x: x * next(CALLS), lambda x: F.dropout(x, 0.5, training=False)],
    ids=["seeds", "counts", "eval"],
)
def test_memory_and_own_seeds_are_no_chance(function: Callable[..., Any], tmp_path: Path):
    """A model that seeds its noise, counts its calls at module level or drops nothing is equal in both copies."""
    assert observed(function, tmp_path) == Chance(outputs=(), draws=False)


def test_noise_that_cancels_is_drawn_all_the_same(tmp_path: Path):
    """Noise times zero affects no output, but is drawn from the caller's generator."""
    assert observed(lambda x: x + 0 * torch.rand_like(x), tmp_path) == Chance(outputs=(), draws=True)


def test_a_difference_that_two_copies_share_is_memory(tmp_path: Path):
    """Repeats that differ are randomness if the copies differ, and memory if they agree."""
    noisy = observed(lambda x: x + torch.rand_like(x), tmp_path)
    facts = HygieneObservation(repeats=6, nondeterministic=noisy.outputs)
    assert without_confusion(facts, Chance()).state_effects == noisy.outputs
    assert without_confusion(facts, Chance()).nondeterministic == ()
    confused = HygieneObservation(repeats=6, state_effects=noisy.outputs)
    assert without_confusion(confused, noisy).nondeterministic == noisy.outputs
    assert without_confusion(confused, noisy).state_effects == ()
    assert without_confusion(facts, None) == facts


def test_a_copy_that_dies_alone_shows_no_chance(tmp_path: Path):
    """A call may meet its time limit in one copy alone; the rest of its calls then have another history."""

    def counting(x: torch.Tensor) -> torch.Tensor:
        number = next(CALLS)
        if torch.initial_seed() == 2001:  # the second call of the second copy
            os._exit(3)
        return x * number

    cases = build_control_set(ROWS, tmp_path).cases[:2]
    assert observe_chance(cases, subject(Model(counting), ROWS)) == Chance(outputs=(), draws=False)
