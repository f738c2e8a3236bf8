"""Recorded results are judged again under another contract, without running anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import report_samples as samples

from export_gate.outcome.judging import join, rejudge
from export_gate.report.results import write_results
from export_gate.wall.contract import ModelContract, Output, Size
from export_gate.wall.errors import UserError
from export_gate.wall.observation import AmbientEffect


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Green results."""
    write_results(samples.green(), tmp_path / "results.json")
    return tmp_path / "results.json"


def declaring(**fields: object) -> Callable[[ModelContract], ModelContract]:
    """A change of contract: the first model's outputs with these fields."""
    first = samples.green().contracts[0]
    outputs = tuple(
        Output(name=leaf.name, **fields)  # type: ignore[arg-type] # fields of several types
        for leaf in samples.green().run.models[0].outputs
    )
    return lambda contract: replace(contract, outputs=outputs) if contract.name == first.name else contract


def test_another_config_decides_what_fails(tmp_path: Path):
    """A warning is a violation under `fail-on: warning`, and the new results keep that."""
    onnx = samples.target("onnx", 2.1e-6, probes=samples.guard_probes())
    run = replace(samples.green().run, models=(samples.model("m", (*samples.all_fine()[:2], onnx)),))
    write_results(samples.results((samples.contract("m"),), run), tmp_path / "results.json")
    assert rejudge(tmp_path / "results.json", lambda contract: contract).judgement.verdict == "verified"
    outcome = rejudge(tmp_path / "results.json", lambda contract: contract, fail_on="warning")
    assert (outcome.judgement.verdict, outcome.results.fail_on) == ("violations", "warning")


def test_output_promises_of_another_config_are_held(path: Path):
    """Outputs that eager did not return as they are now declared break the contract, though nothing is run."""
    assert rejudge(path, lambda contract: contract).judgement.verdict == "verified"
    outcome = rejudge(path, declaring(dtype="int64"))
    assert outcome.judgement.verdict == "violations"
    assert [finding.rule for finding in outcome.judgement.findings if finding.severity == "violation"] == [
        "contract-broken"
    ]
    assert outcome.results.run.models[0].broken


def test_outputs_over_a_dim_that_was_not_observed_are_refused(path: Path):
    """Without recorded sizes of the dim, no shape can be expected."""
    with pytest.raises(UserError) as caught:
        rejudge(path, declaring(shape=(Size(factors={"channels": 1}),)))
    model = samples.green().contracts[0].name
    assert str(caught.value) == (
        f"{path}: `models.{model}.outputs` of the config has the dim 'channels', expected dims whose sizes were "
        "recorded at every control input"
    )
    assert caught.value.hint == "Run `export-gate run` again."


@pytest.mark.parametrize("how", [lambda path: rejudge(path, lambda contract: contract), lambda path: join([path])])
def test_a_forged_file_that_no_rule_can_read_is_refused(tmp_path: Path, how: Callable[[Path], object]):
    """Whatever a rule raises is the file's fault: here other surroundings that changed no output."""
    seen = replace(samples.green().run.models[0], ambient=(AmbientEffect(surrounding="clock", case="normal-1"),))
    run = replace(samples.green().run, models=(seen, *samples.green().run.models[1:]))
    write_results(replace(samples.green(), run=run), tmp_path / "results.json")
    with pytest.raises(UserError, match=r"results\.json: the observations contradict each other \(IndexError: "):
        how(tmp_path / "results.json")
