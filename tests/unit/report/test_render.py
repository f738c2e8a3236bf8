"""What people read. The goldens in `tests/golden/report` are the layout; UPDATE_GOLDEN=1 rewrites them for review."""

from __future__ import annotations

import html
import re

import pytest
import report_samples as samples
from goldens import golden
from hostile_samples import hostile
from jinja2 import UndefinedError, nodes
from markdown_it import MarkdownIt

from export_gate.report.build import build_report
from export_gate.report.filters import FILTERS
from export_gate.report.render import TEMPLATES, Format, environment, render, template_folder

PARSER = MarkdownIt("commonmark").enable("table")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["comment", "summary", "terminal"])
@pytest.mark.parametrize("run", samples.RUNS)
def test_golden(run: str, kind: Format):
    """Each kind of run reads as its golden file."""
    text = render(build_report(samples.RUNS[run]()), kind)
    assert text == golden(f"{run}.{kind}.{'txt' if kind == 'terminal' else 'md'}", text)


def test_the_report_file_is_the_summary_without_limits():
    """`report.md` is laid out as the job summary, and shortens nothing."""
    report = build_report(samples.red())
    assert render(report, "markdown") == render(report, "summary")
    long = build_report(samples.crowd(2, trace_lines=1000))
    assert "line 500 of" in render(long, "markdown")
    assert "line 500 of" not in render(long, "summary")


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("comment", "\n\n```python\nfor a in x:\n    out = a\n```\n\n"),
        ("terminal", "\n    for a in x:\n        out = a\n  run:"),
    ],
)
def test_lines_to_paste_keep_their_breaks(kind: Format, shown: str):
    """Python means something else on one line."""
    assert shown in render(build_report(samples.with_recipe()), kind)


def test_rendering_is_deterministic():
    """The same results give the same bytes; otherwise every push would edit the comment."""
    assert render(build_report(samples.red()), "comment") == render(build_report(samples.red()), "comment")


@pytest.mark.parametrize("run", samples.RUNS)
def test_terminal_fits_100_columns(run: str):
    """No line except a command to copy is longer than 100 columns."""
    text = render(build_report(samples.RUNS[run]()), "terminal")
    assert [line for line in text.splitlines() if len(line) > 100] == []


@pytest.mark.parametrize("run", samples.RUNS)
def test_the_verdict_is_the_last_line_of_the_terminal(run: str):
    """The verdict is visible without scrolling."""
    report = build_report(samples.RUNS[run]())
    assert render(report, "terminal").splitlines()[-1] == f"{report.headline} in 41 s"


def test_a_green_run_is_short():
    """Three verified models take no more than a dozen lines."""
    assert len(render(build_report(samples.green()), "terminal").splitlines()) <= 12


def test_notes_do_not_lengthen_a_terminal():
    """What needs no action is counted in the terminal and described in the report file."""
    controls = samples.controls(undeclared_range=("x",))
    seen = samples.model("m", samples.all_fine(), controls=controls)
    run = samples.RunObservation(environment=samples.ENVIRONMENT, models=(seen,))
    report = build_report(samples.results((samples.contract("m"),), run))
    assert "\n\n1 note in out/report.md\n\n" in render(report, "terminal", report_file="out/report.md")
    assert "\n\n1 note in the Markdown report\n\n" in render(report, "terminal")
    assert "range-undeclared" not in render(report, "terminal")
    assert "#### 📝 `m`: range-undeclared" in render(report, "markdown")


@pytest.mark.slow
@pytest.mark.parametrize("run", samples.RUNS)
def test_colour_changes_no_word(run: str):
    """Colour is added to words, which it does not replace or shift; other formats never have any."""
    report = build_report(samples.RUNS[run]())
    coloured = render(report, "terminal", color=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render(report, "terminal")
    assert "\x1b[" in coloured
    assert "\x1b" not in render(report, "comment", color=True)


@pytest.mark.parametrize("run", samples.RUNS)
@pytest.mark.parametrize("kind", ["comment", "summary"])
def test_markdown_tables_are_tables(run: str, kind: Format):
    """A Markdown parser finds every table, with as many cells in each row as in its head."""
    rendered = PARSER.render(render(build_report(samples.RUNS[run]()), kind))
    assert "<p>|" not in rendered
    for table in re.findall(r"<table>.*?</table>", rendered, re.DOTALL):
        rows = re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
        assert len({len(re.findall("<t[hd]", row)) for row in rows}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("run", samples.RUNS)
@pytest.mark.parametrize("kind", ["comment", "summary"])
def test_hostile_strings_stay_text_in_markdown(run: str, kind: Format):
    """No name, message or trace mentions anybody, links anything or opens a tag."""
    text = render(build_report(hostile(samples.RUNS[run]())), kind)
    tokens = PARSER.parse(text)
    inline = [child for token in tokens for child in token.children or []]
    tags = {token.content.strip().split("\n")[0] for token in (*tokens, *inline) if token.type.startswith("html")}
    assert {tag for tag in tags if not re.fullmatch(r"</?(details|summary|sub|code|b)>.*", tag)} == set()
    assert not {token.type for token in (*tokens, *inline)} & {"link_open", "image", "em_open"}
    for token in inline:
        if token.type == "text":
            assert not re.search(r"@\w|#\d|GH-\d|https?:/", html.unescape(token.content)), token.content
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not re.search(r"(?m)^\s*::|##\[", text)


@pytest.mark.slow
@pytest.mark.parametrize("run", samples.RUNS)
@pytest.mark.parametrize("kind", ["comment", "summary"])
def test_hostile_strings_leave_the_layout_alone(run: str, kind: Format):
    """Tables keep their rows and cells, and folds stay closed, whatever the strings are."""

    def layout(text: str) -> list[int]:
        rendered = re.sub(r"<pre>.*?</pre>", "<pre>", PARSER.render(text), flags=re.DOTALL)
        tags = ("<table", "<tr", "<t[hd]", "<h[1-6]", "<ul", "<pre", "<details", "</details", "<summary", "<sub>")
        return [len(re.findall(tag, rendered)) for tag in tags]

    found = layout(render(build_report(hostile(samples.RUNS[run]())), kind, budget=10**7))
    assert found == layout(render(build_report(samples.RUNS[run]()), kind))


@pytest.mark.parametrize("run", samples.RUNS)
def test_hostile_strings_are_inert_in_a_terminal(run: str):
    """No control sequence and no workflow command reaches the log."""
    text = render(build_report(hostile(samples.RUNS[run]())), "terminal")
    assert all(line.isprintable() for line in text.splitlines())
    assert "\u202e" not in text
    assert not re.search(r"(?m)^\s*::|##\[", text)


SAFE = {
    "md", "prose", "code", "fence", "terminal", "indent", "number", "measured", "share", "size", "count", "duration",
    "plural", "tally", "how_often", "emoji", "word", "legend",
}  # fmt: skip
"""Filters whose output is safe in its place: escaped, or made of digits and our own words."""
LAYOUT = {"wrap", "paint"}
"""Filters that only arrange what another one made safe."""


def _is_safe(node: nodes.Node) -> bool:
    match node:
        case nodes.Filter() if node.name in LAYOUT and node.node is not None:
            return _is_safe(node.node)
        case nodes.Filter():
            return node.name in SAFE
        case nodes.CondExpr():
            return _is_safe(node.expr1) and (node.expr2 is None or _is_safe(node.expr2))
        case nodes.Call():
            return isinstance(node.node, (nodes.Name, nodes.Getattr))  # a macro: its own body is checked
        case nodes.Const() | nodes.TemplateData():
            return True
    return False


@pytest.mark.parametrize("name", ["_macros.md.j2", "comment.md.j2", "summary.md.j2", "terminal.txt.j2"])
def test_every_value_in_a_template_is_escaped(name: str):
    """A template cannot print a value that went through no escaping filter."""
    tree = environment().parse((template_folder() / name).read_text(encoding="utf-8"))
    printed = [node for output in tree.find_all(nodes.Output) for node in output.nodes]
    assert [f"line {node.lineno}: {node}" for node in printed if not _is_safe(node)] == []


def test_every_filter_is_known_to_the_check():
    """A new filter is reviewed before a template relies on it for escaping."""
    assert set(FILTERS) == SAFE | {"wrap", "align", "clip", "clip_lines"}


def test_an_unknown_name_in_a_template_is_an_error():
    """A misspelt field fails the render instead of printing nothing."""
    with pytest.raises(UndefinedError):
        environment().from_string("{{ nothing|md }}").render()


def test_every_format_has_its_template():
    """Templates are found as files, in a checkout as in an installed wheel."""
    for name in TEMPLATES.values():
        assert (template_folder() / name).is_file()
