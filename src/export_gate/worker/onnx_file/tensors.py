"""Convert leaves to serialized TensorProtos and back, as raw bits and including bfloat16, with only NumPy and onnx."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from export_gate.worker.leaves.values import Leaf

ELEMENT_TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9,
    "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
}  # fmt: skip
"""torch's name -> onnx.TensorProto.DataType."""
DTYPES = {number: name for name, number in ELEMENT_TYPES.items()}
LARGEST_RANK = 32
"""NumPy before 2.0 has no more axes."""
LARGEST_BYTES = 2**31 - 2**16
"""Protobuf's limit for one message, minus room for names and shapes."""


def graph_inputs(model: Any) -> list[Any]:
    """The graph's own inputs, in order."""
    # Files of old versions list their weights among the inputs.
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights]


def tensor_bytes(leaf: Leaf, name: str) -> bytes:
    """Serialize the leaf as a TensorProto with that name and raw little-endian values.

    Raises:
        ValueError: a TensorProto cannot store its dtype, or it is too large.
    """
    import onnx

    if leaf.value is None or leaf.dtype not in ELEMENT_TYPES:
        raise ValueError(f"a TensorProto cannot store {leaf.dtype}")
    stored = narrow_bfloat16(leaf.value) if leaf.dtype == "bfloat16" else leaf.value
    if stored.nbytes > LARGEST_BYTES:
        raise ValueError(f"{stored.nbytes} bytes are more than the {LARGEST_BYTES} that one TensorProto can hold")
    raw = stored.astype(stored.dtype.newbyteorder("<"), copy=False).tobytes()
    proto = onnx.TensorProto(name=name, data_type=ELEMENT_TYPES[leaf.dtype], dims=leaf.value.shape, raw_data=raw)
    serialized: bytes = proto.SerializeToString(deterministic=True)
    return serialized


def read_tensor(serialized: bytes) -> Leaf:
    """Read a serialized TensorProto as `tensor_bytes` writes it; the leaf's values are a view of its bytes.

    Memory stays below a small multiple of the bytes: shapes are compared with them before anything is allocated.

    Raises:
        ValueError: the bytes are not such a TensorProto.
    """
    import onnx

    proto = onnx.TensorProto()
    try:
        proto.ParseFromString(serialized)
    except Exception as error:  # protobuf's own class, which has no stable import path
        raise ValueError("not a TensorProto") from error
    dtype = DTYPES.get(proto.data_type)
    if dtype is None:
        raise ValueError(f"element type {proto.data_type} is not one that a kit supports")
    if proto.data_location != onnx.TensorProto.DEFAULT or proto.external_data:
        raise ValueError("its values are in another file")
    stored = np.dtype(np.uint16 if dtype == "bfloat16" else dtype).newbyteorder("<")
    # One more than allowed shows that there are too many, without a copy of millions.
    shape, raw = tuple(proto.dims[: LARGEST_RANK + 1]), proto.raw_data
    fits = len(shape) <= LARGEST_RANK and min(shape, default=0) >= 0
    if not fits or math.prod(shape) * stored.itemsize != len(raw):
        raise ValueError(f"shape {_shape(shape)} of {dtype} does not fit its {len(raw)} bytes of values")
    values = np.frombuffer(raw, dtype=stored).reshape(shape)
    return Leaf(name=proto.name, dtype=dtype, value=widen_bfloat16(values) if dtype == "bfloat16" else values)


def narrow_bfloat16(values: npt.NDArray[Any]) -> npt.NDArray[np.uint16]:
    """Bits of the bfloat16 numbers that were widened to these float32 values: their upper halves, exactly."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).reshape(values.shape)
    upper: npt.NDArray[np.uint16] = (bits >> np.uint32(16)).astype(np.uint16)
    return upper


def widen_bfloat16(bits: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """The bfloat16 numbers with these bits as float32, exactly."""
    widened: npt.NDArray[np.float32] = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return widened


def _shape(lengths: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, lengths[:8]))
    return f"[{shown}{', ...' if len(lengths) > 8 else ''}]"  # noqa: PLR2004 - as many as a line takes
