"""Format what the runner reads: annotations on standard output, outputs in a file.

A line that starts with `::` is a command to the runner. Annotations are the only commands that we give on purpose.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Literal

from export_gate.report.escape import inert_commands, one_line, visible

Kind = Literal["error", "warning"]
LONGEST_MESSAGE = 4_000
LONGEST_TITLE = 200
"""GitHub cuts a title at 255 characters."""
LONGEST_OUTPUT = 8_000
"""Most characters of one output; all outputs of a step stay below 100 kB, far below the runner's limit of 1 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A note on a line of the pull request's files, or on the run if it has no file."""

    kind: Kind
    title: str
    message: str
    file: str | None = None
    line: int | None = None


def escape_data(text: str) -> str:
    """`text` as the message of a workflow command, which is one line."""
    # `%` first, or it would escape the escapes.
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """`text` as a property of a workflow command, which ends at a comma or a colon."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def annotate(annotation: Annotation) -> str:
    """The workflow command, as one line."""
    places = {"file": annotation.file, "line": annotation.line if annotation.file else None}
    properties = {name: str(value) for name, value in places.items() if value is not None}
    properties["title"] = _cut(one_line(annotation.title), LONGEST_TITLE)
    words = ",".join(f"{name}={escape_property(visible(value))}" for name, value in properties.items())
    # Cut before escaping, which a cut could split.
    message = _cut(inert_commands(visible(annotation.message)), LONGEST_MESSAGE)
    return f"::{annotation.kind} {words}::{escape_data(message)}"


def output_lines(name: str, value: str) -> str:
    """An entry of the file GITHUB_OUTPUT, between delimiters that the value cannot predict."""
    delimiter = f"export-gate-{secrets.token_hex(16)}"
    return f"{name}<<{delimiter}\n{_cut(one_line(value), LONGEST_OUTPUT)}\n{delimiter}\n"


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[: characters - 3]}..."
