"""Layers that have no weights before their first call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from worker_samples import Recorder, contract, job, tensor

from export_gate.rules.judge import judge
from export_gate.wall.contract import Dim, make_target
from export_gate.wall.observation import RunObservation
from export_gate.worker.study.engine import observe_model

MODEL = """\
from torch import nn

def make():
    return nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2)).eval()
"""


@pytest.mark.slow
def test_layers_that_nobody_ran_are_named(tmp_path: Path):
    """They are the factory's to run, and neither the contract's fault nor that of eager."""
    (tmp_path / "lazy.py").write_text(MODEL)
    plain = contract({"x": tensor("batch", 3, range=(-1.0, 1.0))}, Dim(name="batch", min=2, max=6))
    promised = replace(plain, factory="lazy.py:make", targets=(make_target("exported-program"),))
    recorder = Recorder(tmp_path)
    observe_model(job(promised, tmp_path), recorder.desk.channel)

    (found,) = judge((promised,), RunObservation(models=(recorder.observation(),))).findings

    assert found.message.endswith(": lazy layers that nobody has run have no weights yet: 0, 2")
    assert found.hint.startswith("Run the model once on an example in the factory, before it returns it")
