r"""Escape strings from models, configs and exceptions for Markdown on GitHub, HTML inside it, and terminals.

Two threats: a string that breaks the layout (a pipe in a cell, a backtick in a fence), and one that acts (a mention, a
link to an issue, a tag, a workflow command, text that reads right to left). Nothing is dropped in silence but terminal
styling: what cannot be shown is spelled out as an escape such as `\x07`.
"""

from __future__ import annotations

import re
import unicodedata

# Patterns are texts, which `re` compiles when they are used first: a hook prints a line and needs none of them.
ANSI = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\^_]"
_LINE_ENDS = r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"
_UNSEEN = {"Cc", "Cf", "Cs", "Cn", "Co"}
"""Unicode categories without a glyph: control, format (bidi, zero width), surrogate, unassigned, private."""
_MARKS = r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_PILE = rf"(?<={_MARKS}{{4}}){_MARKS}+"
"""Marks on top of four others: no language has so many, and a pile of them is drawn over the lines around it."""
_NOTHING = "\u200b"
"""A zero-width space: between `@` and a name it stops the mention. `visible` leaves none, so it is always ours."""
# `|` ends a table cell and `$` begins a formula. The zero-width space is the one that `markdown` inserts.
_MARKUP = str.maketrans({character: f"&#{ord(character)};" for character in "\\`*[]|~$^\u200b"}) | {
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord(">"): "&gt;",
}
# What GitHub acts on even where Markdown sees plain text. The group is where the zero-width space goes.
_ACTIVE = r"""(?ix)
    @(?=\w)                               # a mention, an address
  | \#(?=\d)                              # an issue
  | (?<![^\W_])(?:GH|GHSA|CVE)-(?=\w)     # an issue, an advisory; not the end of `high-1`
  | (?:https?|ftp|mailto|xmpp):(?=\S)     # a link
  | www(?=\.)                             # a link without a scheme
  | :(?=[\w+-]+:)                         # an emoji: `model.py:100: error` is one
  | (?<![^\W_])[0-9a-f]{6}(?=[0-9a-f]+(?![^\W_]))  # a commit
"""
_LOOSE_UNDERSCORE = r"(?<![^\W_])_|_(?![^\W_])"
_BLOCK_START = r"^()([#+=-])|^(\d+)([.)])(?=\s|$)"
# The runner ends a line at a carriage return too, and drops any white space before `::`; `##[` it finds anywhere.
_BREAKS = r"\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
_BLANKS = rf"(?:[^\S{_BREAKS}]|[\u180e\u200b-\u200f\u2060\ufeff])*"
_COMMAND = rf"((?:\A|(?<=[{_BREAKS}])){_BLANKS}):(?=:)|##(?=\[)"


def visible(text: str) -> str:
    """`text` as lines of what can be seen: no terminal styling, no control, bidi or zero-width characters."""
    if text.isprintable() and (text.isascii() or not re.search(_PILE, text)):
        return text  # as nearly all are; neither line ends nor ESC are printable
    text = re.sub(_PILE, lambda match: match.group().encode("unicode_escape").decode("ascii"), text)
    # Sequences first: without their ESC, the rest of one would stay as text.
    lines = re.split(_LINE_ENDS, re.sub(ANSI, "", text).expandtabs(4))
    return "\n".join(line if line.isprintable() else "".join(map(_visible_character, line)) for line in lines)


def _visible_character(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def one_line(text: object) -> str:
    """`text` without line breaks and without anything unseen."""
    return " ".join(visible(str(text)).split())


def markdown(text: object) -> str:
    """Plain text for a Markdown paragraph, list item, table cell or HTML element: shown as written, inert everywhere.

    Entities rather than backslashes, since a backslash means nothing inside HTML and little inside a table cell.
    """
    plain = re.sub(_ACTIVE, lambda match: match.group() + _NOTHING, one_line(text))
    inline = re.sub(_LOOSE_UNDERSCORE, "&#95;", plain.translate(_MARKUP))
    return re.sub(_BLOCK_START, _open_no_block, inline)


def _open_no_block(match: re.Match[str]) -> str:
    number, mark = match.groups("")[:2] if match.group(2) else match.groups("")[2:]
    return f"{number}&#{ord(mark)};"


def prose(text: object) -> str:
    """A sentence that quotes code in backticks, as our rules write them: code spans and plain text, both inert."""
    spans = code_spans(one_line(text))
    if len(spans) == 1:
        return markdown(text)
    return "".join(code(part) if is_code else _between(part) for part, is_code in spans)


def code_spans(text: str) -> list[tuple[str, bool]]:
    """Parts of a line, each with whether it was in backticks; one part if the backticks are not ours."""
    parts = text.split("`")
    are_spans = all(part and part == part.strip() for part in parts[1::2])
    if len(parts) % 2 == 0 or not are_spans or not all(parts[2:-1:2]):
        return [(text, False)]
    return [(part, place % 2 == 1) for place, part in enumerate(parts)]


def _between(part: str) -> str:
    """Escaped text with the spaces around it, which separate it from the code beside it."""
    before = " " if part.startswith(" ") else ""
    after = " " if part.endswith(" ") and part.strip() else ""
    return f"{before}{markdown(part)}{after}"


def code(text: object) -> str:
    """A code span for a paragraph, list item or table cell; GitHub links nothing inside one."""
    plain = one_line(text)
    if not plain or re.search(r"[`|\\]", plain):
        return f"<code>{markdown(plain)}</code>"
    return f"`{plain}`"


def fence(text: str, language: str = "text") -> str:
    """A fenced code block that `text` cannot close."""
    body = inert_commands(visible(text)).strip("\n")
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{body}\n{ticks}"


def terminal(text: object) -> str:
    """One line for a terminal or a CI log: no control sequences, no workflow commands."""
    return inert_commands(one_line(text))


def log_text(text: str) -> str:
    """`text` as lines for a terminal or a CI log: no control sequences, no workflow commands, but its line breaks."""
    return inert_commands(visible(text))


def inert_commands(text: str) -> str:
    """`text` in which no line is a workflow command (`::error::`, `##[group]`) to the runner that prints it."""
    if "::" not in text and "##[" not in text:
        return text
    return re.sub(_COMMAND, lambda match: f"{match.group(1)}: " if match.group().endswith(":") else "## ", text)


def inert_json(text: str) -> str:
    """A JSON document of the same value in which no line is a workflow command.

    A line of JSON never starts with `::`, and `##[` stands in strings alone, where a character may be an escape.
    """
    return text.replace("##[", "#\\u0023[")


def inert_xml(text: str) -> str:
    """An XML or HTML document that says the same, in which no line is a workflow command."""
    return re.sub(_COMMAND, lambda match: f"{match.group(1)}&#58;" if match.group().endswith(":") else "#&#35;", text)
