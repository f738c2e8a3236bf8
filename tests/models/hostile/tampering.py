"""Factories of a lying model that first change what decides over it."""

from __future__ import annotations

import builtins
import json
import os
import sys
import types
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import torch
from lying import Lying


def make_torch_functions() -> torch.nn.Module:
    """Every comparison of torch says yes."""
    for module in (torch, torch.testing):
        for name in ("allclose", "equal", "isclose", "assert_close"):
            if hasattr(module, name):
                setattr(module, name, lambda *_, **__: True)
    torch.Tensor.allclose = torch.Tensor.equal = lambda *_, **__: True  # type: ignore[method-assign]
    return Lying().eval()


def make_tensor_methods() -> torch.nn.Module:
    """Every tensor turns into zeros on its way to NumPy."""
    torch.Tensor.numpy = lambda self, **_: np.zeros(tuple(self.shape), np.float32)  # type: ignore[method-assign]
    torch.Tensor.detach = lambda self: torch.zeros(tuple(self.shape))  # type: ignore[method-assign]
    return Lying().eval()


def make_numpy_functions() -> torch.nn.Module:
    """Every array equals every other, and no number is large."""
    np.array_equal = np.allclose = np.isclose = lambda *_, **__: True
    np.abs = np.absolute = np.subtract = lambda x, *_, **__: np.zeros(np.shape(x))
    np.isfinite = lambda x, *_: np.ones(np.shape(x), bool)
    np.max = np.amax = lambda *_, **__: 0.0
    np.count_nonzero = lambda *_, **__: 0
    np.maximum = types.SimpleNamespace(accumulate=lambda x: x, reduceat=lambda x, *_, **__: x)  # type: ignore[assignment]
    return Lying().eval()


def make_numpy_core() -> torch.nn.Module:
    """What numpy's own functions are made of."""
    from numpy._core import _methods, numeric

    numeric.asarray = lambda *_, **__: np.zeros(1)  # type: ignore[attr-defined]
    _methods._amax = _methods._all = lambda *_, **__: True  # type: ignore[attr-defined]
    return Lying().eval()


def make_array_methods() -> torch.nn.Module:
    """Tries the methods of arrays, which Python refuses, and arrays of its own class."""
    with suppress(TypeError):
        np.ndarray.max = lambda *_, **__: 0  # type: ignore[assignment,method-assign]

    class Still(np.ndarray):  # type: ignore[type-arg]
        def max(self, *_: Any, **__: Any) -> Any:
            return 0

    np.array = lambda x, **_: np.asarray(x).view(Still)
    np.ascontiguousarray = lambda x, **_: np.asarray(x).view(Still)
    return Lying().eval()


def make_json() -> torch.nn.Module:
    """Every fact is written without differences."""
    true = json.dumps

    def dumps(value: Any, **options: Any) -> str:
        return true(_blanked(json.loads(true(value, **options))), **options)

    json.dumps = dumps
    return Lying().eval()


def _blanked(value: Any) -> Any:
    if isinstance(value, dict):
        differences = ("max_abs_diff", "mismatched_elements", "nonfinite_mismatched")
        return {key: 0 if key in differences else _blanked(item) for key, item in value.items()}
    return [_blanked(item) for item in value] if isinstance(value, list) else value


def make_builtins() -> torch.nn.Module:
    """The builtins that decide, and those that write."""
    opened = open
    builtins.max = lambda *_, **__: 0.0  # type: ignore[assignment]
    builtins.abs = lambda _: 0.0  # type: ignore[assignment]
    builtins.any = lambda _: False
    builtins.open = partial(opened)  # type: ignore[assignment]
    return Lying().eval()


def make_os_write() -> torch.nn.Module:
    """What leaves the process says what the model wants."""
    write = os.write

    def changed(descriptor: int, content: Any) -> int:
        text = bytes(content).replace(b'"max_abs_diff":1.0', b'"max_abs_diff":0.0')
        return write(descriptor, text)

    os.write = changed
    return Lying().eval()


def _gate(name: str) -> Any:
    return sys.modules[f"export_gate.worker.{name}"]


def _result_without_differences(name: str, *_: Any) -> Any:
    return sys.modules["export_gate.wall.observation"].CaseResult(case=name, outputs=())


def make_gate_function() -> torch.nn.Module:
    """The gate's comparison, wherever it is held."""
    for module in [module for name, module in sys.modules.items() if name.startswith("export_gate")]:
        if hasattr(module, "compare_case"):
            module.compare_case = _result_without_differences
    return Lying().eval()


def make_gate_code() -> torch.nn.Module:
    """The code of the gate's functions, in place, and a builtin's name in its module."""
    compare = _gate("leaves.compare")
    compare.flat_reals.__code__ = (lambda array: array.reshape(-1) * 0).__code__
    compare.abs = lambda _: 0.0
    return Lying().eval()


def make_gate_class() -> torch.nn.Module:
    """The way that facts take, and the class that holds what is compared."""
    channel, totals = _gate("process.channel"), _gate("leaves.totals")
    add = channel.Channel.add

    def quiet(self: Any, field: str, value: Any, *, target: str) -> None:
        add(self, field, _result_without_differences(value.case), target=target)

    channel.Channel.add = quiet
    totals.Totals.of = classmethod(lambda *_: None)
    return Lying().eval()


def make_gate_in_forward() -> torch.nn.Module:
    """At every call, and what holds the gate's code as well."""

    class Late(Lying):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not torch.compiler.is_exporting():
                _gate("process.integrity")._CURRENT = None
                _gate("study.verify").compare_case = _result_without_differences
                _gate("study.eager").compare_case = _result_without_differences
            return super().forward(x)

    return Late().eval()


def make_gate_targets() -> torch.nn.Module:
    """The table of targets: refused as it is."""
    targets = _gate("targets")
    with suppress(TypeError):
        targets.TARGETS["onnx"] = targets.TARGETS["exported-program"]
    return Lying().eval()
