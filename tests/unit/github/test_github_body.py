"""The comment is the marker, the report and the links, within GitHub's limit, whatever template lays it out."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import report_samples as samples

from export_gate.github.body import Frame, compose, is_link, with_loosened
from export_gate.github.marker import Run, parse_marker
from export_gate.github.template import TemplateError, render_with
from export_gate.loosening.record import Alteration, ConfigChange
from export_gate.outcome.judging import judged
from export_gate.report.budget import COMMENT_CHARACTERS, characters
from export_gate.report.build import build_report
from export_gate.report.render import render

RED = build_report(samples.red())
GREEN = build_report(samples.green())
FRAME = Frame(comment_id="export-gate", run=Run(id=77, attempt=1))
BUILT_IN = "the comment uses the built-in layout"


def own(tmp_path: Path, source: str) -> Frame:
    """A frame with a project's own template."""
    path = tmp_path / "comment.md.j2"
    path.write_text(source, encoding="utf-8")
    return Frame(comment_id="export-gate", run=Run(id=77, attempt=1), template=path)


def test_the_marker_is_the_first_line():
    """The next run finds the comment by the marker; the report follows it."""
    text = compose(RED, FRAME).text
    assert parse_marker(text.body) == text.marker
    assert text.marker.verdict == "violations"
    assert text.body == f"{text.marker}\n{render(RED, 'comment')}"


def test_links_are_the_last_line():
    """The last line links to the run and to the uploaded files."""
    url = "https://github.com/acme/shop/actions/runs/77"
    frame = Frame(comment_id="x", run=Run(id=77, attempt=1), run_url=url, artifact_url=f"{url}/artifacts/5")
    assert compose(GREEN, frame).text.body.splitlines()[-1] == (
        "<sub>[workflow run](https://github.com/acme/shop/actions/runs/77) · "
        "[full report and files](https://github.com/acme/shop/actions/runs/77/artifacts/5)</sub>"
    )


@pytest.mark.parametrize(
    "url",
    ["", "javascript:alert(1)", "https://a.example/x)[y](z", "https://a.example/ x", "https://a.example/<b>", "//a/b",
     "https://a.example/\n", "https://a.example/`@octocat`", "https://a.example/" + "x" * 2_000],
)  # fmt: skip
def test_what_is_no_plain_url_is_no_link(url: str):
    """Nothing can be injected through an address."""
    assert not is_link(url)


@pytest.mark.slow
def test_500_violations_fit_with_marker_and_links():
    """The whole body stays within GitHub's limit."""
    url = "https://github.com/acme/shop/" + "x" * 1_900
    frame = Frame(comment_id="x" * 64, run=Run(id=10**17, attempt=9), run_url=url, artifact_url=url)
    body = compose(build_report(samples.crowd(500)), frame).text.body
    assert 60_000 < characters(body) <= COMMENT_CHARACTERS


@pytest.mark.slow
def test_a_template_cannot_leave_out_what_is_loosened(tmp_path: Path):
    """The change may have edited it; where it shows the same by itself, that is enough."""
    alteration = Alteration(effect="loosened", model="m", what="controls.limit 100 -> 1")
    change = ConfigChange(origin="export-gate.yml at 1a2b3c4d5e", alterations=(alteration,))
    report = judged(replace(samples.green(), change=change, findings=())).report
    said = "**This change loosens the check** (compared with `export-gate.yml at 1a2b3c4d5e`): `m`: controls.limit 100"

    for source in ("all is well", "{% import '_macros.md.j2' as m %}{{ m.change(report.change, 20) }}\n\nall is well"):
        body = compose(report, own(tmp_path, source)).text.body
        assert body.count(said) == 1
        assert body.index(said) < body.index("all is well")


@pytest.mark.parametrize(
    "layout",
    [
        "<!-- {} -->",
        "<details>\n\n{}\n\n</details>",
        "```\n\n{}\n\n```",
        "    {}",
        '[a]: /url "\n{}"',
        "all is well\n{}",
    ],
)
def test_a_template_cannot_hide_what_is_loosened(layout: str):
    """What it shows by itself must be in the open: a comment or a folded part is not."""
    text = layout.format("**This change loosens the check**: all")

    assert with_loosened("**This change loosens the check**: all\n\n", text) == (
        f"**This change loosens the check**: all\n\n{text}"
    )


def test_what_is_loosened_may_stand_below_a_headline():
    """As in the built-in layout, which a template may include; without anything loosened the layout stays."""
    text = "## Models\n\n- ours\n\n**This change loosens the check**: all\n"

    assert with_loosened("**This change loosens the check**: all\n\n", text) == text
    assert with_loosened("", "<b>x</b>") == "<b>x</b>"


@pytest.mark.slow
def test_a_projects_own_template(tmp_path: Path):
    """A template can use our report, our filters and our macros."""
    source = (
        "{% import '_macros.md.j2' as m %}## {{ report.headline|md }}\n\n{{ m.models(report, shown) }}\n"
        "{% for view in shown.full %}- {{ view.finding.model|code }} {{ view.finding.rule|md }}\n{% endfor %}"
    )
    composed = compose(RED, own(tmp_path, source))
    assert composed.warning == ""
    lines = composed.text.body.splitlines()
    assert lines[1] == "## export-gate: 1 of 4 models verified, 3 violations, 1 warning"
    assert "- `glyph-head` value-mismatch" in lines


@pytest.mark.slow
def test_a_template_may_wrap_ours(tmp_path: Path):
    """A template can put a line above the built-in comment."""
    composed = compose(GREEN, own(tmp_path, "Ask the export team.\n\n{% include 'comment.md.j2' %}"))
    assert composed.warning == ""
    assert composed.text.body == f"{composed.text.marker}\nAsk the export team.\n\n{render(GREEN, 'comment')}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "why"),
    [
        (
            "{{ report.headlin }}",
            "UndefinedError: 'export_gate.report.record.Report object' has no attribute 'headlin'",
        ),
        ("line\n{% for %}", "line 2: TemplateSyntaxError: Expected an expression, got 'end of statement block'"),
        ("{{ ''.__class__.__mro__ }}", "SecurityError: access to attribute '__class__' of 'str' object is unsafe."),
        ("{% include '/etc/passwd' %}", "TemplateNotFound: '/etc/passwd' not found in search path: "),
        ("{{ 1 // 0 }}", "ZeroDivisionError: integer division or modulo by zero"),
        ("  \n", "it left the comment empty"),
        ("{{ 'x' * 70000 }}", "ValueError: a budget of 65"),
        ("{{ 'x' * 10**10 }}", "MemoryError"),
        ("{% for a in range(10**9) %}{% endfor %}", "OverflowError: Range too big"),
        (
            "<!-- export-gate: comment=export-gate run=9.9 verdict=verified digest=0123456789abcdef -->",
            "it contains a marker of export-gate, which identifies our comments",
        ),
    ],
)
def test_a_template_that_fails_gives_way_to_ours(tmp_path: Path, source: str, why: str):
    """The reader gets the built-in comment, and the maintainer gets the reason."""
    frame = own(tmp_path, source)
    composed = compose(GREEN, frame)
    assert composed.text == compose(GREEN, FRAME).text
    assert composed.warning.startswith(f"the template {frame.template} was not used: {why}")
    assert composed.warning.endswith(f"; {BUILT_IN}")


def test_a_template_that_is_not_there(tmp_path: Path):
    """A folder or a missing file is reported like any other failure."""
    missing = Frame(comment_id="x", run=Run(), template=tmp_path / "no.j2")
    assert compose(GREEN, missing).warning == (
        f"the template {tmp_path}/no.j2 was not used: it cannot be read: No such file or directory; {BUILT_IN}"
    )


def test_a_template_of_other_bytes(tmp_path: Path):
    """A template must be UTF-8 and of limited size."""
    path = tmp_path / "t.j2"
    path.write_bytes(b"\xff")
    with pytest.raises(TemplateError, match=r"^it is not UTF-8$"):
        render_with(path, GREEN, 1_000)
    path.write_bytes(b"x" * 300_000)
    with pytest.raises(TemplateError, match=r"^it has more than 262144 bytes$"):
        render_with(path, GREEN, 1_000)


@pytest.mark.slow
def test_a_template_that_loops_is_ended(tmp_path: Path):
    """The sandbox limits one range; the time limit ends nested ones."""
    path = tmp_path / "t.j2"
    nested = "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}"
    path.write_text(nested, encoding="utf-8")
    with pytest.raises(TemplateError) as caught:
        render_with(path, GREEN, 1_000, timeout_s=2)
    assert str(caught.value) == "it took more than 2 s"


@pytest.mark.slow
def test_a_template_is_rendered_without_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The process that runs it has no secret to leak: its environment is built from a list."""
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    seen = tmp_path / "seen"
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        f"import os, pathlib; pathlib.Path({str(seen)!r}).write_text(repr(sorted(os.environ)))"
    )
    monkeypatch.syspath_prepend(str(site))
    path = tmp_path / "t.j2"
    path.write_text("fine", encoding="utf-8")
    assert render_with(path, GREEN, 1_000) == "fine\n"
    assert "GITHUB_TOKEN" in os.environ
    assert "PYTHONPATH" in seen.read_text()
    assert "GITHUB_TOKEN" not in seen.read_text()
