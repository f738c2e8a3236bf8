"""Strings from models, configs and exceptions, made inert for Markdown on GitHub, for HTML inside it and for a terminal.

Two threats: a string that breaks the layout (a pipe in a cell, a backtick in a fence), and one that acts (a mention, a link to
an issue, a tag, a workflow command, text that reads right to left). Nothing is dropped in silence but terminal styling: what
cannot be shown is spelled out as an escape such as `\x07`.
"""

from __future__ import annotations

import re
import unicodedata

ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\^_]")
_LINE_ENDS = re.compile(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_UNSEEN = {"Cc", "Cf", "Cs", "Cn", "Co"}
"""Unicode categories without a glyph of their own: control, format (bidi, zero width), surrogate, unassigned, private."""
_NOTHING = "&#8203;"
"""A zero-width space, as an entity so that a reader of the raw text sees it. Between `@` and a name it stops the mention."""
_MARKUP = str.maketrans({character: f"&#{ord(character)};" for character in "\\`*[]|~$^"}) | {
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord(">"): "&gt;",
}
# What GitHub acts on even where Markdown sees plain text. The group is where the zero-width space goes.
_ACTIVE = re.compile(
    r"""
    @(?=\w)                               # a mention, an address
  | \#(?=\d)                              # an issue
  | \b(?:GH|GHSA|CVE)-(?=\w)              # an issue, an advisory
  | \b(?:https?|ftp|mailto|xmpp):(?=\S)   # a link
  | \bwww(?=\.)                           # a link without a scheme
  | :(?=[\w+-]+:)                         # an emoji: `model.py:100: error` is one
  | \b[0-9a-f]{6}(?=[0-9a-f]+\b)          # a commit
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LOOSE_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_BLOCK_START = re.compile(r"^(?:[#+=-]|\d+(?=[.)]))")
_COMMAND = re.compile(r"(?m)^(\s*):(?=:)|##(?=\[)")


def visible(text: str) -> str:
    """`text` as lines of characters that can be seen: no terminal styling, no control, bidi or zero-width characters."""
    lines = _LINE_ENDS.split(ANSI.sub("", text).expandtabs(4))
    return "\n".join("".join(map(_visible_character, line)) for line in lines)


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
    plain = one_line(text).translate(_MARKUP)
    plain = _ACTIVE.sub(lambda match: match.group() + _NOTHING, plain)
    plain = _LOOSE_UNDERSCORE.sub("&#95;", plain)
    return _BLOCK_START.sub(_open_no_block, plain)


def _open_no_block(match: re.Match[str]) -> str:
    start = match.group()
    return start + _NOTHING if start.isdigit() else f"&#{ord(start)};"


def code(text: object) -> str:
    """A code span for a paragraph, list item or table cell; GitHub links nothing inside of one."""
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


def inert_commands(text: str) -> str:
    """`text` in which no line is a workflow command (`::error::`, `##[group]`) to the runner that prints it."""
    return _COMMAND.sub(lambda match: f"{match.group(1)}: " if match.group().endswith(":") else "## ", text)
