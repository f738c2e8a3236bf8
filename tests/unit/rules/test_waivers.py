"""Waivers: what they accept, what they never accept, and what reports say about them."""

from __future__ import annotations

from typing import Any

import pytest
from rule_samples import CASES, FAR, SAMPLES, case, contract, ended, failed, leaf, observed, run, target

from export_gate.rules import RULES
from export_gate.rules.base import Finding
from export_gate.rules.judge import Judgement, Terms, judge
from export_gate.wall.contract import Waiver, make_target
from export_gate.wall.observation import ModelObservation, NonfiniteCount, Structure

TODAY = Terms(today="2027-01-31")
TOMORROW = Terms(today="2027-02-01")


def waiver(rule: str = "value-mismatch", **fields: Any) -> Waiver:
    """A waiver of `rule` that holds on TODAY for the last time."""
    return Waiver(**{"rule": rule, "reason": "ties round apart", "until": "2027-01-31", **fields})


def judged(observation: ModelObservation, *waivers: Waiver, terms: Terms = TODAY, **fields: Any) -> Judgement:
    """The verdict on glyph-head with these waivers."""
    return judge([contract(waivers=waivers, **fields)], run(observation), terms)


def told(judgement: Judgement) -> list[tuple[str, str, str | None, bool]]:
    """Rule, severity, case and whether it is waived, of each finding."""
    return [(f.rule, f.severity, f.case, f.waiver is not None) for f in judgement.findings]


FAR_AT_BOTH = observed(target(case(CASES[0], leaf(**FAR)), case(CASES[1], leaf(**{**FAR, "max_abs_diff": 4e-3}))))


def test_a_waived_violation_is_a_note_that_says_why_and_until_when():
    """It does not fail and is not hidden: message and numbers stay, and the next step is the waiver's reason."""
    judgement = judged(FAR_AT_BOTH, waiver())

    (found,) = judgement.findings
    assert judgement.verdict == "verified"
    assert (found.rule, found.severity, found.occurrences) == ("value-mismatch", "note", 2)
    assert found.message.startswith(
        "glyph-head, onnx, output 'logits', case normal-1@batch=16: the largest difference is 4.0e-03"
    )
    assert found.hint == "Waived until 2027-01-31: ties round apart."
    assert found.waiver == waiver()


def test_past_its_date_it_is_a_violation_again():
    """The last day is the date itself; from the next day on the violation counts, and its hint names the waiver."""
    judgement = judged(FAR_AT_BOTH, waiver(), terms=TOMORROW)

    (found,) = judgement.findings
    assert judgement.verdict == "violations"
    assert found.severity == "violation"
    assert found.waiver is None
    assert found.hint.startswith("Its waiver expired on 2027-01-31 (ties round apart), so it counts again. ")


def test_on_an_unknown_day_no_waiver_holds():
    """Without a day, the judgement is the strict one."""
    assert judge([contract(waivers=(waiver(),))], run(FAR_AT_BOTH)).verdict == "violations"


def test_a_waiver_of_one_case_does_not_hide_the_others():
    """If the worst case is waived, the next one is the violation, with its own numbers and its own count."""
    judgement = judged(FAR_AT_BOTH, waiver(case="*@batch=16"))

    assert judgement.verdict == "violations"
    assert told(judgement) == [
        ("value-mismatch", "violation", "normal-1@batch=2", False),
        ("value-mismatch", "note", "normal-1@batch=16", True),
    ]
    assert [finding.occurrences for finding in judgement.findings] == [1, 1]
    assert "the largest difference is 3.1e-03" in judgement.findings[0].message


def test_an_expired_waiver_of_one_case_is_told_where_it_mattered():
    """Only the output that the waiver covered mentions it."""
    outputs = (leaf(**FAR), leaf(**FAR, output="boxes"))
    judgement = judged(
        observed(target(case(CASES[0], *outputs))), waiver(output="boxes", case="normal-*"), terms=TOMORROW
    )

    hints = {finding.output: finding.hint for finding in judgement.findings}
    assert hints["boxes"].startswith("Its waiver expired on 2027-01-31")
    assert not hints["logits"].startswith("Its waiver")


def test_a_waiver_keeps_to_its_target_and_output():
    """A waiver for onnx does not accept pt2, and one for logits does not accept boxes."""
    outputs = (leaf(**FAR), leaf(**FAR, output="boxes"))
    seen = observed(target(case(CASES[0], *outputs)), target(case(CASES[0], *outputs), name="pt2"))

    judgement = judged(seen, waiver(target="onnx", output="log*"), targets=(make_target("onnx"), make_target("pt2")))

    assert sorted((f.target, f.output, f.severity) for f in judgement.findings) == [
        ("onnx", "boxes", "violation"),
        ("onnx", "logits", "note"),
        ("pt2", "boxes", "violation"),
        ("pt2", "logits", "violation"),
    ]


def test_each_waiver_shows_with_its_own_reason():
    """Two waivers of one output are two entries; a case belongs to the first that covers it."""
    second = waiver(reason="as before", until="2027-06-30")

    judgement = judged(FAR_AT_BOTH, waiver(case="*@batch=2"), second)

    assert [(f.case, f.hint) for f in judgement.findings] == [
        ("normal-1@batch=16", "Waived until 2027-06-30: as before."),
        ("normal-1@batch=2", "Waived until 2027-01-31: ties round apart."),
    ]


def test_waiving_nan_does_not_waive_the_numbers_beside_it():
    """Finite entries of an output with waived NaN are still compared with the tolerance."""
    nan = {**FAR, "nonfinite_mismatched": 1, "actual_nonfinite": NonfiniteCount(nan=1)}
    judgement = judged(observed(target(case(CASES[0], leaf(**nan)))), waiver("nonfinite-mismatch"))

    assert told(judgement) == [
        ("value-mismatch", "violation", CASES[0], False),
        ("nonfinite-mismatch", "note", CASES[0], True),
    ]


@pytest.mark.parametrize(
    ("rule", "results", "words"),
    [
        ("shape-mismatch", {"actual_shape": (2, 4)}, "glyph-head, onnx, output 'logits': "),
        ("dtype-mismatch", {"actual_dtype": "float64"}, "glyph-head, onnx, output 'logits': "),
    ],
)
def test_zero_comparisons_is_never_a_pass_waived_or_not(rule: str, results: dict[str, Any], words: str):
    """A waiver of all control inputs of an output would accept any values, so nothing-compared fires."""
    bad = leaf(**results, elements=0)
    seen = observed(target(*(case(name, bad) for name in CASES)))

    judgement = judged(seen, waiver(rule))

    violation = judgement.findings[0]
    assert told(judgement) == [("nothing-compared", "violation", None, False), (rule, "note", CASES[0], True)]
    assert violation.message == f"{words}the waiver of {rule} covers every control input, so no element was compared"
    assert violation.hint == (
        "Narrow the waiver's `case` in `models.glyph-head.waivers`, or remove `onnx` from `models.glyph-head.targets`: "
        "a waiver accepts only what was measured."
    )
    assert judged(observed(target(case(CASES[0], bad))), waiver(rule, case=CASES[0])).verdict == "verified"


@pytest.mark.parametrize("rule", ["run-failed", "structure-mismatch"])
def test_a_target_that_ran_nowhere_is_not_accepted(rule: str):
    """If a target raises (or returns other leaves) at every control input, nothing was measured."""
    results = {
        "run-failed": [failed(name) for name in CASES],
        "structure-mismatch": [
            case(name, structure=Structure(expected=("logits",), actual=("a", "b"))) for name in CASES
        ],
    }[rule]

    whole, one = judged(observed(target(*results)), waiver(rule)), judged(observed(target(results[0])), waiver(rule))

    assert told(whole)[0] == ("nothing-compared", "violation", None, False)
    assert one.verdict == "verified"


def test_an_end_of_a_target_is_no_case_of_it():
    """A target that ended early was not compared after that, so no waiver accepts it."""
    seen = observed(ended("run", case=CASES[0]))
    assert told(judged(seen, waiver("run-failed"))) == [("run-failed", "violation", CASES[0], False)]


def test_a_waiver_that_matches_nothing_is_a_warning():
    """Waivers do not accumulate: one whose cause is gone is named, with its place in the config."""
    judgement = judged(observed(), waiver(target="onnx", output="log*", case="halves-*"), waiver("train-mode"))

    general, narrow = judgement.findings
    assert [(f.rule, f.severity, f.target) for f in judgement.findings] == [
        ("waiver-unused", "warning", None),
        ("waiver-unused", "warning", "onnx"),
    ]
    assert general.message == "glyph-head: the waiver of train-mode until 2027-01-31 matches nothing"
    assert general.hint == (
        "Remove `models.glyph-head.waivers[1]`: its cause is gone. If it is not, compare its target, output and case "
        "with the finding's."
    )
    assert narrow.message == (
        "glyph-head: the waiver of value-mismatch (onnx, output 'log*', case halves-*) until 2027-01-31 matches nothing"
    )
    assert judgement.verdict == "verified"


def test_an_expired_waiver_that_still_matches_is_not_unused():
    """It is mentioned with the violation, once."""
    assert [f.rule for f in judged(FAR_AT_BOTH, waiver(), terms=TOMORROW).findings] == ["value-mismatch"]


def test_a_part_of_the_model_says_nothing_of_unused_waivers():
    """Under `--case` or `--target`, and after an early end, a waiver may be about something that did not run."""
    narrow = Terms(today="2027-01-31", is_whole=False)

    assert judged(observed(), waiver(), terms=narrow).findings == ()
    assert told(judged(SAMPLES["export-failed"].observation, waiver())) == [("export-failed", "violation", None, False)]


@pytest.mark.parametrize(
    "rule", [rule.name for rule in RULES if rule.waivable is None and rule.severity == "violation"]
)
def test_what_was_not_measured_cannot_be_waived(rule: str):
    """A waiver of such a rule accepts nothing, however it got into a file."""
    sample = SAMPLES[rule]

    fields = {name: getattr(sample.contract, name) for name in ("targets", "dims", "outputs", "controls")}
    assert judged(sample.observation, waiver(rule), **fields).exit_code == 1


@pytest.mark.parametrize("rule", [rule.name for rule in RULES if rule.waivable is not None])
def test_every_other_rule_can_be_waived(rule: str):
    """The waiver of a rule turns its findings into notes."""
    sample = SAMPLES[rule]
    whole = judge([sample.contract], run(sample.observation), TODAY)

    assert any(f.rule == rule and f.severity != "note" for f in whole.findings)
    fields = {name: getattr(sample.contract, name) for name in ("targets", "dims", "outputs", "controls", "train_mode")}
    after: tuple[Finding, ...] = judged(sample.observation, waiver(rule), **fields).findings
    assert not [f for f in after if f.rule == rule and f.severity != "note"]


def test_notes_are_left_alone():
    """A note does not need a waiver, and a waiver does not apply to it."""
    seen = SAMPLES["range-undeclared"].observation

    assert [f.waiver for f in judged(seen).findings if f.rule == "range-undeclared"] == [None]
