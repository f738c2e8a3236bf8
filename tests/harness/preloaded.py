"""Starts the workers of in-process runs as forked copies of a process that has imported torch, once per test process.

Importing torch and the exporters takes seconds for every worker that a test starts. `install` replaces the class that
starts processes by one that recognises a worker, asks `preloaded_server.py` for a copy, and starts every other command
as usual. A copy is a child of this process in a session of its own, with the same streams, environment and folder;
`test_preloaded.py` compares it with a fresh worker.

A command line in a process of its own (`harness.gate.real_gate`) starts real workers, and so does everything inside
`fresh_workers`.
"""

from __future__ import annotations

import ctypes
import inspect
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from export_gate.run.environment import worker_environment
from export_gate.wall.python import FLAGS

SERVER = Path(__file__).with_name("preloaded_server.py")
WORKER = Path(__file__).parents[2] / "src" / "export_gate" / "worker" / "__main__.py"
COMMAND = [sys.executable, *FLAGS, str(WORKER)]
PR_SET_CHILD_SUBREAPER = 36

READ_WHEN_USED = frozenset({
    "CI", "HOME", "PATH", "PWD", "TERM", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_TEST_MARKER", "VIRTUAL_ENV",
})  # fmt: skip
"""Variables that no import looks at. If any other differs from the server's, the worker is started afresh."""

DEFAULTS = {"OMP_NUM_THREADS": "1"}
"""What the worker sets itself before it imports torch."""

RealPopen = subprocess.Popen


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The process that forks workers."""

    control: socket.socket
    environment: dict[str, str]
    """What it was started with."""

    def fork(self, environment: Mapping[str, str], folder: str, streams: list[int]) -> int:
        """The process id of a new worker, which is a child of this process."""
        order = {"environment": dict(environment), "folder": folder, "driver": os.getpid()}
        _adopt_orphans(1)  # only while the worker is handed over: orphans of a test are none of ours
        try:
            socket.send_fds(self.control, [json.dumps(order).encode()], streams)
            return int(self.control.recv(32))
        finally:
            _adopt_orphans(0)


class Preloaded(subprocess.Popen[Any]):
    """`subprocess.Popen` whose workers are forked copies of a preloaded process."""

    is_enabled = True
    server: Server | None = None

    def _execute_child(self, *arguments: Any, **named: Any) -> None:
        """Start the command; only this part of `Popen` is another one for a worker."""
        given = inspect.signature(RealPopen._execute_child).bind(self, *arguments, **named).arguments
        if not (type(self).is_enabled and given["args"] == COMMAND and given["start_new_session"]):
            super()._execute_child(*arguments, **named)
            return
        server = _server()
        asked = {**DEFAULTS, **given["env"]}
        if {name for name, _ in server.environment.items() ^ asked.items()} - READ_WHEN_USED:
            super()._execute_child(*arguments, **named)
            return
        streams = [given["p2cread"], given["c2pwrite"], given["errwrite"]]
        self.pid = server.fork(given["env"], str(given["cwd"] or Path.cwd()), streams)
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in pipes))


def install() -> None:
    """Let this process start its workers so from now on, where that is possible."""
    if sys.platform == "linux":
        subprocess.Popen = Preloaded  # type: ignore[misc]


@contextmanager
def fresh_workers() -> Iterator[None]:
    """Start real workers inside."""
    Preloaded.is_enabled = False
    try:
        yield
    finally:
        Preloaded.is_enabled = True


def _server() -> Server:
    """The server of this process, with the environment that its workers get unless a test changes it."""
    if Preloaded.server is None:
        environment = {**DEFAULTS, **worker_environment(os.environ)}
        control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            RealPopen(
                [sys.executable, *FLAGS, str(SERVER), str(other.fileno())],
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
            )
        Preloaded.server = Server(control=control, environment=environment)
    return Preloaded.server


def _adopt_orphans(value: int) -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, value, 0, 0, 0)
