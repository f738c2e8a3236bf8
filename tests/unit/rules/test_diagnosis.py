"""Owner and cause follow from what passes and fails and from the worker's experiments; nothing is guessed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rule_samples import CASES, FAR, case, contract, ended, failed, leaf, observed, run, target

from export_gate.rules.base import Finding
from export_gate.rules.follow_ups import without_follow_ups
from export_gate.rules.judge import judge
from export_gate.wall.contract import ModelContract, Output, make_target
from export_gate.wall.diagnosis import Answer, Changed, Inspection, Rung, RungName, SizeTrial, WeightsCompared
from export_gate.wall.nodes import GuiltyNode, NodeTrace
from export_gate.wall.observation import (
    Branch,
    Comparison,
    ControlInput,
    ControlSetObservation,
    HygieneObservation,
    ModelObservation,
    NonfiniteCount,
    PromiseBroken,
    TableRead,
    TargetObservation,
)

GIVEN = contract(targets=(make_target("onnx", artifact="old.onnx"),))
WRONG = case(CASES[0], leaf(**FAR))

GRADUAL = NodeTrace(beside="program", origin="gradual", guilty=None, mapped=3, unmapped=0)


def _rungs(**answers: Answer) -> tuple[Rung, ...]:
    names: dict[str, RungName] = {
        "program": "exported-program",
        "decomposed": "decomposed",
        "plain": "file-unoptimised",
        "file": "file",
        "evaluator": "reference-evaluator",
    }
    return tuple(Rung(name=names[name], answer=answer) for name, answer in answers.items())


def _inspected(*rungs: Rung, **fields: Any) -> TargetObservation:
    return target(WRONG, inspections=(Inspection(output="logits", case=CASES[0], rungs=rungs, **fields),))


def _first(seen: TargetObservation | ModelObservation, own: ModelContract | None = None) -> Finding:
    observation = seen if isinstance(seen, ModelObservation) else observed(seen)
    return judge((own or contract(),), run(observation)).findings[0]


@pytest.mark.parametrize(
    ("answers", "owner", "cause"),
    [
        ({"program": "differs"}, "torch.export", "export"),
        ({"program": "agrees", "decomposed": "differs", "plain": "differs"}, "decomposition", "operator"),
        ({"program": "agrees", "plain": "differs", "file": "differs"}, "converter", "operator"),
        ({"plain": "differs", "file": "differs", "evaluator": "differs"}, "converter", "operator"),
        ({"plain": "differs", "file": "differs", "evaluator": "agrees"}, "runtime", "operator"),
        ({"program": "agrees", "plain": "agrees", "file": "differs"}, "runtime-optimisation", "operator"),
        ({"program": "agrees", "plain": "not-tried"}, None, "unknown"),
        ({}, None, "unknown"),
    ],
)
def test_the_first_form_that_differs_is_the_owner(answers: dict[str, Answer], owner: str | None, cause: str):
    """The reference evaluator shows whether the file or ONNX Runtime is wrong."""
    found = _first(_inspected(*_rungs(**answers)))

    assert (found.owner, found.cause) == (owner, cause)


def test_a_file_that_was_handed_in_is_its_own_owner():
    """Nobody knows which converter made the file."""
    found = _first(_inspected(*_rungs(plain="differs", file="differs")), GIVEN)

    assert (found.owner, found.cause) == ("artifact", "unknown")


def test_other_weights_are_the_cause_whatever_else_was_found():
    """The finding has names, the largest difference and advice."""
    weights = WeightsCompared(found=3, differing=("e.weight by 5.2e+00",), differing_count=1)
    found = _first(replace(_inspected(*_rungs(plain="differs")), weights=weights), GIVEN)

    assert (found.owner, found.cause) == ("artifact", "weights")
    assert found.evidence == ("1 of 3 weights of the same name differ from the file's: e.weight by 5.2e+00",)
    assert "rebuild it from this commit" in found.hint


def test_rows_that_nobody_read_follow_from_other_weights():
    """More control inputs would only find more of the same."""
    tables = (TableRead(table="e.weight", input="ids", rows=128, read=8),)
    weights = WeightsCompared(found=3, differing=("e.weight by 5.2e+00",), differing_count=1)
    seen = replace(_inspected(*_rungs(plain="differs")), weights=weights, tables=tables)
    findings = judge((GIVEN,), run(observed(seen))).findings

    assert [(f.rule, f.cause, f.follow_ups) for f in findings] == [("value-mismatch", "weights", 1)]


def test_equal_weights_are_no_cause():
    """A comparison without differences explains nothing."""
    found = _first(replace(_inspected(), weights=WeightsCompared(found=3)), GIVEN)

    assert found.cause == "unknown"


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"changed": (Changed(change="no-negative-zeros", agrees=True),)}, "special-value"),
        ({"changed": (Changed(change="no-zeros", agrees=False),)}, "unknown"),
        ({"selects": ("argmax",), "outside": 2, "unsettled": 2}, "tie"),
        ({"selects": ("argmax",), "outside": 2, "unsettled": 1}, "unknown"),
        ({"outside": 2, "unsettled": 2}, "unknown"),
        ({"selects": ("argmax",)}, "unknown"),
        ({"selects": ("floor",), "outside": 2, "near": 2, "trace": GRADUAL}, "tie"),
        ({"selects": ("floor",), "outside": 2, "near": 1, "trace": GRADUAL}, "unknown"),
        ({"selects": ("floor",), "outside": 2, "near": 2}, "unknown"),
        ({"selects": ("floor",), "outside": 2, "near": 2, "trace": replace(GRADUAL, origin="untested")}, "unknown"),
    ],
)
def test_special_values_and_ties_are_found_by_experiment(fields: dict[str, Any], cause: str):
    """All failing elements must be explained, not only some."""
    assert _first(_inspected(**fields)).cause == cause


@pytest.mark.parametrize(
    ("expected", "actual", "mismatched", "cause"),
    [
        (NonfiniteCount(posinf=2, neginf=1), NonfiniteCount(posinf=3), 1, "special-value"),
        (NonfiniteCount(posinf=2, neginf=1), NonfiniteCount(posinf=3), 3, "unknown"),
        (NonfiniteCount(posinf=2, neginf=1), NonfiniteCount(posinf=4), 2, "unknown"),
        (NonfiniteCount(posinf=2), NonfiniteCount(posinf=2), 2, "unknown"),
    ],
)
def test_infinities_of_the_other_sign_come_from_a_zero(
    expected: NonfiniteCount, actual: NonfiniteCount, mismatched: int, cause: str
):
    """If nothing else differs; an infinity in place of a number has another cause."""
    counts = {"expected_nonfinite": expected, "actual_nonfinite": actual, "nonfinite_mismatched": mismatched}
    found = _first(target(case(CASES[0], leaf(**counts))))

    assert (found.rule, found.cause) == ("nonfinite-mismatch", cause)
    assert ("sign of zero" in found.hint) == (cause == "special-value")


def test_what_the_contract_forbids_and_eager_returns_is_the_models():
    """The artifact only agrees with it."""
    given = contract(outputs=(Output(name="logits", nonfinite="forbid"),))
    nan = NonfiniteCount(nan=1)
    found = _first(target(case(CASES[0], leaf(expected_nonfinite=nan, actual_nonfinite=nan))), given)

    assert (found.rule, found.owner, found.cause) == ("nonfinite-mismatch", "model", "eager")


@pytest.mark.parametrize(("shown_by", "owner", "cause"), [("logits", "model", "state"), ("hidden", None, "unknown")])
def test_state_that_is_not_seen_explains_the_outputs_that_show_it(shown_by: str, owner: str | None, cause: str):
    """An output that does not depend on earlier calls differs for another reason."""
    effect = leaf(output=shown_by, **FAR)
    given = observed(target(WRONG), hygiene=HygieneObservation(state_effects=(effect,)))
    found = next(f for f in judge((contract(),), run(given)).findings if f.rule == "value-mismatch")

    assert (found.owner, found.cause) == (owner, cause)


def test_noise_that_is_memory_follows_from_it():
    """Eager's answers to one input differ by what it remembers, and float32 is not to blame."""
    root = Finding(rule="state-carried", severity="violation", model="m", message="", hint="", output="logits")
    noise = replace(root, rule="nothing-compared", target="onnx", cause="rounding")
    warned = replace(noise, rule="ill-conditioned", severity="warning")
    other = replace(noise, output="hidden")
    left = without_follow_ups([root, noise, warned, other], observed(target()))

    assert [(finding.rule, finding.follow_ups) for finding in left] == [("state-carried", 2), ("nothing-compared", 0)]


@pytest.mark.parametrize(
    ("draws", "exceeding", "other", "cause"),
    [
        (6, 6, 0, "size-arithmetic"),
        (6, 5, 0, "unknown"),
        (6, 6, 1, "unknown"),
        (24, 12, 0, "size-arithmetic"),
        (24, 3, 0, "unknown"),
        (24, 12, 1, "unknown"),
        (0, 0, 0, "unknown"),
    ],
)
def test_a_size_decides_where_chance_does_not(draws: int, exceeding: int, other: int, cause: str):
    """No draw at a size at which the output agrees may differ, and enough of the others must."""
    trial = SizeTrial(
        sizes={"batch": 16},
        draws=draws,
        exceeding=exceeding,
        other_sizes={"batch": 2},
        other_draws=draws,
        other_exceeding=other,
    )

    assert _first(_inspected(size_trial=trial)).cause == cause


@pytest.mark.parametrize(
    ("other", "exceeding", "cause"),
    [({"seq": 1}, 24, "operator"), ({"seq": 3}, 24, "size-arithmetic"), ({"seq": 3}, 13, "operator")],
)
def test_a_wrong_node_that_some_sizes_hide_is_no_arithmetic_on_sizes(other: dict[str, int], exceeding: int, cause: str):
    """A softmax over one element is 1, whatever its axis is, and larger inputs hold a special value more often."""
    trial = SizeTrial(
        sizes={"seq": 5}, draws=24, exceeding=exceeding, other_sizes=other, other_draws=24, other_exceeding=0
    )
    node = GuiltyNode(name="softmax", operator="aten.softmax.int", file_nodes=("Softmax node_softmax",))
    trace = NodeTrace(beside="program", origin="introduced", guilty=node, mapped=3, unmapped=0)
    found = _first(_inspected(*_rungs(plain="differs", file="differs"), size_trial=trial, trace=trace), GIVEN)

    assert (found.owner, found.cause) == ("artifact", cause)


@pytest.mark.parametrize(
    ("operator", "owner", "cause"),
    [("aten.argmax.default", "artifact", "operator"), ("aten.sort.default", "model", "tie")],
)
def test_the_last_of_equal_values_is_no_tie_where_the_first_is_promised(operator: str, owner: str, cause: str):
    """Such as an ArgMax with `select_last_index`; the order of a sort is nobody's promise."""
    node = GuiltyNode(name="chosen", operator=operator, file_nodes=("ArgMax node_argmax",), is_tie=True)
    trace = NodeTrace(beside="program", origin="introduced", guilty=node, mapped=3, unmapped=0)
    fields = {"selects": ("argmax",), "outside": 2, "unsettled": 2, "trace": trace}
    found = _first(_inspected(*_rungs(plain="differs", file="differs"), **fields), GIVEN)

    assert (found.owner, found.cause) == (owner, cause)


@pytest.mark.parametrize(
    ("other", "given", "cause"),
    [
        ({"seq": 1}, GIVEN, "unknown"),
        ({"seq": 3}, GIVEN, "size-arithmetic"),
        ({"seq": 1}, contract(), "size-arithmetic"),
    ],
)
def test_a_file_without_a_program_beside_it_may_be_wrong_at_all_sizes_but_one(
    other: dict[str, int], given: ModelContract, cause: str
):
    """A recurrence in the other direction, or over another axis, is right for one step, whatever it does for more."""
    trial = SizeTrial(sizes={"seq": 5}, draws=6, exceeding=6, other_sizes=other, other_draws=6, other_exceeding=0)
    found = _first(_inspected(*_rungs(plain="differs", file="differs"), size_trial=trial), given)

    assert found.cause == cause


@pytest.mark.parametrize(("sizes", "cause"), [((2, 16), "size-arithmetic"), ((2, 2), "unknown")])
def test_a_file_that_raises_at_all_inputs_of_some_sizes_has_sizes_baked_in(sizes: tuple[int, int], cause: str):
    """No input of a size at which it raises may pass."""
    rungs = _rungs(plain="failed", file="failed", evaluator="failed")
    seen = target(failed(CASES[0]), inspections=(Inspection(output="", case=CASES[0], rungs=rungs),))
    members = tuple(
        ControlInput(name=name, family="normal", sizes={"batch": size}) for name, size in zip(CASES, sizes, strict=True)
    )
    observation = observed(seen)
    assert observation.controls is not None
    found = _first(replace(observation, controls=replace(observation.controls, inputs=members)), GIVEN)

    assert (found.owner, found.cause) == ("artifact", cause)


def test_a_branch_that_was_not_exported_is_a_size_guard():
    """Every input that differs must be on the other side of the branch."""
    branch = Branch(words="batch == 2", cases=(CASES[0],))
    found = _first(observed(_inspected(), branches=(branch,)))

    assert (found.owner, found.cause) == ("torch.export", "size-guard")
    assert "only inputs where batch == 2 differ" in found.evidence[0]


@pytest.mark.parametrize(("other", "cause"), [(16, "size-guard"), (1, "export")])
def test_a_difference_at_size_one_alone_is_a_condition_that_is_never_met(other: int, cause: str):
    """torch.export takes a dynamic size to be 2 or more, and notes no condition about it."""
    sizes = dict(zip(CASES, (1, other), strict=True))
    members = tuple(ControlInput(name=name, family="normal", sizes={"batch": sizes[name]}) for name in CASES)
    seen = observed(
        _inspected(*_rungs(program="differs")), controls=ControlSetObservation(sha256="0" * 64, inputs=members)
    )
    found = _first(seen)

    assert (found.owner, found.cause) == ("torch.export", cause)
    assert ("`models.glyph-head.dims.batch.separate: [1]`" in found.hint) == (cause == "size-guard")


def test_a_size_that_the_program_refuses_is_a_size_guard():
    """Files do not enforce conditions, so they compute the branch that was exported."""
    rung = Rung(name="exported-program", answer="failed", message="Guard failed: x.size()[1] % 8 != 0")

    assert _first(_inspected(rung)).cause == "size-guard"


def test_no_tolerance_is_offered_where_rounding_is_not_the_cause():
    """If rounding is not the cause, a larger tolerance would only hide it."""
    for fields in ({}, {"changed": (Changed(change="no-zeros", agrees=True),)}):
        assert "atol" not in _first(_inspected(**fields)).hint


def test_a_model_in_train_mode_explains_what_differs():
    """There is one finding, which counts what it hides."""
    seen = observed(target(WRONG), hygiene=HygieneObservation(train_modules=("drop (Dropout)",), train_module_count=2))
    findings = judge((contract(),), run(seen)).findings

    assert [(f.rule, f.owner, f.cause, f.follow_ups) for f in findings] == [("train-mode", "model", "train-mode", 1)]
    assert findings[0].details[0] == "explains 1 further finding, not listed: value-mismatch (onnx)"


@pytest.mark.parametrize(("of_training", "rules"), [(True, ["train-mode"]), (False, ["train-mode", "contract-broken"])])
def test_train_mode_explains_what_it_alone_refuses(of_training: bool, rules: list[str]):
    """An input that eval mode takes is no reason to change the contract; one that eval mode refuses as well is."""
    promise = PromiseBroken(case="normal-1@batch=2", message="ValueError: more than 1 value", of_training=of_training)
    seen = observed(
        hygiene=HygieneObservation(train_modules=("norm (BatchNorm1d)",), train_module_count=1), broken=(promise,)
    )

    assert [f.rule for f in judge((contract(),), run(seen)).findings] == rules


@pytest.mark.parametrize(
    ("effects", "rungs", "cause"),
    [
        ((), {"program": "agrees", "plain": "differs", "file": "differs"}, "operator"),
        ((leaf(**FAR),), {"program": "agrees", "plain": "differs", "file": "differs"}, "state"),
        ((), {}, "state"),
    ],
)
def test_state_that_no_output_shows_is_not_why_a_file_differs(
    effects: tuple[Comparison, ...], rungs: dict[str, Answer], cause: str
):
    """A conversion that is wrong at the first call is wrong whatever the call leaves behind."""
    hygiene = HygieneObservation(state_changed=("mean: 0 -> 1",), state_effects=effects)
    seen = observed(_inspected(*_rungs(**rungs)), hygiene=hygiene)
    found = next(f for f in judge((contract(),), run(seen)).findings if f.rule == "value-mismatch")

    assert found.cause == cause


@pytest.mark.parametrize(
    ("operator", "rules"),
    [
        ("aten.randperm.default", ["nondeterministic-model"]),
        ("aten.scaled_dot_product_attention.default", ["nondeterministic-model", "conversion-failed"]),
        ("aten.cdist.default", ["nondeterministic-model", "conversion-failed"]),
    ],
)
def test_an_operator_that_only_draws_goes_with_the_chance(operator: str, rules: list[str]):
    """That it does not convert matters no more then, beside the differences that the chance explains anyway."""
    drawing = ("aten.randperm.default", "aten.scaled_dot_product_attention.default")
    seen = observed(
        replace(ended("convert"), stopped_at=GuiltyNode(name="n", operator=operator)),
        target(WRONG, name="pt2"),
        hygiene=HygieneObservation(repeats=3, nondeterministic=(leaf(**FAR),)),
        random_operators=drawing,
    )
    own = contract(targets=(make_target("pt2"), make_target("onnx")))

    assert [f.rule for f in judge((own,), run(seen)).findings] == rules


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model. Unrecognized attribute: a", "operator"),
        ("[ONNXRuntimeError] : 7 : INVALID_PROTOBUF : Load model failed: Protobuf parsing failed.", "unknown"),
    ],
)
def test_a_handed_in_file_that_is_no_valid_graph_has_a_wrong_operator(message: str, cause: str):
    """A file that is damaged says nothing about operators."""
    found = _first(observed(ended("load", type="Fail", message=message)), GIVEN)

    assert (found.rule, found.owner, found.cause) == ("load-failed", "artifact", cause)
    assert ("check_model" in found.hint) == (cause == "operator")


def test_train_mode_that_changes_nothing_explains_nothing():
    """Containers compute the same in train mode and in eval mode."""
    seen = observed(target(WRONG), hygiene=HygieneObservation(train_module_count=2))

    assert [f.rule for f in judge((contract(),), run(seen)).findings] == ["train-mode", "value-mismatch"]


def test_a_program_that_differs_too_is_the_cause_of_what_is_made_of_it():
    """Without experiments, the exported program's own results show the cause."""
    own = contract(targets=(make_target("exported-program"), make_target("pt2")))
    seen = observed(*(target(WRONG, name=name) for name in ("exported-program", "pt2")))
    findings = judge((own,), run(seen)).findings

    assert {(f.target, f.owner, f.cause) for f in findings if f.rule == "value-mismatch"} == {
        ("exported-program", "torch.export", "export"),
        ("pt2", "torch.export", "export"),
    }


@pytest.mark.parametrize(
    ("fields", "owner", "cause"),
    [
        ({"stage": "export", "message": "Constraints violated (batch)!"}, "torch.export", "size-guard"),
        ({"stage": "export", "message": "call to id() is not supported"}, "torch.export", "export"),
        ({"stage": "convert"}, "converter", "conversion"),
        ({"stage": "run", "kind": "died", "type": "SIGSEGV"}, "runtime", "crash"),
        ({"stage": "run", "kind": "died", "type": "SIGKILL"}, "runtime", "resources"),
        ({"stage": "convert", "kind": "died", "type": "exit 3"}, "model", "crash"),
        ({"stage": "run", "kind": "died", "type": "an error of export-gate itself"}, "gate", "crash"),
        ({"stage": "run", "kind": "timed-out"}, "runtime", "resources"),
        ({"stage": "load", "message": "NOT_IMPLEMENTED: no kernel"}, "runtime", "operator"),
        ({"stage": "load", "message": "INVALID_GRAPH: bad"}, "converter", "conversion"),
        ({"stage": "load", "message": "something"}, None, "unknown"),
    ],
)
def test_a_failure_is_blamed_by_its_stage_its_end_and_its_words(fields: dict[str, Any], owner: str, cause: str):
    """What stage, end and words do not show stays unknown."""
    found = _first(ended(**fields))

    assert (found.owner, found.cause) == (owner, cause)


def test_a_call_that_raises_is_blamed_by_its_rungs():
    """ONNX Runtime refuses a call that the reference evaluator computes."""
    rungs = _rungs(program="agrees", plain="failed", file="failed", evaluator="agrees")
    seen = target(failed(CASES[0]), inspections=(Inspection(output="", case=CASES[0], rungs=rungs),))

    assert (_first(seen).owner, _first(seen).cause) == ("runtime", "operator")
    assert _first(seen).evidence[0].startswith("the exported program agrees with eager; ")


def _other_dtype(expected: str, actual: str, *shape: int, program: str = "") -> Finding:
    wrong = leaf(expected_dtype=expected, actual_dtype=actual, actual_shape=shape or (2, 3))
    rung = Rung(name="exported-program", answer="agrees" if program == expected else "differs", dtype=program)
    return _first(
        target(case(CASES[0], wrong), inspections=(Inspection(output="logits", case=CASES[0], rungs=(rung,)),))
    )


def test_a_complex_output_is_returned_as_real_numbers():
    """The ONNX exporter adds an axis for the two parts, whatever the model casts to."""
    hint = _other_dtype("complex64", "float32", 2, 3, 2, program="complex64").hint

    assert "torch.view_as_real(out)" in hint
    assert "remove `onnx` from `models.glyph-head.targets`" in hint
    assert ".to(torch." not in hint


def test_no_cast_is_advised_to_the_dtype_that_the_exported_program_has():
    """It would change nothing: the dtype is lost after the export."""
    assert ".to(torch.int32)" not in _other_dtype("int32", "int64", program="int32").hint
    assert "the conversion to onnx makes it int64" in _other_dtype("int32", "int64", program="int32").hint


def test_a_cast_is_advised_where_the_export_itself_changes_the_dtype():
    """Then the program has the other dtype as well."""
    assert "`.to(torch.float32)`" in _other_dtype("float32", "float64", program="float64").hint


def _guarded(branch: Branch, **fields: Any) -> Finding:
    return _first(observed(replace(_inspected(), **fields), branches=(branch,)))


def test_a_condition_on_one_dim_may_have_an_export_of_its_own():
    """Or both sides go into one program."""
    hint = _guarded(Branch(words="batch == 2", cases=(CASES[0],), dims=("batch",))).hint

    assert "`torch.cond(batch == 2, f, g, (...))`" in hint
    assert "`torch.where(torch.scalar_tensor(batch) == 2, one_side, other_side)`" in hint
    assert "`models.glyph-head.dims.batch.separate`" in hint


def test_a_separate_export_is_not_advised_another_one():
    """It is for single sizes already."""
    hint = _guarded(Branch(words="batch == 2", cases=(CASES[0],), dims=("batch",)), separate={"batch": 2}).hint

    assert "torch.cond" in hint
    assert "separate" not in hint


def test_a_condition_on_two_dims_has_no_sizes_to_declare():
    """Neither exports for single sizes nor a narrower dim express it."""
    hint = _guarded(Branch(words="n // m == 3", cases=(CASES[0],), dims=("m", "n"))).hint

    assert "`torch.where(torch.scalar_tensor(n // m) == 3, one_side, other_side)`" in hint
    assert "separate" not in hint
    assert "dims" not in hint


def test_a_size_of_the_sweep_takes_the_branch_as_well():
    """The finding says where, although the control set does not have that size."""
    assert "where `batch == 2`" in _guarded(Branch(words="batch == 2", cases=(), swept=(CASES[0],))).message


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"program": "differs"}, "torch.export is wrong: the exported program differs from eager"),
        (
            {"program": "agrees", "decomposed": "differs"},
            (
                "a decomposition of torch's is wrong: the exported program agrees with eager, the program after "
                "torch's decompositions does not"
            ),
        ),
        (
            {
                "program": "agrees",
                "decomposed": "agrees",
                "plain": "differs",
                "file": "differs",
                "evaluator": "differs",
            },
            "the conversion is wrong: the exported program agrees with eager, the ONNX file does not, whatever runs it",
        ),
        (
            {"program": "agrees", "plain": "differs", "file": "differs", "evaluator": "agrees"},
            "ONNX Runtime is wrong: the exported program and the ONNX reference evaluator agree with eager",
        ),
        (
            {"plain": "agrees", "file": "differs"},
            (
                "an optimisation of ONNX Runtime is wrong: the ONNX file without ONNX Runtime's optimisations agrees "
                "with eager"
            ),
        ),
        ({}, ""),
    ],
)
def test_the_verdict_names_who_is_wrong_and_what_shows_it(answers: dict[str, Answer], words: str):
    """In one sentence; the other experiments are in the details."""
    assert _first(_inspected(*_rungs(**answers))).verdict == words


def test_the_verdict_says_at_which_values():
    """The change that cures the input."""
    rungs = _rungs(program="agrees", plain="differs", evaluator="agrees")
    found = _first(_inspected(*rungs, changed=(Changed(change="no-nonfinite", agrees=True),)))

    assert found.verdict.startswith("ONNX Runtime is wrong at NaN or infinity: the exported program and ")
