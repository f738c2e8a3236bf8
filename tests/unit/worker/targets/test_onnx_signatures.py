"""The signatures of the exporter's translations are read once, and the list of translations at each conversion."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

from export_gate.worker.targets.onnx_signatures import keep_signatures, read_signatures


def listed() -> dict[str | Callable[..., Any], list[Any]]:
    """The translations as a conversion lists them."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    return ONNXRegistry.from_torchlib().functions


@pytest.mark.slow
def test_each_signature_is_read_once():
    """Also where it is asked for again, as an earlier process may have done it."""
    from onnxscript.function_libs.torch_lib.ops.core import aten_add

    for _ in range(2):
        read_signatures()
        first = aten_add.function_ir
        assert first is aten_add.function_ir
        assert first.domain == "pkg.onnxscript.torch_lib"
    ((one,), (other,)) = (listed()["aten::relu"] for _ in range(2))
    assert one is not other
    assert one.signature is other.signature


@pytest.mark.slow
def test_a_translation_that_is_registered_later_is_found():
    """A project may import a package that brings its own."""
    from onnxscript.function_libs.torch_lib.ops.core import aten_add
    from onnxscript.function_libs.torch_lib.registration import default_registry, torch_op

    keep_signatures()
    assert operator.concat not in listed()
    try:

        @torch_op("_operator::concat", trace_only=True)
        def concat(x: int, y: int) -> int:
            return aten_add(x, y)

        (found,) = listed()[operator.concat]
        assert [parameter.name for parameter in found.signature.params] == ["x", "y"]
    finally:
        del default_registry._registry["_operator::concat"]
