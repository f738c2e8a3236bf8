"""Say which files of the checkout the model's process read: what it imported and what it opened."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from export_gate.wall.repository import repository_root, whole_root
from export_gate.worker.process.places import source_of
from export_gate.worker.process.recording import Seen

MOST_FILES = 5000
"""A model that reads more is a data loader over a folder, of which a part is as good as all."""


def files_read(seen: Seen, base: Path) -> tuple[str, ...]:
    """The files that this process has read, from the root of the checkout; those around a submodule come last.

    Python reports each file that it opens. What native code opens by itself is not seen: a file that safetensors or
    ONNX Runtime maps, or a library that a library loads.
    """
    # A list, since what follows reads files, too.
    opened, root, whole = list(seen.opened), repository_root(base.resolve()), whole_root(base.resolve())
    modules = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    names = (*opened, *(name for name in modules if isinstance(name, str)))
    # A file that the process wrote is a product of the code, not one of its inputs.
    found = set(_inside(names, base, str(whole))) - set(_inside(seen.written, base, str(whole)))
    places = (os.path.relpath(place, root).replace(os.sep, "/") for place in found)
    # Code first: a loader that reads a folder of thousands must not hide it.
    ranked = sorted(places, key=lambda place: (not place.endswith(".py"), place.startswith("../"), place))
    return tuple(sorted(ranked[:MOST_FILES], key=lambda place: (place.startswith("../"), place)))


def _inside(names: Iterable[str], base: Path, root: str) -> Iterator[str]:
    """The paths below the root, without installed packages; a compiled file stands for its source."""
    for name in tuple(names):
        path = os.path.normpath(base / name)  # git lists links, too
        for place in {path, _real(path)}:
            if place.startswith(f"{root}{os.sep}") and not is_installed(place) and Path(place).is_file():
                yield source_of(place)


def _real(path: str) -> str:
    """As `os.path.realpath`, which looks at every folder above each of thousands of files."""
    folder, name = os.path.split(path)
    place = f"{_real_folder(folder)}{os.sep}{name}"
    return os.path.realpath(place) if os.path.islink(place) else place  # noqa: PTH114 - as cheap as can be


@functools.lru_cache(maxsize=4096)
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)


def is_installed(path: str) -> bool:
    """Whether the file is part of an installed package or of Python, or of git's own folder."""
    # An environment often lies inside the checkout, as `.venv`.
    own = not path.startswith(f"{sys.prefix}{os.sep}") and "site-packages" not in path
    return not own or f"{os.sep}.git{os.sep}" in path
