"""`results.json` is strict, complete, written atomically, and read with care, because it may be a stranger's."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import report_samples as samples

from export_gate.report.results import Results, read_results, write_results
from export_gate.wall.errors import GateError, UserError
from export_gate.wall.observation import RunObservation

RUNS = [samples.green, samples.red, samples.problem, samples.broken]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where results go: a folder that is not there yet."""
    return tmp_path / ".export-gate" / "results.json"


def _changed(path: Path, **changes: object) -> None:
    write_results(samples.red(), path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_results(path)
    return str(caught.value).replace(str(path), "results.json")


@pytest.mark.parametrize("run", RUNS)
def test_what_is_written_is_read(run: Callable[[], Results], path: Path):
    """Results are read back equal, so they can be judged and reported again."""
    write_results(run(), path)
    assert read_results(path) == run()


@pytest.mark.slow
def test_the_folder_has_nothing_but_the_results(path: Path):
    """No partial file is left, and writing again replaces the file."""
    write_results(samples.red(), path)
    write_results(samples.green(), path)
    assert [entry.name for entry in path.parent.iterdir()] == ["results.json"]
    assert read_results(path).verdict == "verified"


def _with_nan() -> Results:
    red = samples.red()
    first = replace(red.findings[0], measured=float("nan"), allowed=float("inf"))
    return replace(red, findings=(first, *red.findings[1:]))


def test_non_finite_numbers_are_strict_json(path: Path):
    """Any JSON parser can read the file: NaN and infinity are strings."""
    write_results(_with_nan(), path)
    value = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert value["findings"][0]["measured"] == "nan"
    assert value["findings"][0]["allowed"] == "inf"
    assert str(read_results(path).findings[0].measured) == "nan"


def test_a_failed_write_is_the_gates_failure_and_keeps_the_old_file(tmp_path: Path):
    """If the file cannot be replaced, the earlier results stay and no partial file is left."""
    path = tmp_path / "results.json"
    path.mkdir()
    with pytest.raises(GateError) as caught:
        write_results(samples.green(), path)
    assert str(caught.value) == f"{path}: the results could not be written: Is a directory"
    assert [entry.name for entry in tmp_path.iterdir()] == ["results.json"]


def test_no_file(path: Path):
    """For a missing file, the message names the command that makes it."""
    assert _refusal(path) == "results.json: file not found; `export-gate run` writes it"


def test_not_json(path: Path):
    """A file that is not JSON is refused at its line and column."""
    path.parent.mkdir()
    path.write_text('{\n "a": }')
    assert _refusal(path) == "results.json:2:7: not JSON: Expecting value"


def test_not_utf8(path: Path):
    """Bytes that are not text are refused."""
    path.parent.mkdir()
    path.write_bytes(b"\xff\xfe")
    assert _refusal(path).startswith("results.json: not JSON: 'utf-8' codec can't decode byte 0xff")


def test_nan_literal(path: Path):
    """NaN without quotes is not JSON."""
    path.parent.mkdir()
    path.write_text('{"duration_s": NaN}')
    assert _refusal(path) == "results.json: not JSON: NaN is not a JSON number"
    path.write_text('{"schema_version": 1, "run": {"verdict": 1, "verdict": 2}}')
    assert _refusal(path) == "results.json: not JSON: key 'verdict' occurs twice"


@pytest.mark.parametrize("place", [{"tool_version": "a\udfff"}, {"contracts": [{"\ud800": 1}]}])
def test_half_of_a_character(path: Path, place: dict[str, Any]):
    """No output takes a lone surrogate, in whatever text or key it is; two of them are a character."""
    _changed(path, **place)
    assert _refusal(path).startswith("results.json: not JSON: '\\ud")
    assert _refusal(path).endswith("is half of a character")
    _changed(path, tool_version="\U0001f600 \\ud800")
    assert read_results(path).tool_version == "\U0001f600 \\ud800"


def test_too_deep(path: Path):
    """Nesting that would exhaust the stack is refused and does not crash the reader."""
    path.parent.mkdir()
    path.write_text("[" * 200_000)
    assert _refusal(path).startswith("results.json: not JSON: ")


def test_other_json(path: Path):
    """JSON of another tool is refused."""
    path.parent.mkdir()
    path.write_text("[]")
    assert _refusal(path) == "results.json: expected results of export-gate, got JSON without 'schema_version'"


def test_other_schema_version(path: Path):
    """For another schema, the message names both versions and the tool that wrote the file."""
    _changed(path, schema_version=7, tool_version="9.0.0")
    assert _refusal(path) == (
        "results.json: schema version 7, but this export-gate reads version 2; use the version of export-gate that "
        "wrote the file (9.0.0)"
    )


def test_options_of_another_kind(path: Path):
    """A target with an option that its kind lacks, or with a value that it cannot have, is refused."""
    _changed(path)
    value = json.loads(path.read_text())
    target = value["contracts"][0]["targets"][0]
    for options in ({}, {"strict": "yes"}, {"strict": True, "opset": 20}):
        target["options"] = options
        path.write_text(json.dumps(value))
        assert "target exported-program: expected " in _refusal(path)


def test_wrong_shape(path: Path):
    """The message says where the shape is wrong."""
    _changed(path, duration_s="long")
    assert _refusal(path) == "results.json: not valid results: Results.duration_s: expected a number, got 'long'"


@pytest.mark.slow
def test_a_finding_of_an_unknown_model(path: Path):
    """Findings without a contract would vanish from every table."""
    findings = json.loads(json.dumps([{"rule": "x", "severity": "note", "model": "other", "message": "", "hint": ""}]))
    _changed(path, findings=findings)
    assert _refusal(path) == "results.json: model 'other' was observed, but has no contract in the file"


@pytest.mark.slow
def test_a_model_twice(path: Path):
    """Only one observation of a model can be its row."""
    red = samples.red()
    write_results(replace(red, run=replace(red.run, models=(*red.run.models, red.run.models[0]))), path)
    assert _refusal(path) == "results.json: model 'glyph-head' occurs 2 times, expected once"


def test_no_models(path: Path):
    """Results without models are not a pass, except for a shard of a run with more machines than models."""
    empty = replace(samples.green(), contracts=(), run=RunObservation(environment=samples.ENVIRONMENT))
    write_results(empty, path)
    assert _refusal(path) == (
        "results.json: no models, and not a shard of a run with models: nothing was compared, which is never a pass"
    )
    shard = replace(empty, planned=samples.green().contracts)
    write_results(shard, path)
    assert read_results(path) == shard


@pytest.mark.slow
def test_verified_with_violations(path: Path):
    """A verdict that its own findings contradict is refused."""
    _changed(path, verdict="verified")
    assert _refusal(path) == "results.json: the verdict is 'verified', but there are violations"


def _place(value: Any, keys: tuple[str | int, ...]) -> Any:
    for key in keys:
        value = value[key]
    return value


OUTPUT = ("run", "models", 0, "targets", 0, "cases", 0, "outputs", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "key", "number", "message"),
    [
        (("contracts", 0, "dims", 0), "multiple_of", 0,
         "Results.contracts[0].dims[0].multiple_of: expected at least 1, got 0"),
        (("contracts", 0, "dims", 0), "min", 99, "Results.contracts[0].dims[0]: expected a range of sizes, got 99..16"),
        (("contracts", 0, "dims", 0), "multiple_of", 99,
         "Results.contracts[0].dims[0]: expected a range of sizes, got 2..16 in steps of 99"),
        (("contracts", 0, "tolerance"), "atol", -1.5,
         "Results.contracts[0].tolerance.atol: expected at least 0, got -1.5"),
        ((), "duration_s", "inf", "Results.duration_s: expected a finite number, got inf"),
        ((), "duration_s", "nan", "Results.duration_s: expected a finite number, got nan"),
        (("run", "models", 0), "duration_s", -1, "Results.run.models[0].duration_s: expected at least 0, got -1"),
        (OUTPUT, "elements", -4,
         "Results.run.models[0].targets[0].cases[0].outputs[0].elements: expected at least 0, got -4"),
        (OUTPUT, "max_abs_diff", "-inf",
         "Results.run.models[0].targets[0].cases[0].outputs[0].max_abs_diff: expected at least 0, got -inf"),
        (OUTPUT, "max_abs_diff", 10**400,
         ("not valid results: Results.run.models[0].targets[0].cases[0].outputs[0].max_abs_diff: expected a "
          f"number that float64 can hold, got 1{'0' * 79}")),
        (("contracts", 0, "tolerance"), "atol", 10**400,
         ("not valid results: Results.contracts[0].tolerance.atol: expected a number that float64 can hold, "
          f"got 1{'0' * 79}; Results.contracts[0].tolerance.atol: expected null, got 1{'0' * 79}")),
    ],
)  # fmt: skip
def test_numbers_that_no_run_writes(path: Path, keys: tuple[str | int, ...], key: str, number: Any, message: str):
    """A number out of its range is refused with its place, before any computation uses it."""
    write_results(samples.red(), path)
    value = json.loads(path.read_text())
    _place(value, keys)[key] = number
    path.write_text(json.dumps(value))
    assert _refusal(path) == f"results.json: {message}"
