"""Observations to findings: one file per rule, listed in `RULES`."""

from __future__ import annotations

from export_gate.rules import (
    contract_broken,
    conversion_failed,
    dim_specialized,
    dtype_mismatch,
    export_failed,
    golden_mismatch,
    guard_missing,
    input_mutated,
    load_failed,
    nondeterministic_model,
    nonfinite_mismatch,
    nothing_compared,
    range_narrowed,
    range_undeclared,
    run_failed,
    shape_mismatch,
    state_carried,
    structure_mismatch,
    timed_out,
    torchscript_model,
    train_mode,
    value_mismatch,
    waiver_unused,
    worker_died,
)
from export_gate.rules.base import Named, Rule
from export_gate.rules.lock import LOCK_RULES

RULES: tuple[Rule, ...] = (
    torchscript_model.RULE,
    train_mode.RULE,
    contract_broken.RULE,
    nondeterministic_model.RULE,
    input_mutated.RULE,
    state_carried.RULE,
    golden_mismatch.RULE,
    worker_died.RULE,
    timed_out.RULE,
    export_failed.RULE,
    dim_specialized.RULE,
    conversion_failed.RULE,
    load_failed.RULE,
    range_narrowed.RULE,
    run_failed.RULE,
    nothing_compared.RULE,
    structure_mismatch.RULE,
    dtype_mismatch.RULE,
    shape_mismatch.RULE,
    nonfinite_mismatch.RULE,
    value_mismatch.RULE,
    guard_missing.RULE,
    range_undeclared.RULE,
)
"""In causal order: what an earlier rule finds often explains what a later one finds, so reports list it first."""

CATALOGUE: tuple[Named, ...] = (*RULES, *LOCK_RULES, waiver_unused.RULE)
"""Everything that a finding can be named after, in the same order."""
