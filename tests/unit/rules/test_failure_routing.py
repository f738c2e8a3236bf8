from __future__ import annotations

from typing import get_args, get_type_hints

import pytest
from rule_samples import CASES, TargetObservation, contract, failed, failure, observed, run, target

from export_gate.rules.failures import failures_of, rule_for, without_suggestions
from export_gate.rules.judge import judge
from export_gate.rules.measure import measure
from export_gate.wall.contract import make_target
from export_gate.wall.observation import STAGES, Failure, ModelObservation

KINDS = get_args(get_type_hints(Failure)["kind"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", STAGES)
def test_every_failure_is_one_violation_wherever_it_happens(stage: str, kind: str):
    """No failure is lost and none is reported twice, for the model or for a target."""
    broken = failure(stage=stage, kind=kind)
    of_model = ModelObservation(model="glyph-head", failure=broken)
    of_target = observed(TargetObservation(target="onnx", failure=broken))

    for observation in (of_model, of_target):
        judgement = judge([contract()], run(observation))
        assert [f.severity for f in judgement.findings] == ["violation"]
        assert judgement.findings[0].rule == rule_for(broken)
        assert judgement.verdict == "violations"


@pytest.mark.parametrize(
    "message",
    [
        "Guard failed: x.size()[0] <= 8",
        "Guard failed: 2*(x.size()[2] // 2) == x.size()[2]",
        "Expected input at *args[0].shape[0] to be <= 8, but got 9",
        "Expected input at *args[0].shape[0] to be >= 4, but got 3",
        "Expected input at *args[0].shape[1] to be equal to 3, but got 4",
        "Expected input at *args[0].shape[2] to be of the form 8*s0, where s0 is an integer, but got 12",
        "Error: input_handles[0]: dim value is too large at 0, expected to be <= 15, but got 16",
        "Error: input_handles[0]: unmatched dim value at 0, expected: 2, but got: 3",
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: x for the following indices",
    ],
)
def test_a_control_input_refused_for_its_size_is_a_narrowed_range(message: str):
    """An artifact that refuses what the contract admits has narrowed the range, whatever the runtime calls it."""
    assert rule_for(failure(message=message, case=CASES[0])) == "range-narrowed"


@pytest.mark.parametrize(
    "message",
    [
        "Guard failed: x.dtype == torch.float32",
        "Expected input at *args[0] to have dtype float32",
        "expected scalar type Float but found Double",
        "",
    ],
)
def test_any_other_exception_at_a_control_input_is_a_failed_run(message: str):
    """Only a refusal of sizes narrows a range."""
    assert rule_for(failure(message=message, case=CASES[0])) == "run-failed"


def test_a_guard_that_fails_while_loading_is_no_narrowed_range():
    """A guard's message outside a run of the control set is about something else."""
    assert rule_for(failure(stage="load", message="Guard failed: x.size()[0] <= 8", case=CASES[0])) == "load-failed"
    assert rule_for(failure(stage="run", message="Guard failed: x.size()[0] <= 8")) == "run-failed"


def test_a_separate_export_that_fails_for_all_targets_is_one_finding():
    """The targets share one export, so its failure is reported once."""
    broken = failure(stage="export")
    targets = ("pt2", "onnx")
    observation = observed(
        *(target(name=name) for name in targets),
        *(TargetObservation(target=name, separate={"batch": 1}, failure=broken) for name in targets),
    )
    model = contract(targets=(make_target("pt2"), make_target("onnx")))

    (finding,) = judge([model], run(observation)).findings

    assert (finding.rule, finding.target, finding.occurrences) == ("export-failed", None, 2)


def test_a_target_that_is_no_longer_planned_is_not_judged():
    """When results are judged again, a target that was removed from the contract has no failures any more."""
    observation = observed(target(), TargetObservation(target="pt2", failure=failure(stage="load")))

    assert judge([contract()], run(observation)).verdict == "verified"


def test_failures_of_single_cases_are_one_finding_with_a_count():
    """Fifty control inputs that fail in the same way are one line and a number."""
    observation = observed(target(failed(CASES[0]), failed(CASES[1])))

    ((first, second),) = failures_of("run-failed", measure(contract(), observation))

    assert (first.failure.case, second.failure.case) == CASES


def test_suggestions_of_torch_go_where_other_declarations_were_tried():
    """In lines of their own and in torch's message; what follows them stays."""
    details = (
        "torch suggests: _H = Dim('_H', max=6)",
        "Constraints violated (H)!",
        "Suggested fixes:",
        "  _H = Dim('_H', max=6)",
        "  H = 2*_H",
        "the end",
    )

    assert without_suggestions(details) == ("Constraints violated (H)!", "the end")
