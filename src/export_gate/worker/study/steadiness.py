"""Find out whether eager's own answer at the elements that differ hangs on rounding: choices, and steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch

from export_gate.wall.diagnosis import Inspection
from export_gate.worker.controls.layout import map_tensors
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.stream import Stream
from export_gate.worker.leaves.values import Leaf, Values
from export_gate.worker.model.factory import bind
from export_gate.worker.study.laboratory import attempt
from export_gate.worker.study.noise import SEED, jittered
from export_gate.worker.study.rungs import CHOOSING
from export_gate.worker.study.trials import Bench, Bools, apart, array_of

SWAYS, ULPS = 12, 4
NUDGE = 2.0**-40
"""A value that is not exactly at a step of the model does not cross it by that share."""
Ask = Callable[[Values], tuple[Leaf, ...]]


def steadiness(
    bench: Bench, case: ControlCase, expected: Sequence[Leaf], output: str, selects: tuple[str, ...]
) -> Inspection:
    """The failing elements at which eager's own answer depends on rounding."""
    wanted = array_of(expected, output)
    ours = array_of(attempt(lambda: bench.run(bind(case.make(), bench.laboratory.parameters))), output)
    if wanted is None or ours is None or wanted.shape != ours.shape:
        return Inspection(output=output, case=case.name, selects=selects)
    tolerance = bench.tolerance(next(leaf.dtype for leaf in expected if leaf.name == output))
    # Element by element against one bound for the output: what counts is where they differ, not by how much.
    failing = apart(wanted, ours, tolerance)
    unsettled = near = np.zeros(failing.shape, dtype=np.bool_)
    if selects:
        again, widened = bench.laboratory.again, bench.laboratory.widened

        def answers(ask: Ask, inputs: Iterable[Values]) -> Iterator[Any]:
            others = (array_of(attempt(lambda: ask(values)), output) for values in inputs)  # noqa: B023 - used in its turn
            return (each for each in others if each is not None and each.shape == wanted.shape)

        def moved(ask: Ask, inputs: Iterable[Values], beside: Any = wanted) -> Bools:
            return reduce(np.logical_or, (apart(beside, other, tolerance) for other in answers(ask, inputs)), near)

        # A step of one ulp takes values off an exact half, so it says nothing about operators that round.
        choices = jittered(case) if set(selects) & set(CHOOSING) else ()
        unsettled = moved(again, choices)
        exact = next(answers(widened, [case.make()]), None)
        if exact is not None:
            unsettled = unsettled | apart(wanted, exact, tolerance)
            near = unsettled | moved(again, swayed(case, _by_ulps)) & ~moved(widened, swayed(case, _by_less), exact)
    return Inspection(
        output=output,
        case=case.name,
        selects=selects,
        outside=int(failing.sum()),
        unsettled=int((failing & unsettled).sum()),
        near=int((failing & near).sum()),
    )


def swayed(case: ControlCase, step: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Iterator[Values]:
    """The input with all floats moved up, all down, and each either way at random.

    Args:
        case: the control input.
        step: moves a tensor by ways of 1 and -1.
    """
    for draw in range(SWAYS):
        stream = Stream(SEED, case.name, f"sway-{draw}")
        yield map_tensors(case.make(), lambda tensor, draw=draw, stream=stream: _swayed(tensor, draw, stream, step))  # type: ignore[misc] # bound per draw


def _swayed(tensor: torch.Tensor, draw: int, stream: Stream, step: Any) -> Any:
    if not tensor.is_floating_point():
        return tensor
    coins = torch.from_numpy(stream.integers(0, 1, tensor.numel())).reshape(tensor.shape)
    ways = 2 * coins.to(tensor.dtype) - 1
    # The first two go one way.
    return step(tensor, torch.full_like(ways, (1.0, -1.0)[draw]) if draw < 2 else ways)  # noqa: PLR2004


def _by_ulps(tensor: torch.Tensor, ways: torch.Tensor) -> torch.Tensor:
    """Moved by a few ulps: sums on the way to the output round more often than the input does."""
    if not tensor.numel():
        return tensor
    size = torch.where(tensor == 0, tensor.abs().max(), tensor.abs())
    return tensor + ways * ULPS * torch.finfo(tensor.dtype).eps * size


def _by_less(tensor: torch.Tensor, ways: torch.Tensor) -> torch.Tensor:
    """Moved in float64, by far less than float32 can."""
    wide = tensor.double()
    return wide + ways * NUDGE * torch.where(wide == 0, 1.0, wide.abs())
