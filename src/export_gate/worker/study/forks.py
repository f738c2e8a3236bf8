"""Find the condition at which eager goes another way at an input that differs than at one that agrees."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import Any

from export_gate.wall.diagnosis import Inspection
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.model.writing import run_traced
from export_gate.worker.process.failures import is_own, quoted_line
from export_gate.worker.study.laboratory import Laboratory

MOST_LINES = 100_000
"""Executed lines that are kept; the ways of longer runs are compared as far as that."""
Line = tuple[str, int]


def fork(
    laboratory: Laboratory, roots: tuple[Path, ...], output: str, wrong: ControlCase, right: Sequence[ControlCase]
) -> Inspection:
    """The last line that both runs have in common, if they part."""
    other = min(right, key=lambda case: _distance(wrong, case))
    # The first run of an instance may build what later ones find.
    laboratory.again(wrong.make())
    ways = [_lines(lambda case=case: laboratory.again(case.make()), roots) for case in (wrong, other)]  # type: ignore[misc]
    common = list(takewhile(lambda pair: pair[0] == pair[1], zip(*ways, strict=False)))
    is_parted = len(common) < min(map(len, ways)) and bool(common)
    line = quoted_line(*common[-1][0]) if is_parted else None
    return Inspection(output=output, case=wrong.name, forked_at=line)


def _distance(wrong: ControlCase, case: ControlCase) -> float:
    """Nearest in size; of the same size any."""
    names = {*wrong.sizes, *case.sizes}
    return math.fsum(abs(wrong.sizes.get(name, 0) - case.sizes.get(name, 0)) for name in names)


def _lines(run: Callable[[], object], roots: tuple[Path, ...]) -> list[Line]:
    watch = _Watch(roots=roots)
    run_traced(run, watch.enter)
    return watch.lines


@dataclass(slots=True)
class _Watch:
    """Notes each line of the project that is executed."""

    roots: tuple[Path, ...]
    lines: list[Line] = field(default_factory=list)
    known: dict[str, bool] = field(default_factory=dict)
    """File -> whether it is the project's."""

    def enter(self, frame: FrameType, _event: str, _: Any) -> Any:
        """Follow functions of the project."""
        path = frame.f_code.co_filename
        if path not in self.known:
            self.known[path] = is_own(path, self.roots)
        return self.step if self.known[path] and len(self.lines) < MOST_LINES else None

    def step(self, frame: FrameType, event: str, _: Any) -> Any:
        """Note the line."""
        if event == "line":
            self.lines.append((frame.f_code.co_filename, frame.f_lineno))
        return self.step
