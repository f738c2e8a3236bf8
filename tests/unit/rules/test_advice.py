"""The next step fits the operator and the values that were found to matter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rule_samples import CASES, FAR, case, contract, leaf, observed, run, target

from export_gate.rules.base import Finding
from export_gate.rules.judge import judge
from export_gate.rules.size_advice import size_advice
from export_gate.wall.contract import Size, TensorSpec
from export_gate.wall.diagnosis import Change, Changed, Inspection
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
        "the model, e.g. with `torch.nan_to_num` before `argmax`."
    )


def test_nan_of_a_data_file_is_handled_in_the_model():
    """No key of the contract admits it."""
    assert _cured("no-nonfinite", "[[nan]]").hint == (
        "Handle it in the model, e.g. with `torch.nan_to_num` before `argmax`."
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
