"""Masks that keep or drop everything."""

from __future__ import annotations

from control_samples import contract, tensor

from export_gate.wall.contract import Dim
from export_gate.worker.controls.flat_masks import flat_masks
from export_gate.worker.controls.generate import drawn_case

BATCH = Dim(name="batch", min=1, max=4)


def test_masks_with_one_value_are_named_with_it():
    """Of bools and of integers of 0 and 1; other inputs are not masks."""
    promised = contract(
        BATCH,
        x=tensor("float32", "batch", 5, range=(0, 1)),
        pad=tensor("bool", "batch", 5),
        keep=tensor("int64", "batch", 5, range=(0, 1)),
        ids=tensor("int64", "batch", 5, range=(0, 9)),
        flag=tensor("bool"),
    )
    assert flat_masks(promised, drawn_case(promised, "all-true", 1, {"batch": 3})) == {"pad": 1, "keep": 1}
    assert flat_masks(promised, drawn_case(promised, "all-false", 1, {"batch": 3})) == {"pad": 0, "keep": 0}
    assert flat_masks(promised, drawn_case(promised, "normal", 1, {"batch": 3})) == {}
