"""Faults of attributes: another epsilon, axis, mode, rounding or padding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from export_gate.worker.mutants.anatomy import Anatomy
from export_gate.worker.mutants.edits import set_attribute
from export_gate.worker.mutants.record import Mutation

Others = Callable[[Any], tuple[Any, ...]]
"""From an attribute's value to values that it could have by mistake."""


def _flag(value: int) -> tuple[int, ...]:
    return (1 - value,)


def _factor(by: float) -> Others:
    return lambda value: (value * by,) if value else ()


def _among(*words: str) -> Others:
    return lambda value: tuple(word for word in words if word.encode() != value)


def _shifted(value: list[int]) -> tuple[list[int], ...]:
    """One place further along the last axis; padding where there was none."""
    half = len(value) // 2
    changed = list(value)
    changed[half - 1] += 1
    changed[-1] += -1 if value[-1] > 0 else 1
    return (changed,)


def _exchanged(value: list[int]) -> tuple[list[int], ...]:
    return ([*value[:-2], value[-1], value[-2]],) if len(value) > 1 else ()


def _wider(value: list[int]) -> tuple[list[int], ...]:
    return ([*value[:-1], value[-1] + 1],)


ATTRIBUTES: Mapping[str, Others] = {
    "epsilon": _factor(1.5),
    "alpha": _factor(1.05),
    "beta": _factor(1.05),
    "gamma": _factor(1.05),
    "scale": _factor(1.05),
    "cubic_coeff_a": _factor(0.9),
    **dict.fromkeys(
        (
            "keepdims", "ceil_mode", "count_include_pad", "align_corners", "select_last_index", "largest", "fmod",
            "exclusive", "reverse", "upper", "detect_negative", "detect_positive", "antialias", "exclude_outside",
            "is_causal", "linear_before_reset",
        ),
        _flag,
    ),
    "approximate": _among("none", "tanh"),
    "reduction": _among("none", "add", "max", "min"),
    "coordinate_transformation_mode": _among("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"),
    "nearest_mode": _among("floor", "round_prefer_floor", "ceil"),
    "padding_mode": _among("zeros", "border", "reflection"),
    "pads": _shifted,
    "perm": _exchanged,
    "dilations": _wider,
    "strides": _wider,
}  # fmt: skip
"""By name, whatever the operator."""
MODES: Mapping[str, tuple[str, ...]] = {
    "Resize": ("nearest", "linear", "cubic"),
    "GridSample": ("linear", "nearest", "cubic"),
    "Pad": ("constant", "reflect", "edge"),
    "DepthToSpace": ("DCR", "CRD"),
    "RoiAlign": ("avg", "max"),
}
"""The attribute `mode`, which means another thing for each operator."""
INERT: Mapping[str, frozenset[str]] = {
    "nearest_mode": frozenset(("linear", "cubic")),
    "cubic_coeff_a": frozenset(("nearest", "linear")),
    "exclude_outside": frozenset(("nearest", "linear")),
}
"""Attributes that say nothing in these modes."""


def attribute_mutations(graph: Anatomy) -> Iterator[Mutation]:
    """The faults of every attribute that a node has or could have, by its schema's default."""
    for at, node in enumerate(graph.nodes):
        values = _values(node, graph.opset)
        for name, value in values.items():
            for other in _others(graph, at, name, value, values):
                words = f"{name} {_text(value)} -> {_text(other)}"
                edit = partial(set_attribute, at=at, name=name, value=other)
                yield Mutation(kind="attribute", at=at, operator=node.op_type, change=words, edit=edit)


def _others(graph: Anatomy, at: int, name: str, value: Any, values: Mapping[str, Any]) -> tuple[Any, ...]:
    operator = graph.operator(at)
    mode = values.get("mode", b"")
    if name == "axis" and isinstance(value, int):
        return _axes(graph, at, value)
    if name == "mode":
        return _among(*MODES[operator])(value) if operator in MODES else ()
    if name in ("antialias", "exclude_outside") and mode == b"nearest":
        return ()
    if isinstance(mode, bytes) and mode.decode() in INERT.get(name, ()):
        return ()
    others = ATTRIBUTES.get(name)
    return others(value) if others else ()


def _axes(graph: Anatomy, at: int, value: int) -> tuple[int, ...]:
    """The neighbouring axis."""
    shape = graph.shapes.get(graph.nodes[at].input[0], ())
    rank = len(shape)
    return ((value % rank + 1) % rank,) if rank > 1 else ()


def _values(node: Any, opset: int) -> dict[str, Any]:
    import onnx

    try:
        schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
    except Exception:  # noqa: BLE001 - an operator that onnx does not know
        known = {}
    else:
        defaults = {name: attribute.default_value for name, attribute in schema.attributes.items()}
        known = {name: onnx.helper.get_attribute_value(value) for name, value in defaults.items() if value.name}
    return known | {entry.name: onnx.helper.get_attribute_value(entry) for entry in node.attribute}


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return f"{value:.3g}" if isinstance(value, float) else str(value)
