"""One model per fault and stage: `make(fault=..., at=...)` is sound but for one call."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from healthy import Small

GIGABYTE = 1 << 30
chosen: list[Callable[[], object]] = []


def overflow() -> None:
    """Recurse through C until the stack ends."""
    sys.setrecursionlimit(1 << 30)
    nested: list[object] = []
    for _ in range(1 << 20):
        nested = [nested]
    repr(nested)


def out_of_memory() -> None:
    """Allocate beyond a real limit of the process."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + GIGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    try:
        bytearray(4 * GIGABYTE)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


FAULTS: dict[str, Callable[[], object]] = {
    "sigsegv": lambda: ctypes.string_at(0),
    "sigabrt": os.abort,
    "sigkill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "memory": out_of_memory,
    "hang": lambda: time.sleep(3600),
    "sys-exit": lambda: sys.exit(3),
    "os-exit": lambda: os._exit(0),
    "overflow": overflow,
}
OUTSIDE = 5
"""Rows beyond the contract, which only probes have."""


class Placed(Small):
    """Acts at one of the places of forward."""

    def __init__(self, act: Callable[[], object], at: str) -> None:
        super().__init__()
        self.act, self.at = act, at

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The act where it belongs, then the sound output."""
        exporting = torch.compiler.is_exporting()
        is_outside = not exporting and x.shape[0] == OUTSIDE
        if (exporting and self.at == "export") or (not exporting and self.at == "eager"):
            self.act()
        if is_outside and self.at == "eager-probe":
            self.act()
        return super().forward(x)


def make(*, fault: str, at: str) -> torch.nn.Module:
    """The model whose work fails like that at that place."""
    act = FAULTS[fault]
    chosen[:] = [act]
    if at == "factory":
        act()
    if at == "convert":
        torch.export.save = lambda *_, **__: act()
    if at in ("load", "run", "probe"):
        _replace_load(act, at)
    return Placed(act, at).eval()


def cases() -> dict[str, Any]:
    """A controls function that fails."""
    chosen[0]()
    return {}


def _replace_load(act: Callable[[], object], at: str) -> None:
    load = torch.export.load

    def load_placed(*args: Any, **options: Any) -> Any:
        if at == "load":
            act()
        program = load(*args, **options)
        module = program.module()

        def run(x: torch.Tensor) -> Any:
            if (at == "run" and x.shape[0] != OUTSIDE) or (at == "probe" and x.shape[0] == OUTSIDE):
                act()
            return module(x)

        program.module = lambda: run  # type: ignore[method-assign]
        return program

    torch.export.load = load_placed
