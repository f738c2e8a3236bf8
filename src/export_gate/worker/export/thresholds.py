"""The constants of an exported program that its inputs may be compared with: where one step of an input decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

COMPARING = frozenset((
    "lt", "le", "gt", "ge", "eq", "ne", "clamp", "clamp_min", "clamp_max", "clip", "maximum", "minimum", "hardtanh",
    "threshold", "relu6", "bucketize", "searchsorted", "where",
))  # fmt: skip
"""Operators, whatever their overload, that read a constant as a bound."""
STEPPING = frozenset(("floor_divide", "remainder", "fmod", "div"))
"""Operators that read it as a step: every multiple is a bound. Division only where it rounds."""
MOST = 64
"""Elements of a constant tensor, and constants of one program, that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A constant and how it is read."""

    value: float
    is_step: bool
    """Its multiples matter as well."""


def thresholds(program: ExportedProgram) -> tuple[Threshold, ...]:
    """The constants that the program compares with, clips to, sorts into or divides by with rounding; each once."""
    constants = _constants(program)
    found = [threshold for node in program.graph.nodes for threshold in _read(node, constants)]
    return tuple(dict.fromkeys(found))[:MOST]


def _read(node: Node, constants: Mapping[str, torch.Tensor]) -> Iterator[Threshold]:
    name = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
    if node.op != "call_function" or name not in COMPARING | STEPPING:
        return
    # Without rounding, a quotient has no steps.
    if name == "div" and not node.kwargs.get("rounding_mode"):
        return
    for argument in (*node.args, *node.kwargs.values()):
        for value in _values(argument, constants):
            if not (name in STEPPING and value == 0):
                yield Threshold(value=value, is_step=name in STEPPING)


def _values(argument: Any, constants: Mapping[str, torch.Tensor]) -> list[float]:
    if isinstance(argument, (int, float)) and not isinstance(argument, bool):
        return [float(argument)]
    if isinstance(argument, Node) and argument.name in constants:
        return [float(value) for value in constants[argument.name].flatten().tolist()]
    return []


def _constants(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """Real and small constant tensors by the name of their placeholder."""
    signature = program.graph_signature
    places = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    values: dict[str, Any] = {**program.constants, **program.state_dict}
    held = {name: values.get(place) for name, place in places.items()}
    return {
        name: tensor.detach()
        for name, tensor in held.items()
        if isinstance(tensor, torch.Tensor) and tensor.numel() <= MOST and not tensor.is_complex()
    }
