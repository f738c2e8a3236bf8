"""Commands that reproduce a finding: what a shell and `--case` make of any name."""

from __future__ import annotations

import fnmatch
import shlex
from dataclasses import replace

import report_samples as samples
from hypothesis import given
from hypothesis import strategies as st

from export_gate.report.findings import reproduce, views
from export_gate.rules.base import Finding

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=30)
WORDS = st.text("ab[]*?!-'\"$`\\ ~@=,.", min_size=1, max_size=12)


@given(st.one_of(NAMES, WORDS), st.one_of(NAMES, WORDS))
def test_any_case_name_reaches_the_gate_as_itself(name: str, other: str):
    """A shell hands over one pattern, which that name matches and no other name does."""
    words = shlex.split(reproduce("export-gate.yml", "m", "onnx", name))
    assert words[:-1] == ["export-gate", "run", "m", "--target", "onnx", "--case"]
    assert fnmatch.fnmatchcase(name, words[-1])
    assert fnmatch.fnmatchcase(other, words[-1]) == (other == name)


def test_a_target_that_is_gone_is_not_asked_for():
    """What broke the lock by going away cannot be run; the model without it can."""
    gone = Finding(
        rule="interface-changed",
        severity="violation",
        model="m",
        target="aoti",
        message="m, aoti: the target is gone: breaks who loads its artifact",
        hint="Restore it.",
    )
    run = samples.RunObservation(environment=samples.ENVIRONMENT, models=(samples.model("m", samples.all_fine()),))
    results = replace(samples.results((samples.contract("m"),), run), findings=(gone,))
    (view,) = views(results)
    assert view.command == "export-gate run m"
    assert view.statement == "the target is gone: breaks who loads its artifact"
