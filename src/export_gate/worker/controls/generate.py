"""Generated control inputs: draw families over sizes, in the order of what they have caught."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from functools import partial

import torch

from export_gate.wall.contract import ModelContract, TensorSpec
from export_gate.worker.controls.draws import MASK_ENDS, REPEATED, base_family, draw, families
from export_gate.worker.controls.floats import WHOLE
from export_gate.worker.controls.layout import CHANNELS_LAST_RANKS, channels_last, noncontiguous
from export_gate.worker.controls.made import MadeTensor, has_makers, joint_values, made_values
from export_gate.worker.controls.record import ControlCase, case_name, generated_case
from export_gate.worker.controls.sizes import SizePlan, Sizes, reference_sizes
from export_gate.worker.controls.specs import (
    build_values,
    is_floating,
    is_integer,
    shape_at,
    tensor_leaves,
    total_elements,
)
from export_gate.worker.controls.stream import Stream
from export_gate.worker.leaves.values import Values

CATCH_ORDER = (
    "halves", "offset", "nonfinite", "row-off", "tail-off", "right-padded", "left-padded", "holed", "right-masked",
    "all-false", "all-true", "sparse", "sweep", "large", "ends", "bands", "spots", "tiny", "integer-low",
    "integer-high", "duplicates", "distinct", "low", "high", "uniform", "zeros", "constant", "random", "normal",
)  # fmt: skip
"""Families by what they caught in reproduced bug reports, after the base draws at boundary sizes."""

SAME, MIXED = "same", "mixed"
"""Beyond the contract's families: equal values in inputs declared alike (ties), and each input in its own family."""


def values_at(contract: ModelContract, sizes: Sizes, family: str, index: int) -> Values:
    """Fresh values of one family at any sizes, even outside the declared ranges of the dims.

    Inputs that do not know the family get their base family. `integer-low` and `integer-high` are for integers alone.
    """
    name = case_name(f"{family}-{index}", sizes)
    twins = _twins(contract) if family == SAME else {}
    joint = joint_values(contract, sizes, name)

    def leaf(path: str, spec: TensorSpec) -> torch.Tensor:
        if path in joint:
            return joint[path]
        if isinstance(spec, MadeTensor):
            return made_values(contract, path, spec, sizes, name)
        # A twin reads the stream of its first, and so has equal values.
        stream = Stream(contract.controls.seed, name, twins.get(path, path))
        placed = spec.at(sizes)
        wanted = family
        if placed.is_mask and not spec.is_mask:  # a range that depends on sizes is 0 to 1 at some
            wanted = MASK_ENDS.get(family.removeprefix("integer-"), family)
        return draw(placed, shape_at(spec, sizes), _family_of(placed, wanted, stream), index, stream)

    return build_values(contract, leaf)


def main_family(contract: ModelContract) -> str:
    """The family of a model's plainest case: the base family of its first floating input, else of its first."""
    leaves = _specs(contract)
    floating = [spec for spec in leaves if is_floating(spec)]
    return base_family((floating or leaves)[0]) if leaves else "constant"


def generated_cases(contract: ModelContract, plan: SizePlan) -> tuple[Iterator[ControlCase], Iterator[ControlCase]]:
    """The cases to try first, and all others; with `generated: false` only what the project draws at our sizes."""
    if contract.controls.generated:
        return boundary_cases(contract, plan), further_cases(contract, plan)
    if not has_makers(contract):
        return iter(()), iter(())
    main = main_family(contract)
    inner = (drawn_case(contract, main, 1, sizes) for sizes in plan.inner)
    repeats = (drawn_case(contract, *repeat) for repeat in _repeats(contract, (main,), plan.middle))
    return boundary_cases(contract, plan), itertools.chain(inner, repeats)


def boundary_cases(contract: ModelContract, plan: SizePlan) -> Iterator[ControlCase]:
    """The plainest draw at the middle, the smallest, the largest and each dim's ends, and at separate sizes."""
    return (drawn_case(contract, main_family(contract), 1, sizes) for sizes in (*plan.boundary, *plan.separate))


def further_cases(contract: ModelContract, plan: SizePlan) -> Iterator[ControlCase]:
    """All other generated cases; sizes without elements are left to the boundary cases."""
    for family, index, sizes in _further(contract, plan):
        if total_elements(contract, sizes):
            yield drawn_case(contract, family, index, sizes)


def drawn_case(contract: ModelContract, family: str, index: int, sizes: Sizes) -> ControlCase:
    """One generated case."""
    make = _LAYOUTS.get(family, values_at)
    return generated_case(family, index, sizes, partial(make, contract, sizes, family, index))


def redrawn(contract: ModelContract, case: ControlCase, sizes: Sizes) -> ControlCase:
    """A generated case of the same family and index, at other sizes or of a changed contract."""
    # Generated inputs are named `family-index@sizes`.
    index = int(case.name.partition("@")[0].rpartition("-")[2])
    return drawn_case(contract, case.family, index, sizes)


def case_named(contract: ModelContract, name: str) -> ControlCase | None:
    """The generated case of that name at any declared sizes; None if there is none."""
    found = CASE_NAME.fullmatch(name)
    if found is None or found["family"] not in {main_family(contract), *known_families(contract), *_LAYOUTS}:
        return None
    sizes = {dim: int(size) for dim, _, size in (part.partition("=") for part in found["sizes"].split(","))}
    if list(sizes) != [dim.name for dim in contract.dims]:
        return None
    declared = all(sizes[dim.name] in dim.sizes or sizes[dim.name] in dim.separate for dim in contract.dims)
    return drawn_case(contract, found["family"], int(found["index"]), sizes) if declared else None


CASE_NAME = re.compile(r"(?P<family>[a-z-]+)-(?P<index>\d{1,3})@(?P<sizes>\w+=\d{1,10}(,\w+=\d{1,10})*)")


def _further(contract: ModelContract, plan: SizePlan) -> Iterator[tuple[str, int, Sizes]]:
    main, known = main_family(contract), known_families(contract)
    if not tensor_leaves(contract):
        return
    # The order is that of what they caught: `controls.limit` takes a prefix.
    yield from ((family, 1, _with_rows(contract, plan.middle) if family in PADDED else plan.middle) for family in known)
    yield from ((family, 1, plan.middle) for family in _layouts(contract))
    yield from ((main, 1, sizes) for sizes in plan.inner)
    yield from ((main, 1, sizes) for sizes in plan.beside)
    yield from ((family, 1, sizes) for sizes in plan.separate for family in known)
    yield from _repeats(contract, (main, *known), plan.middle)
    yield from _all_infinite(contract, known, plan)
    yield from ((family, 1, plan.largest) for family in known if plan.largest != plan.middle)
    yield from _combined(contract, plan)
    small = () if plan.smallest == plan.middle else (family for family in known if family not in ROOMY)
    yield from ((family, 1, plan.smallest) for family in small)
    yield from ((main, 1, sizes) for sizes in plan.pairs)


ROOMY = ("ends", "bands", "spots", "tiny")
"""Families that say little in the few elements of the smallest sizes."""
PADDED = ("right-padded", "left-padded", "holed")
ROWS = 3
"""Rows of a padded mask: fewer cannot have a full row, a short one and one in between."""


def _with_rows(contract: ModelContract, sizes: Sizes) -> Sizes:
    """The sizes with at least three rows in every mask, if the dims allow."""
    rows = {size.dim for _, spec in tensor_leaves(contract) if spec.is_mask for size in spec.shape[:-1]}
    few = [dim for dim in contract.dims if dim.name in rows and sizes[dim.name] < ROWS and dim.mode != "static"]
    larger = {dim.name: next((size for size in dim.sizes if size >= ROWS), sizes[dim.name]) for dim in few}
    return {**sizes, **larger}


def _specs(contract: ModelContract) -> list[TensorSpec]:
    """The tensor inputs with the bounds that they have at the reference sizes."""
    sizes = reference_sizes(contract)
    return [spec.at(sizes) for _, spec in tensor_leaves(contract)]


def known_families(contract: ModelContract) -> tuple[str, ...]:
    """Families of any input but the model's plainest draw, in catch order."""
    leaves = _specs(contract)
    known = {family for spec in leaves for family in families(spec)} - {main_family(contract)}
    floating, integers = [s for s in leaves if is_floating(s)], [s for s in leaves if is_integer(s)]
    if floating:
        known.discard("random")  # integers and bools have it with every floating family
        known |= {f"integer-{end}" for end in ("low", "high") if any(end in families(spec) for spec in integers)}
        known -= {end for end in ("low", "high") if not any(end in families(spec) for spec in floating)}
    return tuple(family for family in CATCH_ORDER if family in known)


def _layouts(contract: ModelContract) -> Iterator[str]:
    ranks = {len(spec.shape) for _, spec in tensor_leaves(contract)}
    if max(ranks) > 0:
        yield "noncontiguous"
    if ranks & set(CHANNELS_LAST_RANKS):
        yield "channels-last"


def _repeats(contract: ModelContract, known: Iterable[str], sizes: Sizes) -> Iterator[tuple[str, int, Sizes]]:
    """Further seeded draws; non-finite ones are three at least where NaN and infinity take turns."""
    both = any(len(spec.nonfinite) > 1 for _, spec in tensor_leaves(contract))
    for family in known:
        count = contract.controls.random
        count = max(count, 3) if family == "nonfinite" and both else count
        yield from ((family, index, sizes) for index in range(2, count + 1) if family in REPEATED)


def _all_infinite(contract: ModelContract, known: Iterable[str], plan: SizePlan) -> Iterator[tuple[str, int, Sizes]]:
    """Whole tensors of one infinity: a maximum over them starts from the identity that a runtime chooses."""
    if "nonfinite" in known and any("inf" in spec.nonfinite for _, spec in tensor_leaves(contract)):
        places = [plan.middle] if plan.smallest == plan.middle else [plan.middle, plan.smallest]
        yield from (("nonfinite", index, sizes) for sizes in places for index in WHOLE)


def _combined(contract: ModelContract, plan: SizePlan) -> Iterator[tuple[str, int, Sizes]]:
    places = [plan.middle] if plan.largest == plan.middle else [plan.middle, plan.largest]
    if _twins(contract):
        yield from ((SAME, 1, sizes) for sizes in places)
    if len(tensor_leaves(contract)) > 1:
        indices = range(1, contract.controls.random + 1)
        yield from ((MIXED, index, sizes) for sizes, index in itertools.product(places, indices))


def _twins(contract: ModelContract) -> dict[str, str]:
    """Path -> path of the first input declared exactly alike, for inputs that have such a twin."""
    leaves = tensor_leaves(contract)
    first = {path: next(other for other, twin in leaves if twin == spec) for path, spec in leaves}
    return {path: one for path, one in first.items() if list(first.values()).count(one) > 1}


def _family_of(spec: TensorSpec, family: str, stream: Stream) -> str:
    known = families(spec)
    if family == MIXED:
        return known[int(stream.integers(0, len(known) - 1, 1)[0])]
    if is_integer(spec):
        family = family.removeprefix("integer-")
    return family if family in known else base_family(spec)


def _noncontiguous(contract: ModelContract, sizes: Sizes, _family: str, index: int) -> Values:
    values: Values = noncontiguous(values_at(contract, sizes, main_family(contract), index))
    return values


def _channels_last(contract: ModelContract, sizes: Sizes, _family: str, index: int) -> Values:
    values: Values = channels_last(values_at(contract, sizes, main_family(contract), index))
    return values


_LAYOUTS = {"noncontiguous": _noncontiguous, "channels-last": _channels_last}
