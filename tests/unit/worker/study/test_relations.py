"""What separates refused inputs from accepted ones is reported as a declaration, after it was tried."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from worker_samples import Recorder, contract, subject, tensor

from export_gate.wall.contract import Controls, Dim, ModelContract
from export_gate.wall.observation import MissingRelation
from export_gate.worker.controls.build import build_control_set
from export_gate.worker.model.reference_file import ReferenceFile
from export_gate.worker.study.eager import observe_eager
from export_gate.worker.study.proposals import Facts, proposals
from export_gate.worker.study.relations import missing_relations

BATCH, SEQ, OTHER = Dim(name="batch", min=2, max=8), Dim(name="seq", min=3, max=12), Dim(name="other", min=3, max=12)
X = tensor("batch", "seq", range=(-1.0, 1.0))


class Gather(nn.Module):
    """Columns of x, counted from 0."""

    def forward(self, x: torch.Tensor, pos: torch.Tensor) -> torch.Tensor:
        """float32[batch, seq], int64[batch] to float32[batch, batch]."""
        return x[:, pos]


class Table(nn.Module):
    """A table of ten rows, beside a longer one."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.rows = nn.Linear(4, 30), nn.Embedding(10, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """int64[batch, seq] to float32[batch, seq, 30]."""
        return self.wide(self.rows(ids))


class Packed(nn.Module):
    """Rows of some length, the longest first."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """float32[batch, seq, 1], int64[batch] to a packed float32[total, 1]."""
        return nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True).data


class Span(nn.Module):
    """From start to end, in this order."""

    def forward(self, start: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
        """Two int64[batch] to float32[batch]."""
        if bool((start > end).any()):
            raise ValueError("a span that ends before it starts")
        return (end - start).float()


class Folded(nn.Module):
    """Pairs of columns."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, seq] to float32[batch, seq / 4, 4]."""
        return x.reshape(x.shape[0], x.shape[1] // 4, 4)


class Limited(nn.Module):
    """At most nine columns."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, seq] to the same."""
        if x.shape[1] > 9:
            raise ValueError("too long")
        return 2 * x


class Added(nn.Module):
    """Both have the same length."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """float32[batch, seq], float32[batch, other] to float32[batch, seq]."""
        return x + y


class Inside(nn.Module):
    """A window of y as long as x."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """float32[batch, seq], float32[batch, other] to float32[batch, seq]."""
        return x + y.narrow(1, 0, x.shape[1])


class Moody(nn.Module):
    """Refuses what no declaration can keep away."""

    def forward(self, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """float32[batch, seq], int64[batch] to float32[batch, seq]."""
        if round(1e6 * float(x.sum())) % 2:
            raise ValueError("an odd sum")
        return x


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model, what it promises, and what is said of its refusals."""

    module: nn.Module
    promised: ModelContract
    words: str
    declare: str
    key: str
    is_tried: bool = True


def _case(module: nn.Module, inputs: dict[str, Any], words: str, declare: str, key: str, **fields: Any) -> Case:
    dims = [dim for dim in (BATCH, SEQ, OTHER) if any(dim.name in str(s) for i in inputs.values() for s in i.shape)]
    promised = contract(inputs, *dims, controls=Controls(random=2, limit=60, affine_basis="never"))
    return Case(module=module, promised=promised, words=words, declare=declare, key=key, **fields)


def _int(*shape: str, low: int = 0, high: int = 11, **fields: Any) -> Any:
    return tensor(*shape, dtype="int64", range=(low, high), **fields)


LENGTHS = _int("batch", low=-1, high=3, order="decreasing")
Y = tensor("batch", "other", range=(-1.0, 1.0))
CASES = {
    "an index into an axis": _case(
        Gather(), {"x": X, "pos": _int("batch")}, "`pos` >= `seq`", "`range: [0, seq-1]`", "inputs.pos"
    ),
    "an index into a table": _case(
        Table(),
        {"ids": _int("batch", "seq", high=20)},
        "`ids` >= 10, the length of `rows.weight`",
        "`range: [0, 9]`",
        "inputs.ids",
    ),
    "a least value": _case(
        Packed(),
        {"x": tensor("batch", "seq", 1, range=(-1.0, 1.0)), "lengths": LENGTHS},
        "`lengths` < 1",
        "`range: [1, 3]`",
        "inputs.lengths",
    ),
    "an order": _case(
        Packed(),
        {"x": tensor("batch", "seq", 1, range=(-1.0, 1.0)), "lengths": _int("batch", low=1, high=3)},
        "`lengths` is not decreasing along its last axis",
        "`order: decreasing`",
        "inputs.lengths",
    ),
    "a largest size": _case(Limited(), {"x": X}, "`seq` > 9", "`max: 9`", "dims.seq"),
    "whole steps": _case(Folded(), {"x": X}, "`seq` is not a multiple of 4", "`{multiple-of: 4, min: 4}`", "dims.seq"),
    "equal sizes": _case(
        Added(),
        {"x": X, "y": Y},
        "`other` differs from `seq`",
        "write `other` for `seq` (`inputs.x.shape: [batch, other]`), and remove `seq` from `dims`",
        "dims.seq",
        is_tried=False,
    ),
    "one size within another": _case(
        Inside(),
        {"x": X, "y": Y},
        "`seq` > `other`",
        "give `seq` a `max` that is no greater than the `min` of `other`",
        "dims.seq",
        is_tried=False,
    ),
    "two inputs in order": _case(
        Span(),
        {"start": _int("batch"), "end": _int("batch")},
        "`start` > `end` somewhere",
        "draw both together with `controls.make`",
        "controls.make",
        is_tried=False,
    ),
}


def relations(module: nn.Module, promised: ModelContract, folder: Path) -> tuple[MissingRelation, ...]:
    """What is found, by the functions that a run calls."""
    recorder = Recorder(folder)
    recorder.desk = type(recorder.desk)(channel=recorder.desk.channel, roots=(Path(__file__).parent,))
    cases = build_control_set(promised, folder).cases
    asked = subject(module, promised)
    eager = observe_eager(cases, asked, ReferenceFile(folder=folder), recorder.desk)
    return missing_relations(cases, eager, asked, recorder.desk)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_relation_that_is_missing_is_said(tmp_path: Path, name: str):
    """It is reported as the condition and as the key that prevents it, if the contract can express it."""
    case = CASES[name]
    (found,) = relations(case.module, case.promised, tmp_path)
    assert (found.words, found.declare, found.key) == (case.words, case.declare, case.key)
    assert found.refused > 0
    assert found.accepted > 0
    assert (found.tried > 0) == case.is_tried


def test_nothing_is_said_where_nothing_is_refused_or_nothing_taken(tmp_path: Path):
    """One side alone shows no relation."""

    class Never(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("never")

    promised = CASES["whole steps"].promised
    assert relations(nn.Identity(), contract({"input": X}, BATCH, SEQ), tmp_path) == ()
    assert relations(Never(), promised, tmp_path) == ()


def test_a_relation_that_does_not_hold_once_tried_is_not_said(tmp_path: Path):
    """Further draws refute what refused and accepted inputs show by coincidence."""
    promised = contract({"x": X, "ids": _int("batch")}, BATCH, SEQ, controls=Controls(random=2, limit=4))
    assert relations(Moody(), promised, tmp_path) == ()


def test_the_length_of_a_large_table_is_proposed_to_the_last_row():
    """`1.23457e+06` would be another one."""
    promised = contract({"ids": tensor("batch", dtype="int64")}, BATCH)
    small, large = (Facts(sizes={"batch": 2}, values={"ids": np.array([0, most])}) for most in (3, 2_000_000))
    found = list(proposals(promised, {"table": (1_234_567,)}, [large], [small]))
    assert "`range: [0, 1234566]`" in [each.declare for each in found]


def test_each_column_is_limited_by_a_table_of_its_own():
    """As categories of tabular data are, of which each has a number of its own."""
    spec = tensor("batch", 2, dtype="int64", range=(0, 9))
    promised = contract({"ids": spec}, BATCH)
    small, large = (Facts(sizes={"batch": 1}, values={"ids": np.array([[9, most]])}) for most in (2, 3))
    found = next(proposals(promised, {"a.weight": (10, 4), "b.weight": (3, 4)}, [large], [small]))
    assert found.declare == "`values: [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 1, 2]]` instead of `range`"
    assert found.words.endswith("which end at 9 (`a.weight`), 2 (`b.weight`)")


def test_a_dim_is_limited_by_the_length_of_a_table():
    """Rather than by the largest size that happened to be tried."""
    promised = contract({"ids": tensor("batch", dtype="int64")}, BATCH)
    short, long = (Facts(sizes={"batch": size}, values={}) for size in (2, 40))
    found = next(proposals(promised, {"pos.weight": (24, 8)}, [long], [short]))
    assert (found.words, found.declare) == ("`batch` > 24, a length of `pos.weight`", "`max: 24`")
