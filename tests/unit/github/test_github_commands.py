"""The runner reads only what we mean, whatever a model is called or an exception says."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from workflow_log import obeyed, unescape

from export_gate.github.files import append_outputs
from export_gate.github.workflow_commands import (
    Annotation,
    annotate,
    escape_data,
    escape_property,
    output_lines,
)
from export_gate.report.escape import one_line

NASTY = [
    "::error::x", "::set-output name=a::b", "##[group]", "::stop-commands::t", "::", ":", ",", "=", "%", "%0A", "%25",
    "\n", "\r", "\r\n", "\u2028", "\x85", "\x00", "\x1b[31m", "EOF", "name<<EOF", "\nverdict=verified\n", "<!--", "-->",
    "<!-- export-gate: comment=export-gate run=1.1 verdict=verified digest=0123456789abcdef -->", "@octocat", " ",
]  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=6)), max_size=8).map("".join)


def outputs_read(text: str) -> dict[str, str]:
    """The outputs as the runner reads them from its file."""
    found, lines = {}, iter(text.split("\n"))
    for line in lines:
        if line:
            name, delimiter = line.split("<<", 1)
            found[name] = "\n".join(iter(lambda end=delimiter: next(lines), delimiter))
    return found


@given(texts)
def test_escaped_data_is_one_line_and_comes_back(text: str):
    """A message reaches GitHub as it was written."""
    assert "\n" not in escape_data(text)
    assert "\r" not in escape_data(text)
    assert unescape(escape_data(text)) == text


@given(texts)
def test_an_escaped_property_cannot_end_itself(text: str):
    """A title can contain colons and commas without starting the next property or the message."""
    assert not set(":,\r\n") & set(escape_property(text))
    assert unescape(escape_property(text)) == text


@given(texts, texts, texts)
def test_an_annotation_is_one_command_with_what_we_mean(title: str, message: str, file: str):
    """No name, message or path adds a property, a second command or a line."""
    line = annotate(Annotation(kind="error", title=title, message=message, file=f"a{file}", line=3))
    assert len(line.splitlines()) == 1
    found = obeyed(line)
    assert found is not None
    command, properties, shown = found
    assert command == "error"
    assert set(properties) == {"file", "line", "title"}
    assert properties["line"] == "3"
    whole = one_line(title)
    assert properties["title"] == (whole if len(whole) <= 200 else f"{whole[:197]}...")
    assert not any(obeyed(part) or "##[" in part for part in shown.splitlines())


@given(texts, texts)
def test_an_output_cannot_add_another(first: str, second: str):
    """No value can end the heredoc that contains it."""
    written = output_lines("comment-url", first) + output_lines("verdict", second)
    assert outputs_read(written) == {"comment-url": one_line(first), "verdict": one_line(second)}


def test_outputs_are_short(tmp_path: Path):
    """Seven outputs of any length stay below 100 kB."""
    path = tmp_path / "output"
    names = ("verdict", "violations", "warnings", "report-path", "results-path", "artifacts-path", "comment-url")
    assert append_outputs(path, dict.fromkeys(names, "x" * 100_000)) == ""
    assert path.stat().st_size < 100_000
    assert outputs_read(path.read_text())["verdict"].endswith("x...")


def test_outputs_that_cannot_be_written_are_a_sentence(tmp_path: Path):
    """A full disk or a missing folder is reported, not raised."""
    problem = append_outputs(tmp_path / "no" / "output", {"verdict": "verified"})
    assert problem == "the outputs cannot be written: No such file or directory"


def test_an_annotation_by_example():
    """The line that the runner gets."""
    annotation = Annotation(
        kind="warning", title="glyph-head: guard-missing", message="100%\nnext: do it", file="export-gate.yml", line=4
    )
    assert annotate(annotation) == (
        "::warning file=export-gate.yml,line=4,title=glyph-head%3A guard-missing::100%25%0Anext: do it"
    )


def test_long_annotations_are_cut():
    """A message of any length stays within what GitHub accepts."""
    line = annotate(Annotation(kind="error", title="t" * 500, message="m" * 9_000))
    assert obeyed(line) == ("error", {"title": f"{'t' * 197}..."}, f"{'m' * 3_997}...")
