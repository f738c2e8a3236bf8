"""The schema of `results.json` accepts what the reader accepts, and refuses what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
import report_samples as samples

from export_gate.report.results import Results
from export_gate.report.schema import results_schema
from export_gate.wall.codec import decode, encode

VALIDATOR = jsonschema.Draft202012Validator(results_schema())
WRONG = ("text", 7, 0.5, None, [], {"extra": 1}, 2**70)
"""One of these is a wrong type for every field of a record."""


def with_nan() -> Results:
    """A run in which numbers are not finite."""
    red = samples.red()
    first = replace(red.findings[0], measured=float("nan"), allowed=float("inf"))
    return replace(red, findings=(first, *red.findings[1:]))


RUNS = [samples.green, samples.red, samples.problem, samples.broken, with_nan]


def trimmed(value: Any) -> Any:
    """The JSON value with one item in each list of records, which is enough to have each kind of place."""
    if isinstance(value, dict):
        return {key: trimmed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [trimmed(item) for item in (value[:1] if is_list_of_records(value) else value)]
    return value


def is_list_of_records(value: Any) -> bool:
    """Whether a JSON value is a list that may have any number of items."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def holders(value: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object in a JSON value, with a name of its place."""
    if isinstance(value, dict):
        yield place, value
        for key, item in value.items():
            yield from holders(item, f"{place}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from holders(item, f"{place}[]")


def reads(value: Any) -> bool:
    """Whether the reader takes the value for results."""
    try:
        decode(Results, value)
    except ValueError:
        return False
    return True


@pytest.mark.slow
def test_schema_is_json_schema():
    """It is valid under draft 2020-12."""
    jsonschema.Draft202012Validator.check_schema(results_schema())


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_the_schema_accepts_what_is_written(run: Callable[[], Results]):
    """Everything we write is valid under the published schema."""
    assert list(VALIDATOR.iter_errors(json.loads(json.dumps(encode(run()))))) == []


@pytest.mark.slow
def test_the_schema_refuses_what_the_reader_refuses():
    """A wrong type, a missing field and an unknown key are refused by both or by neither, wherever they are.

    A number such as 7.0 is left out, as JSON Schema takes it for an integer.
    """
    whole = trimmed(json.loads(json.dumps(encode(samples.red()))))
    refused = 0
    one_of_each = {frozenset(holder): (place, holder) for place, holder in holders(whole)}
    lists = [value for _, holder in holders(whole) for value in holder.values() if is_list_of_records(value)]
    for place, holder in one_of_each.values():
        good = dict(holder)
        # What is not around it says nothing of it, and takes most of the time.
        others = [(each, each[:]) for each in lists if not any(found is holder for _, found in holders(each))]
        for each, _ in others:
            each.clear()
        assert VALIDATOR.is_valid(whole)
        assert reads(whole)
        for key in good:
            changes = [{**good, key: wrong} for wrong in WRONG]
            changes.append({name: item for name, item in good.items() if name != key})
            changes.append({**good, "an unknown key": 1})
            for changed in changes if key != "schema_version" else ():
                holder.clear()
                holder.update(changed)
                assert VALIDATOR.is_valid(whole) == reads(whole), (place, key, changed.get(key, "missing"))
                refused += not reads(whole)
        holder.clear()
        holder.update(good)
        for each, items in others:
            each.extend(items)
    assert refused > 500


@pytest.mark.slow
def test_the_schema_names_its_version():
    """A file without a version, or with another one, is not valid."""
    value = json.loads(json.dumps(encode(samples.green())))
    assert not VALIDATOR.is_valid({**value, "schema_version": 99})
    del value["schema_version"]
    assert [error.message for error in VALIDATOR.iter_errors(value)] == ["'schema_version' is a required property"]


def test_types_have_names_of_their_own():
    """Two records with one name would overwrite each other in `$defs`; each description belongs to one record."""
    defs = results_schema()["$defs"]
    descriptions = [schema["description"] for schema in defs.values()]
    assert len(defs) > 40
    assert len(set(descriptions)) == len(descriptions)
