"""What makes a constant of a size is read from the line, with what to write instead."""

from __future__ import annotations

import pytest

from export_gate.rules.python_numbers import constant_advice, counted
from export_gate.wall.source import SourceLine


def _advice(text: str) -> str:
    return constant_advice(SourceLine(path="model.py", line=3, text=text))


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("x = x / float(x.shape[1])", "`float(x.shape[1])` makes a Python number of a size: write `x.shape[1]`"),
        ("n = int(x.size(1))", "`int(x.size(1))` makes a Python number of a size: write `x.size(1)`, which computes"),
        (
            "n = int(x.shape[1] * 0.5)",
            "`int(x.shape[1] * 0.5)` makes a Python number of a size: compute it in integers",
        ),
        ("return x / math.sqrt(n)", "`math.sqrt(n)` makes a Python number of a size: write `(n) ** 0.5`"),
        (
            "return x / math.log(n)",
            "`math.log(n)` makes a Python number of a size: write `torch.log(torch.scalar_tensor",
        ),
        (
            "w = torch.tensor([1.0] * n)",
            "`[1.0] * n` makes a list as long as the example: write `torch.full((n,), value)`",
        ),
        ("for t in range(x.shape[1]):", "the loop over `range(x.shape[1])` is unrolled"),
        ("y = [f(x[:, i]) for i in range(n)]", "the loop over `range(n)` is unrolled"),
        ("elif n > int(m):", "`int(m)` makes a Python number"),
    ],
)
def test_a_line_says_what_makes_a_constant(text: str, start: str):
    """The way that keeps the size dynamic depends on what the line does with it."""
    assert _advice(text).startswith(start)


@pytest.mark.parametrize("text", ["y = x.view(4, -1)", "n = math.ceil(x.shape[1] / 2)", "", "x.shape[", "f(x,"])
def test_other_lines_say_nothing(text: str):
    """Torch keeps these dynamic, or the line alone does not show what fixes the size."""
    assert _advice(text) == ""
    assert constant_advice(None) == ""


def test_what_is_counted_is_what_int_is_called_with():
    """It becomes `.item()`, which torch.export can follow."""
    assert counted("n = int(mask.sum())") == "mask.sum()"
    assert counted("n = mask.sum()") == ""
