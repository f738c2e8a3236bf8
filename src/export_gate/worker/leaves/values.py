"""Turn torch values into named leaves, which can be compared without torch, and into calls."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt

NUMBERS = frozenset("biufc")
"""NumPy's kinds of numbers, bools included."""
INT64 = 1 << 63
Values = dict[str, Any]
"""One control input: declared input name -> torch tensor, Python constant, or list, tuple and dict of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Values bound to forward's parameters."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One leaf of an output."""

    name: str
    dtype: str
    """As torch spells it (`float32`, `bfloat16`); `None`, `str` and the like for leaves that are not numbers."""
    value: npt.NDArray[Any] | None
    """bfloat16 is widened to float32, which is exact; None if the leaf is not a number."""
    python: bool = False
    """A Python int, float or bool, counted as a 0-d int64, float64 or bool tensor."""
    constant: str = ""
    """The text of a string, or of an int beyond 64 bits, which must be equal on both sides."""


def flatten(value: Any, name: str = "") -> tuple[Leaf, ...]:
    """Leaves of a (nested) output in order, named by their keys and indices joined with dots.

    A single tensor is `output`; a top-level sequence is `output.0`, `output.1`, ...; a mapping uses its own keys. Other
    containers are those registered with torch (`torch.export.register_dataclass` and the like): every tensor in them
    must be compared.
    """
    items = _items(value)
    if items is None:
        return (as_leaf(name or "output", value),)
    prefix = name or ("" if _is_mapping(value) else "output")
    return tuple(leaf for key, item in items for leaf in flatten(item, f"{prefix}.{key}".lstrip(".")))


def plain(value: Any) -> Any:
    """The same output in lists, tuples and dicts alone, with the same leaves under the same names."""
    items = _items(value)
    if items is None:
        return value
    if type(value) in (list, tuple):
        return type(value)(plain(item) for _, item in items)
    return {key: plain(item) for key, item in items}


def is_plain(value: Any) -> bool:
    """Whether flattening it runs only code of torch and Python: no subclasses, no registered containers."""
    import torch

    if type(value) in (list, tuple):
        return all(map(is_plain, value))
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(map(is_plain, value.values()))
    return type(value) in (torch.Tensor, int, float, bool, str, NoneType)


def as_leaf(name: str, value: Any) -> Leaf:
    """The leaf of one tensor, array, Python number or other object."""
    import torch

    if isinstance(value, torch.Tensor):
        return Leaf(name=name, dtype=str(value.dtype).removeprefix("torch."), value=to_numpy(value))
    # Before int, of which bool is a subclass.
    if isinstance(value, bool):
        return Leaf(name=name, dtype="bool", value=np.asarray(value), python=True)
    if isinstance(value, int) and -INT64 <= value < INT64:
        return Leaf(name=name, dtype="int64", value=np.asarray(value, dtype=np.int64), python=True)
    if isinstance(value, float):
        return Leaf(name=name, dtype="float64", value=np.asarray(value, dtype=np.float64), python=True)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in NUMBERS:
        return Leaf(name=name, dtype=value.dtype.name, value=np.array(value, copy=True))
    # An int is here only if no tensor can hold it.
    constant = repr(value) if isinstance(value, (str, int)) else ""
    return Leaf(name=name, dtype="None" if value is None else type(value).__name__, value=None, constant=constant)


def to_numpy(tensor: Any) -> npt.NDArray[Any]:
    """A copy of the tensor's values; bfloat16 widened to float32, conjugate and negative views resolved."""
    # A copy, because the memory may be a buffer that the next call writes to.
    array: npt.NDArray[Any] = np.array(seen_as_numpy(tensor), copy=True)
    return array


def seen_as_numpy(tensor: Any) -> npt.NDArray[Any]:
    """The same without a copy where NumPy can see the tensor's own memory, for a look at once."""
    import torch

    dense = tensor.detach().cpu().resolve_conj().resolve_neg()
    if dense.layout != torch.strided:
        dense = dense.to_dense()
    if dense.dtype == torch.bfloat16:
        dense = dense.to(torch.float32)
    array: npt.NDArray[Any] = dense.numpy()
    return array


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _items(value: Any) -> list[tuple[str, Any]] | None:
    """Children of a container with their keys, or None for a leaf."""
    if _is_mapping(value):
        return [(str(key), item) for key, item in value.items()]
    # Before tuples, of which it is one.
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value, strict=True))
    if isinstance(value, (list, tuple)):
        return [(str(index), item) for index, item in enumerate(value)]
    return _registered_items(value)


def _registered_items(value: Any) -> list[tuple[str, Any]] | None:
    """Children of a container that is registered with torch, by attribute, key or index."""
    from torch.utils import _pytree as pytree

    # By exact type, as torch looks it up: a subclass of a registered class is a leaf.
    if type(value) not in pytree.SUPPORTED_NODES:
        return None
    node = pytree.SUPPORTED_NODES[type(value)]
    if node.flatten_with_keys_fn is None:
        return [(str(index), item) for index, item in enumerate(node.flatten_fn(value)[0])]
    return [(_key(key), item) for key, item in node.flatten_with_keys_fn(value)[0]]


def _key(key: Any) -> str:
    """The name that torch gives a child: the attribute, the mapping's key or the index."""
    return str(next((getattr(key, name) for name in ("name", "key", "idx") if hasattr(key, name)), key))


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedLeaf:
    """A leaf as JSON can carry it."""

    name: str
    dtype: str
    python: bool
    shape: tuple[int, ...] | None
    """None if the leaf is not a number."""
    kind: str = ""
    """NumPy's name of the dtype."""
    content: str = ""
    """Base64 of the bytes in C order."""
    constant: str = ""


def pack(leaf: Leaf) -> PackedLeaf:
    """The leaf with its values as text, exactly."""
    if leaf.value is None:
        return PackedLeaf(name=leaf.name, dtype=leaf.dtype, python=leaf.python, shape=None, constant=leaf.constant)
    return PackedLeaf(
        name=leaf.name,
        dtype=leaf.dtype,
        python=leaf.python,
        shape=leaf.value.shape,
        kind=leaf.value.dtype.str,
        content=base64.b64encode(leaf.value.tobytes()).decode("ascii"),
    )


def unpack(packed: PackedLeaf) -> Leaf:
    """The leaf that `pack` encoded."""
    value = None
    if packed.shape is not None:
        values = np.frombuffer(base64.b64decode(packed.content), dtype=np.dtype(packed.kind))
        value = values.reshape(packed.shape).copy()
    return Leaf(name=packed.name, dtype=packed.dtype, python=packed.python, value=value, constant=packed.constant)
