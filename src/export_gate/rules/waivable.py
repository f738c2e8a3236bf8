"""Which rules a waiver may name, and what it may narrow them by.

A waiver accepts what was measured, never that something was not: nobody would know what is accepted.
"""

from __future__ import annotations

from typing import Literal

Part = Literal["target", "output", "case"]

WAIVABLE: dict[str, tuple[Part, ...]] = {
    "train-mode": (),
    "nondeterministic-model": ("output",),
    "input-mutated": (),
    "state-carried": ("output",),
    "golden-mismatch": ("output", "case"),
    "dim-specialized": (),
    "range-narrowed": ("target",),
    "run-failed": ("target", "case"),
    "structure-mismatch": ("target", "case"),
    "dtype-mismatch": ("target", "output", "case"),
    "shape-mismatch": ("target", "output", "case"),
    "nonfinite-mismatch": ("target", "output", "case"),
    "value-mismatch": ("target", "output", "case"),
    "guard-missing": ("target",),
    "interface-changed": ("target", "output"),
    "margin-shrunk": ("target", "output"),
    "artifact-grew": ("target",),
}
"""Rule -> the parts of a finding that its waivers may name."""

UNMEASURED = (
    "torchscript-model",
    "contract-broken",
    "worker-died",
    "timed-out",
    "export-failed",
    "conversion-failed",
    "load-failed",
    "nothing-compared",
)
"""Rules whose findings leave something unmeasured, which no waiver accepts."""
