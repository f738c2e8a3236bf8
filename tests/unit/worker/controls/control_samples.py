"""Contracts for the tests of the control set."""

from __future__ import annotations

from typing import Any

from export_gate.wall.contract import Controls, DataSource, Dim, GoldenSource, ModelContract, Size, TensorSpec
from export_gate.wall.sizes import parse_size


def size(text: str | int) -> Size:
    """`batch`, `2*seq+1`, `past+cur` or a number."""
    return parse_size(str(text))


def tensor(dtype: str, *shape: str | int, **fields: Any) -> TensorSpec:
    """A tensor input of that shape."""
    return TensorSpec(dtype=dtype, shape=tuple(size(axis) for axis in shape), **fields)


def contract(*dims: Dim, controls: Controls | None = None, outputs: Any = (), **inputs: Any) -> ModelContract:
    """A model named m."""
    return ModelContract(
        name="m",
        factory="model.py:make_model",
        dims=dims,
        inputs=inputs,
        outputs=outputs,
        controls=controls or Controls(),
        targets=(),
    )


def with_data(*dims: Dim, path: str, inputs: Any, **source: Any) -> ModelContract:
    """A model whose only data source is that file."""
    return contract(*dims, controls=Controls(data=(DataSource(path=path, **source),)), **inputs)


def with_golden(*dims: Dim, path: str, inputs: Any, outputs: Any = (), **source: Any) -> ModelContract:
    """A model whose only golden source is that file."""
    controls = Controls(golden=(GoldenSource(path=path, **source),))
    return contract(*dims, controls=controls, outputs=outputs, **inputs)


BATCH = Dim(name="batch", min=2, max=16)
SIDE = Dim(name="side", min=8, max=64, multiple_of=8, example=24)
