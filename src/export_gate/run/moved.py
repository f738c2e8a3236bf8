"""Find the config that a change moved: the one of the base that a config without a past stands in for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from export_gate.config import Config
from export_gate.config.load import load_config, parse_config
from export_gate.config.source import MAX_BYTES
from export_gate.run.base import Base, Wanted, file_at, within
from export_gate.run.git import UnreadableError, git_paths
from export_gate.run.named import sources
from export_gate.wall.contract import ModelContract
from export_gate.wall.errors import UserError

PLAIN = ("--no-ext-diff", "-O/dev/null")
"""Whatever the user's settings of git say about diffs."""
MOST_FILES = 20
"""How many files of the base are read in search of a config."""
MOST_GONE = 500
"""And of those that the change touches: it must not hide one behind others."""


SIBLINGS = {".yml": ".yaml", ".yaml": ".yml"}
"""`export-gate.yaml` is read if there is no `export-gate.yml`, so a change can swap them."""


def moved_from(config: Config, base: Base, environment: Mapping[str, str]) -> Path | None:
    """Where the config was at the base, absolute; None if it was here, or no file there is about its models.

    A file that git calls renamed is the one. Else it is the one with the most models of the same names; if it still
    exists, they must have the same factories of the same files too, since projects of one repository may use the same
    names.

    Raises:
        UnreadableError: the config may have been in a submodule whose commit is not here.
    """
    path = config.place
    if any(
        _is_at(base, place, environment) for place in (path, path.with_suffix(SIBLINGS.get(path.suffix, path.suffix)))
    ):
        return None
    renamed = _renamed(base, path, environment)
    if renamed is not None:
        return renamed
    found = {old: _shared(config, old, before) for old, before in configs_at(config, base, environment)}
    best = max(found, key=lambda old: found[old], default=None)
    return best if best is not None and found[best] else None


def configs_at(config: Config, base: Base, environment: Mapping[str, str]) -> Iterator[tuple[Path, Config]]:
    """The other configs of the base that can be read: those that are gone first."""
    path = config.place
    return _read(_candidates(base, path, environment), base, environment)


def gone_configs(base: Base, environment: Mapping[str, str]) -> Iterator[tuple[Path, Config]]:
    """The configs of the base that are none any more, and not under a name that git calls a new one either."""
    # M and T too: a file that was edited or became a link may be no config any more.
    asked = ("diff", *PLAIN, "-M", "--diff-filter=DMT", "--name-only", base.commit, "--", "*.yml", "*.yaml")
    names = set(git_paths(base.root, *asked, environment=environment))
    places = [base.root / name for name in names.intersection(_with_factories(base, environment) if names else ())]
    places += _in_submodules(base, environment)
    places.sort(key=lambda place: (not _is_usual(place), place))
    return _read((place for place in places[:MOST_GONE] if not _is_config(place)), base, environment)


def _is_config(place: Path) -> bool:
    with suppress(UserError):
        return bool(load_config(place).models)
    return False


def _read(places: Iterable[Path], base: Base, environment: Mapping[str, str]) -> Iterator[tuple[Path, Config]]:
    for place in places:
        with suppress(UserError, UnreadableError):
            content = file_at(base, Wanted(path=place, noun="config", largest_bytes=MAX_BYTES), environment)
            if content is not None:
                yield place, parse_config(content, place, is_past=True)


def require_read(base: Base, environment: Mapping[str, str]) -> None:
    """Check that each submodule that the change moves or removes can be read as it was: a config may have been there.

    Raises:
        UnreadableError: the commit of one is not here.
    """
    for folder in _changed_submodules(base, environment):
        within(base, folder / ".git", environment)


def _is_at(base: Base, path: Path, environment: Mapping[str, str]) -> bool:
    with suppress(UserError):
        return file_at(base, Wanted(path=path, noun="config", largest_bytes=MAX_BYTES), environment) is not None
    return True


def _renamed(base: Base, path: Path, environment: Mapping[str, str]) -> Path | None:
    # Of all paths: limited to this one, git would not see the old one, and call this one added.
    asked = ("diff", *PLAIN, "-M", "--diff-filter=R", "--name-status", base.commit)
    words = iter(git_paths(base.root, *asked, environment=environment))
    # One iterator three times: `-z` gives status, old and new path as three texts.
    for _, old, new in zip(words, words, words, strict=False):
        if base.root / new == path:
            return base.root / old
    return None


def _candidates(base: Base, path: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Files that may be configs: those that are gone first, then those under the usual name."""
    places = [base.root / name for name in _with_factories(base, environment)]
    places += _in_submodules(base, environment)
    places.sort(key=lambda place: (place.exists(), not _is_usual(place), len(place.parts), place))
    yield from (place for place in places[:MOST_FILES] if place != path)


def _in_submodules(base: Base, environment: Mapping[str, str]) -> Iterator[Path]:
    """As well, in submodules that are not as at the base."""
    for folder in _changed_submodules(base, environment):
        with suppress(UnreadableError):
            inner = within(base, folder / ".git", environment)
            yield from (inner.root / name for name in _with_factories(inner, environment))


def _with_factories(base: Base, environment: Mapping[str, str]) -> Iterator[str]:
    # A config has a `factory` for each model. git grep puts `<commit>:` before each path.
    asked = ("-l", "-a", "-F", "-e", "factory", base.commit, "--", "*.yml", "*.yaml")
    return (name.partition(":")[2] for name in git_paths(base.root, "grep", *asked, environment=environment))


def _changed_submodules(base: Base, environment: Mapping[str, str]) -> Iterator[Path]:
    """The folders of submodules that are not at the commit of the base, or no submodules any more."""
    asked = ("diff", *PLAIN, "--raw", "--no-renames", "--ignore-submodules=dirty", base.commit, "--")
    words = iter(git_paths(base.root, *asked, environment=environment))
    # `:<mode before> <mode> <sha before> <sha> <status>`, then the path.
    return (base.root / path for entry, path in zip(words, words, strict=False) if entry.startswith(":160000"))


def _is_usual(place: Path) -> bool:
    return place.name.startswith("export-gate.")


def _shared(config: Config, old: Path, before: Config) -> int:
    """How many of the config's models the one at the base has."""
    names = {contract.name: contract for contract in before.models}
    pairs = [(names[contract.name], contract) for contract in config.models if contract.name in names]
    return len([pair for pair in pairs if _is_same(before, config, *pair)] if old.exists() else pairs)


def _is_same(before: Config, config: Config, old: ModelContract, new: ModelContract) -> bool:
    facts = [(contract.factory, repr(contract.kwargs)) for contract in (old, new)]
    return facts[0] == facts[1] and not sources(before, old).isdisjoint(sources(config, new))


def stands_in(config: Config, other: Config) -> bool:
    """Whether the config may be checked in place of the other one: it is beside it, or about the same code."""
    own, theirs = ({place for model in each.models for place in sources(each, model)} for each in (config, other))
    return config.place.parent == other.place.parent or not own.isdisjoint(theirs)
