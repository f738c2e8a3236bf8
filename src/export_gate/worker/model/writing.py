"""Find the line of the project at which forward writes to one of its inputs, or to the model's state."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from export_gate.wall.source import SourceLine
from export_gate.worker.leaves.values import Call
from export_gate.worker.model.state import snapshot_state
from export_gate.worker.model.state_changes import state_changes
from export_gate.worker.process.failures import is_own, quoted_line

Stamp = Callable[[], object]
"""What changes as soon as something is written."""
LOOKED_AT = 3
"""Attributes that are compared at every line."""
NAME = re.compile(r"[A-Za-z_][\w.]*")
"""The attribute in `blocks.0.seen[1]: 0 -> 3`, where state was changed."""


def writing_line(run: Callable[[], object], stamp: Stamp, roots: tuple[Path, ...]) -> SourceLine | None:
    """The first line of the project after which the stamp is another one, while `run` runs; None if it stays.

    Lines of libraries count for the project's line that calls them.
    """
    watch = _Watch(stamp=stamp, roots=roots)
    run_traced(run, watch.enter)
    return None if watch.found is None else quoted_line(*watch.found)


def run_traced(run: Callable[[], object], trace: Callable[[FrameType, str, Any], Any]) -> None:
    """Run with that function as Python's trace function."""
    # A debugger or a measurement of coverage may be tracing, and has to go on after this.
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)


def inputs_stamp(call: Call) -> Stamp:
    """The versions of the call's tensors, which torch counts up with every write, through views as well."""
    leaves = pytree.tree_leaves((call.args, call.kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return lambda: [tensor._version for tensor in tensors]  # noqa: SLF001 - torch has no public name for it


def state_stamp(module: torch.nn.Module, changes: Sequence[str]) -> Stamp:
    """What has changed of the attributes that are known to change, of which there are few."""
    named = [match[0].rstrip(".") for change in changes[:LOOKED_AT] if (match := NAME.match(change))]
    values = {name: _value(module, name) for name in dict.fromkeys(named)}
    states = {name: snapshot_state(value) for name, value in values.items()}
    return lambda: [state_changes(state, _value(module, name)) for name, state in states.items()]


def _value(module: Any, name: str) -> Any:
    """The attribute at a path; None where it is missing, as before its first write."""
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


@dataclass(slots=True)
class _Watch:
    """Notes the last line of the project that began before the stamp changed."""

    stamp: Stamp
    roots: tuple[Path, ...]
    last: tuple[str, int] | None = None
    found: tuple[str, int] | None = None
    first: object = field(init=False)
    known: dict[str, bool] = field(default_factory=dict)
    """File -> whether it is the project's, which is asked for each call of a function."""

    def __post_init__(self) -> None:
        self.first = self.stamp()

    def enter(self, frame: FrameType, event: str, _: Any) -> Any:
        """Follow functions of the project; of others only what they call."""
        path = frame.f_code.co_filename
        if path not in self.known:
            self.known[path] = is_own(path, self.roots)
        if self.found is not None or not self.known[path]:
            return None
        self.step(frame, event, None)
        return self.step

    def step(self, frame: FrameType, event: str, _: Any) -> Any:
        """Look at the stamp before each line, and after the last."""
        if self.found is None and self.last is not None and self.stamp() != self.first:
            self.found = self.last
        if event == "line":
            self.last = (frame.f_code.co_filename, frame.f_lineno)
        return self.step
