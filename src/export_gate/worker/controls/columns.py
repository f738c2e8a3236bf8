"""Read arrays of a data file as columns of samples, and stack them into values of the declared shapes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from export_gate.wall.contract import ModelContract, Size, TensorSpec
from export_gate.wall.errors import UserError
from export_gate.worker.controls.check import check_dtype
from export_gate.worker.controls.draws import base_family, draw
from export_gate.worker.controls.files import SINGLE
from export_gate.worker.controls.images import ImageFolder
from export_gate.worker.controls.made import MadeTensor, joint_values, made_values
from export_gate.worker.controls.sizes import Sizes, reference_sizes
from export_gate.worker.controls.specs import build_values, shape_at, shape_text, tensor_leaves
from export_gate.worker.controls.stream import Stream
from export_gate.worker.leaves.values import Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One input's samples."""

    path: str
    spec: TensorSpec
    content: torch.Tensor | ImageFolder
    """Samples along the first axis."""
    rows: bool
    """A sample is one row along the input's first axis; otherwise it is the whole input."""

    def __len__(self) -> int:
        return len(self.content)

    def sample(self, index: int) -> torch.Tensor:
        """One sample, without the axis of samples."""
        if isinstance(self.content, ImageFolder):
            return self.content.sample(self.path, self.spec, index)
        return self.content[index]

    def stack(self, indices: Sequence[int]) -> torch.Tensor:
        """The input made of these samples; a fresh, contiguous tensor."""
        if self.rows:
            return torch.stack([self.sample(index) for index in indices])
        return self.sample(indices[0]).clone()


def read_columns(
    contract: ModelContract, place: str, arrays: Mapping[str, Any], keys: Mapping[str, str]
) -> tuple[Column, ...]:
    """The columns that `inputs` names (path -> key), or one for each tensor input where it is empty.

    Raises:
        UserError: a key or input is missing, an array's element type or rank does not fit, or lengths differ.
    """
    leaves = dict(tensor_leaves(contract))
    unknown = [path for path in keys if path not in leaves]
    if unknown:
        raise UserError(
            f"{place}: inputs: expected names of tensor inputs ({', '.join(leaves)}), got '{unknown[0]}'",
            "Write `inputs: {input: key in the file}`.",
        )
    wanted = dict(keys) or {path: path for path in leaves}
    # One array for one input needs no key.
    only = _only_array(arrays) if len(wanted) == 1 else None
    columns = tuple(
        _column(place, path, leaves[path], pick(place, arrays, key) if only is None else only)
        for path, key in wanted.items()
    )
    _check_alike(place, columns)
    return columns


def pick(place: str, arrays: Mapping[str, Any], key: str) -> Any:
    """The array of that key.

    Raises:
        UserError: there is none; the message lists those that exist.
    """
    if key not in arrays:
        have = ", ".join(f"'{known}'" for known in arrays) or "none"
        raise UserError(f"{place}: expected a key '{key}', the file has {have}", "Name one of those keys.")
    return arrays[key]


def batches(contract: ModelContract, columns: Sequence[Column], indices: Sequence[int]) -> list[tuple[int, ...]]:
    """The samples of each case: one where samples are whole inputs, else as many as the first axis takes.

    Samples of one shape go together. A last batch that is too short is filled up from the first samples.
    """
    if not columns[0].rows:
        return [(index,) for index in indices]
    # Only samples of one shape can be stacked.
    alike: dict[tuple[torch.Size, ...], list[int]] = {}
    for index in indices:
        alike.setdefault(_shapes(columns, index), []).append(index)
    return [batch for members in alike.values() for batch in _cut(members, _rows(contract, columns, len(members)))]


def stack_values(
    contract: ModelContract, columns: Sequence[Column], batch: Sequence[int], case: str, sizes: Sizes
) -> Values:
    """Fresh values of one case; inputs that the file does not have are drawn from their base family."""
    stacked = {column.path: column for column in columns}
    joint = joint_values(contract, sizes, case) if drawn_paths(contract, columns) else {}

    def leaf(path: str, spec: TensorSpec) -> torch.Tensor:
        if path in stacked:
            return stacked[path].stack(batch)
        if path in joint:
            return joint[path]
        if isinstance(spec, MadeTensor):
            return made_values(contract, path, spec, sizes, case)
        stream = Stream(contract.controls.seed, case, path)
        placed = spec.at(sizes)
        return draw(placed, shape_at(spec, sizes), base_family(placed), 1, stream)

    return build_values(contract, leaf)


def drawn_paths(contract: ModelContract, columns: Sequence[Column]) -> tuple[str, ...]:
    """Tensor inputs that the file does not have."""
    have = {column.path for column in columns}
    return tuple(path for path, _ in tensor_leaves(contract) if path not in have)


def allowed_rows(contract: ModelContract, size: Size, most: int) -> tuple[int, ...]:
    """Lengths up to `most` that a first axis may have, ascending; at least the shortest, and those of `separate`."""
    if size.dim is None:  # a constant, or a sum: of its lengths the reference's is as good as any
        return (size.at(reference_sizes(contract)),)
    dim = contract.dim(size.dim)
    sizes, factor = dim.sizes, size.factors[dim.name]
    # Slices, because a range may have millions of sizes.
    first, last = bisect_left(sizes, -size.offset // factor + 1), bisect_right(sizes, (most - size.offset) // factor)
    some = {*sizes[first : max(last, first + 1)], *dim.separate}
    values = [reference_sizes(contract)[dim.name]] if dim.mode == "static" else sorted(some)
    return tuple(size.at({dim.name: value}) for value in values if size.at({dim.name: value}) > 0)


def _only_array(arrays: Mapping[str, Any]) -> Any:
    """The content of a file that has no keys to choose from, or None."""
    if set(arrays) == {SINGLE}:
        return arrays[SINGLE]
    images = arrays.get("images")
    return images if isinstance(images, ImageFolder) else None


def _column(place: str, path: str, spec: TensorSpec, array: Any) -> Column:
    if isinstance(array, ImageFolder):
        return Column(path=path, spec=spec, content=array, rows=len(spec.shape) > 3)  # noqa: PLR2004 - [C, H, W]
    tensor = as_tensor(place, path, spec, array)
    extra = tensor.dim() - len(spec.shape)
    if extra not in (0, 1) or tensor.dim() == 0:
        rows = f" or [samples, {shape_text(spec.shape[1:])[1:]}" if len(spec.shape) > 1 else ""
        raise UserError(
            f"{place}: input '{path}': expected an array of shape [samples, {shape_text(spec.shape)[1:]}{rows}, got"
            f" {list(tensor.shape)}",
            "The first axis counts the samples.",
        )
    return Column(path=path, spec=spec, content=tensor, rows=extra == 0)


def as_tensor(place: str, path: str, spec: TensorSpec, array: Any) -> torch.Tensor:
    """The array as a tensor of the declared element type.

    Raises:
        UserError: it has another element type.
    """
    check_dtype(place, path, spec, array)
    if isinstance(array, torch.Tensor):
        return array
    # torch takes no other byte order. The reshape, because `ascontiguousarray` gives a scalar an axis.
    return torch.from_numpy(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).reshape(array.shape))


def _check_alike(place: str, columns: Sequence[Column]) -> None:
    lengths = {column.path: len(column) for column in columns}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"'{path}' {length}" for path, length in lengths.items())
        raise UserError(
            f"{place}: expected the same number of samples for each input, got {found}", "Write them alike."
        )
    if next(iter(lengths.values())) == 0:
        raise UserError(f"{place}: expected samples, got none", "The first axis of every array is empty.")
    first_axes = {str(column.spec.shape[0]) if column.rows else "" for column in columns}
    if len(first_axes) > 1:
        found = ", ".join(f"'{c.path}' {'one row' if c.rows else 'the whole input'}" for c in columns)
        raise UserError(
            f"{place}: expected a sample to mean the same for each input, got {found}",
            "Give all arrays an axis of samples before the declared shape, or none of them.",
        )


def _shapes(columns: Sequence[Column], index: int) -> tuple[torch.Size, ...]:
    return tuple(column.sample(index).shape for column in columns)


def _rows(contract: ModelContract, columns: Sequence[Column], count: int) -> int:
    """Rows of a batch: near the reference size, and such that batches come out even where a size allows it."""
    first = columns[0].spec.shape[0]
    usual = first.at(reference_sizes(contract))
    allowed = allowed_rows(contract, first, max(usual, count))
    # Even batches need no sample twice. One row alone shows nothing of how rows affect each other.
    even = [rows for rows in allowed if 1 < rows <= max(usual, 1) and count % rows == 0]
    fitting = [rows for rows in allowed if rows <= min(usual, count)]
    return even[-1] if even else fitting[-1] if fitting else allowed[0]


def _cut(members: Sequence[int], rows: int) -> list[tuple[int, ...]]:
    batches = [list(members[start : start + rows]) for start in range(0, len(members), rows)]
    # More than once where the file has fewer samples than the smallest batch.
    while len(batches[-1]) < rows:
        batches[-1] += members[: rows - len(batches[-1])]
    return [tuple(batch) for batch in batches]
