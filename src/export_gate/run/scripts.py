"""Find the scripts that a text may run: those that it names, in whatever folder it is, and what they name in turn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_SHELLS = "sh|bash|ps1|cmd|bat"
_ENDINGS = rf"{_SHELLS}|py|[cm]?js|ts|rb|pl|fish|zsh|lua"
_FILE = re.compile(
    rf"(?<![\w./-])(?:[\w.-]+/)*(?:[\w-][\w.-]*\.(?:{_ENDINGS})\b|(?:Docker|Container)file\b|(?<=/)[\w-]+(?![\w./@-]))",
    re.ASCII,
)
"""A script with such an ending, a container's, or a path whose file has none."""
_SHELL = re.compile(rf"\.(?:{_SHELLS})$")
_SHEBANG = re.compile(r"#!.*sh\b")
_MODULE = re.compile(r"-m[\s\"',]+([a-zA-Z_][\w.]*)", re.ASCII)
_SOURCED = re.compile(r"(?:^|[\s;&|({])(?:source|\.)\s+(?:\./)?([\w.-]+(?:/[\w.-]+)*)", re.ASCII | re.MULTILINE)
_TEMPLATE = re.compile(r"\btemplate(?:=|\s*:)?\s*(?:\./)?([\w.-]+(?:/[\w.-]+)*)", re.ASCII | re.IGNORECASE)
_FEEDS = re.compile(r"GITHUB_(?:ENV|PATH|OUTPUT)\b")
_PATH = re.compile(r"(?<![\w./-])(?:\./)?((?:[\w.-]+/)*[\w.-]+)", re.ASCII)
"""In a line that sets variables, paths or outputs, any word may be a file that they are read from."""
_SOMEWHERE = re.compile(r"\$(?:\{\{.{0,200}?\}\}|\{?(?:env:)?\w+\}?)/")
"""A folder that is known when the text runs, such as `$GITHUB_WORKSPACE/`."""
_COMMENT = re.compile(r"#(?!!|\s*requires\b)[^&|]*$", re.IGNORECASE)
"""Not the line that names an interpreter, and not the one by which PowerShell loads a module.

To the shell of Windows, none is a comment: behind `&` or `|` it runs what follows.
"""
_QUOTED = re.compile(r"""["'`\\]""")
MOST_NAMED = 500
"""How many files that texts may name are looked for."""


def script_lines(text: Any) -> list[str]:
    """The commands of a script; one that goes on in the next line is one command."""
    # Split and joined as shells do it: no other character ends a line there, and no comment goes on in the next one.
    lines: list[str] = []
    for line in str(text or "").split("\n"):
        if lines and _goes_on(lines[-1]):
            lines[-1] = f"{lines[-1][:-1]}{line}"
        else:
            lines.append(line.lstrip(" \t"))
    return [_spaced(line) for line in lines if line.strip() and not _COMMENT.match(line)]


def _goes_on(line: str) -> bool:
    return line.endswith("\\") and not line.startswith("#")


def _spaced(line: str) -> str:
    """The line with single spaces, unless they may be part of a text."""
    return line.rstrip(" \t\r") if _QUOTED.search(line) else re.sub(r"[ \t]+", " ", line).strip(" \t\r")


def names_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Scripts that these texts may run, by their paths, their names, or as Python's modules."""
    found = dict.fromkeys(
        name
        for text in texts
        for name in (
            *(match.group().removeprefix("./") for match in _FILE.finditer(_plain(text))),
            *loaded(text),
            *(f"{match[1].replace('.', '/')}.py" for match in _MODULE.finditer(text)),
        )
    )
    return tuple(found)[:MOST_NAMED]


def _plain(text: str) -> str:
    """The text without quotes, which may be around any part of a path, and with `/` in paths of Windows."""
    # Then once more with the line ends that a text in quotes spells out.
    spelled = text.replace("\\n", "\n") if "\\n" in text else ""
    return _SOMEWHERE.sub("", re.sub(r"[\"']", "", f"{text}\n{spelled}").replace("\\", "/"))


def loaded(text: str) -> tuple[str, ...]:
    """Files of any name that a shell loads, that variables are read from, or by which a comment is written."""
    plain = _plain(text)
    feeding = (match[1] for line in plain.splitlines() if _FEEDS.search(line) for match in _PATH.finditer(line))
    named = (match[1] for pattern in (_SOURCED, _TEMPLATE) for match in pattern.finditer(plain))
    return tuple(dict.fromkeys((*named, *feeding)))


def templates_in(text: str) -> str:
    """What the text says of templates, without anything else."""
    return "\n".join(match.group() for match in _TEMPLATE.finditer(_plain(text)))


def may_be_shell(name: str) -> bool:
    """Whether a file of that name may be a script of a shell."""
    return bool(_SHELL.search(name)) or "." not in name.rpartition("/")[2]


def is_shell(name: str, text: str) -> bool:
    """Whether the file is one: its name has such an ending, or none and its first line says so."""
    return bool(_SHELL.search(name)) or (may_be_shell(name) and bool(_SHEBANG.match(text)))


def lines_of(text: str, around: str, scripts: Mapping[str, tuple[str, ...]], told: set[str]) -> Iterator[str]:
    """The lines of those scripts that the text runs, and of what they run, behind their paths; each script once.

    Args:
        text: a line, or anything else that may name a script.
        around: all that may say in which folder it runs.
        scripts: by their paths.
        told: the paths of those that were given; they are added to it.
    """
    names = names_in([text])
    for path in scripts:
        if path not in told and any(_may_be(path, name, around) for name in names):
            told.add(path)
            for line in scripts[path]:
                yield f"{path}: {line}"
                yield from lines_of(line, f"{around} {path}", scripts, told)


def _may_be(path: str, name: str, around: str) -> bool:
    """Whether the file is the one of that name: from the root, or from a folder that is named nearby."""
    if not f"/{path}".endswith(f"/{name}"):
        return False
    return path[: -len(name)].rstrip("/").rpartition("/")[2] in around
