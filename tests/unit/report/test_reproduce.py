"""Commands that reproduce a finding: what a shell and `--case` make of any name."""

from __future__ import annotations

import fnmatch
import shlex

from hypothesis import given
from hypothesis import strategies as st

from export_gate.report.findings import reproduce

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=30)
WORDS = st.text("ab[]*?!-'\"$`\\ ~@=,.", min_size=1, max_size=12)


@given(st.one_of(NAMES, WORDS), st.one_of(NAMES, WORDS))
def test_any_case_name_reaches_the_gate_as_itself(name: str, other: str):
    """A shell hands over one pattern, which that name matches and no other name does."""
    words = shlex.split(reproduce("export-gate.yml", "m", "onnx", name))
    assert words[:-1] == ["export-gate", "run", "m", "--target", "onnx", "--case"]
    assert fnmatch.fnmatchcase(name, words[-1])
    assert fnmatch.fnmatchcase(other, words[-1]) == (other == name)
