"""Calls outside the contract, and how programs answer them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from export_gate.wall.contract import (
    ConstantSpec,
    DictSpec,
    Dim,
    ModelContract,
    SequenceSpec,
    Size,
    Spec,
    TensorSpec,
    make_target,
)
from export_gate.wall.observation import CaseResult, Comparison, Probe, Structure
from export_gate.worker.export.program import export_program
from export_gate.worker.leaves.values import Call, Leaf, Values, flatten
from export_gate.worker.model.factory import forward_parameters
from export_gate.worker.model.reference import Runner, module_runner
from export_gate.worker.model.reference_file import ReferenceFile
from export_gate.worker.study import probes as planning
from export_gate.worker.study.guards import LIMIT_S, Answer, difference, eager_asked, first_line, run_probes
from export_gate.worker.study.probes import PlannedProbe, left_out_notes, plan_probes

BATCH, SIDE = Size(factors={"batch": 1}), Size(factors={"side": 1})


def fixed(length: int) -> Size:
    """A constant axis."""
    return Size(offset=length)


def image(*shape: Size, dtype: str = "float32") -> TensorSpec:
    """A tensor input."""
    return TensorSpec(dtype=dtype, shape=shape)


def contract(inputs: dict[str, Spec], *dims: Dim) -> ModelContract:
    """A model with these inputs."""
    return ModelContract(name="m", factory="m:make", dims=dims, inputs=inputs, targets=(make_target("onnx"),))


def _made(spec: Spec, sizes: dict[str, int]) -> Any:
    match spec:
        case TensorSpec():
            shape = [size.at(sizes) for size in spec.shape]
            return (torch.arange(math.prod(shape)) % 7).reshape(shape).to(getattr(torch, spec.dtype))
        case SequenceSpec():
            items = [_made(item, sizes) for item in spec.items]
            return tuple(items) if spec.kind == "tuple" else items
        case DictSpec():
            return {key: _made(item, sizes) for key, item in spec.items.items()}
        case ConstantSpec():
            return spec.value


def by_name(values: Values) -> Call:
    """Every input as a keyword argument."""
    return Call(kwargs=values)


def eager_answers(probes: tuple[PlannedProbe, ...], eager: Runner, limit_s: float = LIMIT_S) -> tuple[Answer, ...]:
    """Eager's answers to all probes, none of which a control input has answered."""
    with eager_asked(probes, eager, ReferenceFile(folder=Path()), limit_s) as answers:
        return answers({})


def planned(
    model: ModelContract, bind: Callable[[Values], Call] = by_name, **reference: int
) -> tuple[PlannedProbe, ...]:
    """The probes of a contract."""

    def values_at(sizes: dict[str, int]) -> Values:
        return {name: _made(spec, sizes) for name, spec in model.inputs.items()}

    return plan_probes(model, reference, values_at, bind)


def spelled(probes: tuple[PlannedProbe, ...]) -> set[tuple[str, str, str, str]]:
    """Kind, axis, declared and tried of each probe."""
    return {(probe.kind, probe.axis, probe.declared, probe.tried) for probe in probes}


def inputs_of(probes: tuple[PlannedProbe, ...], kind: str, axis: str, tried: str) -> dict[str, Any]:
    """The arguments that one probe passes."""
    (probe,) = [p for p in probes if (p.kind, p.axis, p.tried) == (kind, axis, tried)]
    return probe.call().kwargs


# --- the plan ---------------------------------------------------------------------------------------------------------


def test_each_dim_is_tried_at_and_beyond_its_bounds() -> None:
    """A dim is tried at min, at max, one below and one above."""
    probes = planned(contract({"x": image(BATCH, fixed(3))}, Dim(name="batch", min=2, max=16)), batch=4)
    assert {p for p in spelled(probes) if p[1] == "batch"} == {
        ("below-min", "batch", "2..16", "1"),
        ("at-min", "batch", "2..16", "2"),
        ("at-max", "batch", "2..16", "16"),
        ("above-max", "batch", "2..16", "17"),
    }
    assert inputs_of(probes, "above-max", "batch", "17")["x"].shape == (17, 3)


def test_a_dim_in_steps_is_tried_between_them() -> None:
    """With multiple-of, the probes exceed the bounds by a whole step, and a size between two steps is tried."""
    side = Dim(name="side", min=8, max=64, multiple_of=8)
    probes = planned(contract({"x": image(SIDE, SIDE)}, side), side=24)
    assert {p for p in spelled(probes) if p[1] == "side"} == {
        ("below-min", "side", "8..64 in steps of 8", "0"),
        ("at-min", "side", "8..64 in steps of 8", "8"),
        ("at-max", "side", "8..64 in steps of 8", "64"),
        ("above-max", "side", "8..64 in steps of 8", "72"),
        ("wrong-size", "side", "8..64 in steps of 8", "25"),
    }


def test_bounds_between_steps_are_rounded_inwards() -> None:
    """The smallest and largest admitted sizes are multiples themselves."""
    side = Dim(name="side", min=10, max=70, multiple_of=8)
    tried = {p[0]: p[3] for p in spelled(planned(contract({"x": image(SIDE)}, side), side=24)) if p[1] == "side"}
    assert tried == {"below-min": "8", "at-min": "16", "at-max": "64", "above-max": "72", "wrong-size": "25"}


def test_a_size_with_an_export_of_its_own_is_not_outside() -> None:
    """With `separate: [1, 17]` on 2..16, sizes 1 and 17 have their own artifacts; 0 and 18 are tried instead."""
    batch = Dim(name="batch", min=2, max=16, separate=(1, 17))
    tried = {p[0]: p[3] for p in spelled(planned(contract({"x": image(BATCH)}, batch), batch=4)) if p[1] == "batch"}
    assert tried == {"below-min": "0", "at-min": "2", "at-max": "16", "above-max": "18"}


@pytest.mark.parametrize("dim", [Dim(name="batch", min=1, max=8, mode="static"), Dim(name="batch", min=4, max=4)])
def test_a_dim_of_one_size_has_only_a_wrong_size(dim: Dim) -> None:
    """A static dim is tried with another size."""
    probes = planned(contract({"x": image(BATCH)}, dim), batch=4)
    assert {p for p in spelled(probes) if p[1] == "batch"} == {("wrong-size", "batch", "4", "5")}


def test_impossible_sizes_are_not_planned() -> None:
    """No size below zero is tried, neither for a dim nor for an axis derived from it."""
    shape = (BATCH, Size(factors={"seq": 2}, offset=-2))
    dims = (Dim(name="batch", min=0, max=4), Dim(name="seq", min=1, max=4))
    probes = planned(contract({"x": image(*shape)}, *dims), batch=2, seq=2)
    assert {p[3] for p in spelled(probes) if p[0] == "below-min"} == set()


def test_static_axes_dtype_and_rank_are_tried_wrong() -> None:
    """Each constant axis is tried one longer, each tensor in another dtype and with an additional axis."""
    probes = planned(contract({"x": image(BATCH, fixed(3), fixed(1))}, Dim(name="batch", min=2, max=4)), batch=3)
    assert {p for p in spelled(probes) if p[1] != "batch"} == {
        ("wrong-size", "x[1]", "3", "4"),
        ("wrong-size", "x[2]", "1", "2"),
        ("wrong-dtype", "x", "float32", "float64"),
        ("wrong-rank", "x", "3 axes", "4 axes"),
    }
    assert inputs_of(probes, "wrong-size", "x[1]", "4")["x"].shape == (3, 4, 1)
    assert inputs_of(probes, "wrong-dtype", "x", "float64")["x"].dtype == torch.float64
    assert inputs_of(probes, "wrong-rank", "x", "4 axes")["x"].shape == (1, 3, 3, 1)


def test_values_of_a_wrong_size_stay_in_range() -> None:
    """The added slice repeats the first, so that token ids stay valid."""
    probes = planned(contract({"ids": image(fixed(3), dtype="int64")}))
    assert inputs_of(probes, "wrong-size", "ids[0]", "4")["ids"].tolist() == [0, 1, 2, 0]
    assert ("wrong-rank", "ids", "1 axis", "2 axes") in spelled(probes)


def test_an_empty_axis_is_tried_with_one_element() -> None:
    """A constant axis of length 0 is tried with length 1."""
    probes = planned(contract({"x": image(fixed(0), fixed(2))}))
    assert inputs_of(probes, "wrong-size", "x[0]", "1")["x"].shape == (1, 2)


@pytest.mark.parametrize(
    ("dtype", "other"),
    [
        ("float32", "float64"),
        ("float64", "float32"),
        ("bfloat16", "float32"),
        ("int64", "int32"),
        ("int32", "int64"),
        ("bool", "uint8"),
        ("complex64", "complex128"),
    ],
)
def test_the_wrong_dtype_is_the_likely_mistake(dtype: str, other: str) -> None:
    """The dtype that is tried is the one most likely to be passed by mistake."""
    probes = planned(contract({"x": image(fixed(2), dtype=dtype)}))
    assert ("wrong-dtype", "x", dtype, other) in spelled(probes)
    assert inputs_of(probes, "wrong-dtype", "x", other)["x"].dtype == getattr(torch, other)


def test_nested_inputs_are_varied_in_place() -> None:
    """A tensor inside lists, tuples and dicts is named by its path; everything else stays."""
    inner = SequenceSpec(kind="tuple", items=(image(fixed(2)), image(fixed(3))))
    model = contract({"pyramid": DictSpec(items={"low": inner}), "scale": ConstantSpec(value=0.5)})
    probes = planned(model)
    assert ("wrong-size", "pyramid.low.1[0]", "3", "4") in spelled(probes)
    passed = inputs_of(probes, "wrong-size", "pyramid.low.1[0]", "4")
    assert [tuple(t.shape) for t in passed["pyramid"]["low"]] == [(2,), (4,)]
    assert isinstance(passed["pyramid"]["low"], tuple)
    assert passed["scale"] == 0.5


def test_each_call_is_made_anew() -> None:
    """A model that changes its input does not affect the next call of the same probe."""
    (probe, *_) = planned(contract({"x": image(fixed(3))}))
    probe.call().kwargs["x"].fill_(9)
    assert probe.call().kwargs["x"].max() < 9


def test_expensive_probes_are_left_out_but_never_the_bounds() -> None:
    """A probe above 4 times the reference's elements is left out, with a note; at-min and at-max always run."""
    model = contract({"x": image(BATCH, fixed(10_000))}, Dim(name="batch", min=2, max=1000))
    probes = planned(model, batch=4)
    assert {p.kind for p in probes if p.left_out} == {"above-max"}
    assert left_out_notes(probes) == (
        "guard probes not tried (more than 4 times the reference input's elements): batch=1001",
    )
    assert [p.elements for p in probes] == sorted(p.elements for p in probes)


def test_small_inputs_are_tried_whatever_the_reference() -> None:
    """Below 65,536 elements, size is not a reason to leave out a probe."""
    probes = planned(contract({"x": image(BATCH)}, Dim(name="batch", min=2, max=60_000)), batch=4)
    assert not any(p.left_out for p in probes)


def test_the_number_of_probes_is_limited() -> None:
    """Beyond 24 probes the least important ones are left out and counted in a note."""
    inputs: dict[str, Spec] = {f"x{i}": image(BATCH, fixed(3), fixed(3)) for i in range(9)}
    probes = planned(contract(inputs, Dim(name="batch", min=2, max=4)), batch=3)
    tried = [p for p in probes if not p.left_out]
    assert len(tried) == planning.LIMIT + 2
    assert {"at-min", "at-max", "below-min", "above-max"} <= {p.kind for p in tried}
    assert left_out_notes(probes) == (
        (
            "guard probes not tried (beyond the limit of 24): "
            "x0=4 axes, x1=4 axes, x2=4 axes, x3=4 axes, x4=float64, x4=4 axes and 8 more"
        ),
    )


# --- answers ----------------------------------------------------------------------------------------------------------


class Pooled(nn.Module):
    """Convolves and averages: any batch and side work, channels do not."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(1, 2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, 1, 8, 8] to float32[batch, 2]."""
        return self.conv(x).mean((2, 3))


POOLED = contract({"x": image(BATCH, fixed(1), fixed(8), fixed(8))}, Dim(name="batch", min=2, max=5))


def is_close(result: CaseResult) -> bool:
    """Loose tolerance of 1e-3."""
    return result.structure is None and all(
        (c.expected_dtype, c.expected_shape) == (c.actual_dtype, c.actual_shape)
        and c.nonfinite_mismatched == 0
        and c.max_abs_diff <= 1e-3 * (1 + c.expected_max_abs)
        for c in result.outputs
    )


def answered(probes: tuple[Probe, ...]) -> dict[tuple[str, str], tuple[str, str]]:
    """(kind, axis) -> (answer, message)."""
    return {(p.kind, p.axis): (p.answer, p.message) for p in probes}


@pytest.fixture(scope="module")
def pooled() -> tuple[PlannedProbe, ...]:
    """The probes of `Pooled`."""
    return planned(POOLED, lambda values: Call(args=tuple(values.values())), batch=3)


def exported_runner() -> Runner:
    """`Pooled` exported with its contract's dims."""
    module = Pooled().eval()
    call = Call(args=(torch.rand(3, 1, 8, 8),))
    exported = export_program(module, call, POOLED, forward_parameters(module), {})
    return module_runner(exported.program.module(), {})


@pytest.mark.slow
def test_an_exported_program_accepts_one_below_a_minimum_of_two(pooled: tuple[PlannedProbe, ...]) -> None:
    """The lower bound of 2 is not enforced; everything else that is wrong is refused, in the program's own words."""
    eager = eager_answers(pooled, module_runner(Pooled().eval(), {}))
    assert answered(run_probes(eager, exported_runner(), is_close)) == {
        ("below-min", "batch"): ("accepted-equal", ""),
        ("at-min", "batch"): ("accepted-equal", ""),
        ("at-max", "batch"): ("accepted-equal", ""),
        ("above-max", "batch"): ("refused", "Guard failed: x.size()[0] <= 5"),
        ("wrong-size", "x[1]"): ("refused", "Guard failed: x.size()[1] == 1"),
        ("wrong-size", "x[2]"): ("refused", "Guard failed: x.size()[2] == 8"),
        ("wrong-size", "x[3]"): ("refused", "Guard failed: x.size()[3] == 8"),
        ("wrong-dtype", "x"): ("refused", "Input type (double) and bias type (float) should be the same"),
        ("wrong-rank", "x"): ("refused", "Guard failed: x.size()[1] == 1"),
    }


@pytest.mark.slow
def test_onnx_runtime_enforces_static_sizes_only(pooled: tuple[PlannedProbe, ...], tmp_path: Path) -> None:
    """ONNX Runtime does not know ranges; it refuses other static sizes, and names both."""
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    module = Pooled().eval()
    program = export_program(
        module, Call(args=(torch.rand(3, 1, 8, 8),)), POOLED, forward_parameters(module), {}
    ).program
    converted = torch.onnx.export(program, (), dynamo=True, verbose=False)
    assert converted is not None
    converted.save(str(tmp_path / "m.onnx"))
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))

    def run(call: Call) -> tuple[Leaf, ...]:
        feed = {session.get_inputs()[0].name: call.args[0].numpy()}
        return flatten(torch.from_numpy(session.run(None, feed)[0]))

    answers = answered(run_probes(eager_answers(pooled, module_runner(module, {})), run, is_close))
    assert answers["below-min", "batch"] == answers["above-max", "batch"] == ("accepted-equal", "")
    assert answers["wrong-size", "x[3]"] == (
        "refused",
        (
            "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: x for the following indices "
            "index: 3 Got: 9 Expected: 8"
        ),
    )
    assert answers["wrong-rank", "x"][0] == "refused"


def one_probe(**inputs: Any) -> tuple[PlannedProbe, ...]:
    """A single probe with these keyword arguments."""
    above = PlannedProbe(
        kind="above-max",
        axis="batch",
        declared="2..4",
        tried="5",
        elements=1,
        values=lambda: inputs,
        bind=lambda values: Call(kwargs=values),
    )
    other = replace(above, kind="wrong-rank", axis="x", declared="1 axis", tried="2 axes", left_out="too large")
    return above, other


def _answer(eager: Runner, artifact: Runner) -> Probe:
    (probe,) = run_probes(eager_answers(one_probe(x=torch.ones(2)), eager), artifact, is_close)
    return probe


def _returns(value: Any) -> Runner:
    return lambda _: flatten(value)


def _raises(error: BaseException) -> Runner:
    def run(_: Call) -> tuple[Leaf, ...]:
        raise error

    return run


def test_a_probe_carries_the_plan_s_words() -> None:
    """What was declared and what was tried is in the observation; probes that were left out are not."""
    assert _answer(_returns(torch.ones(2)), _returns(torch.ones(2))) == Probe(
        kind="above-max", axis="batch", declared="2..4", tried="5", answer="accepted-equal", message=""
    )


def test_other_results_are_described() -> None:
    """An artifact that accepts and differs is recorded with the size of the difference."""
    probe = _answer(_returns(torch.tensor([2.0, 4.0])), _returns(torch.tensor([2.0, 1.0])))
    assert (probe.answer, probe.message) == (
        "accepted-differs",
        "output 'output': max |P-M| 3 where max |M| is 4",
    )


def test_what_eager_refuses_should_not_be_accepted() -> None:
    """An artifact that answers where eager raises is recorded with eager's words."""
    probe = _answer(_raises(ValueError("batch too large\nsee the manual")), _returns(torch.ones(2)))
    assert (probe.answer, probe.message) == ("accepted-eager-refuses", "eager refuses: batch too large")


@pytest.mark.slow
def test_a_refusal_is_a_refusal_whatever_eager_says() -> None:
    """If the artifact raises, its own first line is kept, even if eager refuses too."""
    for eager in (_returns(torch.ones(2)), _raises(ValueError("no"))):
        probe = _answer(eager, _raises(RuntimeError("batch must be <= 4")))
        assert (probe.answer, probe.message) == ("refused", "batch must be <= 4")
    assert _answer(_returns(1), _raises(SystemExit(3))).message == "3"


@pytest.mark.slow
def test_refusals_of_eager_and_empty_answers_are_recorded() -> None:
    """Each probe records whether eager refuses too, and whether an answer has any element."""
    both = _answer(_raises(ValueError("no")), _raises(RuntimeError("no")))
    assert (both.answer, both.eager_refuses, both.empty) == ("refused", True, False)
    empty = _answer(_returns(torch.ones(0, 3)), _returns(torch.ones(0, 2)))
    assert (empty.answer, empty.eager_refuses, empty.empty) == ("accepted-differs", False, True)


def test_an_interrupt_in_the_artifact_ends_its_copy_only() -> None:
    """A KeyboardInterrupt that an artifact raises ends only its forked copy, and that is its answer."""
    found = _answer(_returns(1), _raises(KeyboardInterrupt()))
    assert (found.answer, found.message) == ("refused", "the process died: exit 1")


def test_eager_is_asked_once_for_all_targets(tmp_path: Path) -> None:
    """Eager's answers are reused: it does not run again for the second target."""
    runs = tmp_path / "runs"

    def eager(call: Call) -> tuple[Leaf, ...]:
        with runs.open("a") as stream:  # eager is asked in a copy of this process
            stream.write("1")
        return flatten(call.kwargs["x"])

    answers = eager_answers(one_probe(x=torch.ones(2)), eager)
    first = run_probes(answers, _returns(torch.ones(2)), is_close)
    second = run_probes(answers, _returns(torch.zeros(2)), is_close, checks="runtime-checks")
    assert runs.read_text() == "1"
    assert [(p.answer, p.checks) for p in (*first, *second)] == [
        ("accepted-equal", "default"),
        ("accepted-differs", "runtime-checks"),
    ]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RuntimeError("Guard failed: x.size()[0] <= 16\nDebug info: ..."), "Guard failed: x.size()[0] <= 16"),
        (RuntimeError("\n\n  late start\n"), "late start"),
        (RuntimeError("Constraints violated:\n  - batch"), "Constraints violated: - batch"),
        (RuntimeError("ends with a colon:"), "ends with a colon:"),
        (AssertionError(), "AssertionError"),
        (RuntimeError("x" * 300), "x" * 197 + "..."),
    ],
)
def test_a_refusal_is_one_line(error: Exception, text: str) -> None:
    """Messages are cut to their first informative line."""
    assert first_line(error) == text


def compared(**fields: Any) -> Comparison:
    """A comparison of two float32[2] leaves."""
    base = {"output": "y", "expected_dtype": "float32", "actual_dtype": "float32"}
    shapes = {"expected_shape": (2,), "actual_shape": (2,)}
    return Comparison(**{**base, **shapes, "elements": 2, **fields})


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (CaseResult(case="c"), "no output to compare"),
        (
            CaseResult(case="c", structure=Structure(expected=("a", "b:None"), actual=())),
            "returned nothing; eager returns a, b:None",
        ),
        (
            CaseResult(case="c", outputs=(compared(actual_shape=(1,)), compared(max_abs_diff=9.0, output="z"))),
            "output 'y': float32[1]; eager returns float32[2]",
        ),
        (
            CaseResult(case="c", outputs=(compared(actual_dtype="float64"),)),
            "output 'y': float64[2]; eager returns float32[2]",
        ),
        (
            CaseResult(case="c", outputs=(compared(max_abs_diff=9.0), compared(output="z", nonfinite_mismatched=1))),
            "output 'z': NaN or infinity at 1 of 2 elements where eager differs",
        ),
        (
            CaseResult(
                case="c",
                outputs=(
                    compared(max_abs_diff=9.0, expected_max_abs=1e6),
                    compared(output="z", max_abs_diff=0.5, expected_max_abs=2.0),
                ),
            ),
            "output 'z': max |P-M| 0.5 where max |M| is 2",
        ),
    ],
)
def test_the_worst_output_describes_the_difference(result: CaseResult, text: str) -> None:
    """Another type comes first, then non-finite values, then the largest relative difference."""
    assert difference(result) == text


def test_every_contract_dtype_has_a_wrong_one() -> None:
    """Every dtype of a contract has its probe."""
    from export_gate.wall.contract import DTYPES

    assert set(planning.OTHER_DTYPE) == set(DTYPES)
    assert all(dtype != other for dtype, other in planning.OTHER_DTYPE.items())


@pytest.mark.slow
def test_eager_that_dies_or_hangs_outside_its_contract_costs_the_probe_only() -> None:
    """A crash, an exit and a hang of eager are refusals, each with what ended it, and the model continues."""

    def eager(call: Call) -> tuple[Leaf, ...]:
        rows = len(call.kwargs["x"])
        if rows == 1:
            os.abort()
        if rows == 5:
            time.sleep(60)
        return flatten((call.kwargs["x"].to(torch.bfloat16), None, 3, call.kwargs["x"] > 1))

    model = contract({"x": image(BATCH)}, Dim(name="batch", min=2, max=4))
    answers = eager_answers(planned(model, batch=3), eager, limit_s=2.0)
    said = {(answer.probe.kind, answer.probe.tried): answer.refusal for answer in answers}
    assert said[("below-min", "1")] == "the process died: SIGABRT"
    assert said[("above-max", "5")] == "the process died: still running after 2 s"
    accepted = next(answer for answer in answers if answer.probe.kind == "at-max")
    assert accepted.refusal is None
    expected = eager(accepted.probe.call())
    assert [(leaf.name, leaf.dtype, leaf.python) for leaf in accepted.reference.leaves] == [
        (leaf.name, leaf.dtype, leaf.python) for leaf in expected
    ]
    pairs = [(leaf.value, other.value) for leaf, other in zip(accepted.reference.leaves, expected, strict=True)]
    assert all(a is b is None or (a.dtype == b.dtype and (a == b).all()) for a, b in pairs)
