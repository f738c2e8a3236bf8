"""Compare a snapshot with its module: what forward changed, as `name: before -> after`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.nn.parameter import is_lazy

from export_gate.worker.model.state import (
    PLAIN,
    State,
    differing,
    is_equal,
    is_readable,
    kind_of,
    namespaces_of,
    state_keys,
    tensor_digest,
)  # fmt: skip


def state_changes(before: State, module: torch.nn.Module) -> tuple[str, ...]:
    """The differences from the snapshot, as `name: before -> after`."""
    return tuple(_changes("", before, module))


def describe(value: Any) -> str:
    """A value in short: its own text if that is short, else type and size."""
    if isinstance(value, torch.Tensor) and not is_lazy(value):
        if value.numel() == 1 and is_readable(value):
            return _number(value.item())
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, (list, tuple, set, dict, deque)):
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, (float, complex)):
        return _number(value)
    if isinstance(value, PLAIN):
        text = repr(value)
        return text if len(text) <= 40 else f"{text[:37]}..."  # noqa: PLR2004 - one line of a report
    return type(value).__name__


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, complex)) else str(value)


def _changes(path: str, before: State, now: Any) -> Iterator[str]:
    kind, content = before.kind, before.content
    if kind in ("plain", "identity") or kind != kind_of(now) or type(before.original) is not type(now):
        if not _is_same(before, now):
            yield _change(path, _described(before), describe(now))
        return
    match kind:
        case "tensor":
            yield from _tensor_changes(path, before, now)
        case "array":
            if (content.dtype, content.shape, content.tobytes()) != (now.dtype, now.shape, now.tobytes()):
                yield _change(path, _described(before), describe(now))
        case "set":
            if content != now:
                yield _change(path, _described(before), describe(now))
        case "object":
            for saved, namespace in zip(content, namespaces_of(now), strict=True):
                yield from _member_changes(path, saved, {key: namespace[key] for key in state_keys(now, namespace)})
        case _:
            yield from _container_changes(path, before, now)


def _container_changes(path: str, before: State, now: Any) -> Iterator[str]:
    content = before.content
    length = content if isinstance(content, int) else len(content)
    if length != len(now) or (isinstance(content, dict) and content.keys() != now.keys()):
        yield _change(path, _described(before), describe(now))
    elif isinstance(content, dict):
        for key, saved in content.items():
            yield from _changes(f"{path}[{key!r}]", saved, now[key])
    elif isinstance(content, list):
        for index, (saved, item) in enumerate(zip(content, now, strict=True)):
            yield from _changes(f"{path}[{index}]", saved, item)


def _member_changes(path: str, saved: dict[str, State], now: dict[str, Any]) -> Iterator[str]:
    for key, state in saved.items():
        name = f"{path}.{key}".lstrip(".")
        if key in now:
            yield from _changes(name, state, now[key])
        else:
            yield f"{name}: {_described(state)} -> (absent)"
    for key, value in now.items():
        if key not in saved:
            yield f"{path}.{key}".lstrip(".") + f": (absent) -> {describe(value)}"


def _tensor_changes(path: str, before: State, now: torch.Tensor) -> Iterator[str]:
    old = before.content
    if isinstance(old, str):
        if old != tensor_digest(now):
            yield _change(path, describe(before.original), describe(now))
    elif old.dtype != now.dtype or old.shape != now.shape or old.numel() == 1:
        if not is_equal(old, now):
            yield _change(path, describe(old), describe(now))
    elif not is_equal(old, now):
        differs = differing(old, now)
        where = tuple(differs.nonzero()[0].tolist())
        yield (
            f"{path}{list(where)}: {_number(old[where].item())} -> {_number(now[where].item())} "
            f"({int(differs.sum())} of {old.numel()} elements differ)"
        )


def _is_same(before: State, now: Any) -> bool:
    if before.kind == "plain":
        was = before.original
        # NaN, which differs from itself, is the same as NaN.
        return type(was) is type(now) and bool(was == now or (was != was and now != now))  # noqa: PLR0124
    # Not `==`, which is the project's own here and may return anything.
    return before.original is now


def _described(before: State) -> str:
    """What `describe` would have returned at the snapshot; `original` may have changed since."""
    match before.kind:
        case "tensor" | "array" if not isinstance(before.content, str):
            return describe(before.content)
        case "list" | "tuple" | "dict" | "set":
            length = before.content if isinstance(before.content, int) else len(before.content)
            return f"{type(before.original).__name__} of {length}"
        case _:
            return describe(before.original)


def _change(path: str, old: str, new: str) -> str:
    return f"{path}: {old} -> {new}" + (" (other content)" if old == new else "")
