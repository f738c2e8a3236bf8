"""Integer inputs without a range get it from the table that they index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from worker_samples import Recorder, contract, subject, tensor

from export_gate.wall.contract import Dim, SequenceSpec
from export_gate.worker.controls.build import build_control_set
from export_gate.worker.study.tables import with_table_ranges

BATCH = Dim(name="b", min=1, max=4)


class Lookup(nn.Module):
    """Reads a table of 50 rows in one of several ways, after moving the ids about."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.table = nn.Parameter(torch.zeros(50, 3))
        self.register_buffer("short", torch.zeros(1, 20))

    def forward(self, ids: torch.Tensor) -> Any:
        """int[b, 7] to rows of the table."""
        match self.how:
            case "embedding":
                return nn.functional.embedding(ids.long().reshape(-1, 7), self.table)
            case "index":
                return self.table[ids[:, 1:].unsqueeze(1)]
            case "select":
                return self.short.index_select(1, ids.flatten()), self.table[ids]
            case "shifted":
                return self.table[ids + 2]
            case _:
                return ids * 2


@pytest.mark.parametrize(
    ("how", "found"),
    [("embedding", (0, 49)), ("index", (0, 49)), ("select", (0, 19)), ("shifted", None), ("unread", None)],
)
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_the_range_is_the_length_of_the_shortest_table(
    how: str, found: tuple[int, int] | None, dtype: str, tmp_path: Path
):
    """Ids that index weights directly get the range of the table; others stay undeclared."""
    promised = contract({"ids": tensor("b", 7, dtype=dtype)}, BATCH)
    made, notes = with_table_ranges(subject(Lookup(how), promised), Recorder(tmp_path).desk)
    assert made.contract.inputs["ids"].range == found  # type: ignore[union-attr]
    assert len(notes) == (found is not None)
    controls = build_control_set(made.contract, tmp_path)
    assert controls.undeclared_integers == (() if found else ("ids",))
    assert max(int(case.make()["ids"].max()) for case in controls.cases) == (found[1] if found else 1)


def test_declared_ranges_and_ids_of_data_stay(tmp_path: Path):
    """A declared range is the project's word, and positions in another input are not rows of weights."""

    class Positions(nn.Module):
        def forward(self, pair: list[torch.Tensor], ids: torch.Tensor) -> torch.Tensor:
            return pair[0][pair[1]] + ids.sum()

    items = tensor("b", 3), tensor("b", dtype="int64")
    inputs = {"pair": SequenceSpec(kind="list", items=items), "ids": tensor("b", dtype="int64", range=(0, 3))}
    promised = contract(inputs, BATCH)
    made, notes = with_table_ranges(subject(Positions(), promised), Recorder(tmp_path).desk)
    assert (made.contract, notes) == (promised, ())
