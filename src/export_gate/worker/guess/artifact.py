"""Read guesses from an ONNX file: names, dtypes and sizes from its inputs, ranges from the contract in its metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from export_gate.wall.contract import Dim, Size, Spec, TensorSpec
from export_gate.wall.description import Description, Found
from export_gate.wall.errors import UserError
from export_gate.worker.controls.specs import INTEGERS
from export_gate.worker.guess.edits import Options
from export_gate.worker.guess.layers import CENTRED, DIMS, Option
from export_gate.worker.onnx_file.tensors import DTYPES, graph_inputs

REASON = "as the file has it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One input of the file."""

    name: str
    spec: TensorSpec
    """With the dims of a guess in place of the file's own."""
    has_range: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """What an ONNX file declares."""

    inputs: tuple[Declared, ...]
    outputs: tuple[str, ...]
    dims: Mapping[str, str]
    """The dims of a guess -> the file's own names."""
    bounds: Mapping[str, tuple[int, int]]
    """The file's own dims -> smallest and largest size, where it says so."""


def read_interface(path: Path) -> Interface:
    """The inputs and outputs of an ONNX file.

    Raises:
        UserError: it is not one, or an input is not a tensor of a dtype that a contract may name.
    """
    import onnx

    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:
        raise UserError(f"{path}: expected an ONNX file, got {type(error).__name__}: {error}") from error
    said = {entry.key: entry.value for entry in model.metadata_props}
    given = graph_inputs(model)
    dims = _dims(given)
    slots = {name: slot for slot, name in dims.items()}
    ranges = _json(said.get("export_gate.inputs", "{}"))
    return Interface(
        inputs=tuple(_declared(value, slots, ranges.get(value.name, {}), path) for value in given),
        outputs=tuple(value.name for value in model.graph.output),
        dims=dims,
        bounds={name: (dim["min"], dim["max"]) for name, dim in _json(said.get("export_gate.dims", "{}")).items()},
    )


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _dims(values: Sequence[Any]) -> dict[str, str]:
    """The file's own dims, in order, in place of those of a guess; axes without a usable name get one."""
    names = [name for value in values for name in _axes(value) if isinstance(name, str)]
    # Further dims than a guess has get a fixed size, see `_size`.
    return dict(zip(DIMS, dict.fromkeys(names), strict=False))


def _axes(value: Any) -> Iterator[str | int]:
    for place, axis in enumerate(value.type.tensor_type.shape.dim):
        if axis.HasField("dim_value"):
            yield int(axis.dim_value)
        elif axis.dim_param.isidentifier() and axis.dim_param.isascii():
            yield str(axis.dim_param)
        else:
            # Exporters write expressions too, such as `s77 + 1`, which are not names for a config.
            yield "batch" if place == 0 else f"size{place}"


def _declared(value: Any, slots: Mapping[str, str], said: Mapping[str, Any], path: Path) -> Declared:
    dtype = DTYPES.get(value.type.tensor_type.elem_type)
    if dtype is None or (dtype.startswith("uint") and dtype != "uint8"):
        raise UserError(f"{path}: input {value.name!r} is not a tensor of a dtype that a contract may name")
    within = said.get("range")
    has_range = isinstance(within, list) and all(isinstance(bound, (int, float)) for bound in within)
    shape = tuple(_size(axis, slots) for axis in _axes(value))
    spec = TensorSpec(dtype=dtype, shape=shape, range=(within[0], within[1]) if within and has_range else None)
    return Declared(name=value.name, spec=spec, has_range=has_range)


def _size(axis: str | int, slots: Mapping[str, str]) -> Size:
    """A dim of a guess; beyond the four that it has, sizes are fixed."""
    if isinstance(axis, int):
        return Size(offset=axis)
    return Size(factors={slots[axis]: 1}) if axis in slots else Size(offset=EXTRA)


EXTRA = 16
"""The size of each dim beyond those that a guess has."""


def options_of(interface: Interface, parameters: Sequence[str], guesses: Mapping[str, Sequence[Option]]) -> Options:
    """Each parameter as the file takes it: paired by name, else by order.

    Args:
        interface: the file's.
        parameters: those of forward that can be tensors, in order.
        guesses: for each of them what else suggests a range.

    Raises:
        UserError: the file has more inputs than forward has parameters.
    """
    names = [declared.name for declared in interface.inputs]
    if len(names) > len(parameters):
        raise UserError(
            f"the file has the inputs {', '.join(names)}, forward only {', '.join(parameters) or 'none'}",
            "name the factory of the model that the file was exported from, or write the inputs by hand",
        )
    paired = names if set(names) <= set(parameters) else list(parameters[: len(names)])
    pairs = zip(paired, interface.inputs, strict=True)
    return {name: Option(spec=_ranged(name, declared, guesses[name]), reason=REASON) for name, declared in pairs}


def _ranged(name: str, declared: Declared, guesses: Sequence[Option]) -> TensorSpec:
    spec = replace(declared.spec, name=None if name == declared.name else declared.name)
    if declared.has_range or spec.dtype == "bool":
        return spec
    likely = (g.spec.range for g in guesses if isinstance(g.spec, TensorSpec) and _is_like(g.spec, spec))
    fallback = (0, 1) if spec.dtype in INTEGERS else CENTRED
    return replace(spec, range=next((within for within in likely if within is not None), fallback))


def _is_like(guess: TensorSpec, spec: TensorSpec) -> bool:
    return (guess.dtype in INTEGERS) == (spec.dtype in INTEGERS) and guess.dtype != "bool"


def in_its_words(description: Description, interface: Interface) -> Description:
    """The description with the file's own names of dims and outputs, and its own bounds."""
    names = interface.dims
    outputs = description.outputs
    if len(outputs) == len(interface.outputs):
        outputs = tuple(replace(found, name=name) for found, name in zip(outputs, interface.outputs, strict=True))
    return replace(
        description,
        inputs=tuple(replace(guess, spec=_renamed(guess.spec, names)) for guess in description.inputs),
        dims=tuple(_bounded(dim, interface) for dim in description.dims),
        sizes=tuple(
            f"{names.get(slot, slot)} {rest}" for slot, _, rest in (s.partition(" ") for s in description.sizes)
        ),
        outputs=tuple(_found(found, names) for found in outputs),
    )


def _bounded(dim: Dim, interface: Interface) -> Dim:
    name = interface.dims.get(dim.name, dim.name)
    low, high = interface.bounds.get(name, (dim.min, dim.max))
    return replace(dim, name=name, min=low, max=high)


def _found(found: Found, names: Mapping[str, str]) -> Found:
    return replace(
        found, shape=None if found.shape is None else tuple(_size_named(size, names) for size in found.shape)
    )


def _renamed(spec: Spec, names: Mapping[str, str]) -> Spec:
    if not isinstance(spec, TensorSpec):
        return spec
    within = spec.range and tuple(_size_named(end, names) if isinstance(end, Size) else end for end in spec.range)
    shape = tuple(_size_named(size, names) for size in spec.shape)
    return replace(spec, shape=shape, range=(within[0], within[1]) if within else None)


def _size_named(size: Size, names: Mapping[str, str]) -> Size:
    return replace(size, factors={names.get(slot, slot): factor for slot, factor in size.factors.items()})
