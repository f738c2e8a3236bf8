"""What is advised about a condition on sizes fits who asks for it."""

from __future__ import annotations

import pytest
from rule_samples import contract

from export_gate.rules.branch_advice import branch_advice
from export_gate.wall.observation import Branch
from export_gate.wall.source import SourceLine


def _advice(words: str, text: str) -> str:
    source = SourceLine(path="model.py", line=9, text=text)
    return branch_advice(contract(), Branch(words=words, cases=(), dims=("batch",), source=source), is_separate=False)


def test_a_size_of_one_that_no_line_asks_about_is_torchs_own():
    """No code of the project can choose there."""
    hint = _advice("5 * batch // 5 == 1", "p = x.view(5, -1)")

    assert hint.startswith("torch.export takes sizes of 0 and 1 for constants, since they broadcast: ")
    assert "`models.glyph-head.dims.batch.separate`" in hint
    assert "torch.cond" not in hint


@pytest.mark.parametrize(
    ("words", "text"),
    [("batch == 1", "if len(x) == 1:"), ("batch % 8 == 0", "x = pad(x)"), ("batch > 4", "x = pad(x)")],
)
def test_other_conditions_are_put_into_the_program(words: str, text: str):
    """They are the model's."""
    assert f"`torch.cond({words}, f, g, (...))`" in _advice(words, text)
