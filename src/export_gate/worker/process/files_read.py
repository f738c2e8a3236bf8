"""Remember which files of the checkout the model's process reads: what it imports and what it opens."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

MOST_FILES = 5000
"""A model that reads more is a data loader over a folder, of which a part is as good as all."""
_WRITES = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def remember_files(base: Path) -> Callable[[], tuple[str, ...]]:
    """Watch this process from now on; returns what says which files it has read, from the root of the checkout.

    Python reports each file that it opens (PEP 578). What native code opens by itself is not seen: a file that
    safetensors or ONNX Runtime maps, or a library that a library loads.
    """
    opened: set[Any] = set()
    written: set[Any] = set()

    # Bound here, because the project's code may replace what anybody finds by name. A hook cannot be removed.
    def watch(event: str, arguments: tuple[Any, ...], *, read: Any = opened.add, wrote: Any = written.add) -> None:
        # A descriptor is not a name. Not `isinstance`, which is looked up by name and may be the project's.
        if event == "open" and arguments[0].__class__ in (str, bytes):
            (wrote if (arguments[2] or 0) & _WRITES else read)(arguments[0])

    sys.addaudithook(watch)
    root = _root(base)

    def files() -> tuple[str, ...]:
        modules = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        names = (*opened, *(name for name in modules if isinstance(name, str)))
        found = set(_inside(names, base, root))
        # A file that the process wrote is a product of the code, not one of its inputs.
        return tuple(sorted(found - set(_inside(written, base, root)))[:MOST_FILES])

    return files


def _root(base: Path) -> str:
    """The folder or its nearest parent that contains `.git`."""
    base = base.resolve()
    return str(next((up for up in (base, *base.parents) if (up / ".git").exists()), base))


def _inside(names: Iterable[Any], base: Path, root: str) -> Iterator[str]:
    """The paths below the root, without installed packages; a compiled file stands for its source.

    The project's code runs in `base`, so relative names start there.
    """
    for name in tuple(names):
        path = os.path.normpath(base / os.fsdecode(name))  # git lists links, too
        for place in {path, os.path.realpath(path)}:
            if place.startswith(f"{root}{os.sep}") and not is_installed(place) and Path(place).is_file():
                yield os.path.relpath(_source(place), root).replace(os.sep, "/")


def is_installed(path: str) -> bool:
    """Whether the file is part of an installed package or of Python, or of git's own folder."""
    # An environment often lies inside the checkout, as `.venv`.
    own = not path.startswith(f"{sys.prefix}{os.sep}") and "site-packages" not in path
    return not own or f"{os.sep}.git{os.sep}" in path


def _source(path: str) -> str:
    if not path.endswith(".pyc"):
        return path
    try:
        return importlib.util.source_from_cache(path)
    except ValueError:
        return path
