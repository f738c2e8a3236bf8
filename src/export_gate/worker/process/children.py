"""Child processes of the worker: started by fork or as a new interpreter, read line by line, killed as a group."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from export_gate.wall.contract import Job
from export_gate.wall.protocol import Event, request_line
from export_gate.wall.python import FLAGS
from export_gate.wall.request import Request
from export_gate.worker.process.channel import Channel
from export_gate.worker.process.orphans import end_with_parent

CAN_FORK = hasattr(os, "fork") and sys.platform != "darwin"
"""Apple's frameworks abort in a forked child once they are loaded."""
READ_BYTES = 1 << 16
PIPE_LIMIT_BYTES = 1 << 20
"""The most that an unprivileged process can make a pipe hold on Linux."""
LINE_LIMIT_BYTES = 16 << 20
"""A longer line is dropped: no event is near that size."""
LOG_LIMIT_BYTES = 64 << 20
"""A longer log is cut: a model that prints without end must not fill the disk."""
LOG_KEPT_CHARACTERS = 1 << 16
REAP_S = 10.0
"""Longest wait for a killed process, if it was not forked: one that waits for a disk outlives the signal."""


Work = Callable[[Job, Channel], None]
"""What a child does for one job; it sends its facts over the channel."""


@dataclass(slots=True, kw_only=True)
class Child:
    """One process and its output so far."""

    pid: int
    descriptor: int
    """Read end of its events."""
    log: Path
    """The file with its output."""
    process: subprocess.Popen[bytes] | None = None
    """None for a forked child."""
    pending: bytes = b""
    """Bytes of a line that is not complete yet."""
    exit_status: int | None = None
    """Negative for a signal, as in subprocess."""
    peak_memory_bytes: int = 0


def reserve_stdout() -> int:
    """Keep standard output's descriptor for events and let everything printed go to standard error."""
    # By descriptor, because native code prints past `sys.stdout`.
    events = os.dup(1)
    os.dup2(2, 1)
    return events


def start(job: Job, request: Request, token: bytes, events: int, work: Work) -> Child:
    """Start a process that does the work on the job.

    Args:
        job: what to work on.
        request: what the driver asked for.
        token: goes in front of every event of the child.
        events: this process's own descriptor, which the child must not keep.
        work: what a forked child does; a fresh interpreter finds the same in its own `__main__`.
    """
    log = Path(request.log_folder) / f"{job.contract.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    return _fork(job, token, events, log, work) if CAN_FORK else _spawn(job, request, token, log)


def attend(job: Job, channel: Channel, work: Work) -> None:
    """Do what the request asks for one job, in the child itself; what it raises is a fault of the gate's own code."""
    if not channel.token:  # a fresh interpreter, whose first events were not the model's
        channel = Channel(descriptor=channel.descriptor, token=_token_from_environment())
    channel = replace(channel, model=job.contract.name)
    _enter(job)
    try:
        work(job, channel)
    except BaseException:
        channel.send(Event(op="broke", model=job.contract.name))
        raise
    channel.send(Event(op="ended", model=job.contract.name))


def _enter(job: Job) -> None:
    """Work in the config's folder, with the job's variables, so that who starts the gate and where has no effect."""
    os.chdir(job.base)
    # `chdir` leaves PWD as it was, and tools that ask for the working directory prefer it.
    os.environ.update(job.variables, PWD=job.base)


def read_lines(children: Sequence[Child], timeout_s: float) -> dict[int, list[bytes]]:
    """Whole lines that have come from each child (by pid), waiting at most `timeout_s` for the first."""
    lines: dict[int, list[bytes]] = {}
    with selectors.DefaultSelector() as selector:
        for child in children:
            if child.descriptor >= 0:
                selector.register(child.descriptor, selectors.EVENT_READ, child)
        # Every pipe is closed, but a child that closed its own may still run.
        if not selector.get_map():
            time.sleep(timeout_s)
            return lines
        for key, _ in selector.select(timeout_s):
            lines[key.data.pid] = _take_lines(key.data)
    return lines


def remaining_lines(child: Child) -> list[bytes]:
    """What an ended child left in its pipe; closes the descriptor.

    Reads no more than a pipe can hold: a daemon of the model may go on writing to it.
    """
    lines: list[bytes] = []
    for _ in range(PIPE_LIMIT_BYTES // READ_BYTES):
        if child.descriptor < 0:
            break
        before = len(lines), len(child.pending)
        lines += _take_lines(child)
        # Nothing came, so the pipe is empty; a daemon may keep its other end open for ever.
        if before == (len(lines), len(child.pending)):
            break
    _close(child)
    return lines


def has_ended(child: Child) -> bool:
    """Whether the process is gone; reaps it."""
    if child.exit_status is None:
        _reap(child, block=False)
    return child.exit_status is not None


def kill(child: Child) -> int:
    """Kill the process and its whole group; its exit status, negative for a signal.

    The group is killed after a normal end too: it may hold processes that the model started.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        elif child.process is not None:
            child.process.kill()
    if child.exit_status is None:
        _reap(child, block=True)
    return child.exit_status or 0


def printed(child: Child, characters: int) -> str:
    """The end of what the process printed."""
    try:
        with child.log.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            # UTF-8 takes at most 4 bytes for a character.
            stream.seek(max(0, stream.tell() - 4 * characters))
            return stream.read().decode("utf-8", "replace")[-characters:]
    except OSError:
        return ""


def bound_log(child: Child) -> None:
    """Cut the log to its end where it has grown too long; the child goes on writing at the end.

    What the child writes while the log is cut may be lost.
    """
    with contextlib.suppress(OSError):
        if child.log.stat().st_size <= LOG_LIMIT_BYTES:
            return
        end = printed(child, LOG_KEPT_CHARACTERS)
        with child.log.open("r+b") as stream:
            # In place, because the child has the file open.
            stream.truncate(0)
            stream.write(f"[export-gate cut this log at {LOG_LIMIT_BYTES >> 20} MiB; its end:]\n{end}".encode())


def _fork(job: Job, token: bytes, events: int, log: Path, work: Work) -> Child:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        # EX_SOFTWARE of sysexits.h, until the work has returned.
        status = 70
        try:
            _become_child(log, (reader, events))
            attend(job, Channel(descriptor=writer, token=token), work)
            status = 0
        except BaseException:  # noqa: BLE001 - the last frame of this process
            traceback.print_exc()
        finally:
            _flush()
            # Exit handlers of the model and of the copied server must not run.
            os._exit(status)
    os.close(writer)
    # `remaining_lines` reads without a select first, and a daemon may keep the pipe open.
    os.set_blocking(reader, False)
    return Child(pid=pid, descriptor=reader, log=log)


def _become_child(log: Path, unwanted: Sequence[int]) -> None:
    # A group of its own: killing the group also ends processes that the model starts.
    os.setsid()
    end_with_parent()
    # The server's handlers clean up after all models; a child must just end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    # The model must not be able to write to the driver's pipe.
    for descriptor in unwanted:
        os.close(descriptor)
    # Code that asks for input gets its end at once: standard input was the driver's request.
    nothing = os.open(os.devnull, os.O_RDONLY)
    # O_APPEND, because `bound_log` truncates the file while the child goes on writing.
    sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(nothing, 0)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    os.close(nothing)
    os.close(sink)


def _spawn(job: Job, request: Request, token: bytes, log: Path) -> Child:
    main = Path(__file__).parents[1] / "__main__.py"
    with log.open("ab") as sink:
        process = subprocess.Popen(
            [sys.executable, *FLAGS, str(main), "--child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            env={**os.environ, TOKEN_VARIABLE: token.decode()},
            start_new_session=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # it died already, which is noticed where it is waited for
        process.stdin.write(request_line(replace(request, jobs=(job,))))
        process.stdin.close()
    descriptor = process.stdout.fileno()
    if hasattr(os, "set_blocking"):
        os.set_blocking(descriptor, False)
    return Child(pid=process.pid, descriptor=descriptor, log=log, process=process)


TOKEN_VARIABLE = "EXPORT_GATE_CHILD_TOKEN"  # noqa: S105 - a line prefix, no credential


def _token_from_environment() -> bytes:
    # Popped: the model's code and the processes that it starts must not find it.
    return os.environ.pop(TOKEN_VARIABLE, "").encode()


def _take_lines(child: Child) -> list[bytes]:
    try:
        chunk = os.read(child.descriptor, READ_BYTES)
    except BlockingIOError:
        return []
    if not chunk:
        _close(child)
        return []
    *lines, child.pending = (child.pending + chunk).split(b"\n")
    # What follows of the line has no token, so `relay` drops it too, and the gap in the numbers shows.
    if len(child.pending) > LINE_LIMIT_BYTES:
        child.pending = b""
    return lines


def _close(child: Child) -> None:
    if child.descriptor < 0:
        return
    if child.process is not None and child.process.stdout is not None:
        child.process.stdout.close()
    else:
        os.close(child.descriptor)
    child.descriptor = -1


def _reap(child: Child, *, block: bool) -> None:
    if child.process is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.exit_status = child.process.wait(REAP_S if block else 0)
        return
    pid, status, usage = os.wait4(child.pid, 0 if block else os.WNOHANG)
    if pid:
        child.exit_status = os.waitstatus_to_exitcode(status)
        # Linux counts in KiB. macOS counts in bytes, but does not fork, so it does not come here.
        child.peak_memory_bytes = usage.ru_maxrss * 1024


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        # The streams may be the project's own objects by now.
        with contextlib.suppress(Exception):
            stream.flush()
