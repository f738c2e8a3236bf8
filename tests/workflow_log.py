"""GitHub's runner as a reader of a log: which of its lines it takes for commands, by its own rules.

Source: actions/runner, `ActionCommand.TryParseV2` and `TryParse`, of lines as .NET's `StreamReader.ReadLine` ends them.
"""

from __future__ import annotations

import re

HOSTILE_LINES = (
    "::add-path::owned",
    " \t::set-output name=owned::x",
    "\u00a0\u2003::add-mask::owned",
    "a ##[add-path]owned",
    "##[set-output name=owned]x",
)
_ENDS = ("\u2028::add-path::o", "\x1b[0m", "::add-mask::o")
HOSTILE = "x\n" + "\n".join(HOSTILE_LINES) + "\r" + "\r".join(HOSTILE_LINES) + "\n".join(_ENDS)
"""A text that a runner obeys line by line, whatever ends the lines."""


def obeyed(line: str) -> tuple[str, dict[str, str], str] | None:
    """What the runner takes `line` for: command, properties and message."""
    text = line.lstrip()
    if not text.startswith("::") or (end := text.find("::", 2)) < 0:
        return _obeyed_of_old(line)
    command, _, rest = text[2:end].partition(" ")
    properties = dict(pair.split("=", 1) for pair in rest.split(",") if "=" in pair)
    return command, {name: unescape(value) for name, value in properties.items()}, unescape(text[end + 2 :])


def _obeyed_of_old(line: str) -> tuple[str, dict[str, str], str] | None:
    found = re.search(r"##\[([^\]]*)\](.*)", line)
    if found is None:
        return None
    command, _, rest = found[1].partition(" ")
    return command, dict(pair.split("=", 1) for pair in rest.split(";") if "=" in pair), found[2]


def commands(log: str) -> list[str]:
    """The names of all commands in a log."""
    found = [obeyed(line) for line in re.split(r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]", log)]
    return [each[0] for each in found if each is not None]


def unescape(text: str) -> str:
    """A message or property as the runner decodes it."""
    pairs = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))
    for escaped, plain in pairs:
        text = text.replace(escaped, plain)
    return text
