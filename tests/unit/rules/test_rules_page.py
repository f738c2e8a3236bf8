from __future__ import annotations

import re
from pathlib import Path

import pytest

from export_gate.rules import CATALOGUE
from export_gate.rules.base import Named
from export_gate.rules.judge import EXIT_CODES
from export_gate.wall.targets import OTHER_KERNELS, SAME_KERNELS

PAGE = (Path(__file__).parents[3] / "docs" / "rules.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## ([\w-]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_every_rule_has_its_section_in_the_order_of_reports():
    """A name in a report is a heading on the page."""
    assert list(SECTIONS) == [rule.name for rule in CATALOGUE]


@pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.name)
def test_a_section_says_what_why_how_to_fix_and_how_to_accept(rule: Named):
    """Each section answers the same four questions and begins with the severity."""
    section = SECTIONS[rule.name]

    assert re.findall(r"^\*\*(.+?)\.\*\*", section, re.MULTILINE) == ["What", "Why", "How to fix", "How to accept"]
    assert section.strip().lower().startswith(rule.severity)


@pytest.mark.parametrize("verdict", EXIT_CODES)
def test_the_page_has_every_exit_code(verdict: str):
    """The page's table of exit codes equals the code's."""
    assert f"| {EXIT_CODES[verdict]} | {verdict} |" in PAGE  # type: ignore[index]


@pytest.mark.parametrize("dtype", OTHER_KERNELS)
def test_the_page_has_the_default_tolerances(dtype: str):
    """The page's table of tolerances equals the code's."""
    row = next(line for line in SECTIONS["value-mismatch"].splitlines() if line.startswith(f"| {dtype}"))

    numbers = [float(number) for number in re.findall(r"1e-\d+|[258]e-\d+", row)]

    assert numbers == [*SAME_KERNELS[dtype], *OTHER_KERNELS[dtype]]
