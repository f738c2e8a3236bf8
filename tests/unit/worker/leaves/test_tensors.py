"""Tensors of a kit: what onnx itself reads and writes, bit for bit, and nothing malformed."""

from __future__ import annotations

import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, numpy_helper

from export_gate.worker.leaves.values import Leaf
from export_gate.worker.onnx_file.tensors import (
    ELEMENT_TYPES,
    narrow_bfloat16,
    read_tensor,
    tensor_bytes,
    widen_bfloat16,
)

SPECIAL = [0.0, -0.0, 1.5, -2.25, np.nan, np.inf, -np.inf, 65504.0]


def values(dtype: str) -> Any:
    """Some numbers of that dtype, special ones among them, in two axes."""
    if dtype in ("float64", "float32", "float16"):
        return np.array(SPECIAL, dtype=dtype).reshape(2, 4)
    if dtype.startswith("complex"):
        pairs = np.array([SPECIAL, SPECIAL[::-1]], dtype="float64" if dtype == "complex128" else "float32").T
        return np.ascontiguousarray(pairs).view(dtype)
    if dtype == "bool":
        return np.array([[True, False, True]])
    if dtype == "bfloat16":
        return np.array(SPECIAL, dtype=ml_dtypes.bfloat16).astype(np.float32).reshape(2, 4)
    information = np.iinfo(dtype)
    return np.array([[information.min, 0, information.max]], dtype=dtype)


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
def test_onnx_reads_what_is_written(dtype: str):
    """onnx.numpy_helper gives the same dtype, shape and bits for every dtype of a contract, bfloat16 included."""
    leaf = Leaf(name="ours", dtype=dtype, value=values(dtype))
    proto = onnx.TensorProto.FromString(tensor_bytes(leaf, "theirs"))
    read = numpy_helper.to_array(proto)
    assert (proto.name, str(read.dtype), read.shape) == ("theirs", dtype, leaf.value.shape)
    same = read.astype(np.float32) if dtype == "bfloat16" else read
    assert same.tobytes() == leaf.value.tobytes()


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
def test_what_onnx_writes_is_read(dtype: str):
    """The same bits are read from a file that onnx wrote."""
    wanted = values(dtype)
    stored = wanted.astype(ml_dtypes.bfloat16) if dtype == "bfloat16" else wanted
    leaf = read_tensor(numpy_helper.from_array(stored, "x").SerializeToString())
    assert (leaf.name, leaf.dtype, leaf.value.shape) == ("x", dtype, wanted.shape)
    assert leaf.value.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1)])
def test_empty_and_single_tensors(shape: tuple[int, ...]):
    """A 0-d tensor keeps its rank, and an empty one keeps its shape."""
    leaf = Leaf(name="x", dtype="float32", value=np.ones(shape, dtype=np.float32))
    assert read_tensor(tensor_bytes(leaf, "x")).value.shape == shape


def test_bytes_are_little_endian():
    """The bytes are little-endian on every machine, as ONNX requires."""
    big = np.array([1, 2], dtype=">i4")
    assert tensor_bytes(Leaf(name="x", dtype="int32", value=big), "x").endswith(b"\1\0\0\0\2\0\0\0")


def test_bfloat16_bits():
    """All 65,536 bit patterns, NaN payloads included, survive widening and narrowing."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    assert np.array_equal(narrow_bfloat16(widen_bfloat16(bits)), bits)
    assert narrow_bfloat16(np.float32(1.5).reshape(())).shape == ()


def proto(**fields: Any) -> bytes:
    """A serialized TensorProto."""
    return onnx.TensorProto(**fields).SerializeToString()


EXTERNAL = onnx.StringStringEntryProto(key="location", value="/etc/passwd")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x08", "not a TensorProto"),
        (b"not a tensor at all", "not a TensorProto"),
        (b"", "element type 0 is not one that a kit supports"),
        (proto(data_type=8, string_data=[b"x"]), "element type 8 is not one that a kit supports"),
        (
            proto(data_type=1, dims=[2], data_location=TensorProto.EXTERNAL, external_data=[EXTERNAL]),
            "its values are in another file",
        ),
        (proto(data_type=1, dims=[3], raw_data=b"1234"), "shape [3] of float32 does not fit its 4 bytes of values"),
        (
            proto(data_type=1, dims=[2**62, 4], raw_data=b""),
            "shape [4611686018427387904, 4] of float32 does not fit its 0 bytes of values",
        ),
        (
            proto(data_type=1, dims=[-1, -1], raw_data=b"1234"),
            "shape [-1, -1] of float32 does not fit its 4 bytes of values",
        ),
        (proto(data_type=1, dims=[1], float_data=[1.0]), "shape [1] of float32 does not fit its 0 bytes of values"),
        (
            proto(data_type=9, dims=[1] * 40, raw_data=b"1"),
            "shape [1, 1, 1, 1, 1, 1, 1, 1, ...] of bool does not fit its 1 bytes of values",
        ),
    ],
)
def test_malformed_tensors_are_refused(content: bytes, message: str):
    """The message is one sentence; no file is read, nothing is unpickled, no memory is allocated for a false shape."""
    with pytest.raises(ValueError) as caught:
        read_tensor(content)
    assert str(caught.value) == message


def test_claimed_sizes_cost_nothing():
    """A shape of 2**60 elements, or a million axes, is refused within a few times the file's own size."""
    claims = [proto(data_type=11, dims=[2**60], raw_data=b"x" * 8), proto(data_type=1, dims=[2**40] * 1_000_000)]
    for content in claims:
        tracemalloc.start()
        with pytest.raises(ValueError, match="does not fit"):
            read_tensor(content)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        tracemalloc.stop()


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_tensor_or_refused(content: bytes):
    """Whatever the file contains, no other exception than ValueError is raised."""
    try:
        leaf = read_tensor(content)
    except ValueError:
        return
    assert leaf.value is not None


@pytest.mark.parametrize("dtype", ["None", "str", "float8_e4m3fn"])
def test_what_has_no_place_in_a_kit(dtype: str):
    """Leaves that are not numbers, and dtypes that NumPy does not have, cannot be written."""
    value = None if dtype in ("None", "str") else np.zeros(1, dtype=np.float32)
    with pytest.raises(ValueError) as caught:
        tensor_bytes(Leaf(name="x", dtype=dtype, value=value), "x")
    assert str(caught.value) == f"a TensorProto cannot store {dtype}"
