"""One control input and the set of them, as the worker uses them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from export_gate.worker.leaves.values import Leaf, Values

Group = Literal["generated", "data", "golden", "function", "affine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlCase:
    """A named control input; `make` builds its values afresh, since a model may write into them."""

    name: str
    family: str
    group: Group
    sizes: dict[str, int]
    """Every declared dim's size, the `separate` ones included."""
    make: Callable[[], Values]
    expected: tuple[Leaf, ...] | None = None
    """Outputs that a golden file promises; leaf names as the file or the contract spells them."""
    golden: int | None = None
    """Index into `controls.golden`, whose tolerance judges `expected`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSet:
    """Control inputs, those that catch most first, so that a prefix is the best set of its length."""

    cases: tuple[ControlCase, ...]
    left_out: int = 0
    """Cases beyond `controls.limit`."""
    left_out_reason: str = ""
    undeclared_range: tuple[str, ...] = ()
    """Floating-point tensor inputs without `range` or `values`."""
    undeclared_integers: tuple[str, ...] = ()
    """The integer ones, which got 0 and 1 only."""
    notes: tuple[str, ...] = ()


def case_name(label: str, sizes: dict[str, int]) -> str:
    """`halves-1@batch=2,side=24`, or the label alone where the contract has no dims."""
    at = ",".join(f"{dim}={size}" for dim, size in sizes.items())
    return f"{label}@{at}" if at else label


def generated_case(family: str, index: int, sizes: dict[str, int], make: Callable[[], Values]) -> ControlCase:
    """A control input that the gate draws itself."""
    name = case_name(f"{family}-{index}", sizes)
    return ControlCase(name=name, family=family, group="generated", sizes=dict(sizes), make=make)


def sanitized(name: str) -> str:
    """The name with everything but letters, digits and `._+-` replaced, for file names, globs and shells."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", name) or "unnamed"
