"""Faults planted in the ONNX files of two networks: which node holds each, and how it was changed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

from export_gate.worker.nodes.file import FileGraph
from export_gate.worker.nodes.file_trace import FileTrace

LIKE = {"Relu": "LeakyRelu", "Add": "Sub", "Mul": "Add", "Softmax": "LogSoftmax", "Erf": "Tanh"}
"""Operators -> one of the same signature that computes something else."""


class Encoder(nn.Module):
    """A transformer encoder of 12 layers with a head."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        self.head = nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map float32[batch, seq, 32] to float32[batch, 5]."""
        return self.head(self.encoder(x).mean(1))


class Block(nn.Module):
    """A bottleneck block with its own norms and, where asked, a strided shortcut."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(channels, out // 4, 1), nn.Conv2d(out // 4, out // 4, 3, stride, 1)
        self.c, self.norm = nn.Conv2d(out // 4, out, 1), nn.BatchNorm2d(out)
        self.short = nn.Identity() if channels == out else nn.Conv2d(channels, out, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add the block's own result to the shortcut."""
        y = self.c(self.b(self.a(x).relu()).relu())
        return (self.norm(y) + self.short(x)).relu()


class Residual(nn.Module):
    """A network of 16 bottleneck blocks in four stages of 3, 4, 6 and 3, as ResNet-50 has, but narrow."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, stages, channels = nn.Conv2d(3, 16, 7, 2, 3), [], 16
        for out, count in ((16, 3), (32, 4), (48, 6), (64, 3)):
            stages += [Block(channels if not n else out, out, 2 if not n and out > 16 else 1) for n in range(count)]
            channels = out
        self.stages, self.pool, self.head = nn.Sequential(*stages), nn.MaxPool2d(3, 2, 1), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map float32[batch, 3, side, side] to float32[batch, 10]."""
        return self.head(self.stages(self.pool(self.stem(x).relu())).mean((2, 3)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One change to the file."""

    kind: str
    """weight, attribute, operator or constant."""
    at: int
    """Place of the changed node."""
    label: str
    model: Any


def randomised(module: nn.Module) -> nn.Module:
    """The module in eval mode with biases, statistics and scales that no exporter folds into nothing."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.copy_(torch.randn(part.num_features, generator=generator) * 0.1)
                part.running_var.copy_(torch.rand(part.num_features, generator=generator) + 0.5)
            if isinstance(part, nn.MultiheadAttention):
                part.in_proj_bias.copy_(torch.randn(part.in_proj_bias.shape, generator=generator) * 0.1)
                part.out_proj.bias.copy_(torch.randn(part.out_proj.bias.shape, generator=generator) * 0.1)
            if isinstance(part, nn.LayerNorm):  # otherwise all norms share one tensor
                part.weight.copy_(1 + 0.1 * torch.randn(part.weight.shape, generator=generator))
                part.bias.copy_(0.1 * torch.randn(part.bias.shape, generator=generator))
    return module.eval()


def faults(model: Any, seed: int) -> Iterator[Fault]:
    """Changes of all kinds in turn, each at another node, in an order that the seed gives."""
    rng = random.Random(seed)
    taken: set[int] = set()
    makers: tuple[Callable[[Any, int], tuple[str, Any] | None], ...] = (_weight, _attribute, _operator, _constant)
    turn = 0
    while True:
        kind, places = makers[turn % len(makers)], list(range(len(model.graph.node)))
        rng.shuffle(places)
        for at in places:
            made = None if at in taken else kind(model, at)
            if made is not None:
                taken.add(at)
                yield Fault(kind=kind.__name__.strip("_"), at=at, label=made[0], model=made[1])
                break
        turn += 1


def _copy(model: Any) -> Any:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def _initializers(model: Any, at: int) -> list[tuple[int, Any]]:
    """The node's own initializers, which no other node reads."""
    readers = [name for node in model.graph.node for name in node.input]
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    names = enumerate(model.graph.node[at].input)
    return [(index, tensors[name]) for index, name in names if name in tensors and readers.count(name) == 1]


def _replaced(model: Any, at: int, index: int, array: Any) -> Any:
    """The model with a tensor of its own for one input of one node."""
    copy = _copy(model)
    copy.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array), "planted"))
    copy.graph.node[at].input[index] = "planted"
    return copy


def _weight(model: Any, at: int) -> tuple[str, Any] | None:
    """Scale a tenth of a weight's entries."""
    found = [(i, numpy_helper.to_array(t)) for i, t in _initializers(model, at) if t.dims and t.data_type == 1]
    found = [(index, array) for index, array in found if array.size > 16]
    if not found:
        return None
    index, array = found[0]
    flat = array.copy().reshape(-1)
    flat[:: max(flat.size // 10, 1)] += 0.5
    return f"weight of {model.graph.node[at].name}", _replaced(model, at, index, flat.reshape(array.shape))


def _attribute(model: Any, at: int) -> tuple[str, Any] | None:
    """Another epsilon, axis, or padding."""
    copy = _copy(model)
    node = copy.graph.node[at]
    for attribute in node.attribute:
        if attribute.name == "epsilon":
            attribute.f = 0.2
        elif attribute.name == "axis" and node.op_type == "Softmax":
            attribute.i = 1
        elif attribute.name == "pads" and max(attribute.ints) > 0 and len(attribute.ints) == 4:
            top, left, bottom, right = attribute.ints
            attribute.ints[:] = [top + bottom, left + right, 0, 0]
        else:
            continue
        return f"{attribute.name} of {node.name}", copy
    return None


def _operator(model: Any, at: int) -> tuple[str, Any] | None:
    """An operator of the same signature."""
    copy = _copy(model)
    node = copy.graph.node[at]
    if node.op_type not in LIKE or any(attribute.name == "alpha" for attribute in node.attribute):
        return None
    node.op_type = LIKE[node.op_type]
    return f"{node.op_type} for {node.name}", copy


def _constant(model: Any, at: int) -> tuple[str, Any] | None:
    """Another scalar, such as the scale of attention or of GELU, or another bias."""
    node = model.graph.node[at]
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for index, name in enumerate(node.input):
        tensor = tensors.get(name)
        is_bias = index == 2 and node.op_type in ("Conv", "Gemm")
        if tensor is None or tensor.data_type != 1 or not (is_bias or node.op_type in ("Mul", "Add", "Div", "Pow")):
            continue
        array = numpy_helper.to_array(tensor)
        if array.size <= 64:
            return f"constant of {node.name}", _replaced(model, at, index, array * np.float32(1.01) + np.float32(0.01))
    return None


def traced(program: Any, path: Path) -> FileTrace:
    """The file beside the program."""
    graph = FileGraph.read(path)
    return FileTrace(
        program=program,
        graph=graph,
        input_names=tuple(value.name for value in graph.model.graph.input),
        providers=("CPUExecutionProvider",),
        roots=(Path(__file__).parent,),
    )


def exported(module: nn.Module, example: torch.Tensor, path: Path) -> Any:
    """Write the module's ONNX file; returns the program as the converter decomposed it."""
    batch = torch.export.Dim("batch", min=2, max=8)
    with torch.no_grad():
        program = torch.export.export(module, (example,), dynamic_shapes=({0: batch},))
    converted = torch.onnx.export(program, dynamo=True, opset_version=20, verbose=False)
    assert converted is not None
    converted.save(path)
    return converted.exported_program
