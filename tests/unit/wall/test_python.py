"""The project's interpreter runs the sources that everybody sees."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from export_gate.run import launch
from export_gate.wall.python import FLAGS


def test_no_compiled_file_stands_for_another_source(tmp_path: Path):
    """One that is committed could say that it need not be compared with its source."""
    source = tmp_path / "net.py"
    source.write_text("print('hidden')")
    py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    source.write_text("print('seen')")

    def imported(*flags: str) -> str:
        command = [sys.executable, *flags, "-c", "import net"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert imported() == "hidden\n"
    assert imported(*FLAGS) == "seen\n"


def test_the_worker_is_started_so(monkeypatch: pytest.MonkeyPatch):
    """A fork of it has its settings; where nothing is forked, `children.py` starts it so."""
    commands: list[list[str]] = []

    def started(command: list[str], **_: object) -> None:
        commands.append(command)
        raise OSError

    monkeypatch.setattr(launch.subprocess, "Popen", started)
    with pytest.raises(launch.UserError), launch._started(Path("python"), os.environ, sys.stderr.buffer):
        pass
    assert commands == [["python", *FLAGS, str(launch.WORKER)]]
