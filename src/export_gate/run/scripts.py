"""Find the scripts that a text may run: those that it names, in whatever folder it is, and what they name in turn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

SHELL_ENDINGS = ("sh", "bash", "zsh", "fish", "ksh", "dash", "csh", "ps1", "psm1", "psd1", "cmd", "bat")
_SHELLS = "|".join(SHELL_ENDINGS)
_ENDINGS = rf"{_SHELLS}|py|[cm]?js|ts|rb|pl|lua"
_FILE = re.compile(
    rf"(?<![\w./-])(?:[\w.-]+/)*(?:[\w-][\w.-]*\.(?:{_ENDINGS})\b|(?:Docker|Container)file\b|(?<=/)[\w-]+(?![\w./@-]))",
    re.ASCII,
)
"""A script with such an ending, a container's, or a path whose file has none."""
_SHELL = re.compile(rf"\.(?:{_SHELLS})$")
_SHEBANG = re.compile(r"#!.*sh\b")
_MODULE = re.compile(r"-m[\s\"',]+([a-zA-Z_][\w.]*)", re.ASCII)
_PLACE = r"(?:\./)?([\w.-]+(?:/[\w.-]+)*)"
_NO_ENDING = r"(?:\./)?((?:[\w.-]+/)+[\w-]+)(?![\w./@-])"
_SHELL_NAME = r"(?<![\w.-])(?:ba|da|z|k|fi|a|c|tc|m)?sh(?:\.exe)?"
_LOADED = (
    re.compile(rf"(?:^|[\s;&|({{])(?:source|\.)\s+{_PLACE}", re.ASCII | re.MULTILINE),
    # Whatever the file is called. `-eo pipefail` has a word of its own; `-c` a command, which may be a file.
    re.compile(rf"{_SHELL_NAME}(?:[ \t]+[-+](?:\w*[oO][ \t]+\w+|[\w-]+))*[ \t]+{_PLACE}", re.ASCII),
    re.compile(rf"(?<!\w)(?:(?:BASH_)?ENV|shell)\s*[:=]\s*{_PLACE}", re.ASCII),
    # Run by its place: a file without a first line for the system is run by the shell that starts it.
    re.compile(rf"(?:^|[;&|({{]|\b(?:run\s*:|sudo|exec))[ \t]*{_NO_ENDING}", re.ASCII | re.MULTILINE),
)
"""A file that a shell runs: named to it, or what it loads at its start."""
_VERSION = re.compile(rf"-version-file\s*:\s*(?!\S*(?:pyproject\.toml|Pipfile)){_PLACE}", re.ASCII)
"""What chooses an interpreter, unless it is a file about much else."""
_TEMPLATE = re.compile(rf"\btemplate(?:=|\s*:)?\s*{_PLACE}", re.ASCII | re.IGNORECASE)
_FEEDS = r"GITHUB_(?:ENV|PATH|OUTPUT)\b"
_ALIAS = re.compile(rf"(\w+)=\S*{_FEEDS}")
_FEEDS_ALL = re.compile(rf"(?:^\s*(?:[)}}]|done|fi|esac)|\bexec\b)[^<\n]*>.*{_FEEDS}", re.MULTILINE)
"""A line that sends to it what other lines print: the end of a block, or the rest of the script."""
_LOOP_READS = re.compile(r"^\s*done\s*<")
_EVALUATES = rf"\beval\b|\|\s*(?:sudo\s+)?(?:\S*/)?{_SHELL_NAME}\b|(?:{_SHELL_NAME}|source|\s\.)\s[^|;&]*(?:<|\$\(|`)"
"""What a command prints, or a file holds, is run."""
_PATH = re.compile(r"(?<![\w./-])(?:\./)?((?:[\w.-]+/)*[\w.-]+)", re.ASCII)
"""In a line that sets variables, paths or outputs, or that runs what it reads, any word may be the file."""
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
    feeding = (match[1] for line in _feeding(plain) for match in _PATH.finditer(line))
    named = (match[1] for pattern in (*_LOADED, _TEMPLATE, _VERSION) for match in pattern.finditer(plain))
    return tuple(dict.fromkeys((*named, *feeding)))


def _feeding(text: str) -> list[str]:
    """The lines that set variables, paths or outputs by what they read, or that run it."""
    lines = text.splitlines()
    if _FEEDS_ALL.search(text):
        return lines
    names = (rf"\$\{{?{name}\b" for name in _ALIAS.findall(text))
    feeds = re.compile("|".join((_FEEDS, _EVALUATES, *names)))
    is_fed = bool(re.search(_FEEDS, text))
    return [line for line in lines if feeds.search(line) or (is_fed and _LOOP_READS.search(line))]


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
        text: a step's commands, or anything else that may name a script.
        around: all that may say in which folder it runs.
        scripts: by their paths.
        told: the paths of those that were given; they are added to it.
    """
    names = names_in([text])
    for path in scripts:
        if path not in told and any(_may_be(path, name, around) for name in names):
            told.add(path)
            yield from (f"{path}: {line}" for line in scripts[path])
            yield from lines_of("\n".join(scripts[path]), f"{around} {path}", scripts, told)


def _may_be(path: str, name: str, around: str) -> bool:
    """Whether the file is the one of that name: from the root, or from a folder that is named nearby."""
    if not f"/{path}".endswith(f"/{name}"):
        return False
    return path[: -len(name)].rstrip("/").rpartition("/")[2] in around
