"""Factories that break one target from the inside, as a faulty native library does; the others are sound."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, NoReturn

import torch
from healthy import Small
from in_forward import Unshowable


def make_segfault_in_onnx() -> torch.nn.Module:
    """Loading any ONNX file crashes."""

    def crash(*_: Any, **__: Any) -> NoReturn:
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError

    _replace_session(crash)
    return Small().eval()


def make_hang_in_onnx() -> torch.nn.Module:
    """Loading any ONNX file stalls."""

    def stall(*_: Any, **__: Any) -> NoReturn:
        while True:
            time.sleep(3600)

    _replace_session(stall)
    return Small().eval()


def make_unshowable_in_onnx() -> torch.nn.Module:
    """ONNX Runtime loads the file and raises a strange exception at every call."""
    import onnxruntime

    class Session(onnxruntime.InferenceSession):  # type: ignore[misc]
        def run(self, *_: Any, **__: Any) -> NoReturn:
            raise Unshowable

    _replace_session(Session)
    return Small().eval()


def make_abort_in_pt2() -> torch.nn.Module:
    """The reloaded program aborts at its second call."""
    load = torch.export.load

    def load_doomed(*args: Any, **kwargs: Any) -> Any:
        program = load(*args, **kwargs)
        module, calls = program.module(), []

        def run(*inputs: Any, **named: Any) -> Any:
            calls.append(1)
            if len(calls) == 2:
                os.abort()
            return module(*inputs, **named)

        program.module = lambda: run  # type: ignore[method-assign]
        return program

    if load.__name__ != "load_doomed":
        torch.export.load = load_doomed
    return Small().eval()


def _replace_session(replacement: Any) -> None:
    import onnxruntime

    onnxruntime.InferenceSession = replacement
