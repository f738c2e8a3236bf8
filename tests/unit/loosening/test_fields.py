"""Every key of a contract is compared with the base's, so that a new one cannot be forgotten."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest
import rule_samples as samples

from export_gate.loosening.configs import compare_contracts
from export_gate.loosening.fields import FIELDS, WHOLE
from export_gate.wall.contract import ModelContract


def records(kind: Any, seen: set[type]) -> Iterator[type]:
    """The records that a type holds, at any depth."""
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        if kind not in seen:
            seen.add(kind)
            yield kind
            for hint in get_type_hints(kind).values():
                yield from records(hint, seen)
        return
    for argument in get_args(kind):
        yield from records(argument, seen)


RECORDS = [record for record in records(ModelContract, set()) if record.__name__ not in WHOLE]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_each_field_of_a_contract_says_what_loosens_it(record: type):
    """A change could loosen a key that is not listed without being noticed."""
    fields = {field.name for field in dataclasses.fields(record)}
    listed = set(FIELDS.get(record.__name__, {}))

    missing = sorted(fields - listed)

    assert not missing, (
        f"{record.__name__}.{missing}: add each to FIELDS in loosening/fields.py, with the direction in which it "
        "makes the check weaker (see loosening/compare.py), and a sample to test_attacks.py"
    )


def test_records_of_a_contract_are_found_at_any_depth():
    """The test above sees what is nested in unions, tuples and mappings."""
    names = {record.__name__ for record in RECORDS}
    assert {"Dim", "TensorSpec", "DictSpec", "Output", "GoldenSource", "Budget"} <= names


def test_a_value_that_reads_like_a_tolerance_keeps_its_key():
    """Only what compares tolerances writes sentences of its own."""
    before = samples.contract()
    (found,) = compare_contracts(before, dataclasses.replace(before, factory="m:make tolerance"))
    assert found.what.startswith("factory ")
