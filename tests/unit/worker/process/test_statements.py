"""A line is quoted with the whole statement that it belongs to."""

from __future__ import annotations

import pytest

from export_gate.worker.process.statements import statement_at

CODE = """\
def forward(self, x):
    y = torch.stack(
        [c.mean(1) for c in x],
        1,
    )
    if (
        x.shape[0] == 1  # one
        and self.fast
    ):
        return y
    text = "a  (b"
    return f(
        "a  (b",
        y)
"""


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (3, "y = torch.stack([c.mean(1) for c in x], 1)"),
        (10, "return y"),
        (11, 'text = "a  (b"'),
        (13, 'return f("a  (b", y)'),
        (99, ""),
    ],
)
def test_a_statement_of_several_lines_is_one_line(line: int, text: str):
    """In the author's own spelling."""
    assert statement_at(tuple(CODE.splitlines(keepends=True)), line) == text


def test_a_line_stays_alone_in_what_is_no_python_and_where_the_statement_is_long():
    """Nobody reads a table in a report."""
    assert statement_at(("x = (\n", "1,\n", "\n"), 2) == "1,"
    table = ("table = [\n", *["    1234567890,\n"] * 30, "]\n")
    assert statement_at(table, 4) == "1234567890,"
