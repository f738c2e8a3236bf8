"""Leave no process behind: those that models start, and this one once the driver is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

# Of linux/prctl.h: Python has no names for them.
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# At import, so that even an early death of the driver shows as another number.
_DRIVER = os.getppid()


def driver_lives() -> bool:
    """Whether the process that started this one is still running."""
    # Windows keeps the number of a parent that has ended; elsewhere the process gets another parent.
    return sys.platform == "win32" or os.getppid() == _DRIVER


def adopt_orphans() -> None:
    """Become the parent of daemons that models start, where the system can do that, so that they can be found."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def kill_orphans() -> None:
    """Kill all remaining child processes of this process."""
    # A killed process leaves its own children to this one, so look again; bounded, as they may never stop forking.
    for _ in range(100):
        pids = _child_pids()
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def end_with_parent() -> None:
    """Let the system kill this process once its parent, the server, is gone: no one else would stop a child."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _child_pids() -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


def _prctl(option: int, value: int) -> None:
    """Call Linux's prctl; do nothing on other systems."""
    if sys.platform == "linux":
        import ctypes

        # The C library that is loaded already, whatever its file is called (glibc or musl).
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
