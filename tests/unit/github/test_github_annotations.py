"""Notes stand beside the code that they are about, the worst first, and never more than GitHub shows."""

from __future__ import annotations

from dataclasses import replace

import pytest
import report_samples as samples

from export_gate.github.annotations import annotations_of
from export_gate.github.workflow_commands import Annotation
from export_gate.report.build import build_report
from export_gate.report.results import Results
from export_gate.rules.keys import config_key
from export_gate.run.checkout import Checkout
from export_gate.wall.contract import make_target
from export_gate.wall.source import SourceLine

CHECKOUT = Checkout(
    root="/w/shop",
    config="vision/export-gate.yml",
    lines={"glyph-head": 9, "sentence-encoder": 21, "detector": 33, "affine-map": 45},
)


def of(results: Results, checkout: Checkout = CHECKOUT) -> tuple[Annotation, ...]:
    """The annotations of a run."""
    return annotations_of(build_report(results), checkout)


def unlocated() -> Results:
    """One wrong output of which nobody looked for the node."""
    seen = samples.model("glyph-head", (replace(samples.wrong_target(), inspections=()),))
    run = samples.RunObservation(environment=samples.ENVIRONMENT, models=(seen,))
    return samples.results((samples.contract("glyph-head", targets=(make_target("onnx"),)),), run)


def test_a_violation_is_an_error_at_the_models_line():
    """The annotation is at the config line that declares the model, with the numbers and the next step."""
    finding = next(finding for finding in unlocated().findings if finding.rule == "value-mismatch")
    assert of(unlocated())[0] == Annotation(
        kind="error",
        title="glyph-head: value-mismatch",
        message=(
            f"{finding.message}\nnext: {finding.hint}\n"
            "run: export-gate run glyph-head --target onnx --case 'halves-1@batch=16'"
        ),
        file="vision/export-gate.yml",
        line=9,
    )


def test_a_finding_is_at_its_key():
    """The annotation is at the target, dim or output of the finding, if the config has a line for it."""
    keys = {"glyph-head": {"targets.onnx": 14, "dims.batch": 11, "outputs.logits": 17}}
    notes = of(unlocated(), replace(CHECKOUT, keys=keys))
    assert [note.line for note in notes if note.title == "glyph-head: value-mismatch"] == [14]
    by_key = {view.finding.rule: config_key(view.finding) for view in build_report(samples.red()).findings}
    assert by_key["value-mismatch"] == "targets.onnx"


def test_an_export_failure_is_at_the_users_own_line():
    """The annotation is at the line of the model that cannot be exported, not at the line that declares it."""
    note = next(note for note in of(samples.red()) if note.title == "sentence-encoder: export-failed")
    assert (note.file, note.line, note.kind) == ("src/glyphlab/encoder.py", 41, "error")


@pytest.mark.parametrize(
    ("path", "file", "line"),
    [
        ("/w/shop/src/encoder.py", "src/encoder.py", 41),
        ("/usr/lib/python3/encoder.py", "vision/export-gate.yml", 21),
        ("../../etc/passwd", "vision/export-gate.yml", 21),
    ],
)
def test_a_source_outside_of_the_repository_gives_way_to_the_config(path: str, file: str, line: int):
    """GitHub shows nothing at a file that the repository does not have."""
    failure = replace(samples.export_failure(), source=SourceLine(path=path, line=41, text="x"))
    seen = samples.model("sentence-encoder", (), reached="export", failure=failure)
    run = samples.RunObservation(environment=samples.ENVIRONMENT, models=(seen,))
    (note,) = of(samples.results((samples.contract("sentence-encoder"),), run))
    assert (note.file, note.line) == (file, line)


def test_other_targets_with_the_same_are_named():
    """A finding of several targets is one annotation, which names each target once."""
    targets = (samples.target("exported-program", 0.5), samples.target("pt2", 0.5), samples.target("onnx", 0.0))
    run = samples.RunObservation(environment=samples.ENVIRONMENT, models=(samples.model("glyph-head", targets),))
    results = samples.results((samples.contract("glyph-head"),), run)
    (note,) = of(results)
    assert note.message.splitlines()[0] == f"{results.findings[0].message} (also in pt2)"


def test_without_a_repository_there_is_no_file():
    """Without a repository, the annotation is on the run."""
    notes = of(samples.problem(), Checkout())
    assert {(note.file, note.line) for note in notes} == {(None, None)}


def test_a_model_that_could_not_be_checked_is_an_error():
    """A model that could not be checked is neither a violation nor a pass."""
    (note,) = of(samples.problem())
    assert note == Annotation(
        kind="error",
        title="glyph-head: could not be checked",
        message=(
            "glyph-head: factory glyphlab.model:make_modle: module 'glyphlab.model' has no attribute 'make_modle'\n"
            "next: Did you mean `glyphlab.model:make_model`? Set `models.glyph-head.factory` in export-gate.yml.\n"
            "run: export-gate run glyph-head"
        ),
        file="vision/export-gate.yml",
        line=9,
    )


def test_a_run_without_a_worker_is_an_error():
    """The annotation is at the config's first line, because no model is to blame."""
    (note,) = of(samples.broken())
    assert (note.title, note.file, note.line) == ("the run: could not be checked", "vision/export-gate.yml", 1)


def test_a_green_run_has_no_annotations():
    """A green run prints no annotation."""
    assert of(samples.green()) == ()


def test_errors_come_first_and_notes_not_at_all():
    """Violations come first, warnings stay warnings, and notes are omitted."""
    kinds = [note.kind for note in of(samples.red())]
    assert kinds == sorted(kinds)
    assert {"error", "warning"} == set(kinds)


@pytest.mark.slow
def test_500_violations_are_ten_annotations():
    """GitHub shows ten: nine of the worst, and one that counts the rest."""
    results = samples.crowd(500)
    notes = of(results)
    assert len(notes) == 10
    assert notes[0].title == "model-499: value-mismatch"
    assert notes[9] == Annotation(
        kind="error",
        title="export-gate",
        message="491 more violations or unchecked models: see the job summary for all of them.",
    )


def test_warnings_leave_room_for_the_reporting():
    """Eight annotations are for findings, two for problems of the reporting."""
    crowd = samples.crowd(20)
    warnings = tuple(replace(finding, severity="warning") for finding in crowd.findings)
    notes = of(replace(crowd, findings=warnings, verdict="verified"))
    assert [note.kind for note in notes] == ["warning"] * 8
    assert notes[7].message == "13 more warnings: see the job summary for all of them."


def test_the_same_words_at_the_same_line_are_said_once():
    """A finding that occurs twice is one annotation."""
    red = samples.red()
    assert of(replace(red, findings=(*red.findings, *red.findings))) == of(red)


def test_a_wrong_output_is_annotated_at_the_line_of_its_node():
    """The line that leads to the first wrong node is more useful than the model's key in the config."""
    found = annotations_of(build_report(samples.red()), CHECKOUT)
    (wrong,) = [annotation for annotation in found if "value-mismatch" in annotation.title]

    assert (wrong.file, wrong.line) == ("src/glyphlab/model.py", 41)
