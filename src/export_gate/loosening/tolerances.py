"""Compare the tolerances that apply: per target and dtype, with all defaults."""

from __future__ import annotations

import math
from collections.abc import Iterator

from export_gate.loosening.compare import Step, arrow, shown
from export_gate.loosening.record import Effect
from export_gate.loosening.together import by_name
from export_gate.wall.contract import ModelContract, Tolerance
from export_gate.wall.targets import OTHER_KERNELS
from export_gate.wall.tolerance import is_inexact, resolve_golden_tolerance, resolve_tolerance


def tolerances(before: ModelContract, after: ModelContract) -> Iterator[Step]:
    """The steps of every target that both have, and of every golden file."""
    for target in before.targets:
        if any(other.name == target.name for other in after.targets):
            old = {dtype: resolve_tolerance(before, target.name, dtype) for dtype in _dtypes(before)}
            new = {dtype: resolve_tolerance(after, target.name, dtype) for dtype in _dtypes(after)}
            yield from _steps(f"targets.{target.name}.tolerance", f"{target.name} tolerance", _matched(old, new))
    kept = by_name(after.controls.golden)
    for name, source in by_name(before.controls.golden).items():
        if name in kept:
            pairs = {
                dtype: (
                    resolve_golden_tolerance(before, [source], dtype),
                    resolve_golden_tolerance(after, [kept[name]], dtype),
                )
                for dtype in OTHER_KERNELS
            }
            yield from _steps(f"controls.golden.{name}", f"golden tolerance of {name}", pairs)


def _dtypes(contract: ModelContract) -> tuple[str, ...]:
    """The outputs' inexact dtypes; every one if some output declares none."""
    declared = tuple(dict.fromkeys(output.dtype for output in contract.outputs if output.dtype))
    is_known = bool(contract.outputs) and all(output.dtype for output in contract.outputs)
    return tuple(dtype for dtype in declared if is_inexact(dtype)) if is_known else tuple(OTHER_KERNELS)


def _matched(old: dict[str, Tolerance], new: dict[str, Tolerance]) -> dict[str, tuple[Tolerance, Tolerance]]:
    """Pair tolerances by dtype; a new dtype is paired with the strictest old tolerance, which may be exact."""
    # If no dtype was inexact before (`default`), everything was exact.
    strictest = min(
        old.values(), key=lambda tolerance: (tolerance.rtol or 0.0, tolerance.atol or 0.0), default=Tolerance()
    )
    return {dtype: (old.get(dtype, strictest), tolerance) for dtype, tolerance in new.items()}


def _steps(key: str, name: str, pairs: dict[str, tuple[Tolerance, Tolerance]]) -> Iterator[Step]:
    """One step for each way in which dtypes differ, the dtypes together."""
    told: dict[tuple[Effect, str], list[str]] = {}
    for dtype, (old, new) in pairs.items():
        for effect, what in _fields(old, new):
            told.setdefault((effect, what), []).append(dtype)
    for (effect, what), dtypes in told.items():
        place = "" if len(dtypes) == len(pairs) else f" for {', '.join(dtypes)}"
        yield effect, key, f"{name}{place} {what}"


def _fields(old: Tolerance, new: Tolerance) -> Iterator[tuple[Effect, str]]:
    parts = {"atol": (old.atol or 0.0, new.atol or 0.0), "rtol": (old.rtol or 0.0, new.rtol or 0.0)}
    told = {name: _raised(*ends) for name, ends in parts.items() if ends[0] != ends[1]}
    if len(told) == len(parts) and len(set(told.values())) == 1:
        yield next(iter(told.values()))
    else:
        yield from ((effect, f"{name} {what}") for name, (effect, what) in told.items())
    if old.axis != new.axis:
        effect: Effect = "tightened" if old.axis is None else "loosened"
        yield effect, f"axis {arrow(old.axis, new.axis)}"


def _raised(old: float, new: float) -> tuple[Effect, str]:
    """`100x (1e-05 -> 0.001)`; without a factor from or to zero."""
    change = f"({_number(old)} -> {_number(new)})"
    factor = max(old, new) / min(old, new) if min(old, new) > 0 else math.inf
    words = f"{shown(float(f'{factor:.3g}'))}x {change}" if math.isfinite(factor) else change
    return ("loosened", words) if new > old else ("tightened", f"lowered {words}")


def _number(value: float) -> str:
    """`1e-5`, as it is written in a config."""
    text = f"{value:.3g}"
    mantissa, _, exponent = text.partition("e")
    if not exponent and 0 < value < 0.01:  # noqa: PLR2004 - as people write them
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa
