"""Conditions on values: how far each is from turning."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import cond

from export_gate.worker.model.conditions import Conditions

X = torch.tensor([0.25, -1.0, 3.0])


@pytest.mark.parametrize(
    ("condition", "gap"),
    [
        (lambda x: x.sum() > 2, 0.25),
        (lambda x: x.sum() <= 2, -0.25),
        (lambda x: ~(x.sum() > 2), -0.25),
        (lambda x: (x.sum() > 2) & (x.max() > 2.5), 0.25),
        (lambda x: (x.sum() > 2).logical_and(x.max() < 2.5), -0.5),
        (lambda x: (x.sum() > 2) | (x.max() > 2.5), 0.5),
        (lambda x: (x.sum() > 2) ^ (x.max() > 2.5), -0.25),
        (lambda x: (x > 1).any(), 2.0),
        (lambda x: (x > -1.5).all(dim=0), 0.5),
        (lambda x: (x.sum() > 2) & torch.tensor(True), 0.25),
        (lambda x: (x[:1] > 0).reshape(()), 0.25),
    ],
)
def test_the_gap_of_a_condition_is_how_far_it_is_from_turning(
    condition: Callable[[torch.Tensor], torch.Tensor], gap: float
):
    """It is that of the comparison which decides, and negative where the condition does not hold."""
    met = Conditions()
    with met.watched():
        torch.cond(condition(X), torch.sin, torch.cos, (X,))

    assert met.gaps == [gap]


def test_a_condition_under_a_name_of_its_own_is_met():
    """`from torch import cond` is watched too, and is as before afterwards."""
    met, plain = Conditions(), cond
    with met.watched():
        cond(X.sum() > 0, torch.sin, torch.cos, (X,))

    assert met.gaps == [2.25]
    assert cond is plain


def test_what_is_written_in_place_has_no_old_gap():
    """A mask that forward changes afterwards is no longer the comparison."""
    met = Conditions()
    with met.watched():
        condition = (X.sum() > 0).reshape(1)
        condition.fill_(False)
        torch.cond(condition, torch.sin, torch.cos, (X,))

    assert met.gaps == [None]
