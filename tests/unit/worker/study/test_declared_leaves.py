"""Outputs that are declared to be None, or left out of the comparison."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from worker_samples import Recorder, contract, job, tensor

from export_gate.rules.judge import judge
from export_gate.wall.contract import (
    Dim,
    ModelContract,
    Output,
    Target,
    make_target,
)
from export_gate.wall.observation import ModelObservation, RunObservation
from export_gate.wall.request import Observe
from export_gate.worker.study.engine import observe_model

pytestmark = pytest.mark.slow

MODEL = '''
import torch
from torch import nn

class Detector(nn.Module):
    """Its `aux` is rounded otherwise while it is exported, so that every program differs from eager there."""

    def __init__(self, loss=None):
        super().__init__()
        self.loss = loss

    def forward(self, x):
        aux = x + 1 if torch.compiler.is_exporting() else x
        return {"loss": self.loss and x.sum(), "logits": 2 * x, "aux": aux}

def make(loss=None):
    return Detector(loss).eval()
'''
BATCH = Dim(name="batch", min=2, max=4)
NONE, LOGITS = Output(name="loss", leaf="none"), Output(name="logits")


def observe(
    folder: Path, aux: Output, *targets: Target, loss: bool | None = None
) -> tuple[ModelContract, ModelObservation]:
    """What the worker sees of the model above, with that declaration of `aux`."""
    (folder / "leaves.py").write_text(MODEL)
    plain = contract({"x": tensor("batch", 3, range=(-1.0, 1.0))}, BATCH, outputs=(NONE, LOGITS, aux))
    promised = replace(
        plain, factory="leaves.py:make", kwargs={"loss": loss}, targets=targets or (make_target("exported-program"),)
    )
    recorder = Recorder(folder)
    observe_model(job(promised, folder), recorder.desk.channel, task=Observe(diagnosis=False))
    return promised, recorder.observation()


def found_rules(promised: ModelContract, seen: ModelObservation) -> set[str]:
    """Rules that report a violation."""
    judgement = judge((promised,), RunObservation(models=(seen,)))
    return {finding.rule for finding in judgement.findings if finding.severity == "violation"}


@pytest.mark.slow
def test_an_ignored_output_is_not_compared(tmp_path: Path):
    """It may differ on every target, also at the probes and in the sweep; a note on each target says so."""
    promised, seen = observe(
        tmp_path, Output(name="aux", leaf="ignore"), make_target("exported-program"), make_target("onnx")
    )
    assert found_rules(promised, seen) == set()
    for target in seen.targets:
        assert "output 'aux' is not compared: the contract says `ignore`" in target.notes
        assert {leaf.output for case in target.cases for leaf in case.outputs} == {"logits"}
    assert [leaf.name for leaf in seen.outputs] == ["loss", "logits", "aux"]


@pytest.mark.slow
def test_without_it_the_difference_is_a_violation(tmp_path: Path):
    """The same model is red if the output is declared like any other."""
    promised, seen = observe(tmp_path, Output(name="aux"))
    assert "value-mismatch" in found_rules(promised, seen)


@pytest.mark.slow
def test_an_output_declared_none_is_none_everywhere(tmp_path: Path):
    """A tensor at that place breaks the contract."""
    _, seen = observe(tmp_path, Output(name="aux", leaf="ignore"), loss=True)
    assert {promise.message for promise in seen.broken} == {"output 'loss' is float32, declared none"}


@pytest.mark.slow(seconds=20)
def test_a_compiled_package_may_lack_what_is_none(tmp_path: Path):
    """AOTInductor compiles a model with such an output, and the other outputs are compared."""
    promised, seen = observe(tmp_path, Output(name="aux", leaf="ignore"), make_target("aoti"))
    assert seen.targets[0].failure is None
    assert found_rules(promised, seen) == set()
    assert {leaf.output for case in seen.targets[0].cases for leaf in case.outputs} == {"logits"}
