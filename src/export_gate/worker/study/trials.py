"""Experiments on one output that differs: its input changed, and other inputs of its size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from export_gate.wall.contract import ModelContract, Tolerance
from export_gate.wall.diagnosis import Change, Changed, Inspection, SizeTrial
from export_gate.wall.equivalence import faults
from export_gate.wall.observation import Comparison
from export_gate.worker.controls.generate import main_family, values_at
from export_gate.worker.controls.layout import map_tensors
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.sizes import Sizes
from export_gate.worker.controls.specs import total_elements
from export_gate.worker.leaves.compare import compare_leaf
from export_gate.worker.leaves.values import Leaf, Values
from export_gate.worker.model.factory import bind
from export_gate.worker.model.reference import Runner
from export_gate.worker.study.laboratory import Laboratory, attempt
from export_gate.worker.study.masks import FIRST_PROBE
from export_gate.worker.study.noise import Pair, numbers_of, stepped

Bools = npt.NDArray[np.bool_]
DRAWS = 6
"""Further inputs of each size."""
MORE_DRAWS = 24
"""Where some of them differ and some do not: a wrong size need not show in each, such as an index that is off by one
in a mask of zeros and ones.
"""
FIRST_DRAW = FIRST_PROBE + 100
"""Beyond the draws with which masks are probed."""
SMALL = 1e-3
"""What zeros become: small beside usual values, but far from where floats end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What runs eager and the artifact side by side."""

    contract: ModelContract
    run: Runner
    """The artifact."""
    laboratory: Laboratory
    tolerance: Callable[[str], Tolerance]

    def compared(self, values: Callable[[], Values], output: str) -> Comparison | None:
        """One output at other values; None if either side raises or lacks it."""
        expected = attempt(lambda: self.laboratory.again(values()))
        actual = attempt(lambda: self.run(bind(values(), self.laboratory.parameters)))
        pair = numbers_of(output, expected or (), actual or ())
        return None if pair is None else compare_leaf(*pair, self.tolerance(pair[0].dtype).axis)

    def differs(self, found: Comparison) -> bool:
        """Whether the values are outside the tolerance."""
        return bool(faults(found, self.tolerance(found.expected_dtype), "match"))


def changes(bench: Bench, cases: Sequence[ControlCase], output: str, name: str) -> Inspection:
    """Each change of special values that all these inputs allow, and whether all agree after it."""
    found: list[Changed] = []
    for change in CHANGES:
        answers = [changed_answer(bench, case, output, change) for case in cases]
        # A change that some of the inputs do not allow proves nothing about them.
        if answers and None not in answers:
            found.append(Changed(change=change, agrees=all(answers)))
    return Inspection(output=output, case=name, changed=tuple(found))


def changed_answer(bench: Bench, case: ControlCase, output: str, change: Change) -> bool | None:
    """Whether the artifact agrees once the input is changed; None if nothing in it is to be changed."""
    is_special, replacement = CHANGES[change]
    touched: list[bool] = []

    def changed(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        at = is_special(tensor)
        touched.append(bool(at.any()))
        return torch.where(at, torch.full_like(tensor, replacement), tensor)

    # A first pass without a run, which shows whether the change would change anything.
    map_tensors(case.make(), changed)
    if not any(touched):
        return None
    compared = bench.compared(lambda: map_tensors(case.make(), changed), output)
    return None if compared is None else not bench.differs(compared)


CHANGES: dict[Change, tuple[Callable[[torch.Tensor], torch.Tensor], float]] = {
    "no-negative-zeros": (lambda tensor: (tensor == 0) & torch.signbit(tensor), 0.0),
    "no-nonfinite": (lambda tensor: ~torch.isfinite(tensor), 1.0),
    "no-zeros": (lambda tensor: tensor == 0, SMALL),
}
"""Which elements are changed, and to what."""


def size_trial(bench: Bench, output: str, name: str, sizes: Sizes, other: Sizes) -> Inspection:
    """Further plain inputs at a size at which the output differs, and at one at which it does not."""
    first = range(DRAWS)
    wrong, right = _draws(bench, output, sizes, first), _draws(bench, output, other, first)
    # With far fewer elements, a fault of single values would be rarer there as well.
    fair = 2 * total_elements(bench.contract, other) >= total_elements(bench.contract, sizes)
    if fair and 0 < sum(wrong) < len(wrong) and not any(right):
        wrong += _draws(bench, output, sizes, range(DRAWS, MORE_DRAWS))
        right += _draws(bench, output, other, range(DRAWS, MORE_DRAWS))
    trial = SizeTrial(
        sizes=dict(sizes),
        draws=len(wrong),
        exceeding=sum(wrong),
        other_sizes=dict(other),
        other_draws=len(right),
        other_exceeding=sum(right),
    )
    return Inspection(output=output, case=name, size_trial=trial)


def _draws(bench: Bench, output: str, sizes: Sizes, turns: range) -> list[bool]:
    family = main_family(bench.contract)
    numbers = [FIRST_DRAW + turn for turn in turns]
    makers = [partial(values_at, bench.contract, sizes, family, number) for number in numbers]
    return [bench.differs(seen) for seen in (bench.compared(make, output) for make in makers) if seen is not None]


def is_jump(bench: Bench, make: Callable[[], Values], pair: Pair) -> bool:
    """Whether eager gives the artifact's answer at the largest difference once the input moves by one ulp, up or down.

    A model that jumps there, as `x % 1` does at whole numbers, shows nothing by an artifact on the other side.
    """
    tolerance = bench.tolerance(pair.comparison.expected_dtype)
    expected, actual = array_of([pair.expected], pair.expected.name), array_of([pair.actual], pair.actual.name)
    with np.errstate(all="ignore"):
        gap = (
            np.abs(expected - actual) if expected.shape == actual.shape and expected.dtype.kind in "fc" else np.zeros(0)
        )
    if not np.isfinite(gap).any():
        return False
    worst = int(np.nanargmax(gap))
    for towards in (torch.inf, -torch.inf):
        moved = map_tensors(make(), lambda tensor, to=towards: stepped(tensor, to))  # type: ignore[misc] # bound per turn
        other = array_of(attempt(lambda v=moved: bench.laboratory.again(v)), pair.comparison.output)  # type: ignore[misc] # likewise
        is_like = other is not None and other.shape == actual.shape
        if is_like and not apart(other, actual, tolerance).reshape(-1)[worst]:
            return True
    return False


def array_of(leaves: Sequence[Leaf] | None, output: str) -> Any:
    """The values of one output; None without it."""
    return next((leaf.value for leaf in leaves or () if leaf.name == output), None)


def apart(expected: Any, actual: Any, tolerance: Tolerance) -> Bools:
    """Elements outside the tolerance, which is zero for exact dtypes."""
    if expected.dtype.kind not in "fc":
        return np.asarray(expected != actual)
    finite = np.abs(expected[np.isfinite(expected)])
    allowed = (tolerance.atol or 0.0) + (tolerance.rtol or 0.0) * float(finite.max(initial=0.0))
    with np.errstate(all="ignore"):
        gap = np.abs(expected - actual)
    return np.asarray((gap > allowed) | (np.isfinite(expected) != np.isfinite(actual)))
