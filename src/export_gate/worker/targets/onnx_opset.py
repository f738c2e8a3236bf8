"""Convert ONNX models to opsets older than those that torch's exporter writes, with onnx's version converter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

LOWEST_WRITTEN = 18
"""What torch's exporter writes at least (torch 2.5 to 2.13): it falls back to this in silence."""
LARGEST_CONSTANT_BYTES = 4096
"""Larger weights take no part in the conversion, which needs values of axes, sizes and bounds only."""
LOWEST_IR = 4
"""Since when weights need not be inputs of the graph."""

NO_ADAPTER = re.compile(r"No Adapter (?:From|To) Version \$?\d+ for (\w+)")
NO_OPERATOR = re.compile(r"No Previous Version of (\w+) exists")
INVALID_NODE = re.compile(r"OpType: (\w+)")


def lowered(model: Any, opset: int) -> Any:
    """The onnx_ir model in an older opset, with the IR version of that time, which older runtimes ask for.

    Raises:
        ValueError: the converter cannot do it; the message names the operator.
    """
    import onnx_ir

    # Before `to_proto`, which would copy them.
    weights = _take_weights(model.graph)
    proto = onnx_ir.to_proto(model)
    _drop_defaults(proto.graph, LOWEST_WRITTEN)
    try:
        low = onnx_ir.from_proto(_converted(proto, opset))
    except Exception as error:
        raise ValueError(_explained(proto, opset, error)) from error
    _put_weights(low.graph, weights)
    return low


def _take_weights(graph: Any) -> dict[str, Any]:
    """Make inputs of the large weights, so that nothing copies them."""
    taken = [value for value in graph.initializers.values() if value.const_value.nbytes > LARGEST_CONSTANT_BYTES]
    weights = {value.name: value.const_value for value in taken}
    for value in taken:
        del graph.initializers[value.name]
        graph.inputs.append(value)
    return weights


def _put_weights(graph: Any, weights: dict[str, Any]) -> None:
    for value in [value for value in graph.inputs if value.name in weights]:
        graph.inputs.remove(value)
        value.const_value = weights[value.name]
        graph.register_initializer(value)


def _drop_defaults(graph: Any, opset: int) -> None:
    """Take out attributes that say what holds without them: the converter keeps those that older opsets do not know.

    So a mean, which the exporter writes with `noop_with_empty_axes=0`, would stop at opset 18 (onnx 1.23).
    """
    import onnx

    for node in graph.node:
        has_schema = onnx.defs.has(node.op_type, node.domain)
        known = onnx.defs.get_schema(node.op_type, opset, node.domain).attributes if has_schema else {}
        for attribute in list(node.attribute):
            if attribute.type == onnx.AttributeProto.GRAPH:
                _drop_defaults(attribute.g, opset)
            default = known[attribute.name].default_value if attribute.name in known else None
            if default is not None and default.type == attribute.type and _value(default) == _value(attribute):
                node.attribute.remove(attribute)


def _value(attribute: Any) -> Any:
    import onnx

    return onnx.helper.get_attribute_value(attribute)


def _converted(proto: Any, opset: int) -> Any:
    """The model in that opset.

    Raises:
        Exception: whatever the converter and the checker raise.
    """
    import onnx

    converted = onnx.version_converter.convert_version(proto, opset)
    # The converter keeps the IR version of the opset that it came from.
    converted.ir_version = max(LOWEST_IR, onnx.helper.find_min_ir_version_for(converted.opset_import))
    onnx.checker.check_model(converted)
    return converted


def _converts(proto: Any, opset: int) -> bool:
    try:
        _converted(proto, opset)
    except Exception:  # noqa: BLE001 - as above
        return False
    return True


def _explained(proto: Any, opset: int, error: Exception) -> str:
    """The operator, and how far the converter does get."""
    name = _named(str(error)) or _guilty(proto, opset)
    subject = f"operator {name}" if name else "an operator"
    # Opset by opset upwards, so that the first that works is the lowest; the exporter's own needs no conversion.
    lowest = next(v for v in range(opset + 1, LOWEST_WRITTEN + 1) if v == LOWEST_WRITTEN or _converts(proto, v))
    return (
        f"{subject} cannot be converted from opset {LOWEST_WRITTEN} to {opset}, and the lowest opset that onnx's "
        f"version converter makes of this model is {lowest}: {_reason(str(error))}"
    )


def _named(message: str) -> str:
    found = (pattern.search(message) for pattern in (NO_ADAPTER, NO_OPERATOR, INVALID_NODE))
    return next((match[1] for match in found if match), "")


def _reason(message: str) -> str:
    """The converter's words, without the place in its own sources."""
    return message.strip().splitlines()[0].rpartition("failed: ")[2]


def _guilty(proto: Any, opset: int) -> str:
    """The first operator that cannot be converted where it stands alone, for exceptions that name none."""
    for node in proto.graph.node:
        alone = _alone(proto, node)
        if _converts(alone, LOWEST_WRITTEN) and not _converts(alone, opset):
            return str(node.op_type)
    return ""


def _alone(proto: Any, node: Any) -> Any:
    """A model of one node of another; what it takes are inputs, or the constants that they were."""
    import onnx

    typed = {value.name: value for value in _typed(proto.graph)}
    constants = [tensor for tensor in proto.graph.initializer if tensor.name in node.input]
    names = [name for name in node.input if name in typed and name not in {tensor.name for tensor in constants}]
    outputs = [typed.get(name, onnx.ValueInfoProto(name=name)) for name in node.output]
    graph = onnx.helper.make_graph([node], "alone", [typed[name] for name in names], outputs, constants)
    return onnx.helper.make_model(graph, opset_imports=proto.opset_import, ir_version=proto.ir_version)


def _typed(graph: Any) -> Iterator[Any]:
    yield from (*graph.input, *graph.output, *graph.value_info)
