"""A sweep within a budget of work, of which only differences are kept."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from worker_samples import Recorder, contract, tensor

from export_gate.wall.contract import Controls, Dim
from export_gate.wall.observation import CaseResult
from export_gate.worker.controls.generate import drawn_case
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.leaves.compare import compare_case
from export_gate.worker.leaves.values import Call, Leaf
from export_gate.worker.model.factory import Parameter
from export_gate.worker.model.reference import Reference
from export_gate.worker.study.sweeping import KEPT, Sweep, affordable, answered, run_sweep

ROWS = contract({"x": tensor("n", 4)}, Dim(name="n", min=1, max=200))
FIRST = drawn_case(ROWS, "normal", 1, {"n": 100})
PARAMETERS = (Parameter(name="x", kind=inspect.Parameter.POSITIONAL_OR_KEYWORD, required=True),)


def leaf(rows: int) -> Leaf:
    """An output of that many rows."""
    return Leaf(name="y", dtype="float32", value=np.ones(rows, dtype=np.float32))


def sweep() -> Sweep:
    """All sizes, with ones as eager's answers."""
    cases = affordable(ROWS, (FIRST,), 1.0, 1)
    return Sweep(cases=cases, references={c.name: Reference.held(c.name, (leaf(c.sizes["n"]),)) for c in cases})


def run(differs: set[int], folder: Path) -> tuple[list[str], int]:
    """Sweep an artifact that answers otherwise at some sizes."""

    def artifact(call: Call) -> tuple[Leaf, ...]:
        rows = int(call.args[0].shape[0])
        if rows == 7 and rows in differs:
            raise RuntimeError("no")
        return (leaf(rows + 1 if rows in differs else rows),)

    swept = sweep()

    def compare(case: ControlCase, actual: Sequence[Leaf]) -> CaseResult:
        return compare_case(case.name, swept.references[case.name].leaves, actual)

    found, count = run_sweep(swept, artifact, PARAMETERS, compare, Recorder(folder).desk, key="onnx", timeout_s=600)
    return [result.case for result in found], count


def test_every_size_is_run_and_only_differences_are_kept(tmp_path: Path):
    """Of 199 further sizes, the three that differ, or that the artifact refuses, are recorded."""
    found, count = run({7, 8, 161}, tmp_path)
    assert sorted(found) == ["normal-1@n=161", "normal-1@n=7", "normal-1@n=8"]
    assert count == 199


def test_a_bounded_number_of_differences_is_kept(tmp_path: Path):
    """If every size differs, the record stays small."""
    found, count = run(set(range(1, 201)), tmp_path)
    assert (len(found), count) == (KEPT, 199)


def test_the_work_decides_how_many_sizes_are_run():
    """Larger models get fewer sizes by counted work, the same on every machine; without a budget there are none."""
    assert 0 < len(affordable(ROWS, (FIRST,), 5e8, 10)) < 60
    tight = contract({"x": tensor("n", 4)}, Dim(name="n", min=1, max=200), controls=Controls(budget_flops=1e3))
    assert affordable(tight, (FIRST,), 5e8, 10) == ()


def test_sizes_that_eager_refused_are_left_out():
    """Artifacts are not asked about sizes that eager did not answer."""
    cases = affordable(ROWS, (FIRST,), None, 1)
    references = {cases[0].name: Reference.held(cases[0].name, (leaf(3),))}
    assert [case.name for case in answered(references, cases).cases] == [cases[0].name]


def test_a_separate_size_is_left_to_its_own_export():
    """The main export does not serve it, so what it would answer there says nothing."""
    rows = contract({"x": tensor("n", 4)}, Dim(name="n", min=1, max=9, separate=(1, 3)))
    swept = affordable(rows, (drawn_case(rows, "normal", 1, {"n": 5}),), 1.0, 1)

    assert sorted(case.sizes["n"] for case in swept) == [2, 4, 6, 7, 8, 9]
