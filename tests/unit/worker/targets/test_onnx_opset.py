"""ONNX models to older opsets: what is computed stays, and what cannot be converted is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from export_gate.worker.targets.onnx_names import rename_dims
from export_gate.worker.targets.onnx_opset import LARGEST_CONSTANT_BYTES, lowered

ROWS = np.arange(12, dtype=np.float32).reshape(3, 4) / 4 - 1
WIDE = np.random.default_rng(7).normal(size=(4, 600)).astype(np.float32)


def model(nodes: Sequence[Any], width: int = 4, **constants: Any) -> Any:
    """A model of opset 18, from x to y."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", width])
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(proto, full_check=True)
    return onnx_ir.from_proto(onnx.shape_inference.infer_shapes(proto))


def run(proto: Any) -> Any:
    """What ONNX Runtime computes."""
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": ROWS})[0]


MEAN = helper.make_node("ReduceMean", ["x", "axes"], ["y"], keepdims=1, noop_with_empty_axes=0)


@pytest.mark.parametrize(
    ("nodes", "width", "constants", "opset"),
    [
        ([MEAN], 1, {"axes": [1]}, 13),
        (
            [helper.make_node("Clip", ["x", "low", "high"], ["y"])],
            4,
            {"low": np.float32(-0.5), "high": np.float32(1)},
            13,
        ),
        ([helper.make_node("Gemm", ["x", "w"], ["y"])], 600, {"w": WIDE}, 13),
        ([helper.make_node("Sin", ["x"], ["y"])], 4, {}, 9),
    ],
)
def test_an_older_file_computes_the_same(nodes: Sequence[Any], width: int, constants: dict[str, Any], opset: int):
    """The opset is the requested one, the IR is of its time, and names, sizes and numbers stay."""
    before = model(nodes, width, **constants)
    expected = run(onnx_ir.to_proto(before))
    after = onnx_ir.to_proto(lowered(before, opset))
    assert [(entry.domain, entry.version) for entry in after.opset_import] == [("", opset)]
    assert after.ir_version == max(4, helper.find_min_ir_version_for(after.opset_import))
    assert [value.name for value in after.graph.input] == ["x"]
    assert [dim.dim_param for dim in after.graph.input[0].type.tensor_type.shape.dim] == ["batch", ""]
    np.testing.assert_array_equal(run(after), expected)


def test_large_weights_are_not_copied():
    """They are not part of the conversion: the new model has the same tensor."""
    assert WIDE.nbytes > LARGEST_CONSTANT_BYTES
    before = model([helper.make_node("Gemm", ["x", "w"], ["y"])], 600, w=WIDE)
    weight = before.graph.initializers["w"].const_value
    assert lowered(before, 13).graph.initializers["w"].const_value is weight


def test_dims_can_be_named_afterwards():
    """The sizes of a converted model can be renamed like those of any other."""
    after = lowered(model([helper.make_node("Tanh", ["x"], ["y"])]), 17)
    rename_dims(after.graph, {"batch": "rows"}.__getitem__)
    assert [str(dim) for dim in after.graph.outputs[0].shape] == ["rows", "4"]


@pytest.mark.parametrize(
    ("nodes", "constants", "opset", "operator", "lowest"),
    [
        ([helper.make_node("Relu", ["x"], ["y"])], {}, 9, "Relu", 14),
        ([helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Mish", ["t"], ["y"])], {}, 17, "Mish", 18),
        ([helper.make_node("Pad", ["x", "pads"], ["y"])], {"pads": [0, 0, 0, 0]}, 13, "Pad", 18),
    ],
)
def test_what_cannot_be_converted_is_named(
    nodes: Sequence[Any], constants: dict[str, Any], opset: int, operator: str, lowest: int
):
    """The message has the operator, and the lowest opset to which the converter can bring the model."""
    said = (
        f"^operator {operator} cannot be converted from opset 18 to {opset}, and the lowest opset that onnx's version "
        rf"converter makes of this model is {lowest}: No (Adapter|Previous) "
    )
    with pytest.raises(ValueError, match=said):
        lowered(model(nodes, **constants), opset)


def test_an_operator_is_found_where_the_converter_names_none():
    """Each operator is tried alone: here the axes of a mean are computed, which older opsets do not allow."""
    nodes = [
        helper.make_node("Abs", ["axes"], ["computed"]),
        helper.make_node("Tanh", ["x"], ["t"]),
        helper.make_node("ReduceMean", ["t", "computed"], ["y"], keepdims=1),
    ]
    said = r"^operator ReduceMean .* is 18: No initializer or constant input to node found$"
    with pytest.raises(ValueError, match=said):
        lowered(model(nodes, width=1, axes=[1]), 14)
