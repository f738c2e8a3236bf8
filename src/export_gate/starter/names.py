"""Find how a config names a factory: the model's name, the path of its file, the folder of its package."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection
from pathlib import Path

from export_gate.config.paths import ATTRIBUTE, default_pythonpath
from export_gate.report.escape import one_line
from export_gate.wall.errors import UserError
from export_gate.wall.repository import repository_root

GENERIC = frozenset({"model", "models", "net", "module", "main", "factory", "make", "create", "build", "get", "init"})
"""Generic names, which do not identify the model."""


def check_reference(factory: str) -> None:
    """Check that the text can name a factory.

    Raises:
        UserError: it is not `module:attribute`.
    """
    if ATTRIBUTE.matches(factory):
        return
    place = factory.partition(":")[0] or "package.module"
    raise UserError(
        f"factory {factory!r}: expected {ATTRIBUTE.expected}",
        f"name the function or class that creates the model, such as `{one_line(place)}:make_model`",
    )


def beside(factory: str, folder: Path) -> str:
    """The factory as the config names it: the path of a file becomes relative to the config's folder."""
    place, _, attribute = factory.rpartition(":")
    if not place.endswith(".py") or (folder / place).is_file() or not Path(place).is_file():
        return factory
    return f"{Path(os.path.relpath(place, folder)).as_posix()}:{attribute}"


def needed_pythonpath(factory: str, folder: Path) -> tuple[str, ...]:
    """Folders to declare as `pythonpath`; empty if the default or an installed package has the factory."""
    place = factory.rpartition(":")[0]
    if place.endswith(".py"):
        return ()
    root, here = repository_root(folder), Path.cwd()
    if any(_has(Path(entry), place) for entry in default_pythonpath(folder)):
        return ()
    # A config may name only folders inside its repository.
    inside = [up for up in (here, here / "src", root, root / "src") if up == root or root in up.parents]
    return next(((str(entry),) for entry in inside if _has(entry, place)), ())


def _has(folder: Path, module: str) -> bool:
    """Whether the folder contains the module's source."""
    path = folder.joinpath(*module.split("."))
    # A folder without __init__.py is a package too (a namespace package).
    return path.with_suffix(".py").is_file() or path.is_dir()


def model_name(factory: str, taken: Collection[str] = ()) -> str:
    """A short name: the first of attribute, module and package that is not generic; numbered if it is taken."""
    place, _, attribute = factory.rpartition(":")
    parts = [*Path(place).with_suffix("").parts] if place.endswith(".py") else place.split(".")
    candidates = [kebab(part) for part in (attribute.rpartition(".")[2], *reversed(parts))]
    name = next((name for name in candidates if name and name not in GENERIC), "model")
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    return name if name not in taken else next(other for other in numbered if other not in taken)


def kebab(identifier: str) -> str:
    """`make_glyph_head` and `GlyphHead` as `glyph-head`."""
    # The first branch takes an acronym, up to the capital that starts the next word: `HTTPHead` is `http-head`.
    # An underscore or another character is in neither branch, so it ends a word.
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", identifier)
    while len(words) > 1 and words[0].lower() in {"make", "create", "build", "get", "load", "new"}:
        words = words[1:]
    # A config allows 100 characters, and the caller may add a number.
    return "-".join(word.lower() for word in words)[:90]
