"""The next step fits the operator and the values that were found to matter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rule_samples import CASES, FAR, case, contract, leaf, observed, run, target

from export_gate.rules.base import Finding
from export_gate.rules.judge import judge
from export_gate.rules.size_advice import size_advice
from export_gate.wall.contract import Size, TensorSpec
from export_gate.wall.diagnosis import Change, Changed, ConversionTrial, Inspection, Rung
from export_gate.wall.nodes import GuiltyNode, NodeTrace
from export_gate.wall.smallest import SmallestInput, SmallTensor

X = TensorSpec(dtype="float32", shape=(Size(factors={"batch": 1}), Size(offset=3)), range=(0.0, 1.0))
ARGMAX = NodeTrace(
    beside="program",
    origin="introduced",
    guilty=GuiltyNode(name="argmax", operator="aten.argmax.default"),
    mapped=1,
    unmapped=0,
)


def _cured(change: Change, text: str, *nonfinite: str) -> Finding:
    tensor = SmallTensor(path="x", dtype="float32", shape=(1, 3), text=text)
    inspection = Inspection(
        output="logits",
        case=CASES[0],
        changed=(Changed(change=change, agrees=True),),
        smallest=SmallestInput(tensors=(tensor,), elements=3, elements_before=6, tried=3),
        trace=ARGMAX,
    )
    own = contract(inputs={"x": replace(X, nonfinite=nonfinite)})
    seen = observed(target(case(CASES[0], leaf(**FAR)), inspections=(inspection,)))
    return judge((own,), run(seen)).findings[0]


def test_nan_is_taken_out_of_the_input_that_admits_it():
    """Only the value that the smallest failing input holds is named."""
    assert _cured("no-nonfinite", "[[0.0, nan, 0.0]]", "nan", "inf").hint == (
        "If callers never pass NaN, remove `nan` from `models.glyph-head.inputs.x.nonfinite`; otherwise handle it in "
        "the model before `argmax`, e.g. with `torch.nan_to_num(x, nan=...)`: the number that you choose "
        "changes eager's result as well."
    )


def test_nan_of_a_data_file_is_handled_in_the_model():
    """No key of the contract admits it."""
    assert _cured("no-nonfinite", "[[nan]]").hint == (
        "Handle it in the model before `argmax`, e.g. with `torch.nan_to_num(x, nan=...)`: the number that you "
        "choose changes eager's result as well."
    )


@pytest.mark.parametrize(
    ("change", "words"), [("no-negative-zeros", "torch.where(x == 0, 0.0, x)"), ("no-zeros", "without zero")]
)
def test_zeros_have_their_own_advice(change: Change, words: str):
    """Their sign, or the value at zero."""
    assert words in _cured(change, "[[0.0]]").hint
    assert "before `argmax`" in _cured(change, "[[0.0]]").hint


def _resizing(*factors: float, operator: str = "aten.upsample_nearest2d.vec") -> GuiltyNode:
    return GuiltyNode(name="n", operator=operator, scale_factors=factors)


def test_a_scale_factor_that_two_precisions_round_apart_is_shown_with_its_integers():
    """0.7 * 90 is the size at which floor gives 62 and 63."""
    words = size_advice(_resizing(0.7, 0.7), 62, 63)

    assert words.startswith("`0.7 * 90` is 62.99... in float64 and 63 in float32. ")
    assert "`size=(h * 7 // 10, ...)` instead of `scale_factor`" in words


def test_nothing_is_claimed_of_a_product_that_does_not_explain_the_sizes():
    """Half is exact in every precision, and so no size rounds apart."""
    assert " in float32" not in size_advice(_resizing(0.5), 62, 63)
    assert "`size=(h // 2, ...)`" in size_advice(_resizing(0.5), 62, 63)
    assert "`size=...`" in size_advice(_resizing(0.7071067811865476), 62, 63)


def test_only_nearest_neighbours_need_integer_indices():
    """Other modes are continuous."""
    assert "torch.arange" in size_advice(_resizing(0.7))
    assert "torch.arange" not in size_advice(_resizing(0.7, operator="aten.upsample_bilinear2d.vec"))


def test_pools_and_ranges_have_their_own_advice_and_other_operators_none():
    """A pool's rounding is a switch, a range's its step."""
    assert "ceil_mode=False" in size_advice(_resizing(operator="aten.avg_pool2d.default"))
    assert "`torch.arange(n) * step`" in size_advice(_resizing(operator="aten.arange.start_step"))
    assert size_advice(_resizing(operator="aten.view.default")) == ""
    assert size_advice(None) == ""


WRONG_FILE = tuple(
    Rung(name=name, answer=answer)
    for name, answer in (("exported-program", "agrees"), ("file-unoptimised", "differs"), ("file", "differs"))
)
REMAINDER = GuiltyNode(name="remainder", operator="aten.remainder.Scalar", arguments=(("other", "0.1"),))


def _converted(guilty: GuiltyNode, *trials: ConversionTrial) -> Finding:
    trace = NodeTrace(beside="program", origin="introduced", guilty=guilty, mapped=1, unmapped=0)
    inspection = Inspection(output="logits", case=CASES[0], rungs=WRONG_FILE, trace=trace)
    seen = target(case(CASES[0], leaf(**FAR)), inspections=(inspection,), conversion_trials=trials)
    return judge((contract(),), run(observed(seen))).findings[0]


def test_a_wrong_file_has_the_recipe_for_its_node():
    """With the node's own arguments, so that it can be pasted."""
    found = _converted(REMAINDER)

    assert found.owner == "converter"
    assert found.hint == (
        "Replace `torch.remainder(x, 0.1)` with the lines below (`x` stands for its argument, `out` for the result), "
        "which give the same results in eager and convert. "
        "Report the conversion to PyTorch (torch.onnx): the command below with `--save-case case.npz` writes the input."
    )
    assert found.recipe == "out = torch.fmod(x, 0.1)\nout = torch.where(out < 0, out + 0.1, out)"


def test_another_opset_is_advised_only_if_its_file_is_right():
    """A file that was tried is a surer step than other code."""
    worked = _converted(REMAINDER, ConversionTrial(option="opset", value=23, answer="agrees", inputs=8))
    assert worked.hint.endswith(
        "to `23`: this was tried, and the file that it makes gives eager's results at 8 control inputs."
    )
    assert worked.recipe == ""
    other = replace(REMAINDER, operator="aten.view.default")
    failed = _converted(other, ConversionTrial(option="opset", value=23, answer="differs", inputs=8))
    assert "opset" not in failed.hint
    assert failed.hint.startswith("The file is wrong, whatever runs it: rewrite the operation with simpler ones")


def test_a_resize_to_a_fixed_size_is_not_told_to_drop_a_scale_factor():
    """It has none; only nearest neighbours round where they look."""
    assert "scale_factor" not in size_advice(_resizing())
    assert "`x[..., torch.arange(n) * length // n]`" in size_advice(_resizing())
    assert size_advice(_resizing(operator="aten.upsample_bilinear2d.vec")) == ""


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        ("aten.sigmoid.default", "`F.logsigmoid(x)`"),
        ("aten._softmax.default", "`F.log_softmax(x, dim)`"),
        ("aten.view.default", "Look for softmax over a row"),
    ],
)
def test_an_infinite_logarithm_is_traced_to_what_underflows(operator: str, words: str):
    """A runtime may round the smallest values of a sigmoid to 0."""
    guilty = GuiltyNode(name="n", operator=operator)
    trace = NodeTrace(beside="program", origin="introduced", guilty=guilty, mapped=1, unmapped=0)
    inspection = Inspection(output="logits", case=CASES[0], rungs=WRONG_FILE, trace=trace)
    wrong = leaf(nonfinite_mismatched=4)
    seen = target(case(CASES[0], wrong), inspections=(inspection,))
    assert words in judge((contract(),), run(observed(seen))).findings[0].hint
