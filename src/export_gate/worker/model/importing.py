"""Import a module of the project by name, or by the path of a source file."""

from __future__ import annotations

import errno
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from export_gate.wall.errors import UserError
from export_gate.worker.process.failures import describe, source_line
from export_gate.worker.process.integrity import guarded

SEARCHED_SHOWN = 4
"""Number of folders of sys.path in a message."""


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Run the project's code in that folder; then the working directory is what it was, unless the code changed it."""
    before = _working_directory()
    os.chdir(folder)
    # As the system names it: the folder may be given as a link.
    inside = _working_directory()
    try:
        yield
    finally:
        if before is not None and _working_directory() == inside:
            os.chdir(before)


def _working_directory() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - as the system names it
    except OSError:  # it is gone
        return None


def import_place(place: str, base: Path, role: str) -> types.ModuleType:
    """Import the module with that name, or the file with that path in `base`; `role` starts every message.

    Raises:
        UserError: it does not exist, or its code raises or exits.
    """
    try:
        with working_in(base):
            if place.endswith(".py"):
                return guarded(_import_file)(base / place)
            return guarded(importlib.import_module)(place)
    except FileNotFoundError as error:
        # The code that is imported may itself miss a file.
        if error.filename != str((base / place).resolve()):
            raise _import_failed(error, place, base, role) from error
        raise UserError(
            f"{role}: the file {place} does not exist in {base}", "a path is relative to the config's folder"
        ) from error
    except ModuleNotFoundError as error:
        raise _module_not_found(error, place, base, role) from error
    except SystemExit as error:
        raise UserError(
            f"{role}: importing {place} called sys.exit({error.code!r}){at_line(error, base)}",
            "move code for scripts under `if __name__ == '__main__':`",
        ) from error
    except Exception as error:
        raise _import_failed(error, place, base, role) from error


def _import_failed(error: Exception, place: str, base: Path, role: str) -> UserError:
    return UserError(
        f"{role}: importing {place} raised {type(error).__name__}: {describe(error)}{at_line(error, base)}",
        f"import it with the project's interpreter, {sys.executable}, in {base}",
    )


def _module_not_found(error: ModuleNotFoundError, place: str, base: Path, role: str) -> UserError:
    """Either the named module was not found, or a module that it imports."""
    # `a.b.c` is not found if `a` or `a.b` is not.
    if not f"{place}.".startswith(f"{error.name}."):
        return UserError(
            f"{role}: importing {place} needs the module {error.name!r}, which is not installed{at_line(error, base)}",
            f"install it for the project's interpreter, {sys.executable}, or add its folder to `pythonpath`",
        )
    looked = ", ".join(sys.path[:SEARCHED_SHOWN])
    return UserError(
        f"{role}: the module {error.name!r} was not found (searched {looked}, ...)",
        "add the folder that contains it to `pythonpath`",
    )


def _import_file(path: Path) -> types.ModuleType:
    path = path.resolve()
    # A prefix, because a project's `json.py` must not stand for the library's; without a dot after `export_gate`, since
    # what is below that is the gate's own (see `process/integrity.py`).
    name = f"export_gate_project_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python source file")
    module = importlib.util.module_from_spec(spec)
    # Before it runs: dataclasses and pickle look for the module of a class there.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        # As Python's own import does, so that half a module is not found by the next one.
        sys.modules.pop(name, None)
        raise
    return module


def at_line(error: BaseException, base: Path) -> str:
    """The project's own line that raised, in parentheses."""
    line = source_line(error, (base,))
    return "" if line is None else f" (at {_display_path(line.path, base)}:{line.line}: {line.text})"


def _display_path(path: str, base: Path) -> str:
    """The path, relative to the project if it is inside."""
    try:
        return str(Path(path).resolve().relative_to(base.resolve()))
    except ValueError:
        return path
