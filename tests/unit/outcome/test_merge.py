"""Results of several machines become one run, or the message says why they are not of one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import report_samples as samples

from export_gate.loosening.record import Alteration, ConfigChange
from export_gate.outcome.judging import join, judged
from export_gate.outcome.merge import Part, merge
from export_gate.report.results import Results, write_results
from export_gate.run.checkout import Checkout
from export_gate.wall.errors import UserError

A, B, C = Path("a.json"), Path("b.json"), Path("c.json")


def shard(whole: Results, *names: str) -> Results:
    """The part of a run that has these models, as `run --shard` writes it."""
    return replace(
        whole,
        contracts=tuple(contract for contract in whole.contracts if contract.name in names),
        planned=whole.contracts,
        run=replace(whole.run, models=tuple(model for model in whole.run.models if model.model in names)),
        findings=tuple(finding for finding in whole.findings if finding.model in names),
        checkout=Checkout(
            root="/w",
            config="export-gate.yml",
            lines=dict.fromkeys(names, 3),
            keys={name: {"targets.onnx": 5} for name in names},
        ),
    )


def parts_of(whole: Results) -> list[Part]:
    """The run in two parts, its models in turn."""
    names = [contract.name for contract in whole.contracts]
    return [(A, shard(whole, *names[0::2])), (B, shard(whole, *names[1::2]))]


def _refusal(*parts: Part) -> UserError:
    with pytest.raises(UserError) as caught:
        merge(parts)
    return caught.value


@pytest.mark.parametrize("run", [samples.green, samples.red, samples.problem])
def test_joined_shards_are_the_run(run: type):
    """Contracts, observations, findings, verdict and order are those of one machine, in any order of the parts."""
    whole = run()
    for parts in (parts_of(whole), parts_of(whole)[::-1]):
        joined = judged(merge(parts)).results
        assert replace(joined, checkout=Checkout()) == whole
        names = [contract.name for contract in whole.contracts]
        assert joined.checkout.lines == dict.fromkeys(names, 3)
        assert joined.checkout.keys == {name: {"targets.onnx": 5} for name in names}


def test_a_missing_shard_breaks_the_verdict():
    """A machine that never reported must not make the run green: its models are named."""
    outcome = judged(merge(parts_of(samples.green())[:1]))
    assert outcome.judgement.exit_code == 3
    assert outcome.report.headline == ("export-gate: no verdict, the check itself failed; 2 of 3 models verified")
    (problem,) = outcome.report.problems
    assert problem.message == "affine-map: the run ended before this model was checked."


def test_a_joined_run_takes_no_latecomer():
    """Two joined shards have the verdict `broken`; all three are joined at once, or joined again."""
    whole = samples.green()
    first, second, third = (shard(whole, contract.name) for contract in whole.contracts)
    half = judged(merge([(A, first), (B, second)])).results
    assert half.verdict == "broken"
    error = _refusal((A, half), (C, third))
    assert "selection of models and targets" in str(error)


def test_time_is_of_the_run():
    """The joined run has the first start and the longest duration, because the shards run at the same time."""
    (_, first), (_, second) = parts_of(samples.green())
    joined = merge([(A, replace(first, started="2026-03-02T10:00:00Z", duration_s=5.0)), (B, second)])
    assert (joined.started, joined.duration_s) == ("2026-03-02T09:14:07Z", 41.3)


def test_machines_that_differ_are_both_named():
    """The versions of torch and the CPU are facts of the verdict, so both are named."""
    (_, first), (_, second) = parts_of(samples.green())
    environment = replace(
        samples.ENVIRONMENT, cpu="AVX512", versions={**samples.ENVIRONMENT.versions, "torch": "2.14.0"}, threads=2
    )
    joined = merge([(A, first), (B, replace(second, run=replace(second.run, environment=environment)))])
    seen = joined.run.environment
    assert seen is not None
    assert (seen.cpu, seen.versions["torch"], seen.threads) == ("AVX2 and AVX512", "2.13.0+cpu and 2.14.0", 2)
    assert seen.versions["onnx"] == "1.23.0"


def test_a_machine_without_a_worker_has_no_environment():
    """The environment of the others is kept; if no machine has one, the run has none."""
    (_, first), (_, second) = parts_of(samples.green())
    dead = replace(second, run=replace(second.run, environment=None, models=()))
    assert judged(merge([(A, first), (B, dead)])).judgement.exit_code == 3
    none = merge([(A, replace(first, run=dead.run)), (B, dead)])
    assert none.run.environment is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"tool_version": "9.0.0"},
            "b.json: another version of export-gate than a.json: expected 0.1.0, got 9.0.0",
        ),
        ({"head": None}, f"b.json: another commit than a.json: expected {samples.green().head}, got None"),
        (
            {"config_sha256": "0" * 64},
            f"b.json: another config sha256 than a.json: expected {samples.green().config_sha256}, got {'0' * 64}",
        ),
        (
            {"planned": ()},
            (
                "b.json: another selection of models and targets than a.json: expected "
                "[('glyph-head', 3), ('affine-map', 3), ('sentence-encoder', 3)], got []"
            ),
        ),
    ],
)
def test_results_of_another_run_are_refused(change: dict[str, object], message: str):
    """Version, commit, config and selection must be the same."""
    first, (_, second) = parts_of(samples.green())
    error = _refusal(first, (B, replace(second, **change)))  # type: ignore[arg-type]
    assert str(error) == message
    assert error.hint == "Join only results of one run: same commit, same config, same options."


def test_a_model_in_two_files_is_refused():
    """It is not known which of the two should count."""
    first, _ = parts_of(samples.green())
    error = _refusal(first, (B, first[1]))
    assert str(error) == "b.json: model 'glyph-head' is in a.json too; expected it in only one of them"
    assert error.hint == "Give each machine its own shard: `--shard 1/2`, `--shard 2/2`."


def test_the_same_file_twice_is_refused(tmp_path: Path):
    """A glob that matches a file twice is a mistake in the workflow."""
    path = tmp_path / "results.json"
    write_results(samples.green(), path)
    with pytest.raises(UserError, match=r"is in .* too; expected it in only one of them"):
        join([path, path])


def test_whole_runs_of_other_models_join(tmp_path: Path):
    """A workflow that names each machine's models itself needs no shards."""
    whole = samples.red()
    paths = []
    for contract in whole.contracts:
        path = tmp_path / f"{contract.name}.json"
        write_results(replace(shard(whole, contract.name), planned=(), verdict="violations"), path)
        paths.append(path)
    joined = join(paths)
    assert joined.judgement.verdict == whole.verdict
    assert joined.results.findings == whole.findings


def test_inputs_that_crowd_out_others_are_of_the_whole_run():
    """Each machine knows only its own models; the joined run says of each what it leaves out."""
    green = samples.green()
    full = replace(samples.controls(), left_out=5, left_out_reason="beyond controls.limit of 120 cases")
    run = replace(green.run, models=tuple(replace(model, controls=full) for model in green.run.models))
    alterations = tuple(
        Alteration(effect="changed", model=contract.name, key="controls.function", what="controls.function none -> f")
        for contract in green.contracts
    )
    change = ConfigChange(origin="export-gate.yml at 1a2b3c4d5e", alterations=alterations)
    parts = [(path, judged(part).results) for path, part in parts_of(replace(green, run=run, change=change))]

    joined = judged(merge(parts))
    assert joined.report.change is not None
    assert len(joined.report.change.loosened) == len(green.contracts)
