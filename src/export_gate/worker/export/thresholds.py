"""The constants of an exported program that its inputs may be compared with: where one step of an input decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from export_gate.worker.model.thresholds import MOST, Reader, Threshold, number


def thresholds(program: ExportedProgram) -> tuple[Threshold, ...]:
    """The constants that the program compares with, clips to, sorts into or divides by with rounding; each once."""
    constants = _constants(program)

    def values(argument: Any) -> Sequence[float]:
        if isinstance(argument, Node):
            held = constants.get(argument.name)
            return () if held is None else [float(value) for value in held.flatten().tolist()]
        return number(argument)

    own = frozenset(program.graph_signature.user_inputs)
    reader = Reader([node for node in program.graph.nodes if node.op == "placeholder" and node.name in own], values)
    for node in program.graph.nodes:
        if node.op == "call_function":
            name = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
            reader.see(name, node.args, node.kwargs, node)
    return tuple(reader.found)[:MOST]


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
