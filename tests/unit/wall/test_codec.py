"""Records survive the round trip over the wall, and what is not a record is refused with its place."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from export_gate.wall import contract, observation
from export_gate.wall.codec import decode, encode
from export_gate.wall.contract import ConstantSpec, DictSpec, Job, ModelContract, SequenceSpec, Target, TensorSpec
from export_gate.wall.observation import Comparison, NonfiniteCount, RunObservation, TargetObservation
from export_gate.wall.protocol import Event
from export_gate.wall.request import Request
from export_gate.wall.targets import KIND_NAMES

TARGETS = st.from_regex("[A-Za-z0-9][A-Za-z0-9._-]{0,39}", fullmatch=True)

st.register_type_strategy(int, st.integers(-(2**63), 2**64 - 1))
st.register_type_strategy(Target, st.builds(Target, name=TARGETS, kind=st.sampled_from(KIND_NAMES)))
st.register_type_strategy(TargetObservation, st.builds(TargetObservation, target=TARGETS))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
leaves = st.builds(ConstantSpec, value=scalars) | st.from_type(TensorSpec)
specs = st.recursive(
    leaves,
    lambda inner: (
        st.builds(SequenceSpec, items=st.lists(inner, max_size=2).map(tuple))
        | st.builds(DictSpec, items=st.dictionaries(st.text(), inner, max_size=2))
    ),
    max_leaves=4,
)
contracts = st.builds(
    ModelContract,
    kwargs=st.dictionaries(st.text(), values, max_size=2),
    inputs=st.dictionaries(st.text(), specs, max_size=3),
)
jobs = st.builds(Job, contract=contracts)
records: dict[type, st.SearchStrategy[Any]] = {
    ModelContract: contracts,
    Job: jobs,
    Request: st.builds(Request, jobs=st.lists(jobs, max_size=2).map(tuple)),
    Event: st.builds(Event, value=values),
    **{
        kind: st.from_type(kind)
        for module in (contract, observation)
        for kind in vars(module).values()
        if isinstance(kind, type) and hasattr(kind, "__dataclass_fields__") and kind.__module__ == module.__name__
        if kind not in (ModelContract, Job, Request, ConstantSpec, SequenceSpec, DictSpec)
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", records, ids=lambda kind: kind.__name__)
def test_every_record_survives_json(kind: type):
    """Every record that crosses the wall is read back equal, non-finite floats included, through strict JSON."""

    @settings(
        max_examples=25,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow],  # a whole run is one
    )
    @given(records[kind])
    def survives(record: Any) -> None:
        text = json.dumps(encode(record), allow_nan=False)
        assert repr(decode(kind, json.loads(text))) == repr(record)

    survives()


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_nonfinite_floats_are_words(number: float):
    """JSON has no such numbers, so they are the strings nan, inf and -inf."""
    record = Comparison(
        output="y", expected_dtype="f", actual_dtype="f", expected_shape=(), actual_shape=(), max_abs_diff=number
    )
    encoded = encode(record)
    assert encoded["max_abs_diff"] == str(number)
    assert repr(decode(Comparison, encoded).max_abs_diff) == repr(number)


@pytest.mark.parametrize(("written", "read"), [(3, 3), (2**63 - 1, 2**63 - 1), (10**30, 1e30)])
def test_integers_are_numbers_too(written: int, read: float):
    """JSON has one kind of number: an integer of 64 bits stays exact, a larger one is read as a float."""
    norms = decode(observation.AxisNorms, {"index": 0, "max_abs_diff": written, "expected_max_abs": 1})
    assert repr(norms.max_abs_diff) == repr(read)


def test_a_constant_is_as_large_as_it_is():
    """A model may be called with any integer of Python: it is neither refused nor turned into a float."""
    assert decode(ConstantSpec, encode(ConstantSpec(value=2**70))).value == 2**70


def test_undecodable_text_is_written_out():
    """A file name that is not UTF-8 can be written to every file and pipe, with its odd bytes spelled out."""
    assert encode({"k\udcff": ["\udcfe!", "ü"]}) == {"k\\udcff": ["\\udcfe!", "ü"]}


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (NonfiniteCount, 3, "NonfiniteCount: expected an object, got 3"),
        (NonfiniteCount, {"nan": "1"}, "NonfiniteCount.nan: expected int, got '1'"),
        (NonfiniteCount, {"nan": True}, "NonfiniteCount.nan: expected int, got True"),
        (NonfiniteCount, {"nan": 2**64}, "NonfiniteCount.nan: expected an int of 64 bits, got 18446744073709551616"),
        (NonfiniteCount, {"nan": -(2**63) - 1},
         "NonfiniteCount.nan: expected an int of 64 bits, got -9223372036854775809"),
        (observation.AxisNorms, {"index": 0, "max_abs_diff": 10**400, "expected_max_abs": 1},
         f"AxisNorms.max_abs_diff: expected a number that float64 can hold, got 1{'0' * 79}"),
        (NonfiniteCount, {"none": 1}, "NonfiniteCount: expected only ['nan', 'neginf', 'posinf'], got ['none']"),
        (contract.Output, {"name": 1}, "Output.name: expected str, got 1"),
        (contract.Tolerance, {"atol": "loose"}, ("Tolerance.atol: expected a number, got 'loose'; "
                                                "Tolerance.atol: expected null, got 'loose'")),
        (contract.Controls, {"affine_basis": "no"}, ("Controls.affine_basis: expected one of ('auto', 'always', "
                                                    "'never'), got 'no'")),
        (observation.AxisNorms, {"index": 0}, ("AxisNorms: AxisNorms.__init__() missing 2 required keyword-only "
                                              "arguments: 'max_abs_diff' and 'expected_max_abs'")),
        (RunObservation, {"models": [{"model": "m", "dims": [{"declared": [1]}]}]},
         "RunObservation.models[0].dims[0].declared: expected 2 items, got [1]"),
        (RunObservation, {"models": {"model": "m"}}, "RunObservation.models: expected a list, got {'model': 'm'}"),
    ],
)  # fmt: skip
def test_refusal_names_the_place(kind: type, value: Any, message: str):
    """The message says where, what was expected and what was found."""
    with pytest.raises(ValueError) as raised:
        decode(kind, value)
    assert str(raised.value) == message


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(values)
def test_anything_else_is_a_value_error(value: Any):
    """Whatever JSON a stranger sends is an observation or a ValueError, never another exception."""
    try:
        decode(RunObservation, value)
    except ValueError:
        return
    assert isinstance(value, dict)
