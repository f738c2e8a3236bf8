"""Calls at and beyond the contract's edge, with eager's answers, put to artifacts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from worker_samples import contract, subject, tensor

from export_gate.contract import Dim
from export_gate.observation import CaseResult, Comparison, Probe, Structure
from export_gate.worker.probing import Probing, ask_eager, is_equal
from export_gate.worker.reference import Runner, module_runner
from export_gate.worker.targets.base import Loaded

BATCH = Dim(name="batch", min=2, max=4)


class Checked(nn.Module):
    """Takes up to four rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, 3] to float32[batch]."""
        if len(x) > 4:
            raise ValueError("at most 4 rows")
        return x.sum(1)


def probing() -> Probing:
    """Eager's answers for Checked."""
    return ask_eager(subject(Checked(), contract({"x": tensor("batch", 3, range=(0.0, 1.0))}, BATCH)), {"output": "y"})


def runner(function: Callable[[torch.Tensor], Any]) -> Runner:
    """An artifact."""
    return module_runner(function, {"output": "y"})


def answers(probes: tuple[Probe, ...]) -> dict[tuple[str, str, str], str]:
    """Kind, what was tried and whether checks were on -> the answer."""
    return {(probe.kind, probe.tried, probe.checks): probe.answer for probe in probes}


def test_an_artifact_that_checks_nothing():
    """Beyond the range: the same where eager takes it, and told where eager refuses it."""
    found = answers(probing().probe(Loaded(run=runner(lambda x: x.sum(1)))))
    assert found[("at-min", "2", "default")] == "accepted-equal"
    assert found[("at-max", "4", "default")] == "accepted-equal"
    assert found[("below-min", "1", "default")] == "accepted-equal"
    assert found[("above-max", "5", "default")] == "accepted-eager-refuses"


def test_an_artifact_that_computes_something_else_outside():
    """Beyond the range an answer other than eager's is told with how much it differs."""
    found = probing().probe(Loaded(run=runner(lambda x: x.sum(1) + (len(x) == 1))))
    (probe,) = [probe for probe in found if probe.kind == "below-min"]
    assert probe.answer == "accepted-differs"
    assert probe.message.startswith("output 'y': max |P-M| 1.0e+00 where max |M| is ")


def test_an_artifact_with_a_switch_is_asked_twice():
    """An artifact with run-time checks answers as it ships and with them on."""

    def strict(x: torch.Tensor) -> torch.Tensor:
        if not 2 <= len(x) < 4:
            raise RuntimeError("dim value is too large")
        return x.sum(1)

    found = answers(probing().probe(Loaded(run=runner(lambda x: x.sum(1)), run_checked=runner(strict))))
    assert found[("at-max", "4", "default")] == "accepted-equal"
    assert found[("at-max", "4", "runtime-checks")] == "refused"
    assert found[("at-min", "2", "runtime-checks")] == "accepted-equal"


def test_a_separate_export_is_not_probed():
    """An export for one size has no edge to probe."""
    assert Probing().probe(Loaded(run=runner(lambda x: x))) == ()


def comparison(**fields: Any) -> Comparison:
    """Equal outputs but for what is given."""
    same: dict[str, Any] = {
        "output": "y",
        "expected_dtype": "float32",
        "actual_dtype": "float32",
        "expected_shape": (2,),
        "actual_shape": (2,),
        "elements": 2,
        "expected_max_abs": 1.0,
    }
    return Comparison(**{**same, **fields})


@pytest.mark.parametrize(
    ("fields", "equal"),
    [
        ({}, True),
        ({"max_abs_diff": 0.0101}, True),
        ({"max_abs_diff": 0.0102}, False),
        ({"max_abs_diff": float("nan")}, False),
        ({"nonfinite_mismatched": 1}, False),
        ({"actual_dtype": "float64"}, False),
        ({"actual_shape": (3,)}, False),
        ({"expected_dtype": "int64", "actual_dtype": "int64", "max_abs_diff": 1.0, "expected_max_abs": 1e9}, False),
        ({"expected_dtype": "int64", "actual_dtype": "int64"}, True),
        ({"expected_dtype": "bool", "actual_dtype": "bool", "max_abs_diff": 1.0}, False),
    ],
)
def test_equal_is_up_to_far_more_than_rounding(fields: dict[str, Any], equal: bool):
    """1e-4 + 1e-2 of the largest value for floats (half precision passes), nothing for integers, masks and types."""
    assert is_equal(CaseResult(case="c", outputs=(comparison(**fields),))) is equal


def test_another_structure_is_not_equal():
    """Other leaves are another answer."""
    assert not is_equal(CaseResult(case="c", structure=Structure(expected=("a",), actual=("b",))))
