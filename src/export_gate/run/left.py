"""A config or lock that the next change cannot be compared with, since git does not store what was read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from export_gate.config import Config
from export_gate.loosening.record import CONFIG, Alteration
from export_gate.run.contents import stored
from export_gate.run.git import git_output
from export_gate.wall.repository import in_repository


def unreadable_alterations(config: Config, environment: Mapping[str, str]) -> tuple[Alteration, ...]:
    """One alteration for the config, and for its lock, if git does not store it as it is.

    Changes that are not committed yet are no reason to say so.

    Args:
        config: one that the base has.
        environment: for git.
    """
    path = config.place
    lock = path.with_suffix(".lock")
    found = [(place, _why_not(place, environment)) for place in (path, *([lock] if lock.is_file() else ()))]
    return tuple(
        Alteration(
            effect="loosened",
            model=CONFIG,
            what=f"git does not store {place.name} as it was read ({why}), so that the next change cannot be compared "
            "with it",
        )
        for place, why in found
        if why
    )


def _why_not(path: Path, environment: Mapping[str, str]) -> str:
    # By the path as it is written: behind a link, git tracks the link alone.
    root, name = in_repository(path)
    listed = git_output(root, "ls-files", "-z", "--stage", "--", f":(literal){name}", environment=environment)
    if not listed:
        return "it is not tracked"
    if listed.startswith(b"120000 "):
        return "it is a link"
    known = stored(path, environment)
    content = path.read_bytes()
    # Line ends alone mean nothing. A filter, or an encoding such as UTF-7, stores another text.
    names = {_blob(text, known or b"") for text in (content, content.replace(b"\r\n", b"\n"))}
    return "" if known in names else "a filter or an encoding of .gitattributes changes it"


def _blob(content: bytes, like: bytes) -> bytes:
    """The name that git gives to the content, in a repository with names such as `like`."""
    digest = hashlib.sha256() if len(like.strip()) == 64 else hashlib.sha1(usedforsecurity=False)  # noqa: PLR2004
    digest.update(b"blob %d\0%b" % (len(content), content))
    return digest.hexdigest().encode() + b"\n"
