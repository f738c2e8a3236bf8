"""Turn a contract and its observations into the lock's record of a model."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from export_gate.rules.lock.record import LockedBound, LockedDim, LockedModel, LockedTarget, LockedTensor, Margin
from export_gate.rules.measure import Measured, Measurement
from export_gate.wall.contract import Dim, ModelContract, Size, Target, TensorSpec
from export_gate.wall.equivalence import Norm
from export_gate.wall.inputs import tensors
from export_gate.wall.observation import ModelObservation, OutputLeaf, TargetObservation
from export_gate.wall.targets import LAYOUT_FAMILIES

UNKNOWN = "?"
# From the start of a word on: from each letter of a long one, its rest would be read again.
_OPSET = re.compile(r"(?<!\S)(\S+) (\d{1,9})")


def locked_model(measured: Measured, *, is_whole: bool = True) -> LockedModel:
    """The model's interface and margins as they are now; `is_whole` if all control inputs were to run."""
    contract, observation = measured.contract, measured.observation
    # A few inputs may leave a dim at one size, which would then look like a constant.
    inferred = _inferred(observation) if is_whole else {}
    return LockedModel(
        # Constants have no tensor: they are baked into the artifact.
        inputs=tuple(_input(path, spec) for path, spec in tensors(contract.inputs)),
        outputs=tuple(_output(contract, leaf, inferred) for leaf in observation.outputs),
        dims={dim.name: _dim(dim, observation) for dim in contract.dims},
        targets={
            planned.name: _target(planned, measured.seen(planned.name), measured.of(planned.name))
            for planned in contract.targets
        },
        parameters=observation.parameters,
        weights_bytes=observation.weights_bytes,
    )


def _dim(dim: Dim, observation: ModelObservation) -> LockedDim:
    """The sizes that the artifacts accept: for a static dim, the one that they were exported for."""
    low, high = dim.min, dim.max
    sizes = [member.sizes[dim.name] for member in observation.control_inputs if dim.name in member.sizes]
    if dim.mode == "static" and sizes:
        low, high = min(sizes), max(sizes)
    return LockedDim(min=low, max=high, multiple_of=dim.multiple_of, separate=dim.separate)


def _input(path: str, spec: TensorSpec) -> LockedTensor:
    shape = tuple(map(str, spec.shape))
    return LockedTensor(name=spec.name or path, dtype=spec.dtype, shape=shape, range=_range(spec))


def _range(spec: TensorSpec) -> tuple[LockedBound, LockedBound] | None:
    if spec.range is None:
        return None
    low, high = (str(bound) if isinstance(bound, Size) else bound for bound in spec.range)
    return low, high


def _output(contract: ModelContract, leaf: OutputLeaf, inferred: dict[str, tuple[str, ...]]) -> LockedTensor:
    declared = next((output.shape for output in contract.outputs if output.name == leaf.name), None)
    unknown = (UNKNOWN,) * len(leaf.shape)
    shape = inferred.get(leaf.name, unknown) if declared is None else tuple(map(str, declared))
    return LockedTensor(name=leaf.name, dtype=leaf.dtype, shape=shape)


def _inferred(observation: ModelObservation) -> dict[str, tuple[str, ...]]:
    """Output -> its shape, from eager's shapes at control inputs; only where it was seen at all of them."""
    broken = {promise.case for promise in observation.broken}
    # Not every target is run on the inputs in another layout.
    members = tuple(m for m in observation.control_inputs if m.family not in LAYOUT_FAMILIES)
    sizes = {m.name: m.sizes for m in members if m.name not in broken and (m.sizes or m.group == "generated")}
    shapes: dict[str, dict[str, tuple[int, ...]]] = {}
    for case in (case for target in observation.targets for case in target.cases):
        for leaf in case.outputs if case.case in sizes else ():
            shapes.setdefault(leaf.output, {})[case.case] = leaf.expected_shape
    return {
        output: _shape([(sizes[name], shape) for name, shape in found.items()])
        for output, found in shapes.items()
        if len(found) == len(sizes) and len({len(shape) for shape in found.values()}) == 1
    }


def _shape(seen: Sequence[tuple[dict[str, int], tuple[int, ...]]]) -> tuple[str, ...]:
    return tuple(_axis([(sizes, shape[axis]) for sizes, shape in seen]) for axis in range(len(seen[0][1])))


def _axis(seen: Sequence[tuple[dict[str, int], int]]) -> str:
    """The dim that an axis follows, the number that it always is, or `?`."""
    lengths = {length for _, length in seen}
    if len(lengths) == 1:
        # a dim with one size cannot be distinguished from a number of that size
        return str(lengths.pop())
    names = sorted({name for sizes, _ in seen for name in sizes})
    # Of several dims that fit, the first by name: the lock must not depend on the order of the config.
    following = [name for name in names if all(sizes.get(name) == length for sizes, length in seen)]
    return str(Size(factors={following[0]: 1})) if following and seen else UNKNOWN


def _target(planned: Target, seen: Sequence[TargetObservation], leaves: Sequence[Measurement]) -> LockedTarget:
    facts = " ".join(target.facts.get("opset", "") for target in seen)
    return LockedTarget(
        kind="" if planned.kind == planned.name else planned.kind,
        opsets={domain: int(version) for domain, version in _OPSET.findall(facts.replace(",", " "))},
        sizes={_export(target): target.artifact.size_bytes for target in seen if target.artifact},
        margins={name: _margin(norm) for name, norm in sorted(_worst(leaves).items())},
    )


def _export(target: TargetObservation) -> str:
    return ",".join(f"{dim}={size}" for dim, size in sorted(target.separate.items())) or "main"


def _worst(leaves: Sequence[Measurement]) -> dict[str, Norm]:
    """The norm closest to its bound for each inexact output."""
    worst: dict[str, Norm] = {}
    for leaf in leaves:
        norm = leaf.norm
        if norm is None or leaf.is_exact or not leaf.comparison.elements:
            continue
        is_number = math.isfinite(norm.measured) and math.isfinite(norm.allowed)
        if is_number and (leaf.output not in worst or norm.ratio > worst[leaf.output].ratio):
            worst[leaf.output] = norm
    return worst


def _margin(norm: Norm) -> Margin:
    # Two digits: more would make a diff of the lock out of every change of machine.
    return Margin(measured=float(f"{norm.measured:.1e}"), allowed=float(f"{norm.allowed:.1e}"))
