"""Walk the declared inputs: tensor leaves with their paths, and trees of values built leaf by leaf."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from export_gate.wall.contract import ConstantSpec, DictSpec, ModelContract, SequenceSpec, Size, Spec, TensorSpec
from export_gate.wall.inputs import tensors
from export_gate.worker.leaves.values import Values

INTEGERS = ("int64", "int32", "int16", "int8", "uint8")


def tensor_leaves(contract: ModelContract) -> tuple[tuple[str, TensorSpec], ...]:
    """Tensor arguments in forward's order, each with its path (`x`, `pyramid.0`, `state.hidden`)."""
    return tuple(tensors(contract.inputs))


def build_values(contract: ModelContract, leaf: Callable[[str, TensorSpec], Any]) -> Values:
    """Values of all inputs, with `leaf(path, spec)` for each tensor and constants as declared."""
    return {name: _build(name, spec, leaf) for name, spec in contract.inputs.items()}


def is_integer(spec: TensorSpec) -> bool:
    """Whether it is an integer tensor; bool is not."""
    return spec.dtype in INTEGERS


def is_floating(spec: TensorSpec) -> bool:
    """A floating-point or complex tensor."""
    return not is_integer(spec) and spec.dtype != "bool"


def shape_at(spec: TensorSpec, sizes: dict[str, int]) -> tuple[int, ...]:
    """The tensor's shape once each dim has a size."""
    return tuple(size.at(sizes) for size in spec.shape)


def elements_at(spec: TensorSpec, sizes: dict[str, int]) -> int:
    """The number of elements of that shape."""
    return math.prod(shape_at(spec, sizes))


def total_elements(contract: ModelContract, sizes: dict[str, int]) -> int:
    """The number of elements of all tensors at these sizes."""
    return sum(elements_at(spec, sizes) for _, spec in tensor_leaves(contract))


def shape_text(shape: tuple[Size, ...]) -> str:
    """`[batch, 1, 2*seq+1]`."""
    return f"[{', '.join(str(size) for size in shape)}]"


def _build(path: str, spec: Spec, leaf: Callable[[str, TensorSpec], Any]) -> Any:
    match spec:
        case TensorSpec():
            return leaf(path, spec)
        case SequenceSpec():
            items = [_build(f"{path}.{index}", item, leaf) for index, item in enumerate(spec.items)]
            return items if spec.kind == "list" else tuple(items)
        case DictSpec():
            return {key: _build(f"{path}.{key}", item, leaf) for key, item in spec.items.items()}
        case ConstantSpec():
            return spec.value if spec.dtype is None else None  # forward itself has the tensor
