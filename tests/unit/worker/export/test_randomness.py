"""Which operators of a program draw random numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from export_gate.worker.export.randomness import random_operators, random_source


class Quiet(nn.Module):
    """Layers with randomness that is off."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.attention = nn.MultiheadAttention(4, 2, dropout=0.1, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[2, 3, 4] to the same."""
        y, _ = self.attention(self.drop(x), x, x)
        return F.scaled_dot_product_attention(F.rrelu(y), F.dropout(y, 0.0), F.alpha_dropout(y, 0.2))


class Branch(nn.Module):
    """Draws inside one branch of control flow."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[2, 3, 4] to the same."""
        return torch.cond(x.sum() > 0, lambda y: y + torch.rand_like(y), lambda y: y.clone(), (x,))


class Loud(nn.Module):
    """One operator that draws."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[2, 3, 4] to anything."""
        return self.function(x)


def operators(module: nn.Module) -> tuple[str, ...]:
    """Of the module's program."""
    return random_operators(torch.export.export(module.eval(), (torch.ones(2, 3, 4),)))


def test_randomness_that_is_off_is_none():
    """Dropout in evaluation or at rate zero, attention without dropout and RReLU in evaluation draw nothing."""
    assert operators(Quiet()) == ()


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: F.dropout(x, 0.01), "aten.dropout.default"),
        (lambda x: x + 0 * torch.rand_like(x), "aten.rand_like.default"),
        (lambda x: F.rrelu(x, training=True), "aten.rrelu.default"),
        (lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.1), "aten.scaled_dot_product_attention.default"),
        (lambda x: torch.bernoulli(torch.sigmoid(x)), "aten.bernoulli.default"),
    ],
)
def test_operators_that_draw_are_named(function: Callable[..., Any], name: str):
    """Operators that draw are found in the program, however little they affect the result."""
    assert operators(Loud(function)) == (name,)


@pytest.mark.slow
def test_branches_are_read_too():
    """Operators inside `torch.cond` are found."""
    assert operators(Branch()) == ("aten.rand_like.default",)


def test_the_line_that_draws_is_the_projects_own():
    """Lines of other packages are not the user's to change."""
    program = torch.export.export(Loud(lambda x: x + torch.rand_like(x)), (torch.ones(2, 3, 4),))
    line = random_source(program, (Path(__file__).parent,))

    assert line is not None
    assert line.text == "return self.function(x)"
    assert random_source(program, (Path(torch.__file__).parent / "nowhere",)) is None
