"""Files of control inputs: under the same name, another content tries other inputs, or expects other answers."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from export_gate.config import Config
from export_gate.loosening.record import Alteration
from export_gate.run.base import Base, within
from export_gate.run.committed import changed_below
from export_gate.run.followed import followed
from export_gate.run.git import UnreadableError, git_output
from export_gate.wall.repository import in_repository, repository_root

_EXTERNAL = re.compile(rb"\x0a\x08location\x12([\x01-\x7f]|[\x80-\xff][\x01-\x7f])")
"""How an ONNX file names one of weights beside it: the key `location` of a map, then the length of the value."""
MEANING = {"data": "other inputs are tried", "golden": "other answers are expected"}


def content_alterations(
    before: Config, after: Config, base: Base, environment: Mapping[str, str]
) -> Iterator[Alteration]:
    """One alteration for each file or folder that both configs name for a model, and that is not as at the base.

    What git does not track is not seen, unless DVC keeps it: then git has the file that names its content.
    """
    known = {contract.name: contract for contract in before.models}
    for contract in after.models:
        old = known.get(contract.name, contract)
        for kind, meaning in MEANING.items():
            past, now = ([source.path for source in getattr(each.controls, kind)] for each in (old, contract))
            for path in (path for path in dict.fromkeys(now) if path in past):
                places = (before.place.parent / path, after.place.parent / path)
                if _is_other(*places, base, environment) or _is_other_for_dvc(*places, base, environment):
                    key = f"controls.{kind}.{path}"
                    what = f"{key} has another content, so that {meaning}"
                    yield Alteration(effect="loosened", model=contract.name, key=key, what=what)


def input_places(config: Config) -> Iterator[Path]:
    """The files and folders that the config's control inputs are read from, and where links of theirs lead."""
    folder = config.place.parent
    for contract in config.models:
        paths = [*(each.path for each in contract.controls.data), *(each.path for each in contract.controls.golden)]
        for path in paths:
            yield from followed(Path(os.path.normpath(folder / path)), repository_root(folder))


def is_same_file(old: Path, new: Path, base: Base, environment: Mapping[str, str]) -> bool:
    """Whether git has the same bytes at the new path as at the old one of the base, and so for its files of weights."""
    old, new = (Path(os.path.normpath(place)) for place in (old, new))
    past = _past(old, base, environment)
    return (
        past is not None
        and past == stored(new, environment)
        and all(is_same_file(old.parent / name, new.parent / name, base, environment) for name in _external(new))
    )


def _external(path: Path) -> set[str]:
    """The files of weights that an ONNX file names."""
    if path.suffix != ".onnx" or not path.is_file() or not path.stat().st_size:
        return set()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = ((match.end(), _varint(match.group(1))) for match in _EXTERNAL.finditer(content))
        return {content[start : start + length].decode("utf-8", "replace") for start, length in found}


def _varint(digits: bytes) -> int:
    """A number in base 128, the least digit first."""
    return sum((digit & 127) << (7 * place) for place, digit in enumerate(digits))


def _is_other(old: Path, new: Path, base: Base, environment: Mapping[str, str]) -> bool:
    old, new = (Path(os.path.normpath(place)) for place in (old, new))
    if base.root not in new.parents or base.root not in old.parents:
        return False
    places = list(followed(new, base.root))
    if new.is_dir() or len(places) > 1:
        return old != new or any(changed_below(base, places, environment))
    past = _past(old, base, environment)
    # What git does not have at the base is known there by another means, such as DVC, unless it is git's now.
    return past != stored(new, environment) if past is not None else _is_tracked(new, environment)


def _is_other_for_dvc(old: Path, new: Path, base: Base, environment: Mapping[str, str]) -> bool:
    """Whether DVC's file about the place, or about a folder above it, is not as at the base."""
    pairs = zip(_kept_by_dvc(old, base.root), _kept_by_dvc(new, base.root), strict=False)
    return any(
        past is not None and past != stored(now, environment)
        for past, now in ((_past(before, base, environment), now) for before, now in pairs)
    )


def _kept_by_dvc(path: Path, root: Path) -> Iterator[Path]:
    place = Path(os.path.normpath(path))
    return (up.with_name(f"{up.name}.dvc") for up in (place, *place.parents) if root in up.parents)


def _past(path: Path, base: Base, environment: Mapping[str, str]) -> bytes | None:
    """The name of the file's bytes at the base; None if git does not have it there."""
    # ValueError: it is outside of the checkout.
    with suppress(UnreadableError, ValueError):
        own = within(base, path, environment)
        name = path.relative_to(own.root).as_posix()
        return git_output(own.root, "rev-parse", "--verify", f"{own.commit}:{name}", environment=environment)
    return None


def stored(path: Path, environment: Mapping[str, str]) -> bytes | None:
    """The name that git gives to the file's bytes as they are committed."""
    # From the root: what is around a file of the change may look like another repository. With the file's path, so that
    # line endings and filters of .gitattributes apply as when it is committed.
    root, name = in_repository(path)
    return git_output(root, "hash-object", "--", name, environment=environment)


def _is_tracked(path: Path, environment: Mapping[str, str]) -> bool:
    root, name = in_repository(path)
    return bool(git_output(root, "ls-files", "--", f":(literal){name}", environment=environment))
