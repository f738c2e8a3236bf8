"""Commands that reproduce a finding: what a shell and `--case` make of any name."""

from __future__ import annotations

import fnmatch
import shlex
from dataclasses import replace

import report_samples as samples
from hypothesis import given
from hypothesis import strategies as st

from export_gate.report.commands import Caller, reproduce
from export_gate.report.findings import views
from export_gate.rules.base import Finding

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=30)
WORDS = st.text("ab[]*?!-'\"$`\\ ~@=,.", min_size=1, max_size=12)


@given(st.one_of(NAMES, WORDS), st.one_of(NAMES, WORDS))
def test_any_case_name_reaches_the_gate_as_itself(name: str, other: str):
    """A shell passes on one pattern, which matches that name and no other."""
    words = shlex.split(reproduce(Caller(), "m", "onnx", name))
    assert words[:-1] == ["export-gate", "run", "m", "--target", "onnx", "--case"]
    assert fnmatch.fnmatchcase(name, words[-1])
    assert fnmatch.fnmatchcase(other, words[-1]) == (other == name)


def test_a_target_that_is_gone_is_not_asked_for():
    """A target that is gone cannot be run; the command runs the model without it."""
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
    (view,) = views(results, {})
    assert view.command == "export-gate run m"
    assert view.statement == "the target is gone: breaks who loads its artifact"


def test_a_command_has_the_config_and_the_interpreter_that_the_caller_typed():
    """Relative paths start at the caller's folder, an absolute path stays absolute, and blanks are quoted."""
    assert reproduce(Caller(config="./export-gate.yml"), "m") == "export-gate run m"
    typed = Caller(config="/srv/my nets/gate.yml", python=".venv/bin/python")
    assert reproduce(typed, "m") == "export-gate run --config '/srv/my nets/gate.yml' --python .venv/bin/python m"


def test_commands_in_texts_have_the_config_too():
    """Only commands that read a config get it, each once."""
    elsewhere = Caller(config="nets/gate.yml")
    once = elsewhere.located("run `export-gate lock` or `export-gate run m`, never `export-gate merge a b`")
    assert once == (
        "run `export-gate lock --config nets/gate.yml` or `export-gate run --config nets/gate.yml m`, "
        "never `export-gate merge a b`"
    )
    assert elsewhere.located(once) == once
    assert Caller().located("run `export-gate lock`") == "run `export-gate lock`"
