"""The signatures of the exporter's translations are read once, and the list of translations at each conversion."""

from __future__ import annotations

import operator

import pytest
from onnxscript.function_libs.torch_lib.ops.core import aten_add
from onnxscript.function_libs.torch_lib.registration import default_registry, torch_op
from onnxscript.onnx_types import FLOAT
from torch.onnx._internal.exporter._registration import ONNXRegistry

from export_gate.worker.targets.onnx_signatures import keep_signatures, read_signatures


@pytest.mark.slow
def test_each_signature_is_read_once():
    """Also where it is asked for again, as an earlier process may have done it."""
    for _ in range(2):
        read_signatures()
        first = aten_add.function_ir
        assert first is aten_add.function_ir
        assert first.domain == "pkg.onnxscript.torch_lib"
    tables = [ONNXRegistry.from_torchlib() for _ in range(2)]
    assert tables[0] is not tables[1]
    ((one,), (other,)) = (table.functions["aten::relu"] for table in tables)
    assert one.signature is other.signature


@pytest.mark.slow
def test_a_translation_that_is_registered_later_is_found():
    """A project may import a package that brings its own."""
    keep_signatures()
    assert operator.concat not in ONNXRegistry.from_torchlib().functions
    try:

        @torch_op("_operator::concat", trace_only=True)
        def concat(x: FLOAT, y: FLOAT) -> FLOAT:
            return aten_add(x, y)

        (found,) = ONNXRegistry.from_torchlib().functions[operator.concat]
        assert [parameter.name for parameter in found.signature.params] == ["x", "y"]
    finally:
        del default_registry._registry["_operator::concat"]
