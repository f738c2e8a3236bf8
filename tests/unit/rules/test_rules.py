from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest
from rule_samples import SAMPLES, Sample, run

from export_gate.rules import RULES
from export_gate.rules.base import SEVERITIES, Finding, Rule
from export_gate.rules.judge import judge
from export_gate.rules.measure import measure

GOLDEN = Path(__file__).parents[2] / "golden"
NAMES = [rule.name for rule in RULES]


def _findings(sample: Sample) -> tuple[Finding, ...]:
    return judge([sample.contract], run(sample.observation)).findings


def _check_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_rule_is_the_file_of_its_name(rule: Rule):
    """The name in a report is the name of the file that defines the rule."""
    module = importlib.import_module(f"export_gate.rules.{rule.name.replace('-', '_')}")

    assert module.RULE is rule
    assert rule.severity in SEVERITIES
    assert rule.summary.endswith(".")


def test_rule_names_are_unique():
    """A name stands for one rule."""
    assert len(set(NAMES)) == len(NAMES) == 30


@pytest.mark.parametrize("name", NAMES)
def test_each_rule_has_a_model_that_trips_it_and_one_that_nearly_does(name: str):
    """A rule fires if its promise is broken, and not if it nearly is."""
    assert name in {finding.rule for finding in _findings(SAMPLES[name])}
    assert name not in {finding.rule for finding in _findings(SAMPLES[f"{name}-nearly"])}


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_names_itself(name: str):
    """Findings have the name of their rule and of the model."""
    rule = RULES[NAMES.index(name)]
    sample = SAMPLES[name]

    found = list(rule.check(measure(sample.contract, sample.observation)))

    assert found
    assert {(finding.rule, finding.model) for finding in found} == {(name, "glyph-head")}


def test_matrix_of_rules_and_samples():
    """Every rule runs on every sample, and what it finds changes only on purpose."""
    lines = [
        f"{name:42} {', '.join(f'{f.rule} ({f.severity})' for f in _findings(sample)) or '-'}"
        for name, sample in SAMPLES.items()
    ]

    _check_golden("rule_matrix.txt", "\n".join(lines) + "\n")


def test_text_of_every_message():
    """Message, next step and details of every finding change only on purpose."""
    blocks = [_text_of(name, finding) for name, sample in SAMPLES.items() for finding in _findings(sample)]

    _check_golden("rule_messages.txt", "\n\n".join(blocks) + "\n")


def _text_of(sample: str, finding: Finding) -> str:
    head = f"## {sample}: {finding.rule}, {finding.severity}, x{finding.occurrences}"
    return "\n".join([head, finding.message, f"-> {finding.hint}", *(f"   {line}" for line in finding.details)])


@pytest.mark.parametrize("name", SAMPLES)
def test_messages_are_one_sentence_of_plain_text(name: str):
    """A message fits on one line of any report and has no terminal colours."""
    for finding in _findings(SAMPLES[name]):
        assert "\n" not in finding.message
        assert "\x1b" not in "".join((finding.message, finding.hint, *finding.details))
        assert finding.message.startswith("glyph-head")
        assert finding.hint[-1] in ".;`)"
