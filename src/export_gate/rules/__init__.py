"""Turn measurements into findings: one file per rule, listed in `RULES`."""

from __future__ import annotations

from importlib import import_module

from export_gate.rules import check_loosened, unpushed_file, waiver_unused
from export_gate.rules.base import Named, Rule
from export_gate.rules.lock import LOCK_RULES

RULES: tuple[Rule, ...] = tuple(
    import_module(f"{__name__}.{name}").RULE
    for name in (
        "torchscript_model",
        "variable_not_passed",
        "train_mode",
        "contract_broken",
        "nondeterministic_model",
        "input_mutated",
        "state_carried",
        "ambient",
        "golden_mismatch",
        "worker_died",
        "timed_out",
        "export_failed",
        "dim_specialized",
        "conversion_failed",
        "load_failed",
        "range_narrowed",
        "run_failed",
        "nothing_compared",
        "structure_mismatch",
        "dtype_mismatch",
        "shape_mismatch",
        "nonfinite_mismatch",
        "value_mismatch",
        "tolerance_vacuous",
        "ill_conditioned",
        "masked_positions",
        "tolerance_lax",
        "guard_missing",
        "range_undeclared",
        "table_unread",
    )
)
"""In causal order: what an earlier rule finds often explains what a later one finds, so reports list it first.

Each is named by its file alone, so that a new rule is one file and one line here.
"""

CATALOGUE: tuple[Named, ...] = (*RULES, *LOCK_RULES, unpushed_file.RULE, check_loosened.RULE, waiver_unused.RULE)
"""Everything that a finding can be named after, in the same order."""

NAMED: dict[str, Named] = {rule.name: rule for rule in CATALOGUE}
"""The same by name."""
