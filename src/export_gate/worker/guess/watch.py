"""Where a call of forward failed: the torch function that raised, and from which inputs its tensors come."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

Path = tuple[object, ...]
"""A tensor of the inputs: the parameter's name, then keys and indices below it."""
Tensors = Mapping[Path, torch.Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A tensor that was passed to the function that raised."""

    shape: tuple[int, ...]
    is_floating: bool
    dtype: str
    origins: tuple[Path, ...]
    """The inputs that it was computed from."""

    def size(self, axis: int) -> int:
        """The size of the axis; 0 if there is no such axis."""
        return self.shape[axis] if -len(self.shape) <= axis < len(self.shape) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """One call that raised."""

    error: BaseException
    function: str
    """The name of torch's function, such as `conv2d`; empty if other code raised."""
    arguments: tuple[Argument, ...]
    """Its tensors in order; without a function, those of the line that raised."""
    numbers: tuple[int, ...]
    """Its numbers in order, such as the parts of a shape."""
    line: str
    """The innermost line of Python outside torch's functions."""
    nothing: tuple[str, ...]
    """Names on the way to that line that stand for None, the innermost first."""
    layer: torch.nn.Module | None
    """The innermost module whose forward was running."""


class Watch(TorchFunctionMode):  # type: ignore[misc] # torch does not type it
    """Remembers for each tensor the inputs that it was computed from, and the first function that raised."""

    def __init__(self, inputs: Tensors) -> None:
        super().__init__()
        self._origins = {id(tensor): frozenset({path}) for path, tensor in inputs.items()}
        self._kept: list[object] = list(inputs.values())
        """Keeps the tensors alive, so that no other object gets their id."""
        self.raised: tuple[str, tuple[Argument, ...], tuple[int, ...]] | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function."""
        given = [*args, *(kwargs or {}).values()]
        try:
            result = func(*args, **(kwargs or {}))
        except Exception:
            # The first one is the innermost: functions of torch that call it raise the same again.
            if self.raised is None:
                numbers = tuple(n for n in _flat(given) if type(n) is int)
                self.raised = getattr(func, "__name__", ""), self.arguments(given), numbers
            raise
        origins = frozenset[Path]().union(*(self._origins.get(id(item), frozenset()) for item in _flat(given)))
        for item in _flat([result]):
            if origins and isinstance(item, torch.Tensor):
                # An in-place function returns a tensor that is known already.
                self._origins.setdefault(id(item), origins)
                self._kept.append(item)
        return result

    def arguments(self, values: object) -> tuple[Argument, ...]:
        """The tensors among the values."""
        return tuple(
            Argument(
                shape=tuple(item.shape),
                is_floating=item.is_floating_point(),
                dtype=str(item.dtype).removeprefix("torch."),
                origins=tuple(sorted(self._origins.get(id(item), ()), key=str)),
            )
            for item in _flat(values)
            if isinstance(item, torch.Tensor)
        )


def watch(call: Callable[[], object], inputs: Tensors) -> Failed | None:
    """Where the call fails; None if it does not."""
    watcher = Watch(inputs)
    try:
        with watcher:
            call()
    except Exception as error:  # noqa: BLE001 - whatever forward raises is the answer
        return _failed(error, watcher)
    return None


def _failed(error: Exception, watcher: Watch) -> Failed:
    frames = [frame for frame in _frames(error.__traceback__) if frame[0].f_code.co_filename != __file__]
    frame, number = frames[-1]
    line = linecache.getline(frame.f_code.co_filename, number).strip()
    # By name in the line's text: nothing else says which of the variables the line used.
    used = [value for name, value in frame.f_locals.items() if name in line or isinstance(value, (list, tuple))]
    function, arguments, numbers = watcher.raised or ("", watcher.arguments(used), ())
    owners = (other.f_locals.get("self") for other, _ in reversed(frames))
    return Failed(
        error=error,
        function=function,
        arguments=arguments,
        numbers=numbers,
        line=line,
        nothing=tuple(name for other, _ in reversed(frames) for name, value in other.f_locals.items() if value is None),
        layer=next((owner for owner in owners if isinstance(owner, torch.nn.Module)), None),
    )


def _frames(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _flat(values: Any, depth: int = 3) -> Iterator[Any]:
    """The items of nested lists, tuples and dicts."""
    for value in values:
        inner = value.values() if isinstance(value, dict) else value
        if isinstance(inner, (list, tuple, type({}.values()))) and depth:
            yield from _flat(inner, depth - 1)
        else:
            yield value
