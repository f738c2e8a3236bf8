"""Healthy models under default tolerances: nobody would keep a gate with false alarms."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from export_gate.config import load_config
from export_gate.outcome.judging import Outcome
from export_gate.pipeline import run
from export_gate.run.order import Order
from export_gate.run.plan import Selection
from export_gate.wall.observation import ModelObservation, TargetObservation

ZOO = Path(__file__).parents[1] / "models" / "zoo" / "export-gate.yml"
CONTRACTS = load_config(ZOO).models
FILES = tuple(dict.fromkeys(contract.factory.partition(":")[0] for contract in CONTRACTS))
DAILY = "arguments.py"
TARGETS = ("exported-program", "pt2", "onnx")
FEWEST = 25
"""Control inputs of the plainest model here; fewer would make its green a weak one."""


@pytest.fixture(
    scope="module",
    params=[DAILY, *(pytest.param(file, marks=pytest.mark.nightly) for file in FILES if file != DAILY)],
)
def outcome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """One run over the models of one file."""
    models = tuple(c.name for c in CONTRACTS if c.factory.startswith(f"{request.param}:"))
    folder = tmp_path_factory.mktemp("zoo") / ".export-gate"
    order = Order(
        config=ZOO,
        selection=Selection(models=models),
        python=sys.executable,
        parallel=2,
        folder=folder,
        environment=os.environ,
    )
    return run(order, lambda *_: lambda _: None)


def compared(target: TargetObservation) -> set[str]:
    """Control inputs at which outputs were compared."""
    return {case.case for case in target.cases if case.outputs}


def promised(model: ModelObservation, kind: str, separate: dict[str, int]) -> set[str]:
    """Control inputs that a target of this kind and of the export of these sizes has to answer."""
    assert model.controls is not None
    own = {(dim.name, size) for c in CONTRACTS if c.name == model.model for dim in c.dims for size in dim.separate}
    chosen = [(c.name, {pair for pair in c.sizes.items() if pair in own}) for c in model.controls.run_on(kind)]
    return {name for name, pairs in chosen if pairs == set(separate.items())}


@pytest.mark.slow(seconds=20)
def test_healthy_models_are_verified(outcome: Outcome):
    """Every healthy model is verified, and without a warning that ONNX does not deserve.

    It enforces no ranges, and `channels` takes differences of numbers that are nearly equal.
    """
    loud = [f for f in outcome.judgement.findings if f.severity != "note"]
    expected = [("guard-missing", "onnx", "warning"), ("ill-conditioned", "onnx", "warning")]
    assert [f.message for f in loud if (f.rule, f.target, f.severity) not in expected] == []
    assert outcome.judgement.verdict == "verified"

    for model in outcome.results.run.models:
        assert model.controls is not None
        assert (len(model.controls.inputs) >= FEWEST, model.controls.left_out) == (True, 0), model.model
        exports = {str(target.separate): target.separate for target in model.targets}
        assert sorted((t.target, str(t.separate)) for t in model.targets) == sorted(
            (name, separate) for name in TARGETS for separate in exports
        )
        for target in model.targets:
            # A sweep adds the sizes at which it saw any difference at all.
            assert promised(model, target.target, target.separate) <= compared(target), (model.model, target.target)
