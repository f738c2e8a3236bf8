"""What a kit contains and of which models: nothing that is waived, nothing that changed on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import report_samples as samples
from kit_samples import edit, write_kit

from export_gate.kit.manifest import describe_kit, write_manifest
from export_gate.kit.write import _is_kit, _require_free, _why_unverified
from export_gate.outcome.judging import judged
from export_gate.report.results import Results
from export_gate.wall.conformance import KitData, KitExport
from export_gate.wall.contract import Waiver
from export_gate.wall.errors import GateError, UserError

WAIVER = Waiver(rule="value-mismatch", target="onnx", reason="ties round apart", until="2027-01-31")
WRITTEN = (KitData(export=KitExport(inputs=("x",), data_sets=()), graph_names={"logits": "logits_output"}, python=()),)


def one_model(whole: Results, *waivers: Waiver) -> Results:
    """The results of glyph-head alone."""
    contracts = tuple(replace(c, waivers=waivers) for c in whole.contracts if c.name == "glyph-head")
    seen = tuple(model for model in whole.run.models if model.model == "glyph-head")
    return replace(whole, contracts=contracts, run=replace(whole.run, models=seen), findings=(), judged_on="2026-11-29")


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        (one_model(samples.green()), ""),
        (one_model(samples.red()), "glyph-head is not verified"),
        (one_model(samples.red(), WAIVER), "glyph-head is verified except for 1 waived violation"),
    ],
)
def test_what_keeps_a_model_from_its_kit(results: Results, reason: str):
    """A violation keeps a model from its kit, also if it is waived: a replay knows no waivers."""
    assert _why_unverified(judged(results)) == reason


def test_an_artifact_that_changed_is_not_passed_on(tmp_path: Path):
    """Files in the kit that are not the verified ones are an error, and no kit is written."""
    (tmp_path / "model.onnx").write_bytes(b"other")
    results = one_model(samples.green())
    artifact = next(t.artifact for t in results.run.models[0].targets if t.artifact)
    with pytest.raises(GateError) as caught:
        describe_kit(judged(results), WRITTEN, tmp_path, verified=True)
    assert str(caught.value) == f"{artifact.path}: changed after its verification and before its copy into the kit"


def test_a_kit_is_only_what_it_lists(tmp_path: Path):
    """A folder with an additional file, or with an unreadable manifest, is not replaced like an earlier kit."""
    kit = write_kit(tmp_path / "kit")
    assert _is_kit(kit)
    (kit / "notes.txt").touch()
    assert not _is_kit(kit)
    (kit / "notes.txt").unlink()
    (kit / "model.onnx").unlink()
    assert _is_kit(kit), "half a kit is one"
    edit(kit, lambda value: value.update(schema_version=2))
    assert not _is_kit(kit)


def test_a_place_that_cannot_be_listed_is_not_replaced(tmp_path: Path):
    """An empty folder is free; what is no folder, or is not readable, is the user's."""
    (tmp_path / "empty").mkdir()
    _require_free(tmp_path / "empty", Path("empty"), tmp_path / "export-gate.yml", force=False)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="already exists and is not only a kit"):
        _require_free(tmp_path / "file", Path("file"), tmp_path / "export-gate.yml", force=False)


def test_names_and_bounds_of_outputs(tmp_path: Path):
    """Each output has the graph's name and the tolerance that the rules would use; the bytes are the same."""
    results = one_model(samples.green())
    bare = tuple(replace(target, artifact=None) for target in results.run.models[0].targets)
    results = replace(results, run=replace(results.run, models=(replace(results.run.models[0], targets=bare),)))
    kit = describe_kit(judged(results), WRITTEN, tmp_path, verified=True)
    (output,) = kit.outputs
    assert (output.name, output.graph_name, output.is_number) == ("logits", "logits_output", True)
    assert (output.tolerance.atol, output.tolerance.rtol) == (1e-5, 1e-5)
    write_manifest(kit, tmp_path)
    first = (tmp_path / "kit.json").read_bytes()
    write_manifest(kit, tmp_path)
    assert (tmp_path / "kit.json").read_bytes() == first
