"""Strings of strangers are shown as written and do nothing: a real Markdown parser is the witness."""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from workflow_log import HOSTILE, HOSTILE_LINES, commands

from export_gate.report.escape import (
    code,
    fence,
    inert_commands,
    inert_json,
    inert_xml,
    log_text,
    markdown,
    one_line,
    prose,
    terminal,
    visible,
)

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
NASTY = [
    "@octocat", "#123", "GH-12", "x/y#1", "https://evil.example/a", "www.evil.example", "me@evil.example",
    "<script>alert(1)</script>", "</details>", "<!--", "-->", "&amp;", "&#124;", "[a](b)", "![a](b)", "[^1]", "`", "``",
    "```", "~~~", "~~a~~", "**b**", "__init__", "_a_", "a_b_c", "max_abs_diff", "|", "\\", "\\|", "\n", "\r\n", "\t",
    "    ", "\u2028", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x00", "\x08", "\u202e", "\u200b", "\u2066", "\ufeff",
    "\ud800", "::error::x", "` `", "`a` ", "##[group]", "$x$", "$$", ":100:", "deadbeefcafe", "# a", "- a", "+ a",
    "1. a", "1) a", "===", "---", "> a",
]  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=6)), max_size=6).map("".join)
MENTION = re.compile(r"@\w|#\d|\bGH-\d|https?:/|www\.", re.IGNORECASE)


def _plain(rendered: str) -> str:
    """What a reader sees of inline HTML that has no tags of its own."""
    return " ".join(html.unescape(rendered).replace("\u200b", "").split())


@given(texts)
@example("a`b`c|d\\")
def test_markdown_shows_the_text_and_nothing_else(text: str):
    """A message is one paragraph of plain text: no tag, link, emphasis, code, list or heading comes out of it."""
    rendered = PARSER.render(markdown(text)).strip()
    inside = rendered.removeprefix("<p>").removesuffix("</p>")
    assert "<" not in inside
    assert _plain(inside) == one_line(text)


@given(texts)
def test_markdown_in_a_list_stays_one_item(text: str):
    """A message in a list opens no list, heading or quote of its own."""
    tags = re.findall(r"<\w+", PARSER.render(f"- {markdown(text)}"))
    assert tags == ["<ul", "<li"]


@given(texts, texts)
def test_a_table_row_keeps_its_cells(left: str, right: str):
    """Pipes, backslashes and line ends of a text never add a cell or a row."""
    table = PARSER.render(f"| a | b |\n|:--|:--|\n| {code(left)} | {markdown(right)} |\n")
    assert table.count("<tr") == 2
    assert table.count("<td") == 2
    cells = re.findall(r"<td[^>]*>(.*?)</td>", table)
    assert _plain(cells[0].removeprefix("<code>").removesuffix("</code>")) == one_line(left)
    assert _plain(cells[1]) == one_line(right)


@given(texts)
def test_code_is_one_code_span(text: str):
    """A name in a code span cannot leave it, whatever backticks it has."""
    rendered = PARSER.render(code(text)).strip()
    inside = rendered.removeprefix("<p><code>").removesuffix("</code></p>")
    assert "<" not in inside
    assert _plain(inside) == one_line(text)


@given(texts)
def test_prose_has_nothing_but_code_spans(text: str):
    """Backticks in our sentences make code spans, and no other markup is made."""
    rendered = PARSER.render(prose(text)).strip().removeprefix("<p>").removesuffix("</p>")
    assert re.findall(r"</?\w+", rendered.replace("<code>", "").replace("</code>", "")) == []
    shown = _plain(rendered.replace("<code>", "`").replace("</code>", "`"))
    assert shown == one_line(text)


@given(texts)
def test_a_fence_holds_its_text(text: str):
    """A traceback cannot close the fence that contains it."""
    (token,) = PARSER.parse(fence(text))
    assert token.type == "fence"
    assert token.content.strip("\n") == inert_commands(visible(text)).strip("\n")


@given(texts)
def test_no_mention_link_or_issue_survives(text: str):
    """Nobody is notified and nothing is linked, since a zero-width space breaks every trigger."""
    shown = html.unescape(markdown(text))
    assert not MENTION.search(shown), shown


@given(texts)
def test_terminal_text_has_no_control_characters(text: str):
    """A terminal shows the text on one line and obeys nothing in it."""
    shown = terminal(text)
    assert shown.isprintable()
    assert not shown.startswith("::")
    assert "##[" not in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("max |P-M| 3.1e-03 > 1.0e-05", "max &#124;P-M&#124; 3.1e-03 &gt; 1.0e-05"),
        ("@octocat", "@&#8203;octocat"),
        ("see #12 and GH-12", "see #&#8203;12 and GH-&#8203;12"),
        ("https://evil.example", "https:&#8203;//evil.example"),
        ("model.py:100: bad", "model.py:&#8203;100: bad"),
        ("high-1@batch=16", "high-1@&#8203;batch=16"),
        ("_https://a.example", "&#95;https:&#8203;//a.example"),
        ("commit deadbeefcafe", "commit deadbe&#8203;efcafe"),
        ("max_abs_diff of __init__", "max_abs_diff of &#95;&#95;init&#95;&#95;"),
        ("1. first", "1&#46; first"),
        ("0.1.0", "0.1.0"),
        ("# title", "&#35; title"),
        ("costs $5 or $6", "costs &#36;5 or &#36;6"),
        ("a\nb\u2028c", "a b c"),
        ("\x1b[31mred\x1b[0m \u202etxt \x07", "red &#92;u202etxt &#92;x07"),
    ],
)
def test_markdown_by_example(text: str, shown: str):
    """What each trigger is turned into."""
    assert markdown(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("halves-1@batch=2", "`halves-1@batch=2`"),
        ("a|b", "<code>a&#124;b</code>"),
        ("a`b", "<code>a&#96;b</code>"),
        ("", "<code></code>"),
    ],
)
def test_code_by_example(text: str, shown: str):
    """Code is in plain backticks if that works, else in a tag."""
    assert code(text) == shown


def test_prose_quotes_code():
    """A hint shows its options as code."""
    assert prose("set `a.b` to 1|2") == "set `a.b` to 1&#124;2"


@pytest.mark.parametrize("text", ["a ` b", "` `", "` a `", "``", "`a``b`"])
def test_prose_with_other_backticks_is_plain_text(text: str):
    """Backticks that do not enclose one name each make no code span."""
    assert prose(text) == text.replace("`", "&#96;")


def test_a_fence_grows_with_its_text():
    """A text with three backticks gets a fence of four."""
    assert fence("a\n```\nb", "sh") == "````sh\na\n```\nb\n````"


@pytest.mark.parametrize(
    ("text", "inert"),
    [
        ("::error::x", ": :error::x"),
        ("a\n  ::set-output name=x::y", "a\n  : :set-output name=x::y"),
        ("aten::add at a::b", "aten::add at a::b"),
        ("x ##[group]y", "x ## [group]y"),
    ],
)
def test_workflow_commands_do_not_run(text: str, inert: str):
    """The runner reads `::` at a line's start and `##[` anywhere; C++ names stay as they are."""
    assert inert_commands(text) == inert


pieces = [*HOSTILE_LINES, "\n", "\r", "\r\n", "\u2028", "\x0b", "\x1b[1m", " ", ":", "#", "[", "x"]
logs = st.lists(st.sampled_from(pieces), max_size=8)


def test_the_witness_obeys_what_is_hostile():
    """The tests' texts really are commands, so the tests can fail."""
    assert set(commands(HOSTILE)) == {"add-path", "set-output", "add-mask"}
    assert len(commands(HOSTILE)) >= 2 * len(HOSTILE_LINES)


@given(logs.map("".join))
@example(HOSTILE)
def test_a_log_takes_no_command_from_text(text: str):
    """Lines of a log stay lines, and none is a command to the runner."""
    assert commands(log_text(text)) == []
    assert commands(inert_commands(text)) == []
    assert log_text(text).count("\n") == visible(text).count("\n")


@given(logs.map("".join))
@example(HOSTILE)
def test_documents_in_a_log_are_no_commands_and_say_the_same(text: str):
    """JSON and XML that go to a log have the values that they had."""
    document = json.dumps({text: [text]}, indent=1)
    assert json.loads(inert_json(document)) == json.loads(document)
    assert commands(inert_json(document)) == []
    element = ET.Element("a", b=one_line(text))
    element.text = visible(text)
    written = ET.tostring(element, encoding="unicode")
    read = ET.fromstring(inert_xml(written))
    assert (read.text, read.attrib) == (element.text or None, element.attrib)
    assert commands(inert_xml(written)) == []


def test_marks_do_not_pile_up_over_other_lines():
    """A letter keeps its accents; further ones would be drawn over the verdict above."""
    assert visible("Vie\u0323\u0302t") == "Vie\u0323\u0302t"
    assert visible("a" + "\u0300" * 6 + "b") == "a" + "\u0300" * 4 + "\\u0300\\u0300b"
