"""Resolve the tolerance of one output of one target: declared values take precedence over the table of defaults."""

from __future__ import annotations

from collections.abc import Sequence

from export_gate.wall.contract import GoldenSource, ModelContract, TargetName, Tolerance
from export_gate.wall.targets import OTHER_KERNELS, Kernels, kind_named

PARTS = {"complex64": "float32", "complex128": "float64", "complex32": "float16"}
"""Complex numbers are compared as pairs of reals."""


def is_inexact(dtype: str) -> bool:
    """Whether entries of this dtype may differ within a tolerance; every other dtype is compared exactly."""
    return PARTS.get(dtype, dtype) in OTHER_KERNELS


def resolve_tolerance(contract: ModelContract, target: TargetName, dtype: str) -> Tolerance:
    """Use the target's declaration, else the model's, else the default for `dtype`; each field is resolved separately.

    Integers and bools are exact whatever is declared. So is a dtype without a row: an unknown bound must not pass.
    """
    planned = contract.target(target)
    declared = planned.tolerance if planned else Tolerance()
    return _layered(declared, contract.tolerance, kind_named(planned.kind if planned else target).kernels, dtype)


def resolve_golden_tolerance(contract: ModelContract, sources: Sequence[GoldenSource], dtype: str) -> Tolerance:
    """Use the source's declaration, else the model's, else ONNX's default: goldens may come from another CPU.

    If several sources are possible (files with the same name), the strictest bounds apply.
    """
    declared = [source.tolerance for source in sources] or [Tolerance()]
    resolved = [_layered(tolerance, contract.tolerance, OTHER_KERNELS, dtype) for tolerance in declared]
    return Tolerance(
        atol=min(found.atol or 0.0 for found in resolved),
        rtol=min(found.rtol or 0.0 for found in resolved),
        axis=resolved[0].axis,
    )


def _layered(first: Tolerance, second: Tolerance, table: Kernels, dtype: str) -> Tolerance:
    if not is_inexact(dtype):
        return Tolerance(atol=0.0, rtol=0.0)
    atol, rtol = table[PARTS.get(dtype, dtype)]
    axis = second.axis if first.axis is None else first.axis
    return Tolerance(atol=_first(first.atol, second.atol, atol), rtol=_first(first.rtol, second.rtol, rtol), axis=axis)


def _first(value: float | None, other: float | None, default: float) -> float:
    if value is not None:
        return value
    return default if other is None else other
