"""What is advised about a condition on sizes fits who asks for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rule_samples import contract

from export_gate.rules.branch_advice import branch_advice, branch_words, condition_of
from export_gate.wall.observation import Branch
from export_gate.wall.source import SourceLine


def _advice(words: str, text: str, *sizes: int) -> str:
    source = SourceLine(path="model.py", line=9, text=text)
    branch = Branch(words=words, cases=(), dims=("batch",), source=source, sizes=sizes)
    return branch_advice(contract(), branch, is_separate=False)


def test_a_size_of_one_that_no_line_asks_about_is_torchs_own():
    """No code of the project can choose there."""
    hint = _advice("5 * batch // 5 == 1", "p = x.view(5, -1)")

    assert hint.startswith("torch.export takes sizes of 0 and 1 for constants, since they broadcast: ")
    assert "`models.glyph-head.dims.batch.separate`" in hint
    assert "torch.cond" not in hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("if len(x) == 1:", "the model takes the other branch where `batch == 1`"),
        ("f = x.unfold(1, 16, 8)", "the exported program leaves out the sizes at which `batch == 1`"),
    ],
)
def test_a_line_without_a_condition_takes_no_branch(text: str, said: str):
    """Somebody who looks for a branch at that line finds none."""
    source = SourceLine(path="model.py", line=9, text=text)
    assert branch_words(Branch(words="batch == 1", cases=(), dims=("batch",), source=source)) == said


@pytest.mark.parametrize(("words", "text"), [("batch == 1", "p = x.view(5, -1)"), ("batch == 7", "if len(x) == 7:")])
def test_few_sizes_are_written_as_in_the_config(words: str, text: str):
    """So that the key can be copied."""
    assert "(`models.glyph-head.dims.batch.separate: [1, 7]`)" in _advice(words, text, 1, 7)
    assert "(`models.glyph-head.dims.batch.separate`)" in _advice(words, text, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("words", "text"),
    [("batch == 1", "if len(x) == 1:"), ("batch % 8 == 5", "x = pad(x)"), ("batch > 4", "x = pad(x)")],
)
def test_other_conditions_are_put_into_the_program(words: str, text: str):
    """They are the model's."""
    assert f"`torch.cond({words}, f, g, (...))`" in _advice(words, text)


def test_a_long_condition_is_said_by_the_sizes_that_meet_it():
    """Nobody reads nested roundings; the sizes are what a caller knows."""
    words = "2 * math.ceil(((batch - 1) // 2 + 1) / 2) != (batch - 1) // 2 + 1"
    source = SourceLine(path="model.py", line=9, text="if rows != len(x):")
    branch = Branch(words=words, cases=(), dims=("batch",), source=source, sizes=(2, 6, 10, 14, 18))

    assert condition_of(branch) == "`batch` is 2, 6, 10, 14 or 1 more"
    assert condition_of(replace(branch, sizes=())) == f"`{words}`"
    hint = branch_advice(contract(), branch, is_separate=False)
    assert "both sides of the condition at model.py:9 `if rows != len(x):` in the program" in hint
    assert "math.ceil" not in hint


def test_padding_to_a_multiple_needs_no_condition():
    """What is missing is 0 where the size is a multiple already, so that is said first."""
    assert _advice("batch % 8 == 0", "if r == 0:").startswith(
        "If the model pads there, pad by `-batch % 8`, which is 0 where nothing is missing, without the condition; or "
        "give the sizes at which it holds exports of their own"
    )
