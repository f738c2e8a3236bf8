"""A condition that torch asks for by itself is the operator's, and a rewrite that is printed was exported."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

from export_gate.rules.size_operators import asking
from export_gate.wall.diagnosis import ExportGuard
from export_gate.wall.source import SourceLine


def _guard(text: str, function: str = "") -> ExportGuard:
    source = SourceLine(path="m.py", line=3, text=text)
    return ExportGuard(holds="True", broken="n != 3", dims=("n",), source=source, function=function)


@pytest.mark.parametrize(
    ("text", "function", "called", "what"),
    [
        (
            "a, b = x.chunk(2, dim=1)",
            "",
            "`x.chunk(2, dim=1)`",
            "the sizes of its chunks, and perhaps their number, depend on `n`",
        ),
        ("return torch.stack(x.split(4, 1))", "split", "`x.split(4, 1)`", "the number of its parts"),
        (
            "return self.pool(x)",
            "adaptive_avg_pool1d",
            "`adaptive_avg_pool1d`, which line 3 calls",
            "the window around",
        ),
    ],
)
def test_the_operator_is_named_as_the_user_calls_it(text: str, function: str, called: str, what: str):
    """Or as torch's function that a layer calls."""
    found = asking(_guard(text, function))
    assert found is not None
    assert found.called == called
    assert found.what.startswith(what)


@pytest.mark.parametrize(
    "text", ["if x.shape[1] % 3: y = x.chunk(3)", "return self.body(x)", "a = f(x.chunk(2), x.chunk(3))"]
)
def test_nothing_is_named_where_the_user_asks_or_nothing_shows_which_call_does(text: str):
    """A condition that is written is the user's own."""
    assert asking(_guard(text)) is None


class Parts(torch.nn.Module):
    """Runs the advised lines of both ways to cut."""

    def __init__(self, codes: list[Any]) -> None:
        super().__init__()
        self.codes = codes

    def forward(self, x: Tensor) -> list[Tensor]:
        """float32[b, n, c] -> six of float32[b, c]."""
        found = []
        for code in self.codes:
            scope: dict[str, Any] = {"x": x, "torch": torch}
            exec(code, scope)
            found += scope["means"]
        return found


@pytest.mark.slow
def test_the_lines_for_parts_export_with_every_size_and_give_eagers_means():
    """Of both ways to cut, in one program."""
    calls = ("torch.chunk(x, 3, dim=1)", "torch.tensor_split(x, 3, dim=1)")
    found = [asking(_guard(f"parts = {call}")) for call in calls]
    model = Parts([compile(each.lines, "<lines>", "exec") for each in found if each is not None])
    steps = torch.export.Dim("steps", min=5, max=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(model, (torch.randn(2, 12, 4),), dynamic_shapes=({1: steps},)).module()
    for size in range(5, 21):
        x = torch.randn(2, size, 4)
        # What is not a number in one part is none of the others' business.
        x[:, 0, 0], x[:, -1, 1] = torch.nan, torch.inf
        expected = [part.mean(1) for part in (*torch.chunk(x, 3, dim=1), *torch.tensor_split(x, 3, dim=1))]
        torch.testing.assert_close(program(x), expected, equal_nan=True)
