"""The command line for tests: `gate` runs it in this process, `real_gate` in one of its own, as a user does.

Both return the same. Tests of terminals, signals, start-up and what a run leaves behind need the real one; all others
are faster in this process, where a worker is a forked copy (`harness.preloaded`) and no package is imported again.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from export_gate.cli.main import main

GATE = Path(sys.executable).with_name("export-gate")
Done = subprocess.CompletedProcess[str]


def surroundings(changes: Mapping[str, str]) -> dict[str, str]:
    """This environment without what changes texts, and with the changes."""
    changing = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "EXPORT_GATE_PYTHON", "TTY_COMPATIBLE")
    inherited = {name: value for name, value in os.environ.items() if name not in changing}
    return {**inherited, "OMP_NUM_THREADS": "1", **changes}


def gate(folder: Path, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> Done:
    """Run the command line in this process: in that folder, with an environment, streams and exit status of its own."""
    command = [str(GATE), *map(str, arguments)]
    with _elsewhere(folder, surroundings({}) if environment is None else environment), _streams() as (out, err):
        status = _status(command)
        written = [stream.buffer.getvalue().decode() for stream in _flushed(out, err)]
    return Done(command, status, *written)


def real_gate(folder: Path, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> Done:
    """Run the command line as a user does."""
    given = surroundings({}) if environment is None else dict(environment)
    return subprocess.run([GATE, *arguments], cwd=folder, env=given, capture_output=True, text=True, check=False)


def pasted(folder: Path, line: str) -> Done:
    """Run a line with `export-gate` as a shell there reads it; the command line itself runs in this process."""
    with tempfile.TemporaryDirectory() as place:
        reader = Path(place) / GATE.name
        reader.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n", encoding="utf-8")
        reader.chmod(0o755)
        environment = {**os.environ, "PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(["sh", "-c", line], cwd=folder, env=environment, capture_output=True, check=True)
    return gate(folder, *done.stdout.decode().split("\0")[:-1])


def _status(command: list[str]) -> int:
    """The exit status that a process of its own would have."""
    before, handler = sys.argv, signal.getsignal(signal.SIGTERM)
    sys.argv = command
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - what the interpreter would do
        traceback.print_exc()
        return 1
    finally:
        sys.argv = before
        signal.signal(signal.SIGTERM, handler)
    return 0


@contextmanager
def _elsewhere(folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    before, variables = Path.cwd(), dict(os.environ)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(before)


@contextmanager
def _streams() -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Standard output and error that keep what is written, encoded as a pipe's would be; standard input is empty."""
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(3))
    try:
        yield sys.stdout, sys.stderr
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def _flushed(*streams: io.TextIOWrapper) -> Iterator[io.TextIOWrapper]:
    for stream in streams:
        stream.flush()
        yield stream
