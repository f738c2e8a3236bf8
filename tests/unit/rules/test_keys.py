"""Every finding knows the key of the config that it is about."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rule_samples import SAMPLES

from export_gate.rules import RULES
from export_gate.rules.base import Finding
from export_gate.rules.keys import axis_key, config_key
from export_gate.rules.measure import measure

FINDING = Finding(rule="r", severity="note", model="m", message="", hint="")


@pytest.mark.parametrize(
    ("finding", "key"),
    [
        (FINDING, ""),
        (replace(FINDING, output="y"), "outputs.y"),
        (replace(FINDING, output="y", target="onnx"), "targets.onnx"),
        (replace(FINDING, target="onnx", key="dims.batch"), "dims.batch"),
    ],
)
def test_a_finding_without_a_key_is_about_its_target_or_output(finding: Finding, key: str):
    """The rule's own key takes precedence."""
    assert config_key(finding) == key


NAMED = {
    "dim-specialized": {"dims.batch"},
    "guard-missing": {"dims.batch"},
    "input-mutated": {"inputs.x"},
    "range-undeclared": {"inputs.x"},
    "train-mode": {"factory"},
    "golden-mismatch": {"controls.golden"},
    "value-mismatch": {"targets.onnx"},
    "export-failed": {""},
}


@pytest.mark.parametrize("name", NAMED)
def test_rules_name_the_key_that_they_are_about(name: str):
    """The key is that of a dim, an input, the factory or the golden file."""
    rule = next(rule for rule in RULES if rule.name == name)
    sample = SAMPLES[name]
    assert {config_key(finding) for finding in rule.check(measure(sample.contract, sample.observation))} == NAMED[name]


def test_what_a_probe_varied_is_a_dim_or_an_input():
    """The names are the contract's; anything else has no key."""
    contract = SAMPLES["guard-missing"].contract
    assert axis_key(contract, "batch") == "dims.batch"
    (name, *_) = contract.inputs
    assert axis_key(contract, f"{name}[1]") == axis_key(contract, name) == f"inputs.{name}"
    assert axis_key(contract, f"{name}.0[1]") == axis_key(contract, f"{name}.hidden") == f"inputs.{name}"
    assert axis_key(contract, "other[0]") == axis_key(contract, "other.0[1]") == ""
