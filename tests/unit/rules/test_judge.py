from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_samples import FAR, SAMPLES, case, contract, failure, hygiene, leaf, observed, run, target

from export_gate.rules.judge import Terms, judge
from export_gate.wall.codec import decode, encode
from export_gate.wall.contract import Tolerance, Waiver, make_target
from export_gate.wall.observation import HygieneObservation, ModelObservation, Problem, RunObservation

MISTAKE = Problem(message="factory 'x:y': no module named 'x'", hint="Set `pythonpath`.")


def _named(observation: ModelObservation, name: str) -> ModelObservation:
    return replace(observation, model=name)


def test_a_model_that_agrees_everywhere_is_verified():
    """Green means that every planned target was compared and nothing was found."""
    judgement = judge([contract()], run(observed()))

    assert judgement.verdict == "verified"
    assert judgement.exit_code == 0
    assert judgement.findings == ()


def test_nothing_to_check_is_verified():
    """A run without planned models is not a violation, even if no worker was started."""
    assert judge([], RunObservation()).verdict == "verified"


@pytest.mark.parametrize(
    ("models", "verdict", "exit_code"),
    [
        (("good",), "verified", 0),
        (("good", "bad"), "violations", 1),
        (("good", "bad", "mistaken"), "problem", 2),
        (("good", "bad", "mistaken", "absent"), "broken", 3),
        (("mistaken", "good"), "problem", 2),
    ],
)
def test_the_worst_model_decides(models: tuple[str, ...], verdict: str, exit_code: int):
    """Broken outweighs a user's mistake, which outweighs violations."""
    seen = {
        "good": observed(),
        "bad": hygiene(scripted=True),
        "mistaken": ModelObservation(model="", problem=MISTAKE),
    }
    contracts = [contract(name=name) for name in models]

    judgement = judge(contracts, run(*(_named(seen[name], name) for name in models if name in seen)))

    assert judgement.verdict == verdict
    assert judgement.exit_code == exit_code


def test_without_an_environment_the_gate_is_broken():
    """A worker that did not start verifies nothing, whatever was recorded."""
    assert judge([contract()], RunObservation(models=(observed(),))).verdict == "broken"


@pytest.mark.parametrize("is_targets", [True, False])
def test_a_fault_of_the_gate_is_no_verdict_on_the_model(is_targets: bool):
    """If the gate's own code failed, on the model or on a target, the run is broken: exit 3."""
    fault = failure(stage="run", kind="died", type="an error of export-gate itself")
    seen = observed(target(failure=fault)) if is_targets else replace(observed(), failure=fault)
    judgement = judge([contract()], run(seen))
    assert (judgement.verdict, judgement.exit_code) == ("broken", 3)
    assert next(finding.rule for finding in judgement.findings) == "worker-died"


def test_a_model_with_a_problem_has_no_findings_of_its_own():
    """What could not be checked is not reported as a broken promise."""
    judgement = judge([contract()], run(ModelObservation(model="glyph-head", problem=MISTAKE)))

    assert judgement.findings == ()
    assert judgement.verdict == "problem"


def test_warnings_and_notes_do_not_fail():
    """Only violations change the exit code."""
    assert judge([contract()], run(SAMPLES["guard-missing-warning"].observation)).verdict == "verified"
    assert judge([contract()], run(SAMPLES["range-undeclared"].observation)).verdict == "verified"


def test_both_observations_of_a_model_count():
    """Merged results of one model cannot hide a violation behind a good one."""
    assert judge([contract()], run(observed(), hygiene(scripted=True))).verdict == "violations"


def test_causes_come_before_effects_and_the_worst_ratio_first():
    """Readers first see what explains the rest, then the largest excess."""
    model = contract(targets=(make_target("onnx"), make_target("pt2")))
    observation = observed(
        target(case("normal-1@batch=2", leaf(**FAR))),
        target(case("normal-1@batch=2", leaf(**FAR)), name="pt2"),
        hygiene=HygieneObservation(mutated_inputs=("x",), repeats=2),
    )

    found = judge([model], run(observation)).findings

    assert [(finding.rule, finding.target) for finding in found] == [
        ("input-mutated", None),
        ("value-mismatch", "pt2"),  # the same difference against a bound ten times smaller
        ("value-mismatch", "onnx"),
    ]


def test_what_a_random_model_returns_is_reported_once():
    """If a model differs from itself, its other differences are not reported, unless that is waived."""
    drawing = HygieneObservation(nondeterministic=(leaf(max_abs_diff=0.5),), repeats=2)
    observation = observed(target(case("normal-1@batch=2", leaf(**FAR))), hygiene=drawing)
    waiver = Waiver(rule="nondeterministic-model", reason="known", until="2099-01-01")

    found = judge([contract()], run(observation)).findings
    waived = judge([contract(waivers=(waiver,))], run(observation), Terms(today="2026-11-30"))

    assert [finding.rule for finding in found] == ["nondeterministic-model"]
    assert [finding.rule for finding in waived.findings] == ["value-mismatch", "nondeterministic-model"]
    assert waived.verdict == "violations"


def test_violations_come_before_warnings_and_notes():
    """What fails the check is at the top."""
    observations = [
        _named(SAMPLES[name].observation, name)
        for name in ("range-undeclared", "guard-missing-warning", "value-mismatch")
    ]

    found = judge([contract(name=o.model) for o in observations], run(*observations)).findings

    assert [finding.severity for finding in found] == ["violation", "warning", "note"]


@pytest.mark.slow
@given(seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_the_order_of_findings_does_not_depend_on_the_order_of_observations(seed: int):
    """The same run has the same report, whichever worker finished first."""
    observations = [_named(sample.observation, name) for name, sample in SAMPLES.items()]
    contracts = [replace(sample.contract, name=name) for name, sample in SAMPLES.items()]
    shuffled = random.Random(seed).sample(observations, len(observations))

    assert judge(contracts, run(*shuffled)) == judge(contracts, run(*observations))


@pytest.mark.parametrize("name", SAMPLES)
def test_one_finding_for_each_rule_target_and_output(name: str):
    """Many cases of one kind are one finding with a count."""
    sample = SAMPLES[name]

    found = judge([sample.contract], run(sample.observation)).findings

    keys = [(f.rule, f.severity, f.target, f.output) for f in found]
    assert len(set(keys)) == len(keys)


def test_results_can_be_judged_again_with_another_tolerance():
    """A verdict is a function of contract and observations, which survive a round trip through JSON."""
    recorded = json.loads(json.dumps(encode(run(SAMPLES["value-mismatch"].observation))))
    again = decode(RunObservation, recorded)

    assert judge([contract()], again).verdict == "violations"
    assert judge([contract(tolerance=Tolerance(atol=3.1e-3))], again).verdict == "verified"
