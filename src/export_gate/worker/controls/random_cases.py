"""Random inputs beyond a control set: to see whether anything tells two artifacts apart that the set does not.

They come from every family that fits an input, whatever `draws` says, from mixtures of them element by element, and
from the constants of the program, at random declared sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch

from export_gate.wall.contract import ModelContract, TensorSpec
from export_gate.wall.inputs import with_tensors
from export_gate.worker.controls.draws import draw, families
from export_gate.worker.controls.generate import MIXED, SAME, drawn_case, known_families, main_family
from export_gate.worker.controls.made import has_makers
from export_gate.worker.controls.record import ControlCase, case_name, generated_case
from export_gate.worker.controls.sizes import Sizes, reference_sizes
from export_gate.worker.controls.specs import build_values, shape_at, tensor_leaves, total_elements
from export_gate.worker.controls.stream import Stream
from export_gate.worker.controls.threshold_rows import FAMILY as THRESHOLD_ROWS
from export_gate.worker.controls.threshold_rows import threshold_case, threshold_cases
from export_gate.worker.leaves.values import Values
from export_gate.worker.model.thresholds import Threshold

FIRST = 101
"""Index of the first random input: a control set has none that high, and a name holds three digits."""
MOSAIC = "mosaic"
"""Each element from one of several families."""
PARTS = 4
STILL = ("zeros", "constant", "low", "high", "all-true", "all-false", "integer-low", "integer-high")
"""Families of one or few members, which are drawn less often."""


def random_cases(
    contract: ModelContract, constants: Sequence[Threshold], seed: int, count: int
) -> Iterator[ControlCase]:
    """That many inputs, the families in turn.

    Args:
        contract: Of the model.
        constants: What the program compares its inputs with.
        seed: Chooses sizes; values follow from a case's name, so that it can be run again by it.
        count: How many.
    """
    # `draws` narrows the control set; what it leaves out is what may tell two artifacts apart.
    open_contract = replace(contract, inputs=with_tensors(contract.inputs, lambda _, spec: replace(spec, draws=())))
    pool = _pool(open_contract, constants)
    for turn in range(count):
        family = pool[turn % len(pool)]
        sizes = _sizes(open_contract, Stream(seed, "random", str(turn)))
        yield _case(open_contract, family, FIRST + turn, sizes, constants)


def _pool(contract: ModelContract, constants: Sequence[Threshold]) -> tuple[str, ...]:
    """The families in the order in which they are drawn; still ones once in three rounds."""
    known = (main_family(contract), *known_families(contract))
    moving = [family for family in known if family not in STILL]
    more = [SAME, MIXED] if len(tensor_leaves(contract)) > 1 else []
    more += [] if has_makers(contract) else [MOSAIC]
    more += [THRESHOLD_ROWS] if threshold_cases(contract, constants) else []
    return (*(moving + more) * 3, *(family for family in known if family in STILL))


def _case(
    contract: ModelContract, family: str, index: int, sizes: Sizes, constants: Sequence[Threshold]
) -> ControlCase:
    if family == THRESHOLD_ROWS:
        return threshold_case(contract, constants, index, sizes)
    if family != MOSAIC:
        return drawn_case(contract, family, index, sizes)
    return generated_case(MOSAIC, index, sizes, partial(_mosaic, contract, sizes, index))


def _mosaic(contract: ModelContract, sizes: Sizes, index: int) -> Values:
    name = case_name(f"{MOSAIC}-{index}", sizes)

    def leaf(path: str, spec: TensorSpec) -> torch.Tensor:
        stream, placed = Stream(contract.controls.seed, name, path), spec.at(sizes)
        shape, known = shape_at(spec, sizes), families(placed)
        chosen = [known[int(place)] for place in stream.integers(0, len(known) - 1, PARTS)]
        # Mixed element by element, neither a mask's form nor an order would be left.
        if placed.is_mask or placed.order is not None:
            return draw(placed, shape, chosen[0], index, stream)
        parts = [draw(placed, shape, family, index, stream) for family in chosen]
        which = torch.from_numpy(stream.integers(0, PARTS - 1, parts[0].numel())).reshape(shape)
        mixed = parts[0]
        for place, part in enumerate(parts[1:], 1):
            mixed = torch.where(which == place, part, mixed)
        return mixed

    return build_values(contract, leaf)


def _sizes(contract: ModelContract, stream: Stream) -> Sizes:
    """Random declared sizes, the fixed ones as at the reference."""
    found = reference_sizes(contract)
    for dim in contract.dims:
        if dim.mode != "static" and len(dim.sizes) > 1:
            found[dim.name] = dim.sizes[int(stream.integers(0, len(dim.sizes) - 1, 1)[0])]
    # Where dims are zero, an input may have no elements, and no difference shows.
    return found if total_elements(contract, found) else reference_sizes(contract)
