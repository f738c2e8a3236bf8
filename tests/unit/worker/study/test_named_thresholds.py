"""Inputs at a program's constants, named on the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from worker_samples import Recorder, contract, job, tensor

from export_gate.wall.contract import Dim
from export_gate.wall.observation import ModelObservation
from export_gate.worker.study.engine import observe_model

MODEL = """
import torch

class Clipped(torch.nn.Module):
    def forward(self, x):
        return x.clamp(max=0.25)
"""


def observe(folder: Path, *patterns: str) -> ModelObservation:
    """What the worker sees of the model above at these control inputs."""
    (folder / "clipped.py").write_text(MODEL)
    promised = contract({"x": tensor("batch", 3, range=(-1.0, 1.0))}, Dim(name="batch", min=2, max=6))
    recorder = Recorder(folder)
    observe_model(job(replace(promised, factory="clipped.py:Clipped"), folder, *patterns), recorder.desk.channel)
    return recorder.observation()


@pytest.mark.slow
def test_an_input_at_a_constant_is_reproduced_by_its_name(tmp_path: Path):
    """Its name alone is enough to run it, together with the plainest input, which the export needs."""
    name = "threshold-rows-2@batch=6"
    (target,) = observe(tmp_path, name).targets
    assert [case.case for case in target.cases] == ["normal-1@batch=4", name]


@pytest.mark.slow
def test_other_names_do_not_bring_it(tmp_path: Path):
    """A run that is narrowed to another input runs only that one."""
    (target,) = observe(tmp_path, "zeros-1@batch=4").targets
    assert [case.case for case in target.cases] == ["zeros-1@batch=4"]
