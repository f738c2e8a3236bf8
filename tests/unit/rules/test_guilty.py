"""The guilty node and the smallest failing input in words, and on the findings that they belong to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rule_samples import CASES, FAR, LINE, case, contract, failed, leaf, observed, run, target

from export_gate.rules.base import Finding
from export_gate.rules.guilty import node_words
from export_gate.rules.judge import judge
from export_gate.rules.smallest import smallest_words
from export_gate.wall.contract import make_target
from export_gate.wall.diagnosis import Inspection, Rung, WeightsCompared
from export_gate.wall.nodes import GuiltyNode, NodePoint, NodeTrace
from export_gate.wall.smallest import SmallestInput, SmallTensor
from export_gate.wall.source import SourceLine

GUILTY = GuiltyNode(
    name="linear_1",
    operator="aten.linear.default",
    module="head",
    module_class="Linear",
    file_nodes=("Gemm node_linear_1",),
    source=LINE,
    max_abs_diff=0.25,
    expected_max_abs=2.0,
    own_max_abs_diff=0.25,
)
TRACE = NodeTrace(
    beside="program",
    origin="introduced",
    guilty=GUILTY,
    mapped=12,
    unmapped=3,
    points=(NodePoint(name="linear_1", error=0.125),),
)
SMALLEST = SmallestInput(
    sizes="batch=2",
    tensors=(SmallTensor(path="x", dtype="float32", shape=(1, 1), text="[[0.75]]"),),
    elements=1,
    elements_before=32,
    tried=9,
    expected_at=1.0,
    actual_at=2.0,
)


def _finding(**fields: Any) -> Finding:
    """What the judge makes of one wrong output with these experiments."""
    own = contract(targets=(make_target("onnx", artifact="old.onnx"),)) if "weights" in fields else contract()
    weights = fields.pop("weights", None)
    seen = target(
        case(CASES[0], leaf(**FAR)),
        inspections=(Inspection(output="logits", case=CASES[0], **fields),),
        weights=weights,
    )
    return judge((own,), run(observed(seen))).findings[0]


@pytest.mark.parametrize(
    ("trace", "cause"),
    [
        (TRACE, "operator"),
        (replace(TRACE, origin="untested"), "unknown"),
        (replace(TRACE, guilty=None, origin="gradual"), "unknown"),
        (replace(TRACE, guilty=replace(GUILTY, file_nodes=())), "unknown"),
    ],
)
def test_a_wrong_node_is_the_cause_in_a_file_that_was_handed_in(trace: NodeTrace, cause: str):
    """Its weights are the module's, and the node was run with the values that it should get."""
    rungs = (Rung(name="file-unoptimised", answer="differs"), Rung(name="file", answer="differs"))
    found = _finding(trace=trace, rungs=rungs, weights=WeightsCompared(found=3))

    assert (found.owner, found.cause) == ("artifact", cause)
    assert ("it still computes others with Gemm node_linear_1" in found.verdict) == (cause == "operator")


def test_a_program_that_draws_what_eager_seeds_differs_by_chance():
    """Forward seeds the generator, which export leaves out."""
    seen = target(case(CASES[0], leaf(**FAR)), name="exported-program")
    observation = replace(observed(seen), random_operators=("aten.randn.default",))
    found = judge((contract(targets=(make_target("exported-program"),)),), run(observation)).findings[0]

    assert (found.owner, found.cause) == ("model", "randomness")
    assert "export drops `torch.manual_seed`" in found.hint


def test_a_finding_points_at_the_line_that_leads_to_the_node():
    """The finding has the node; the errors of the other nodes stay in the observation."""
    found = _finding(trace=TRACE, smallest=SMALLEST)

    assert found.source == LINE
    assert found.trace == replace(TRACE, points=())
    assert found.smallest == SMALLEST


def test_a_file_in_which_nearly_all_weights_differ_has_no_node():
    """Its first node is only the first that has weights, and no line of the model is to blame."""
    found = _finding(trace=TRACE, weights=WeightsCompared(found=3, differing=("e by 1.0e+00",), differing_count=3))

    assert (found.cause, found.trace, found.source) == ("weights", None, None)


def test_other_weights_have_their_node_too():
    """Where few differ, the node is the first one at which they show."""
    found = _finding(trace=TRACE, weights=WeightsCompared(found=3, differing=("e by 1.0e+00",), differing_count=1))

    assert (found.cause, found.source) == ("weights", LINE)


def test_values_that_agree_are_not_shown_as_the_failure():
    """NaN elsewhere is what fails, and finite values beside it agree."""
    alike = replace(SMALLEST, expected_at=0.66863978, actual_at=0.66863984)

    assert ": eager" not in smallest_words(alike, "onnx")
    assert ": eager 0.66863978, onnx nan" in smallest_words(replace(alike, actual_at=float("nan")), "onnx")


def test_a_call_that_raises_has_its_smallest_input():
    """A call that raises has no node, because nothing was computed."""
    seen = target(failed(CASES[0]), inspections=(Inspection(output="", case=CASES[0], smallest=SMALLEST),))
    found = judge((contract(),), run(observed(seen))).findings[0]

    assert (found.rule, found.smallest, found.trace) == ("run-failed", SMALLEST, None)


FOREIGN = SourceLine(path="layers/head.py", line=7, text="return self.out(x)")


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (None, ""),
        (
            TRACE,
            (
                "`linear_1`, `aten.linear.default` in `head` (Linear); off by 0.25 where values reach 2; "
                "wrong even when fed correct inputs: the error starts at this node; the file computes it with Gemm "
                "node_linear_1 (12 nodes "
                "compared with the exported program, 3 without a counterpart)"
            ),
        ),
        (
            replace(
                TRACE,
                beside="eager",
                origin="untested",
                unmapped=0,
                guilty=GuiltyNode(
                    name="view", operator="aten.view.default", words="shape [2], expected [3]", foreign=FOREIGN
                ),
            ),
            (
                "`view`, `aten.view.default`; shape [2], expected [3]; its inputs agree; called in layers/head.py:7 "
                "`return self.out(x)` (12 nodes compared with eager)"
            ),
        ),
        (
            replace(TRACE, origin="gradual", guilty=None),
            (
                "no single node: the error grows along the graph, each node adds no more than rounding (12 nodes "
                "compared with the exported program, 3 without a counterpart)"
            ),
        ),
    ],
)
def test_the_words_say_what_was_found(trace: NodeTrace | None, words: str):
    """The words say where it is, its error, whether the error is its own, and how many nodes were compared."""
    assert node_words(trace) == words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "`x = [[0.75]]`: eager 1, onnx 2 (shrunk from 32 to 1 element)"),
        ({"expected_at": None}, "`x = [[0.75]]` (shrunk from 32 to 1 element)"),
        (
            {
                "tensors": (SmallTensor(path="x", dtype="float32", shape=(8, 8)),),
                "elements": 64,
                "elements_before": 64,
            },
            "`x` of float32 and shape (8, 8): eager 1, onnx 2",
        ),
    ],
)
def test_a_small_input_is_shown_whole(changes: dict[str, Any], words: str):
    """A large input is shown by its shape."""
    assert smallest_words(replace(SMALLEST, **changes), "onnx") == words


def test_no_smallest_input_says_nothing():
    """Experiments may be switched off, or out of time."""
    assert smallest_words(None, "onnx") == ""
