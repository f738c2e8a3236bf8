"""Changed declarations of the outputs are compared with what eager returned in the recorded run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rule_samples import CASES, case, contract, failure, leaf, observed, target

from export_gate.rules.promises import held_again, unobserved_dims
from export_gate.wall.contract import Output, Size
from export_gate.wall.observation import (
    ControlInput,
    ControlSetObservation,
    ModelObservation,
    OutputLeaf,
    PromiseBroken,
)

FIRST, SECOND = CASES
BATCH, THREE = Size(factors={"batch": 1}), Size(offset=3)


def seen(*broken: PromiseBroken) -> ModelObservation:
    """One output `logits`, float32 of batch x 3, compared at batches of 2 and 16."""
    inputs = tuple(
        ControlInput(name=name, family="normal", sizes={"batch": size})
        for name, size in zip(CASES, (2, 16), strict=True)
    )
    whole = case(SECOND, leaf(expected_shape=(16, 3), actual_shape=(16, 3)))
    controls = ControlSetObservation(sha256="0" * 64, inputs=inputs)
    return observed(target(case(FIRST), whole), controls=controls, broken=broken)


def told(*outputs: Output, observation: ModelObservation | None = None) -> list[tuple[str, str]]:
    """Control inputs and sentences of what is broken under these declarations."""
    held = held_again(contract(outputs=outputs), observation or seen())
    return [(promise.case, promise.message) for promise in held.broken]


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ((), []),
        ((Output(name="logits", dtype="float32", shape=(BATCH, THREE)),), []),
        ((Output(name="logits", dtype="int64"),),
         [(name, "output 'logits' is float32, declared int64") for name in CASES]),
        ((Output(name="logits", shape=(BATCH, Size(offset=99))),),
         [(FIRST, "output 'logits' has shape [2, 3], declared [2, 99]"),
          (SECOND, "output 'logits' has shape [16, 3], declared [16, 99]")]),
        ((Output(name="logits", shape=(Size(offset=2), THREE)),),
         [(SECOND, "output 'logits' has shape [16, 3], declared [2, 3]")]),
        ((Output(name="logits"), Output(name="scores")),
         [(FIRST, "eager returned 1 outputs (logits), the contract declares 2 (logits, scores)")]),
        ((Output(name="y", dtype="int64", shape=(BATCH, THREE)),),
         [(name, "output 'logits' is float32, declared int64") for name in CASES]),
    ],
    ids=["nothing declared", "kept", "dtype", "shape", "shape at one size", "number", "another name"],
)  # fmt: skip
def test_what_is_declared_now_is_held(outputs: tuple[Output, ...], expected: list[tuple[str, str]]):
    """Dtype, shape, number and names of the outputs are compared, with the same sentences as in a run."""
    assert told(*outputs) == expected


def test_names_that_are_partly_eagers_own_are_no_positions():
    """A misspelt name is reported as in a run."""
    two = replace(seen(), outputs=(OutputLeaf(name="boxes", dtype="f", shape=()), *seen().outputs))
    assert told(Output(name="boxs"), Output(name="logits"), observation=two) == [
        (FIRST, "eager returned 2 outputs (boxes, logits), the contract declares 2 (boxs, logits)")
    ]


def test_sentences_of_the_old_declaration_go_and_exceptions_stay():
    """Where eager raised, it returned nothing that declared outputs could be compared with."""
    raised = PromiseBroken(case=FIRST, message="ValueError: no\nsecond line")
    old = PromiseBroken(case=SECOND, message="output 'logits' is float32, declared int32")
    assert held_again(contract(outputs=(Output(name="logits", dtype="float32"),)), seen(raised, old)).broken == (
        raised,
    )


def test_a_python_float_keeps_its_own_dtype():
    """It was compared as an artifact's float32, but eager's output is declared as float64."""
    counted = leaf(expected_dtype="float32", actual_dtype="float32", expected_shape=(), actual_shape=())
    one = replace(
        seen(),
        outputs=(OutputLeaf(name="logits", dtype="float64", shape=()),),
        targets=(target(case(FIRST, counted), case(SECOND, counted)),),
    )
    assert told(Output(name="logits", dtype="float64", shape=()), observation=one) == []


def test_a_model_that_never_ran_is_left_as_it_is():
    """Outputs that were never returned break no other promise."""
    ended = replace(seen(), outputs=(), failure=failure(stage="model"))
    assert held_again(contract(outputs=(Output(name="logits", dtype="int64"),)), ended) == ended


def test_dims_without_recorded_sizes():
    """Such a dim cannot be judged from the results."""
    shape = (BATCH, Size(factors={"channels": 2}))
    assert unobserved_dims(contract(outputs=(Output(name="logits", shape=shape),)), seen()) == ["channels"]
    assert unobserved_dims(contract(outputs=(Output(name="logits", shape=(BATCH,)),)), seen()) == []
