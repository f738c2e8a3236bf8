"""Mask inputs: which value switches a position off, and how eager answers when switched-off inputs change.

Used only after a difference was found, never to choose what is compared. Source: measured on 51 healthy configs and 134
planted faults; docs/rules.md, `masked-positions`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from export_gate.wall.contract import ModelContract, TensorSpec
from export_gate.worker.controls.generate import main_family, values_at
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.sizes import Sizes, reference_sizes
from export_gate.worker.controls.specs import shape_at, tensor_leaves
from export_gate.worker.leaves.values import Leaf, Values, flatten
from export_gate.worker.study.laboratory import Laboratory, attempt
from export_gate.worker.study.mask_places import Bools, Mask, masks_of, of_keys, spread

Polarity = Literal["keep", "drop"]
KEEP_NAMES = frozenset({
    "attention_mask", "encoder_attention_mask", "decoder_attention_mask", "cross_attention_mask", "text_attention_mask",
    "pixel_attention_mask", "pixel_mask",
})  # fmt: skip
"""Names in transformers, where 1 keeps a position."""
DROP_ENDING = "key_padding_mask"
"""The name in torch.nn.MultiheadAttention, where true drops one."""
PATTERNS = ("right", "left", "holed")
"""Only holed masks catch spans and offsets; right-padded ones alone miss what a causal model ignores."""
PROBES_OF_EACH = 3
REDRAWS = 3
ROWS = 3
"""Batch of a probe, where the dim allows: a mask that is broadcast from row 0 looks right at batch 1."""
STILL = 1e-5
"""A change below this share of the largest value is not a move."""
FIRST_PROBE, FIRST_REDRAW = 901, 951
"""Indices of draws that no control input uses."""


@dataclass(slots=True, kw_only=True)
class Masks:
    """What is known about the masks of one model; found out when the first difference asks."""

    contract: ModelContract
    laboratory: Laboratory
    axes: Mapping[str, tuple[str, ...]]
    """Output -> the texts of its axes, empty if an axis has no dim."""
    polarities: dict[str, Polarity | None] = field(default_factory=dict)
    constants: dict[tuple[str, str], bool] = field(default_factory=dict)
    """(mask, output) -> whether eager's values at switched-off positions never move."""

    def polarity(self, mask: Mask) -> Polarity | None:
        """Whether 1 keeps or drops a position; None if that is undecided, or the input is not a mask."""
        if mask.path not in self.polarities:
            # Kept even if it is None: nine draws are not made again for each difference.
            self.polarities[mask.path] = _declared(mask.path, mask.spec) or self._probed(mask)
        return self.polarities[mask.path]

    def off(self, mask: Mask, leaves: Mapping[str, Leaf]) -> Bools | None:
        """The switched-off positions; None if the polarity is undecided."""
        polarity = self.polarity(mask)
        if polarity is None:
            return None
        off: Bools = mask.array(leaves).astype(bool) == (polarity == "drop")
        return off

    def moved(self, values: Values, mask: Mask, places: Bools, sizes: Sizes, turn: int) -> dict[str, Bools] | None:
        """Which elements of eager's outputs move when the inputs at `places` of the mask are drawn anew."""
        before = self._eager(values)
        after = self._eager(self._redrawn(values, mask, places, sizes, turn))
        if before is None or after is None:
            return None
        return {name: _moved(leaf, after[name]) for name, leaf in before.items() if name in after}

    def is_constant(self, mask: Mask, output: str) -> bool:
        """Whether eager promises something at switched-off positions: its values there move in no redraw."""
        key = (mask.path, output)
        if key not in self.constants:
            self.constants[key] = not any(self._moves_off(mask, output, number) for number in range(len(PATTERNS)))
        return self.constants[key]

    def _moves_off(self, mask: Mask, output: str, number: int) -> bool:
        values, places, sizes = self._probe(mask, number, self.polarity(mask) or "keep")
        moved = self.moved(values, mask, places, sizes, FIRST_REDRAW + number)
        # Where nothing is known, nothing is promised.
        if moved is None or output not in moved:
            return True
        at = spread(places, mask, self.axes.get(output, ()), moved[output].shape)
        return at is None or bool((moved[output] & at).any())

    def _probed(self, mask: Mask) -> Polarity | None:
        """The polarity by nine draws: which value's inputs do not reach what the other value keeps."""
        tallies = [[0, 0], [0, 0]]  # value -> draws in which aligned, or any, outputs moved
        needed = 2 if mask.is_square else 1
        is_aligned = any(axes.count(mask.positions) >= needed for axes in self.axes.values())
        draws = len(PATTERNS) * PROBES_OF_EACH
        for number in range(draws):
            # With `drop`, the places that are off are those of the ones.
            values, ones, sizes = self._probe(mask, number, "drop")
            for value, places in ((1, ones), (0, ~ones)):
                moved = self.moved(values, mask, places, sizes, FIRST_REDRAW + number)
                if moved is None:
                    return None
                # Only what was not redrawn counts: a value that is off must not reach that.
                tallies[value][0] += self._reaches(moved, mask, ~places)
                tallies[value][1] += any(bool(found.any()) for found in moved.values())
        return _decided(tallies, draws, is_aligned=is_aligned)

    def _reaches(self, moved: Mapping[str, Bools], mask: Mask, others: Bools) -> bool:
        for output, found in moved.items():
            at = spread(others, mask, self.axes.get(output, ()), found.shape)
            if at is not None and bool((found & at).any()):
                return True
        return False

    def _probe(self, mask: Mask, number: int, polarity: Polarity) -> tuple[Values, Bools, Sizes]:
        """Values whose mask has one of the patterns, the places that are off, and the sizes."""
        sizes = probe_sizes(self.contract, mask)
        values = values_at(self.contract, sizes, main_family(self.contract), FIRST_PROBE + number)
        full = shape_at(mask.spec, sizes)
        kept = pattern(PATTERNS[number % len(PATTERNS)], full, number)
        ones = kept if polarity == "keep" else ~kept
        tensor = torch.from_numpy(ones.astype(np.uint8)).to(getattr(torch, mask.spec.dtype))
        return with_leaf(values, mask.path, tensor), (~kept).reshape(mask.lengths(full)), sizes

    def _redrawn(self, values: Values, mask: Mask, places: Bools, sizes: Sizes, turn: int) -> Values:
        fresh = {leaf.name: leaf for leaf in flatten(values_at(self.contract, sizes, main_family(self.contract), turn))}
        known = {leaf.name: leaf for leaf in flatten(values)}
        for path, spec in tensor_leaves(self.contract):
            # Other masks stay as they are: they decide what counts.
            if path == mask.path or _declared(path, spec):
                continue
            old, new = known[path].value, fresh[path].value
            axes = tuple(str(size) for size in spec.shape)
            # Of a square mask's positions those that no query keeps.
            at = None if old is None else spread(*of_keys(places, mask, axes), axes, old.shape)
            if at is not None and old is not None and new is not None:
                values = with_leaf(values, path, _as_tensor(np.where(at, new, old), spec))
        return values

    def _eager(self, values: Values) -> dict[str, Leaf] | None:
        leaves = attempt(lambda: self.laboratory.again(values))
        return None if leaves is None else {leaf.name: leaf for leaf in leaves if leaf.value is not None}


def pattern(name: str, shape: tuple[int, ...], seed: int) -> Bools:
    """Kept positions: rows of different lengths padded on the right or left, or with holes; one row is full.

    Args:
        name: right, left or holed.
        shape: of the mask; its last axis lists positions.
        seed: of the lengths.
    """
    rows, length = int(np.prod(shape[:-1], dtype=int)), shape[-1]
    rng = np.random.default_rng(seed)
    if name == "holed":
        kept = rng.random((rows, length)) < 0.6  # noqa: PLR2004 - more kept than not
        kept[np.arange(rows), rng.integers(0, max(length, 1), rows)] = True
        return kept.reshape(shape)
    lengths = rng.integers(1, max(length, 2), rows)
    # A full row and one of a single token, whatever was drawn.
    lengths[0] = length
    if rows > 1:
        lengths[1] = 1
    kept = np.arange(length) < lengths[:, None]
    return (kept if name == "right" else kept[:, ::-1]).reshape(shape)


def probe_sizes(contract: ModelContract, mask: Mask) -> Sizes:
    """The reference sizes with at least three rows where the dim allows."""
    sizes = reference_sizes(contract)
    for dim in contract.dims:
        if dim.name in mask.rows and sizes[dim.name] < ROWS:
            larger = dim.sizes[bisect_left(dim.sizes, ROWS) :]
            sizes = {**sizes, dim.name: larger[0] if larger else sizes[dim.name]}
    return sizes


def _declared(path: str, spec: TensorSpec) -> Polarity | None:
    """The polarity that the contract or the input's exact name says."""
    if spec.mask in ("keep", "drop"):
        return "keep" if spec.mask == "keep" else "drop"
    name = path.rpartition(".")[2]
    if name in KEEP_NAMES:
        return "keep"
    return "drop" if name.endswith(DROP_ENDING) else None


def _decided(tallies: Sequence[Sequence[int]], draws: int, *, is_aligned: bool) -> Polarity | None:
    """The value that is off: its inputs reach kept outputs in fewer than half of the draws."""
    ones, zeros = tallies[1], tallies[0]
    if is_aligned:
        often = draws / 2
        if ones[0] < often <= zeros[0]:
            return "drop"
        return "keep" if zeros[0] < often <= ones[0] else None
    if not ones[1] and zeros[1]:
        return "drop"
    return "keep" if not zeros[1] and ones[1] else None


def _moved(before: Leaf, after: Leaf) -> Bools:
    assert before.value is not None
    assert after.value is not None
    if before.value.shape != after.value.shape:
        # Of another length, as with `nonzero`, no element has a counterpart.
        return np.ones(before.value.shape, dtype=np.bool_)
    if before.value.dtype.kind not in "fc":
        different: Bools = before.value != after.value
        return different
    finite = np.abs(before.value[np.isfinite(before.value)])
    scale = float(finite.max(initial=0.0))
    # As a share of the largest value: the rounding of sums moves small elements by as much as large ones.
    with np.errstate(all="ignore"):
        far = np.abs(before.value - after.value) > STILL * scale
    moved: Bools = far | (np.isfinite(before.value) != np.isfinite(after.value))
    return moved


def with_leaf(value: Any, path: str, tensor: torch.Tensor) -> Any:
    """The same values with the tensor at `path` replaced."""
    key, _, rest = path.partition(".")

    def changed(item: Any) -> Any:
        return with_leaf(item, rest, tensor) if rest else tensor

    if isinstance(value, dict):
        return {k: changed(item) if str(k) == key else item for k, item in value.items()}
    items = [changed(item) if str(index) == key else item for index, item in enumerate(value)]
    return items if isinstance(value, list) else tuple(items)


def unmasked(values: Values, masks: Masks) -> Values | None:
    """The same values with every position kept; None without a mask whose meaning is known."""
    known = {leaf.name: leaf for leaf in flatten(values)}
    changed = None
    for mask in masks_of(masks.contract):
        leaf, polarity = known.get(mask.path), masks.polarity(mask)
        if polarity is not None and leaf is not None and leaf.value is not None:
            # Its own dtype and shape, which may be others than those declared.
            kept = torch.full(leaf.value.shape, polarity == "keep").to(getattr(torch, leaf.dtype))
            changed = with_leaf(values if changed is None else changed, mask.path, kept)
    return changed


def _as_tensor(array: npt.NDArray[Any], spec: TensorSpec) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(getattr(torch, spec.dtype))


def leaves_of(case: ControlCase) -> dict[str, Leaf]:
    """The control input's tensors by path."""
    return {leaf.name: leaf for leaf in flatten(case.make())}
