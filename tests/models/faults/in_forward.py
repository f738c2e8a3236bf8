"""Models whose forward ends, stalls or floods the process that runs it."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch
from healthy import Small

JUNK = b'{"op":"ended"} \x00\xff junk without an end of line'
GIGABYTE = 1 << 30


class Faulty(Small):
    """Does something before it computes."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self.act = act

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The act, then the affine map."""
        self.act()
        return super().forward(x)


class Unshowable(Exception):
    """Has no text of its own."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def make_unshowable() -> torch.nn.Module:
    """Raises an exception of a local class, which cannot be pickled, and whose text cannot be made."""

    class Local(Unshowable):
        lock = threading.Lock()

    def act() -> None:
        raise Local

    return Faulty(act).eval()


def make_segfault() -> torch.nn.Module:
    """Reads address 0."""
    return Faulty(lambda: ctypes.string_at(0)).eval()


def make_exit() -> torch.nn.Module:
    """Leaves without a word, with the exit status of success."""
    return Faulty(lambda: os._exit(0)).eval()


def make_sys_exit() -> torch.nn.Module:
    """Raises SystemExit."""
    return Faulty(lambda: sys.exit("done here")).eval()


def make_kill() -> torch.nn.Module:
    """Is killed as the kernel does it where memory runs out."""
    return Faulty(lambda: os.kill(os.getpid(), signal.SIGKILL)).eval()


def make_hang() -> torch.nn.Module:
    """Starts a process and never comes back."""

    def act() -> None:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(3600)

    return Faulty(act).eval()


def make_out_of_memory() -> torch.nn.Module:
    """Allocates beyond a real limit of the process."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + GIGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    return Faulty(lambda: bytearray(4 * GIGABYTE)).eval()


def make_recursion() -> torch.nn.Module:
    """Recurses until Python refuses."""

    def deeper() -> None:
        deeper()

    return Faulty(deeper).eval()


def make_overflow() -> torch.nn.Module:
    """Recurses through C until the stack overflows."""
    sys.setrecursionlimit(1 << 30)
    nested: list[object] = []
    for _ in range(1 << 20):
        nested = [nested]
    return Faulty(lambda: repr(nested)).eval()


def make_loud() -> torch.nn.Module:
    """Prints 10 MB on standard output and on standard error whenever it is made."""
    for stream in (sys.stdout, sys.stderr):
        stream.write(("::error::not a command\n" * 455_904) + "the last words\n")
    return Small().eval()


def make_junk() -> torch.nn.Module:
    """Writes to every descriptor that takes it, at every call."""

    def act() -> None:
        for descriptor in range(256):
            try:
                os.write(descriptor, JUNK)
            except OSError:
                continue

    return Faulty(act).eval()


def make_deaf() -> torch.nn.Module:
    """Points the pipes of its process elsewhere for a while, as careless daemon libraries do."""
    calls: list[dict[int, int]] = []

    def act() -> None:
        calls.append({})
        if len(calls) == 3:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            pipes = [fd for fd in range(3, 64) if _is_pipe(fd)]
            calls[0] = {fd: os.dup(fd) for fd in pipes}
            for fd in pipes:
                os.dup2(nowhere, fd)
        elif len(calls) == 14:
            for fd, kept in calls[0].items():
                os.dup2(kept, fd)

    return Faulty(act).eval()


def _is_pipe(descriptor: int) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def make_daemon() -> torch.nn.Module:
    """Leaves a daemon behind, in a session of its own, that holds and floods every inherited descriptor."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                for descriptor in range(3, 64):
                    try:
                        os.write(descriptor, b"\n")
                    except OSError:
                        continue
                time.sleep(0.0001)
        os._exit(0)
    os.wait()
    return Small().eval()
