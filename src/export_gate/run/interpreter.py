"""Find the Python that runs the project's code; the report names it and the reason for the choice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from export_gate.run.environment import worker_environment
from export_gate.wall.errors import UserError
from export_gate.wall.repository import repository_root

BIN = "Scripts" if sys.platform == "win32" else "bin"
PYTHON_NAMES = ("python.exe",) if sys.platform == "win32" else ("python", "python3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """The project's Python and why it was chosen."""

    path: Path
    reason: str


def find_interpreter(
    option: str | None, configured: str | None, folder: Path, environment: Mapping[str, str]
) -> Interpreter:
    """The project's interpreter.

    `--python`, then EXPORT_GATE_PYTHON, then `python:` in the config, then `.venv` beside the config or in the nearest
    folder above it in the repository, then `$VIRTUAL_ENV`, then this interpreter if torch is installed in it, then
    `python` on PATH.

    Raises:
        UserError: a named interpreter does not exist, or none was found.
    """
    named = (
        ("--python", option, Path.cwd()),
        ("EXPORT_GATE_PYTHON", environment.get("EXPORT_GATE_PYTHON"), Path.cwd()),
        ("`python:` in the config", configured, folder),
    )
    for source, text, base in named:
        if text:
            return Interpreter(path=_named(text, base, source, environment), reason=source)
    return _first(
        "no Python with the project's packages was found: set it with `--python`, EXPORT_GATE_PYTHON or `python:`",
        (_in_environment(folder / ".venv"), ".venv beside the config"),
        *((_in_environment(up / ".venv"), f".venv in {up.name}, above the config") for up in _above(folder)),
        (_own_environment(environment), "VIRTUAL_ENV"),
        # find_spec looks for torch without importing it.
        (Path(sys.executable) if find_spec("torch") else None, "export-gate's own environment has torch"),
        (_on_path(environment), "python on PATH"),
    )


def find_runtime(option: str | None, environment: Mapping[str, str]) -> Interpreter:
    """The interpreter that replays a kit: the first that is named or found, whatever is installed in it.

    `--python`, then EXPORT_GATE_PYTHON, then `$VIRTUAL_ENV`, then this interpreter if ONNX Runtime is installed in it,
    then `python` on PATH.

    Raises:
        UserError: a named interpreter does not exist, or none was found.
    """
    for source, text in (("--python", option), ("EXPORT_GATE_PYTHON", environment.get("EXPORT_GATE_PYTHON"))):
        if text:
            return Interpreter(path=_named(text, Path.cwd(), source, environment), reason=source)
    return _first(
        "no Python with onnxruntime was found: set it with `--python` or EXPORT_GATE_PYTHON",
        (_own_environment(environment, "onnxruntime"), "VIRTUAL_ENV"),
        (Path(sys.executable) if find_spec("onnxruntime") else None, "export-gate's own environment has onnxruntime"),
        (_on_path(environment), "python on PATH"),
    )


def _first(without: str, *found: tuple[Path | None, str]) -> Interpreter:
    """The first interpreter that was found; `without` one says what is wrong."""
    for path, reason in found:
        if path is not None:
            return Interpreter(path=path, reason=reason)
    raise UserError(without)


def with_environment(python: Path) -> tuple[Path, ...]:
    """The interpreter, and the folder of the environment around it, if there is one."""
    # Not `parents[1]`, which a file in the root folder does not have.
    around = python.parent.parent
    return (python, around) if (around / "pyvenv.cfg").exists() else (python,)


def _named(text: str, base: Path, source: str, environment: Mapping[str, str]) -> Path:
    """A path, or a command on PATH if it has no separator."""
    is_command = os.sep not in text and "/" not in text
    found = _which(text, environment.get("PATH", "")) if is_command else None
    path = Path(found) if found else base / Path(text).expanduser()
    if not path.is_file():
        raise UserError(f"{source}: there is no interpreter {text!r} (looked for {path})")
    if not os.access(path, os.X_OK):
        raise UserError(f"{source}: {path} is not executable")
    return path


def _which(command: str, path: str) -> str | None:
    # Not above: it takes a twentieth of the time of a hook, which seldom asks.
    import shutil  # noqa: PLC0415

    return shutil.which(command, path=path)


def _above(folder: Path) -> tuple[Path, ...]:
    """The folders between this one and the repository's root, which is the last of them: a monorepo has one `.venv`."""
    root = repository_root(folder)
    return tuple(up for up in folder.parents if up.is_relative_to(root))


def _in_environment(folder: Path) -> Path | None:
    return next((path for name in PYTHON_NAMES if (path := folder / BIN / name).is_file()), None)


def _own_environment(environment: Mapping[str, str], package: str = "torch") -> Path | None:
    """`$VIRTUAL_ENV`, unless it is the environment that export-gate itself runs in without that package."""
    folder = environment.get("VIRTUAL_ENV")
    if not folder or (Path(folder) == Path(sys.prefix) and not find_spec(package)):
        return None
    return _in_environment(Path(folder))


def _on_path(environment: Mapping[str, str]) -> Path | None:
    """The first `python` on PATH that is not export-gate's own environment."""
    # pre-commit and `activate` put the driver's own environment first on PATH.
    own = Path(sys.prefix) / BIN
    entries = [entry for entry in environment.get("PATH", "").split(os.pathsep) if entry and Path(entry) != own]
    found = next((path for name in PYTHON_NAMES if (path := _which(name, os.pathsep.join(entries)))), None)
    return Path(found) if found else None


def why_no_python(path: Path, environment: Mapping[str, str]) -> str:
    """Say what the file does instead of running Python code; empty if it runs it."""
    # Not "print(42)", which `echo` would pass.
    command = [str(path), "-c", "print(6 * 7)"]
    visible = worker_environment(environment)
    try:
        tried = subprocess.run(
            command, env=visible, capture_output=True, text=True, errors="replace", timeout=60, check=False
        )
    except OSError as error:
        return str(error.strerror or error)
    except subprocess.TimeoutExpired:
        return "it did not end within 60 s"
    if tried.returncode == 0 and tried.stdout.strip() == "42":
        return ""
    printed = " ".join((tried.stderr or tried.stdout).split())[:500]
    return f"it ended with exit status {tried.returncode} and printed {printed or 'nothing'}"
