"""The suite's own shortcuts: a forked worker and an in-process command line are what the real ones are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness.gate import gate, real_gate
from harness.preloaded import COMMAND, Preloaded, fresh_workers

SPY = """
import gc, json, os, resource, signal, sys, threading

def make():
    import torch
    facts = {
        "argv": sys.argv,
        "path": sys.path,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "executable": sys.executable,
        "utf8": sys.flags.utf8_mode,
        "streams": [(s.encoding, s.errors, s.isatty()) for s in (sys.stdin, sys.stdout, sys.stderr)],
        "descriptors": sorted(os.readlink(f"/proc/self/fd/{number}").partition(":")[0]
                              for number in os.listdir("/proc/self/fd")
                              if os.path.lexists(f"/proc/self/fd/{number}")),
        "signals": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
        "masked": [str(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
        "leader": os.getpid() == os.getsid(0) == os.getpgid(0),
        "parent-leads": os.getppid() == os.getsid(os.getppid()) == os.getpgid(os.getppid()),
        "grandparent": int(open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[1]),
        "umask": os.umask(0o22),
        "nice": os.nice(0),
        "limits": [resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")],
        "recursion": sys.getrecursionlimit(),
        "python-threads": threading.active_count(),
        "threads": len(os.listdir("/proc/self/task")),
        "torch-threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "collects": gc.isenabled(),
        "main": sys.modules["__main__"].__file__,
        "modules": sorted(sys.modules),
        "started-as": open("/proc/self/cmdline").read(),
    }
    with open(os.path.join(os.path.dirname(__file__), "facts.json"), "w") as file:
        json.dump(facts, file)
    return torch.nn.Linear(2, 2).eval()
"""
TIME = re.compile(r"\d+(\.\d+)? s\b")
CONFIG = """
version: 1
models:
  spy:
    factory: spy.py:make
    inputs: {input: {dtype: float32, shape: [3, 2], range: [0, 1]}}
    controls: {limit: 2}
    targets: {exported-program: {}, pt2: {}, onnx: {}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose model notes its surroundings."""
    (tmp_path / "spy.py").write_text(SPY)
    (tmp_path / "export-gate.yml").write_text(CONFIG)
    return tmp_path


def facts(project: Path) -> dict[str, Any]:
    """What the model noted."""
    noted: dict[str, Any] = json.loads((project / "facts.json").read_text())
    return noted


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="workers are preloaded on Linux only")
def test_a_forked_worker_is_what_a_fresh_one_is(project: Path):
    """Process, session, streams, signals, environment, folder, paths and modules are the same."""
    with fresh_workers():
        assert gate(project, "run", "-q").returncode == 0
    fresh = facts(project)
    assert gate(project, "run", "-q").returncode == 0
    forked = facts(project)
    assert "preloaded_server.py" in forked.pop("started-as")
    assert "preloaded_server.py" not in fresh.pop("started-as")
    assert forked == fresh
    assert forked["grandparent"] == os.getpid()


@pytest.mark.slow
def test_in_process_and_real_command_lines_write_the_same(project: Path):
    """Status, standard output and standard error are equal, apart from times."""
    real, inside = real_gate(project, "run"), gate(project, "run")
    assert (inside.returncode, inside.stderr) == (real.returncode, real.stderr)
    assert TIME.sub("_", inside.stdout) == TIME.sub("_", real.stdout)
    for arguments in (("run", "nothing"), ("report",), ("--version",), ("plan",), ("no-such-command",)):
        real, inside = real_gate(project, *arguments), gate(project, *arguments)
        assert (inside.returncode, inside.stdout, inside.stderr) == (real.returncode, real.stdout, real.stderr)


def test_an_in_process_command_line_leaves_nothing_changed(tmp_path: Path):
    """Folder, environment, streams and arguments are the same as before."""
    before = Path.cwd(), dict(os.environ), sys.stdin, sys.stdout, sys.stderr, sys.argv
    assert gate(tmp_path, "validate", environment={"PATH": "/nowhere"}).returncode == 2
    assert (Path.cwd(), dict(os.environ), sys.stdin, sys.stdout, sys.stderr, sys.argv) == before


def test_a_command_that_is_not_the_worker_is_started_as_usual():
    """Other commands never reach the server, nor does a worker with another environment than the server's."""
    code = "import sys; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout == b"False\n"
    given, pipe = {"PYTHONHASHSEED": "1"}, subprocess.PIPE
    with Preloaded(COMMAND, stdin=pipe, stdout=pipe, env=given, start_new_session=True) as process:
        environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        process.stdin.close()
    assert environment == b"PYTHONHASHSEED=1\0"
