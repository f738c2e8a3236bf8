"""Every field of every record of a contract, with the direction in which the check becomes weaker.

A field that is missing here fails a test: whoever adds a key to the contract decides what loosens it.
"""

from __future__ import annotations

from typing import Literal, Union

from export_gate.loosening.compare import (
    OTHER,
    Compare,
    coarser,
    exact_before,
    fewer,
    fewer_of_all,
    fewer_values,
    fixed_axes,
    larger,
    larger_limit,
    loosened_by_any,
    narrower_range,
    replaced,
    restricted,
    size_lists,
    smaller,
    smaller_count,
    unimportant,
    weaker,
)
from export_gate.loosening.others import another, another_file, lost_or_other, trusted, variables

Part = Literal["record", "records", "specs", "waivers", "options"]
"""A field that holds records: one, several paired by name or path, an input's parts, waivers, or a target's options."""
Directions = dict[str, Union[Compare, Part]]

STATIC_DIM = "Dim, static"
"""Stands for a dim that was static and still is: its range only chooses the one size."""

FIELDS: dict[str, Directions] = {
    "ModelContract": {
        "name": unimportant,  # models are paired by it
        "factory": another("model"),
        "kwargs": another("model"),
        "env": variables,
        "train_mode": weaker("refuse", "force-eval"),
        "dims": "records",
        "inputs": "specs",
        "outputs": "records",
        "controls": "record",
        "tolerance": unimportant,
        "targets": "records",
        "targets_listed": unimportant,
        "strict": unimportant,  # the exported-program target's
        "timeout_s": replaced,
        "cache": weaker(False, True),
        "paths": fewer,
        "waivers": "waivers",
    },
    "Dim": {
        "name": unimportant,
        "min": larger,
        "max": smaller,
        "multiple_of": coarser,
        "example": replaced,  # the size that torch.export sees, and the middle of those that are tried
        "separate": fewer,  # for one that comes in the range, see together.py
        "mode": weaker("strict", "auto", "static"),
    },
    STATIC_DIM: {
        "name": unimportant,
        **dict.fromkeys(("min", "max", "multiple_of", "example"), unimportant),  # see together.py
        "separate": fewer,
        "mode": unimportant,
    },
    "TensorSpec": {
        "kind": unimportant,  # compared in walk.py
        "dtype": loosened_by_any,
        "shape": fixed_axes,
        "range": narrower_range,
        "values": fewer_values,
        "positions": restricted,
        "make": trusted,
        "name": another("call"),
        "mask": weaker("any", None, OTHER),
        "order": restricted,
        "nonfinite": fewer,
        "draws": fewer_of_all,
    },
    "ConstantSpec": {"kind": unimportant, "value": another("call"), "dtype": another("call")},
    "SequenceSpec": {"kind": unimportant, "items": "specs", "build": another("call")},
    "DictSpec": {"kind": unimportant, "items": "specs", "build": another("call")},
    "Output": {
        "name": unimportant,
        "leaf": weaker("compare", "none", "ignore"),
        "dtype": exact_before,
        "shape": fixed_axes,
        "nonfinite": weaker("forbid", "match", "allow"),
        "where": weaker("all", None, OTHER),
    },
    "Controls": {
        "seed": loosened_by_any,  # a failing draw may be gone
        "random": smaller,
        "sizes": size_lists,
        "affine_basis": weaker("always", "auto", "never"),
        "data": "records",
        "golden": "records",
        "function": lost_or_other,
        "make": loosened_by_any,
        "generated": weaker(True, False),
        "budget_flops": smaller,
        "limit": smaller,
    },
    "DataSource": {
        "path": unimportant,
        "inputs": loosened_by_any,
        "count": smaller_count,
        # With another one, other inputs of the file are taken: a failing one may be gone, as with `seed`.
        "stratify": loosened_by_any,
        "group": loosened_by_any,
    },
    "GoldenSource": {
        "path": unimportant,
        "inputs": loosened_by_any,
        "outputs": loosened_by_any,
        "tolerance": unimportant,
    },
    "Target": {
        "name": unimportant,  # targets are paired by it
        "kind": loosened_by_any,
        "tolerance": unimportant,  # what applies after all defaults is compared in tolerances.py
        "guards": weaker("require", "warn", "ignore"),
        "artifact": another_file,
        "budget": "record",
        "options": "options",  # each says itself what loosens it, in wall/targets.py
    },
    "Budget": {"max_bytes": larger_limit, "growth": larger_limit, "exceeded": weaker("violation", "warning")},
    # `Size`, `Tolerance` and `Waiver` are compared as wholes.
}
WHOLE = ("Size", "Tolerance", "Waiver")
"""Records that functions of this package compare as a whole, all fields together."""
YAML_KEYS = {"budget_flops": "budget", "max_bytes": "size", "timeout_s": "timeout"}
"""Fields whose key in `export-gate.yml` is not their name with `-`."""
