"""Waived violations in reports are shown with their reason and counted separately, never hidden."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import report_samples as samples

from export_gate.outcome.judging import Outcome, judged, rejudge
from export_gate.report.artifacts import manifest
from export_gate.report.render import Format, render
from export_gate.report.results import Results, read_results, write_results
from export_gate.wall.codec import encode
from export_gate.wall.contract import Waiver
from export_gate.wall.errors import UserError

WAIVER = Waiver(rule="value-mismatch", target="onnx", reason="ties round apart", until="2027-01-31")


def waived_results(*waivers: Waiver, day: str = "2026-11-29") -> Results:
    """One model whose ONNX rounds ties otherwise, with these waivers, on that day."""
    whole = samples.red()
    contracts = tuple(replace(c, waivers=waivers) for c in whole.contracts if c.name == "glyph-head")
    seen = tuple(model for model in whole.run.models if model.model == "glyph-head")
    return replace(whole, contracts=contracts, run=replace(whole.run, models=seen), findings=(), judged_on=day)


def outcome(*waivers: Waiver, day: str = "2026-11-29") -> Outcome:
    """Those results, judged."""
    return judged(waived_results(*waivers, day=day))


def test_the_headline_counts_waived_violations_apart():
    """The check passes, but no report says that the model was verified."""
    found = outcome(WAIVER)

    assert found.judgement.exit_code == 0
    assert found.report.headline == "export-gate: 0 of 1 model verified, 1 warning, 1 waived until 2027-01-31"
    assert (found.report.counts.waived, found.report.counts.notes) == (1, 0)


def test_of_several_waivers_the_headline_names_the_first_to_end():
    """The nearest date is the next one to act on."""
    first = replace(WAIVER, case="*@batch=8", until="2026-12-24")

    assert outcome(first, WAIVER).report.headline.endswith("2 waived, the first until 2026-12-24")


MESSAGE = "glyph-head, onnx, output 'logits', case halves-1@"


@pytest.mark.parametrize(
    ("format_", "parts"),
    [
        (
            "terminal",
            (
                "glyph-head  ok exact          ok exact  waived value-mismatch 91x\n",
                (
                    "waived value-mismatch\n  glyph-head, onnx, output 'logits', case halves-1@batch=16: "
                    "the largest difference is 3.1e-03 at\n  [5, 1] (eager 1.75, onnx 1.7531), allowed 3.4e-05\n"
                    "  src/glyphlab/model.py:41: return self.out(hidden)\n"
                    "  Waived until 2027-01-31: ties round apart.\n"
                ),
            ),
        ),
        (
            "comment",
            (
                "| `glyph-head` | ✅ exact | ✅ exact | ⏳ value-mismatch 91x |\n",
                "<details><summary>1 waived, 1 warning</summary>\n",
                f"- ⏳ value-mismatch: {MESSAGE}",
                " Waived until 2027-01-31: ties round apart.\n",
            ),
        ),
        (
            "summary",
            (
                "#### ⏳ `glyph-head` onnx, output `logits`: value-mismatch (91x its tolerance)\n",
                "\n- Waived until 2027-01-31: ties round apart.\n",
                "(not verified)",
            ),
        ),
    ],
)
def test_every_format_shows_the_violation_and_its_reason(format_: Format, parts: tuple[str, ...]):
    """Every report shows what was measured, until when it is accepted, and why."""
    text = render(outcome(WAIVER).report, format_)

    for part in parts:
        assert part in text


def test_a_manifest_does_not_call_a_waived_model_verified():
    """The manifest of what ships says what was accepted."""
    found = outcome(WAIVER).results

    (model,) = found.run.models
    assert manifest(model, found)["verified"] is False
    assert manifest(model, found)["waived"] == ["value-mismatch until 2027-01-31: ties round apart"]


def test_rendering_again_keeps_the_day_and_judging_again_may_take_another(tmp_path: Path):
    """A report that is opened next year keeps the verdict; only a new judgement sees the waiver expire."""
    path = tmp_path / "results.json"
    write_results(outcome(WAIVER).results, path)

    assert rejudge(path, lambda contract: contract).judgement.verdict == "verified"
    assert rejudge(path, lambda contract: contract, "2027-02-01").judgement.verdict == "violations"


@pytest.mark.parametrize(
    ("waiver", "day", "said"),
    [
        (replace(WAIVER, until="someday"), "2026-11-29", "'someday'"),
        (replace(WAIVER, until="2027-02-30"), "2026-11-29", "'2027-02-30'"),
        (WAIVER, "20270101", "'20270101'"),
    ],
)
def test_results_with_an_impossible_date_are_refused(waiver: Waiver, day: str, said: str, tmp_path: Path):
    """A text that is not a date would compare as later than every day."""
    path = tmp_path / "results.json"
    path.write_text(json.dumps(encode(waived_results(waiver, day=day))), encoding="utf-8")

    with pytest.raises(UserError) as caught:
        read_results(path)

    assert str(caught.value) == f"{path}: {said} is not a date; expected one such as 2027-01-31 for waivers"
