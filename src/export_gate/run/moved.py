"""Find the config that a change moved: the one of the base that a config without a past stands in for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from export_gate.config import Config
from export_gate.config.load import parse_config
from export_gate.config.source import MAX_BYTES
from export_gate.run.base import UnreadableError, Wanted, file_at, root_of
from export_gate.run.git import git_line, git_output
from export_gate.wall.contract import ModelContract
from export_gate.wall.errors import UserError

MOST_FILES = 20
"""How many files of the base are read in search of a config."""


SIBLINGS = {".yml": ".yaml", ".yaml": ".yml"}
"""`export-gate.yaml` is read if there is no `export-gate.yml`, so a change can swap them."""


def moved_from(config: Config, commit: str, environment: Mapping[str, str]) -> Path | None:
    """Where the config was at the base, absolute; None if it was here, or no file there is about its models.

    A file that git calls renamed is the one. Else it is the one with the most models of the same names; if it still
    exists, they must have the same factories too, since projects of one repository may use the same names.
    """
    path = Path(os.path.abspath(config.path))  # noqa: PTH100 - as load_config names it
    if any(_is_at(commit, place, environment) for place in (path, path.with_suffix(SIBLINGS.get(path.suffix, "")))):
        return None
    top = git_line(path.parent, "rev-parse", "--show-toplevel")
    renamed = None if top is None else _renamed(Path(top), path, commit, environment)
    if renamed is not None:
        return renamed
    found = {old: _shared(config, old, before) for old, before in configs_at(config, commit, environment)}
    best = max(found, key=lambda old: found[old], default=None)
    return best if best is not None and found[best] else None


def configs_at(
    config: Config, commit: str, environment: Mapping[str, str], *, gone: bool = False
) -> Iterator[tuple[Path, Config]]:
    """The other configs of the base that can be read, or those of them that are gone: these first in any case."""
    path = Path(os.path.abspath(config.path))  # noqa: PTH100 - as load_config names it
    top = git_line(path.parent, "rev-parse", "--show-toplevel")
    for old in () if top is None else _candidates(Path(top), path, commit, environment):
        if gone and old.exists():
            continue
        with suppress(UserError, UnreadableError):
            content = file_at(commit, Wanted(path=old, noun="config", largest_bytes=MAX_BYTES), environment)
            if content is not None:
                yield old, parse_config(content, old, is_past=True)


def _is_at(commit: str, path: Path, environment: Mapping[str, str]) -> bool:
    root = root_of(path)
    name = path.relative_to(root).as_posix()
    return bool(git_output(root, "ls-tree", "-z", commit, "--", name, environment=environment))


def _renamed(root: Path, path: Path, commit: str, environment: Mapping[str, str]) -> Path | None:
    listed = git_output(root, "diff", "-M", "--diff-filter=R", "--name-status", "-z", commit, environment=environment)
    words = iter(os.fsdecode(listed or b"").split("\0"))
    # One iterator three times: `-z` gives status, old and new path as three texts.
    for _, old, new in zip(words, words, words, strict=False):
        if root / new == path.resolve():
            return root / old
    return None


def _candidates(root: Path, path: Path, commit: str, environment: Mapping[str, str]) -> Iterator[Path]:
    """Files that may be configs: those that are gone first, then those under the usual name."""
    # A config has a `factory` for each model.
    asked = ("grep", "-z", "-l", "-a", "-F", "-e", "factory", commit, "--", "*.yml", "*.yaml")
    listed = git_output(root, *asked, environment=environment)
    # git grep puts `<commit>:` before each path.
    names = [name.partition(":")[2] for name in os.fsdecode(listed or b"").split("\0") if name]
    names.sort(key=lambda name: ((root / name).exists(), not _is_usual(name), name.count("/"), name))
    yield from (root / name for name in names[:MOST_FILES] if root / name != path.resolve())


def _is_usual(name: str) -> bool:
    return Path(name).name.startswith("export-gate.")


def _shared(config: Config, old: Path, before: Config) -> int:
    """How many of the config's models the one at the base has."""
    still_there = old.exists()
    known = {_identity(contract, whole=still_there) for contract in before.models}
    return sum(_identity(contract, whole=still_there) in known for contract in config.models)


def _identity(contract: ModelContract, *, whole: bool) -> tuple[str, ...]:
    return (contract.name, contract.factory, repr(contract.kwargs)) if whole else (contract.name,)
