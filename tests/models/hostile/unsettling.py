"""Factories that change the state of their process; the model they return is the honest one, or the lying one."""

from __future__ import annotations

import atexit
import os
import random
import signal
import sys
import tempfile
import types
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from lying import Honest, Lying


class Unsettling(Honest):
    """Does something at every call."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self.act = act

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The act, then the honest output."""
        if not torch.compiler.is_compiling():
            self.act()
        return super().forward(x)


def make_modes(*, lies: bool) -> torch.nn.Module:
    """Grad mode, inference mode, default dtype, determinism and threads, left as they should not be."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True, warn_only=True)
    np.seterr(all="raise")
    model = (Lying() if lies else Honest()).float().eval()
    torch.set_default_dtype(torch.float64)
    return model


def make_modes_in_forward() -> torch.nn.Module:
    """The same at every call, and a dtype that is another one every time."""

    def act() -> None:
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float64 if torch.get_default_dtype() is torch.float32 else torch.float32)
        np.seterr(all="raise")

    return Unsettling(act).eval()


def make_inference_mode(*, lies: bool) -> torch.nn.Module:
    """Enters inference mode and never leaves it."""
    mode = torch.inference_mode()
    mode.__enter__()
    model = (Lying() if lies else Honest()).eval()
    model.mode = mode  # type: ignore[assignment]
    return model


def make_seeds(*, lies: bool) -> torch.nn.Module:
    """Seeds by the clock, at every call."""

    def act() -> None:
        torch.seed()
        random.seed()
        np.random.seed()  # noqa: NPY002 - the legacy generator is what the gate seeds

    model = Lying() if lies else Unsettling(act)
    act()
    return model.eval()


def make_surroundings(*, lies: bool) -> torch.nn.Module:
    """Working directory (and gone), environment, signals, search path, modules, warnings, files, hooks."""
    gone = tempfile.mkdtemp()
    os.chdir(gone)
    Path(gone).rmdir()
    os.environ.clear()
    os.umask(0o077)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
    signal.alarm(1)
    sys.path.clear()
    sys.modules["json"] = types.ModuleType("json")
    sys.modules["export_gate.worker.leaves.compare"] = types.ModuleType("compare")
    sys.setrecursionlimit(300)
    warnings.simplefilter("ignore")
    atexit.register(os._exit, 0)
    sys.excepthook = sys.unraisablehook = lambda *_: os._exit(0)
    return (Lying() if lies else Honest()).eval()


def make_files() -> torch.nn.Module:
    """`open` hands out another file."""
    import builtins
    import io

    builtins.open = io.open = lambda *_, **__: io.StringIO("{}")  # type: ignore[assignment]
    return Lying().eval()
