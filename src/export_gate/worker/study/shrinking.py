"""Shrink a failing control input to the smallest one that fails in the same way, and write it as an .npz file.

"The same way" is what the experiments that find a cause look at: the same kind of fault in the same output, more than
eager's own rounding, at places that count, with the same answer of the exported program and the same cures.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from export_gate.wall.contract import Tolerance
from export_gate.wall.diagnosis import Change, Inspection
from export_gate.wall.equivalence import faults, is_excused
from export_gate.wall.observation import Comparison
from export_gate.wall.smallest import SmallestInput, SmallTensor
from export_gate.wall.targets import LAYOUT_FAMILIES
from export_gate.wall.tolerance import is_inexact
from export_gate.worker.controls.files import save_arrays
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.leaves.compare import compare_leaf
from export_gate.worker.leaves.values import Leaf, to_numpy
from export_gate.worker.model.factory import bind
from export_gate.worker.model.reference import Runner
from export_gate.worker.study.excuses import excuse
from export_gate.worker.study.laboratory import attempt
from export_gate.worker.study.masks import Masks
from export_gate.worker.study.noise import Pair, measured, numbers_of
from export_gate.worker.study.smaller import Small, shrink
from export_gate.worker.study.trials import CHANGES, Bench, changed_answer, is_jump

LIMIT_S = 10.0
MOST_TRIED = 1000
MOST_TEXT = 24
"""Elements of a tensor that are shown as text."""
LARGEST_BYTES = 64 * 1024 * 1024


class TimeOverError(Exception):
    """There is no time left: what was found so far is the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How an input fails."""

    fault: str
    """The kind of fault, or the exception's class where the artifact raises."""
    program: str
    """The exported program's answer; empty if it is not asked."""
    cures: tuple[Change, ...]
    is_jump: bool = False
    """Eager gives the artifact's answer itself one ulp away."""


@dataclass(slots=True, kw_only=True)
class Shrinker:
    """Shrinks control inputs of one target."""

    bench: Bench
    program: Callable[[], Runner] | None
    """The exported program; None if it is the artifact itself, or there is none."""
    masks: Masks
    fixed: Sequence[str]
    """Dims that this export fixes."""
    folder: Path
    """Receives the files."""
    root: Path
    """The report folder."""
    name: str
    """Of the files, without output and suffix."""
    answers: list[Runner] = field(default_factory=list)
    """The program's runner once it was needed: making it copies the weights."""

    def inspect(self, output: str, case: ControlCase, deadline: float = math.inf) -> Inspection:
        """The smallest input of one output that differs, or of a call that raises where `output` is empty."""
        # A smaller version is made of values alone: it would not have the memory layout that fails.
        found = None if case.family in LAYOUT_FAMILIES else self._smallest(output, case, deadline)
        return Inspection(output=output, case=case.name, smallest=found)

    def _smallest(self, output: str, case: ControlCase, deadline: float) -> SmallestInput | None:
        start = Small.of(self.bench.contract, case)
        wanted = self._manner(start, output, case)
        if wanted is None:
            return None
        best, tried, is_finished = start, 0, True
        deadline = min(time.monotonic() + LIMIT_S, deadline)

        def keeps(version: Small) -> bool:
            nonlocal best, tried
            if time.monotonic() > deadline or tried >= MOST_TRIED:
                # Not just False: `shrink` would go on to make every version that is left.
                raise TimeOverError
            tried += 1
            is_kept = version.is_allowed() and self._manner(version, output, case) == wanted
            best = version if is_kept else best
            return is_kept

        try:
            shrink(start, case, self.fixed, keeps)
        except TimeOverError:
            is_finished = False
        found = self._record(best, output, elements_before=start.elements, tried=tried)
        return replace(found, is_finished=is_finished)

    def _manner(self, version: Small, output: str, case: ControlCase) -> Manner | None:
        """How the artifact fails there; None if it does not, or if eager refuses the input."""
        expected = attempt(lambda: self.bench.laboratory.again(version.values()))
        if expected is None:
            return None
        try:
            actual = self.bench.run(bind(version.values(), self.bench.laboratory.parameters))
        except Exception as error:  # noqa: BLE001 - whatever the artifact raises is how it fails
            return None if output else Manner(fault=type(error).__name__, program="", cures=())
        pair = _pair(expected, actual, output)
        if pair is None:
            return None
        # Its values are no draw any more, which the name and the group of a generated input would say.
        as_case = replace(case, name="smaller", sizes=version.sizes, make=version.values, group="function")
        pair = self._without_masked(pair, as_case)
        kinds = faults(pair.comparison, self._tolerance(pair), "match")
        if not kinds or (kinds[0] == "value" and self._is_rounding(pair, as_case)):
            return None
        cures = tuple(change for change in CHANGES if changed_answer(self.bench, as_case, output, change))
        jumps = kinds[0] == "value" and is_jump(self.bench, version.values, pair)
        program = self._program_answer(expected, version, output)
        return Manner(fault=kinds[0], program=program, cures=cures, is_jump=jumps)

    def _without_masked(self, pair: Pair, case: ControlCase) -> Pair:
        found = excuse(pair.comparison.output, pair.comparison.expected_shape, case, self.masks)
        if found is None:
            return pair
        kept = compare_leaf(pair.expected, pair.actual, self._tolerance(pair).axis, keep=~found.dropped)
        return replace(pair, comparison=kept, keep=~found.dropped)

    def _is_rounding(self, pair: Pair, case: ControlCase) -> bool:
        if not is_inexact(pair.comparison.expected_dtype):
            return False
        noise = measured([pair], case, self.bench.tolerance, self.bench.laboratory)
        return any(is_excused(pair.comparison, self._tolerance(pair), each) for each in noise)

    def _program_answer(self, expected: Sequence[Leaf], version: Small, output: str) -> str:
        if self.program is None:
            return ""
        if not self.answers:
            self.answers.append(self.program())
        actual = attempt(lambda: self.answers[0](bind(version.values(), self.bench.laboratory.parameters)))
        pair = _pair(expected, actual or (), output)
        if pair is None:
            return "refuses"
        return "differs" if faults(pair.comparison, self._tolerance(pair), "match") else "agrees"

    def _tolerance(self, pair: Pair) -> Tolerance:
        return self.bench.tolerance(pair.comparison.expected_dtype)

    def _record(self, best: Small, output: str, *, elements_before: int, tried: int) -> SmallestInput:
        worst = self.bench.compared(best.values, output) if output else None
        return SmallestInput(
            sizes=", ".join(f"{dim}={size}" for dim, size in best.sizes.items()),
            tensors=tuple(_described(path, tensor) for path, tensor in best.tensors.items()),
            elements=best.elements,
            elements_before=elements_before,
            tried=tried,
            expected_at=_value(worst, "expected_at"),
            actual_at=_value(worst, "actual_at"),
            file=self._save(best, output),
        )

    def _save(self, best: Small, output: str) -> str:
        """Write the values as `controls --save` does; bfloat16, which NumPy lacks, as float32."""
        arrays = {path: to_numpy(tensor) for path, tensor in best.tensors.items()}
        if sum(array.nbytes for array in arrays.values()) > LARGEST_BYTES:
            return ""
        # An output's name may hold what a path may not, and a call that raises has no output.
        safe = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in output)
        path = self.folder / f"{self.name}.smallest{'-' * bool(safe)}{safe}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_arrays(path, arrays)
        return path.resolve().relative_to(self.root.resolve()).as_posix()


def _pair(expected: Sequence[Leaf], actual: Sequence[Leaf], output: str) -> Pair | None:
    pair = numbers_of(output, expected, actual)
    return None if pair is None else Pair(comparison=compare_leaf(*pair), expected=pair[0], actual=pair[1])


def _described(path: str, tensor: Any) -> SmallTensor:
    text = _text(to_numpy(tensor)) if tensor.numel() <= MOST_TEXT else None
    dtype = str(tensor.dtype).removeprefix("torch.")
    return SmallTensor(path=path, dtype=dtype, shape=tuple(tensor.shape), text=text)


def _text(array: Any) -> str:
    """Nested lists with as many digits as distinguish the values."""
    if array.ndim:
        return f"[{', '.join(map(_text, array))}]"
    return str(array.item()) if array.dtype.kind in "biu" else str(array[()])


def _value(comparison: Comparison | None, name: str) -> float | None:
    return None if comparison is None else getattr(comparison, name)
