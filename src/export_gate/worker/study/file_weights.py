"""Compare the tensors of a file that was handed in with the module's: was it made from these weights?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from export_gate.wall.contract import Target
from export_gate.wall.diagnosis import WeightsCompared
from export_gate.wall.words import rounded
from export_gate.worker.leaves.values import to_numpy
from export_gate.worker.study.recurrent_weights import taken_apart

Array = npt.NDArray[Any]
RTOL = {"float64": 1e-9, "float32": 1e-6, "float16": 2e-3}
"""Of the largest element: what writing a weight in that precision changes. Of others nothing is said."""
ROUNDED = 10.0
"""Folding rounds a few times more."""
LISTED = 10
MOSTLY = 0.5
"""Share of equal elements from which on a tensor is an edited copy of another."""
NEARLY = 0.1
"""Of an element in the middle: further training changes weights by less."""
TELLING = 16
"""Elements that are enough to know a tensor again by some of them."""
MOST_AXES = 4
MATRIX = 2
"""Axes of a linear layer's weight."""
QUANTISING = ("Quantize", "Dequantize", "DynamicQuantize", "QLinear", "QGemm", "QAttention", "MatMulNBits")
"""How the names of operators begin that make or take quantised numbers."""
SMALLEST = 2
"""Elements that a tensor needs to be recognised by its values."""
FOLDED = (torch.nn.modules.batchnorm._NormBase,)  # noqa: SLF001 - the common base of batch and instance norms
"""Exporters fold these layers into the one before them, whose weights then have other values."""


def compare_weights(path: Path | None, target: Target, module: torch.nn.Module) -> WeightsCompared:
    """The file's tensors against the module's parameters and floating buffers, by name, else by value."""
    compared = _compare(path, target, module)
    return replace(compared, quantised=0 if path is None else _quantised(path, target))


def _compare(path: Path | None, target: Target, module: torch.nn.Module) -> WeightsCompared:
    own = {name: to_numpy(tensor) for name, tensor in module.state_dict().items() if _is_weight(tensor)}
    given = {} if path is None else _tensors(path, target)
    given |= dict(taken_apart(given, module))
    named = {name: given[name] for name in own if name in given and given[name].shape == own[name].shape}
    # Values are compared only if no name is known: exporters that rename weights leave nothing else to go by.
    if named:
        folded = list(_folded(module, given))
        gaps = {name: _named_gap(name, own, tensor, folded) for name, tensor in named.items()}
        for name, gap in _copied(own, given, frozenset(named), is_plain=_is_plain(module)).items():
            gaps[name] = max(gaps.get(name, 0.0), gap)
        gaps |= _reordered(own, given, frozenset(gaps))
        return _compared(gaps, len(own) - len(gaps), by_name=True)
    return _by_value(own, given, module)


@dataclass(frozen=True, slots=True)
class _Folded:
    """A norm that the file has no longer, as what it does to each channel."""

    scale: Array
    shift: Array
    mean: Array


def _folded(module: torch.nn.Module, given: Mapping[str, Array]) -> Iterator[_Folded]:
    """The batch norms of which the file has no tensor, so that an exporter has put them into the layer before."""
    for name, part in module.named_modules():
        if isinstance(part, FOLDED) and not any(f"{name}.{each}" in given for each in part.state_dict()):
            variance, mean = part.running_var, part.running_mean
            if variance is not None and mean is not None:
                scale = (variance + part.eps).rsqrt()
                scale = scale if part.weight is None else scale * part.weight
                shift = torch.zeros_like(scale) if part.bias is None else part.bias
                yield _Folded(to_numpy(scale.detach()), to_numpy(shift.detach()), to_numpy(mean.detach()))


def _named_gap(name: str, own: Mapping[str, Array], given: Array, folded: Sequence[_Folded]) -> float:
    """The largest difference from the module's tensor, or from it with one of these norms put into it."""
    gaps = [_gap(own[name], given)]
    for norm in folded if given.dtype.kind == "f" and own[name].shape[:1] == given.shape[:1] else ():
        if own[name].shape[:1] == norm.scale.shape and gaps[0] > 0:
            scale = norm.scale.reshape(-1, *[1] * (own[name].ndim - 1))
            merged = own[name] * scale
            if name.endswith("bias"):
                merged = (own[name] - norm.mean) * norm.scale + norm.shift
            gaps.append(_gap(merged, given, ROUNDED))
    return min(gaps)


def _is_weight(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.numel() > 0


def _tensors(path: Path, target: Target) -> dict[str, Array]:
    match target.kind:
        case "onnx":
            import onnx
            from onnx import numpy_helper

            model = onnx.load(str(path))
            return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        case "pt2":
            program = torch.export.load(path)
            return {name: to_numpy(tensor) for name, tensor in program.state_dict.items() if _is_weight(tensor)}
        case _:
            return {}


def _quantised(path: Path, target: Target) -> int:
    """Nodes of an ONNX file that quantise, or compute with numbers of eight bits or fewer."""
    if target.kind != "onnx":
        return 0
    import onnx

    nodes = onnx.load(str(path), load_external_data=False).graph.node
    return sum(node.op_type.startswith(QUANTISING) or node.op_type.endswith("Integer") for node in nodes)


def _by_value(own: Mapping[str, Array], given: Mapping[str, Array], module: torch.nn.Module) -> WeightsCompared:
    """Whether the file has none of the module's tensors, though one of the shape of each; else edited copies."""
    gaps: dict[str, float] = {}
    for name, tensor in own.items():
        alike = [found for other in given.values() for found in _oriented(other) if found.shape == tensor.shape]
        if alike and tensor.size >= SMALLEST:
            gaps[name] = min(_gap(tensor, found) for found in alike)
    is_folded = any(isinstance(part, FOLDED) for part in module.modules())
    # One tensor that is found exactly is enough: exporters fold and reorder others, of which edited copies are left.
    if is_folded or any(gap == 0 for gap in gaps.values()):
        copied = _copied(own, given, frozenset(), is_plain=_is_plain(module))
        gaps = {name: copied.get(name, 0.0) for name in gaps}
    return _compared(gaps, len(own) - len(gaps), by_name=False)


def _copied(
    own: Mapping[str, Array], given: Mapping[str, Array], named: frozenset[str], *, is_plain: bool
) -> dict[str, float]:
    """Gaps of tensors that the file has under names of its own, perhaps beside those of the module.

    A converter writes tied and indexed weights so, often with their axes moved.
    """
    others = [tensor for name, tensor in given.items() if name not in named and tensor.dtype.kind == "f"]
    gaps: dict[str, float] = {}
    for name, tensor in own.items():
        if tensor.size < SMALLEST or not _is_varied(tensor):
            continue
        alike = [view for other in others for view in _views(other, tensor.shape) if _is_copy(tensor, view, is_plain)]
        if alike:
            gaps[name] = max(_gap(tensor, view) for view in alike)
    return gaps


def _reordered(own: Mapping[str, Array], given: Mapping[str, Array], found: frozenset[str]) -> dict[str, float]:
    """Gaps of tensors whose numbers the file has in another order, under a name of its own.

    Args:
        own: the module's.
        given: the file's.
        found: those of `own` that are known to be in it.
    """
    gaps: dict[str, float] = {}
    for name, tensor in own.items():
        if name not in found and tensor.size >= TELLING and _is_varied(tensor):
            others = (other for key, other in given.items() if key not in own and other.dtype == tensor.dtype)
            same = [other for other in others if other.size == tensor.size and _has_numbers(tensor, other)]
            views = [view for other in same for view in _views(other, tensor.shape)]
            gaps |= {name: min(_gap(tensor, view) for view in views)} if views else {}
    return gaps


def _is_varied(tensor: Array) -> bool:
    """Whether its elements tell it from others: constants, such as the ones of a norm, are like anything."""
    return len(np.unique(tensor)) > MOSTLY * tensor.size


def _has_numbers(own: Array, other: Array) -> bool:
    return bool(np.array_equal(np.sort(own, axis=None), np.sort(other, axis=None)))


def _is_copy(own: Array, view: Array, is_plain: bool) -> bool:
    """Whether most elements are the same, or all of them nearly, as no other tensor's are by chance."""
    if np.mean(view == own) > MOSTLY:
        return True
    is_known = is_plain and own.size >= TELLING
    return is_known and bool(np.median(np.abs(view - own)) <= NEARLY * np.median(np.abs(own)))


def _is_plain(module: torch.nn.Module) -> bool:
    """Whether no layer of it changes weights by a factor that may be near 1."""
    parts = list(module.modules())
    is_folded = any(isinstance(part, FOLDED) or hasattr(part, "parametrizations") for part in parts)
    return not is_folded and not any(hasattr(part, "weight_g") or hasattr(part, "weight_orig") for part in parts)


def _views(array: Array, shape: tuple[int, ...]) -> Iterator[Array]:
    """The tensor with its axes moved so that it has that shape."""
    if sorted(array.shape) == sorted(shape) and array.ndim <= MOST_AXES:
        turned = (array.transpose(order) for order in itertools.permutations(range(array.ndim)))
        yield from (view for view in turned if view.shape == shape)


def _oriented(array: Array) -> tuple[Array, ...]:
    """The tensor, and transposed as exporters write the weight of a linear layer."""
    return (array, array.T) if array.ndim == MATRIX else (array,)


def _gap(own: Array, given: Array, times: float = 1.0) -> float:
    """The largest difference; zero within so many times what the file's precision changes."""
    # Quantised weights have other values on purpose.
    if given.dtype.kind != "f":
        return 0.0
    wide = own.astype(np.float64)
    with np.errstate(all="ignore"):
        gap = np.abs(wide - given.astype(np.float64))
    # NaN and infinity on either side say nothing; two finite numbers so far apart that the gap overflows do.
    gap = np.where(np.isfinite(gap), gap, np.where(np.isfinite(wide) & np.isfinite(given), gap, 0.0))
    scale = float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0))
    largest = float(gap.max(initial=0.0))
    return largest if largest > times * RTOL.get(str(given.dtype), 1e-2) * scale else 0.0


def _compared(gaps: Mapping[str, float], missing: int, *, by_name: bool) -> WeightsCompared:
    differing = sorted(((gap, name) for name, gap in gaps.items() if gap > 0), reverse=True)
    return WeightsCompared(
        found=len(gaps),
        differing=tuple(f"{name} by {rounded(gap)}" for gap, name in differing[:LISTED]),
        differing_count=len(differing),
        by_name=by_name,
        missing=missing,
    )
