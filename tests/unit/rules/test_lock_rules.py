"""Models compared with the interface lock: what is a violation, a warning or a note, and in which words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rule_samples import CASES, case, contract, leaf, observed, run, target

from export_gate.rules.base import Finding
from export_gate.rules.judge import Judgement, Terms, judge
from export_gate.rules.lock.facts import locked_model
from export_gate.rules.lock.margin_shrunk import has_shrunk
from export_gate.rules.lock.record import LockedDim, LockedModel, LockedTarget, LockedTensor, LockUsed, Margin
from export_gate.rules.measure import measure
from export_gate.wall.contract import Budget, Dim, ModelContract, Output, Size, Waiver, make_target
from export_gate.wall.observation import (
    Artifact,
    CaseResult,
    ControlInput,
    ControlSetObservation,
    ModelObservation,
    OutputLeaf,
    Problem,
    TargetObservation,
)

TARGET = target(artifact=Artifact(path="m.onnx", sha256="0" * 64, size_bytes=1000), facts={"opset": "ai.onnx 20"})
SEEN = observed(TARGET, parameters=30)


def facts_of(model: ModelContract, seen: ModelObservation) -> LockedModel:
    """What a lock would hold of the model."""
    return locked_model(measure(model, seen))


LOCKED = facts_of(contract(), SEEN)


def against(
    locked: LockedModel | None, observation: ModelObservation = SEEN, *, is_whole: bool = True, **fields: Any
) -> Judgement:
    """The verdict on glyph-head against a lock that has it like that, or lacks it."""
    models = {} if locked is None else {"glyph-head": locked}
    return judged(LockUsed(origin="export-gate.lock", models=models), observation, is_whole=is_whole, **fields)


def judged(
    lock: LockUsed | None, observation: ModelObservation = SEEN, *, is_whole: bool = True, **fields: Any
) -> Judgement:
    """The verdict on glyph-head against a lock."""
    terms = Terms(today="2026-11-29", is_whole=is_whole, lock=lock)
    return judge([contract(**fields)], run(observation), terms)


def said(judgement: Judgement) -> list[tuple[str, str, str]]:
    """Rule, severity and message of each finding."""
    return [(found.rule, found.severity, found.message) for found in judgement.findings]


def only(judgement: Judgement) -> Finding:
    """The only finding."""
    (found,) = judgement.findings
    return found


def test_a_model_that_is_as_locked_has_no_finding():
    """The same results have no finding."""
    assert against(LOCKED).findings == ()


def test_without_a_lock_nothing_is_held_against_it():
    """Projects that want no lock do not notice that there are locks."""
    assert judged(None).findings == ()


def test_a_breaking_change_is_a_violation_that_names_who_breaks():
    """The finding says what was before, what is now, who breaks, and what to do."""
    found = against(replace(LOCKED, dims={"batch": LockedDim(min=1, max=16)}))

    violation = only(found)
    assert found.exit_code == 1
    assert (violation.rule, violation.severity) == ("interface-changed", "violation")
    assert violation.message == "glyph-head: dim 'batch': 1..16 before, 2..16 now: breaks callers that pass batch=1"
    assert violation.hint == (
        "Restore it. If the change is intended, inform the callers and record it with `export-gate lock`."
    )
    assert violation.details == ("before: export-gate.lock",)


def test_against_a_base_the_way_out_is_a_waiver():
    """The change cannot edit the lock of the base."""
    lock = LockUsed(
        origin="export-gate.lock at 1a2b3c4d5e",
        is_base=True,
        models={"glyph-head": replace(LOCKED, dims={"batch": LockedDim(min=1, max=16)})},
    )

    violation = only(judged(lock))
    assert violation.details == ("before: export-gate.lock at 1a2b3c4d5e",)
    assert violation.hint == (
        "Restore it. If the change is intended, inform the callers, record it with `export-gate lock`, and waive "
        "`interface-changed` in `models.glyph-head.waivers` until it is merged."
    )


def test_a_waiver_accepts_a_change_of_the_interface_and_no_other():
    """A waiver names an output or target; what it does not name still fails."""
    scores = replace(LOCKED.outputs[0], name="scores")
    before = replace(LOCKED, outputs=(scores,), dims={"batch": LockedDim(min=1, max=16)})
    waiver = Waiver(rule="interface-changed", output="scores", reason="all callers moved", until="2026-12-31")

    found = against(before, waivers=(waiver,))

    assert [(f.severity, f.output, f.hint[:20]) for f in found.findings] == [
        ("violation", None, "Restore it. If the c"),
        ("note", "scores", "Waived until 2026-12"),
    ]


def test_a_waiver_whose_change_is_merged_is_unused():
    """Once the base's lock has the change, the next run says that the waiver can be removed."""
    waiver = Waiver(rule="interface-changed", reason="all callers moved", until="2026-12-31")

    assert said(against(LOCKED, waivers=(waiver,))) == [
        (
            "waiver-unused",
            "warning",
            "glyph-head: the waiver of interface-changed until 2026-12-31 matches nothing",
        )
    ]


def test_an_additive_change_is_a_note():
    """No caller breaks."""
    found = against(replace(LOCKED, dims={"batch": LockedDim(min=2, max=8)}))

    assert found.exit_code == 0
    assert said(found) == [("interface-changed", "note", "glyph-head: dim 'batch': 2..8 before, 2..16 now")]
    assert only(found).hint == "No caller breaks; run `export-gate lock` to record the change."


def test_a_model_that_the_lock_does_not_have_is_a_note():
    """New models pass, with a note that nothing was compared."""
    found = only(against(None))

    assert (found.severity, found.message, found.hint) == (
        "note",
        "glyph-head: not in export-gate.lock, so its interface cannot be compared",
        "run `export-gate lock` to record it.",
    )


@pytest.mark.parametrize(
    ("dropped", "severity", "hint", "exit_code"),
    [
        (
            (),
            "violation",
            "Restore the model; if the removal is intended, run `export-gate lock` to remove it from the lock.",
            1,
        ),
        (("old",), "warning", "The lock in this change omits it too: make sure that nobody needs it.", 0),
    ],
)
def test_a_model_that_is_gone_is_told(dropped: tuple[str, ...], severity: str, hint: str, exit_code: int):
    """Whoever loads the model's artifacts does not find them any more."""
    lock = LockUsed(
        origin="export-gate.lock", models={"glyph-head": LOCKED, "old": LOCKED}, gone=("old",), dropped=dropped
    )

    found = only(judged(lock))
    assert (found.model, found.severity, found.hint) == ("old", severity, hint)
    assert found.message == "old: in export-gate.lock, but not in the config: breaks callers that load its artifacts"
    assert judged(lock).exit_code == exit_code


def test_a_run_of_some_targets_does_not_miss_the_others():
    """Under `--target onnx` the locked pt2 is not gone, and outputs are not inferred from a few inputs."""
    before = replace(
        LOCKED,
        targets={**LOCKED.targets, "pt2": LockedTarget()},
        outputs=(LockedTensor(name="logits", dtype="float32", shape=("batch", "4")),),
    )

    assert said(against(before, is_whole=False)) == []
    assert [rule for rule, _, _ in said(against(before))] == ["interface-changed"] * 3


def test_a_model_that_could_not_be_checked_is_not_held_against_the_lock():
    """Such a model has its own exit code."""
    problem = ModelObservation(model="glyph-head", problem=Problem(message="no such factory", hint="Write it."))

    assert against(LOCKED, problem).findings == ()


WAS = LockedTarget(margins={"logits": Margin(measured=1e-7, allowed=3.4e-5)})


def test_a_margin_that_shrunk_tenfold_is_a_warning():
    """The error is still within the tolerance, but the next change may exceed it."""
    close = observed(target(case(CASES[0], leaf(max_abs_diff=2e-5))), parameters=30)

    found = only(against(replace(LOCKED, targets={"onnx": WAS}), close))
    assert (found.rule, found.severity, found.output) == ("margin-shrunk", "warning", "logits")
    assert found.message == (
        "glyph-head, onnx, output 'logits': the worst error is 2.0e-05 of 3.4e-05 allowed, and was 1.0e-07 of 3.4e-05: "
        "200 times as large"
    )
    assert found.hint == (
        "Look for what changed the numbers (a new version of torch or a runtime, another operator, half precision). If "
        "it is intended, run `export-gate lock` to record it."
    )


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ((1e-7, 1e-5), (1.0e-6, 1e-5), True),
        ((1e-7, 1e-5), (0.99e-6, 1e-5), False),  # not tenfold
        ((1e-9, 1e-5), (4e-7, 1e-5), False),  # 4% of what is allowed
        ((0.0, 1e-5), (6e-7, 1e-5), True),  # was exact
        ((0.0, 1e-5), (4e-7, 1e-5), False),
        ((1e-6, 1e-5), (2e-5, 1e-5), False),  # outside: a violation of its own
        ((1e-6, 1e-5), (1e-6, 1e-6), False),  # another tolerance, the same error
        ((1e-6, 1e-5), (1e-5, 1e-4), False),  # larger weights, larger bound
        ((1e-6, 1e-5), (1e-5, 1e-5), True),  # at its bound
    ],
)
def test_a_margin_shrinks_by_error_and_share(was: tuple[float, float], now: tuple[float, float], expected: bool):
    """Error and share must both grow tenfold, and the share must be at least 5%."""
    before, after = (Margin(measured=measured, allowed=allowed) for measured, allowed in (was, now))

    assert has_shrunk(before, after) is expected


@pytest.mark.parametrize(
    ("budget", "was", "message"),
    [
        (Budget(max_bytes=999), 1000, "glyph-head, onnx: the artifact has 1000 bytes, more than its budget of 999"),
        (Budget(max_bytes=1000), 1000, None),
        (
            Budget(growth=0.1),
            900,
            "glyph-head, onnx: the artifact has 1000 bytes, 11.1% more than the 900 in the lock; 10% is allowed",
        ),
        (Budget(growth=0.12), 900, None),
        (Budget(), 1, None),
    ],
)
def test_an_artifact_over_its_budget(budget: Budget, was: int, message: str | None):
    """The budget is a size or a growth over the lock, as the config declares it."""
    before = replace(LOCKED, targets={"onnx": replace(LOCKED.targets["onnx"], sizes={"main": was})})

    found = against(before, targets=(make_target("onnx", budget=budget),))
    assert said(found) == ([] if message is None else [("artifact-grew", "violation", message)])
    warned = against(before, targets=(make_target("onnx", budget=replace(budget, exceeded="warning")),))
    assert warned.exit_code == 0


def test_a_budget_of_size_holds_without_a_lock():
    """Growth needs a lock to compare with; a size does not."""
    tight = make_target("onnx", budget=Budget(max_bytes=999, growth=0.01))

    found = only(judged(None, targets=(tight,)))
    assert found.hint == (
        "Look for weights that are stored twice, in a wider dtype or as constants of the graph. If the size is "
        "intended, raise `models.glyph-head.targets.onnx.budget`, or record it with `export-gate lock`."
    )


def test_what_the_lock_takes_from_a_model():
    """Inputs and dims come from the contract, the rest from observations; margins have two digits."""
    assert facts_of(contract(outputs=()), replace(SEEN, controls=_controls())) == LockedModel(
        inputs=(LockedTensor(name="x", dtype="float32", shape=("batch", "3"), range=(0.0, 1.0)),),
        outputs=(LockedTensor(name="logits", dtype="float32", shape=("2", "3")),),
        dims={"batch": LockedDim(min=2, max=16)},
        targets={
            "onnx": LockedTarget(
                opsets={"ai.onnx": 20},
                sizes={"main": 1000},
                margins={"logits": Margin(measured=1e-7, allowed=3.4e-5)},
            )
        },
        parameters=30,
    )


def _controls() -> ControlSetObservation:
    return ControlSetObservation(
        sha256="0" * 64,
        inputs=tuple(ControlInput(name=name, family="normal", sizes={"batch": 2, "side": 8}) for name in CASES),
    )


def _shaped(*shapes: tuple[int, ...]) -> ModelObservation:
    """Outputs of these shapes at batch 2, 8 and 16."""
    sizes = (2, 8, 16)
    cases = tuple(
        CaseResult(case=f"n@batch={size}", outputs=(leaf(expected_shape=shape, actual_shape=shape),))
        for size, shape in zip(sizes, shapes, strict=True)
    )
    inputs = tuple(ControlInput(name=f"n@batch={size}", family="n", sizes={"batch": size, "side": 8}) for size in sizes)
    return observed(
        TargetObservation(target="onnx", cases=cases),
        controls=ControlSetObservation(sha256="", inputs=inputs),
        outputs=(OutputLeaf(name="logits", dtype="float32", shape=shapes[1]),),
    )


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((2, 3), (8, 3), (16, 3)), ("batch", "3")),
        (((4, 3), (16, 3), (32, 3)), ("?", "3")),
        (((8,), (8,), (8,)), ("8",)),
        (((), (), ()), ()),
    ],
)
def test_an_undeclared_shape_is_what_eager_showed(shapes: tuple[tuple[int, ...], ...], expected: tuple[str, ...]):
    """An axis is the dim that it follows over all control inputs, its only size, or unknown."""
    assert facts_of(contract(outputs=()), _shaped(*shapes)).outputs[0].shape == expected


def test_a_static_dim_is_locked_at_its_one_size():
    """A dim that becomes static accepts fewer sizes than before, so its callers break."""
    controls = ControlSetObservation(
        sha256="", inputs=(ControlInput(name="n@batch=8", family="n", sizes={"batch": 8}),)
    )
    static = contract(dims=(Dim(name="batch", min=1, max=16, mode="static"),))
    one = facts_of(static, replace(SEEN, controls=controls))
    assert one.dims["batch"] == LockedDim(min=8, max=8)


def test_a_declared_shape_is_taken_as_declared():
    """What the contract declares is the interface."""
    declared = Output(name="logits", shape=(Size(factors={"batch": 2}), Size(offset=3)))

    assert facts_of(contract(outputs=(declared,)), SEEN).outputs[0].shape == ("2*batch", "3")


def test_a_shape_that_was_not_seen_everywhere_is_not_guessed():
    """The one control input without a result could be the one that differs."""
    seen = _shaped((2, 3), (8, 3), (16, 3))
    short = replace(seen, targets=(replace(seen.targets[0], cases=seen.targets[0].cases[:2]),))

    assert facts_of(contract(outputs=()), short).outputs[0].shape == ("?", "?")


def test_separate_exports_have_sizes_of_their_own_and_margins_in_common():
    """`batch=1` is recorded next to `main`."""
    apart = replace(TARGET, separate={"batch": 1}, cases=(case("n@batch=1", leaf(max_abs_diff=3e-6)),))

    locked = facts_of(contract(dims=(Dim(name="batch", min=2, max=16, separate=(1,)),)), observed(TARGET, apart))
    assert locked.targets["onnx"].sizes == {"main": 1000, "batch=1": 1000}
    assert locked.targets["onnx"].margins["logits"].measured == pytest.approx(3e-6)
    assert locked.dims["batch"] == LockedDim(min=2, max=16, separate=(1,))


def test_a_target_of_a_failed_model_is_still_a_target():
    """A target whose export failed is not gone from the interface."""
    model = contract(targets=(make_target("onnx"), make_target("pt2")))
    failed = ModelObservation(model="glyph-head")

    assert list(facts_of(model, failed).targets) == ["onnx", "pt2"]
