"""Other ways to convert a program after its own conversion failed."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from torch import nn
from worker_samples import Recorder, contract, job, tensor

from export_gate.wall.contract import Controls, Dim, Target, Tolerance, make_target
from export_gate.wall.diagnosis import Answer, ConversionTrial, Inspection, Rung, RungName
from export_gate.wall.nodes import GuiltyNode
from export_gate.wall.observation import TargetObservation
from export_gate.wall.request import Observe
from export_gate.worker.model.factory import Factory
from export_gate.worker.study.allowance import Allowance
from export_gate.worker.study.engine import observe_model
from export_gate.worker.study.laboratory import Laboratory
from export_gate.worker.study.masks import Masks
from export_gate.worker.study.trial_conversions import Converter, converted_wrong
from export_gate.worker.targets.base import Context

MODEL = """
import torch
from torch import nn

class Heads(nn.Module):
    '''Attention without heads: torch's exporter takes queries of rank 4 alone (torch 2.13).'''

    def __init__(self):
        super().__init__()
        self.parts = nn.Linear(4, 12)

    def forward(self, x):
        return nn.functional.scaled_dot_product_attention(*self.parts(x).chunk(3, -1))

class Sorted(nn.Module):
    '''An operator that has no translation in any form.'''

    def forward(self, x):
        return x.kthvalue(2, -1)[0]

class Share(nn.Module):
    '''The exporter takes out a summand this small, so that zeros become NaN (torch 2.13).'''

    def forward(self, x):
        few = torch.relu(x - 1.5)
        return few / (few.sum(-1, keepdim=True) + 1e-9)

@torch.library.custom_op("export_gate_tests::fast_attention", mutates_args=())
def fast_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return nn.functional.scaled_dot_product_attention(query, key, value)

@fast_attention.register_fake
def _(query, key, value):
    return torch.empty_like(query)

class Config:
    _attn_implementation = "fast"

class Switched(nn.Module):
    '''With a kernel of its own, and plain attention on demand, as models of transformers have it.'''

    def __init__(self):
        super().__init__()
        self.parts, self.config = nn.Linear(4, 12), Config()

    def set_attn_implementation(self, name):
        self.config._attn_implementation = name

    def forward(self, x):
        query, key, value = self.parts(x).chunk(3, -1)
        if self.config._attn_implementation == "eager":
            return (query @ key.transpose(1, 2) / 2).softmax(-1) @ value
        return fast_attention(query, key, value)

def switched():
    torch.manual_seed(0)
    return Switched().eval()

def heads():
    torch.manual_seed(0)
    return Heads().eval()
"""
PROMISED = contract(
    {"x": tensor("batch", "seq", 4, range=(-2.0, 2.0))},
    Dim(name="batch", min=2, max=4),
    Dim(name="seq", min=3, max=6),
    controls=Controls(random=1, limit=10, affine_basis="never"),
)


def observed(folder: Path, factory: str, target: Target, *, is_diagnosed: bool = True) -> TargetObservation:
    """What is seen of the one target."""
    folder.mkdir(exist_ok=True)
    (folder / "converting_model.py").write_text(MODEL)
    recorder = Recorder(folder)
    promised = replace(PROMISED, factory=f"converting_model.py:{factory}", targets=(target,))
    observe_model(job(promised, folder), recorder.desk.channel, task=Observe(diagnosis=is_diagnosed))
    (found,) = recorder.observation().targets
    return found


@pytest.mark.slow(seconds=12)
def test_the_way_that_works_is_found_and_is_right_once_it_is_written(tmp_path: Path):
    """The failure stays until then."""
    failed = observed(tmp_path / "failed", "heads", make_target("onnx"))
    assert failed.failure is not None
    assert failed.failure.stage == "convert"
    assert failed.conversion_trials == (ConversionTrial(option="decompose", value=True, answer="agrees", inputs=8),)
    written = observed(tmp_path / "written", "heads", make_target("onnx", decompose=True))
    assert written.failure is None
    assert len(written.cases) >= 8
    assert all(output.max_abs_diff < 1e-5 for case in written.cases for output in case.outputs)


@pytest.mark.slow(seconds=10)
def test_a_wrong_file_is_converted_without_the_exporters_optimisations_first(tmp_path: Path):
    """The experiments that show the file to be wrong leave time for it."""
    wrong = observed(tmp_path, "Share", make_target("onnx"))
    assert any(output.nonfinite_mismatched for case in wrong.cases for output in case.outputs)
    (trial,) = wrong.conversion_trials
    assert (trial.option, trial.value, trial.answer) == ("optimize", False, "agrees")


@pytest.mark.nightly
def test_ways_that_do_not_help_are_listed_and_nobody_waits_for_them_unasked(tmp_path: Path):
    """Each was tried and refused; without experiments none is."""
    failed = observed(tmp_path / "failed", "Sorted", make_target("onnx", decompose=True))
    assert failed.conversion_trials == (
        ConversionTrial(option="optimize", value=False, answer="refused"),
        ConversionTrial(option="opset", value=23, answer="refused"),
    )
    assert observed(tmp_path / "off", "Sorted", make_target("onnx"), is_diagnosed=False).conversion_trials == ()


@pytest.mark.nightly
def test_plain_attention_is_tried_on_models_that_have_the_switch(tmp_path: Path):
    """A kernel of somebody's own has no translation in other forms either, so the switch is tried first."""
    failed = observed(tmp_path, "switched", make_target("onnx"))
    assert failed.conversion_trials == (
        ConversionTrial(option="attn_implementation", value="eager", answer="agrees", inputs=8),
    )


@pytest.mark.parametrize(
    ("answers", "is_wrong"),
    [
        ({"exported-program": "agrees", "file-unoptimised": "differs", "reference-evaluator": "differs"}, True),
        ({"exported-program": "agrees", "file-unoptimised": "failed"}, True),
        ({"exported-program": "agrees", "file-unoptimised": "differs", "reference-evaluator": "agrees"}, False),
        ({"exported-program": "differs", "file-unoptimised": "differs"}, False),
        ({"exported-program": "agrees", "file-unoptimised": "agrees", "file": "differs"}, False),
    ],
)
def test_other_ways_are_tried_where_the_file_itself_is_wrong(answers: dict[RungName, Answer], is_wrong: bool):
    """Another file changes nothing about the program, or about a runtime that computes a right file wrongly."""
    rungs = tuple(Rung(name=name, answer=answer) for name, answer in answers.items())
    assert converted_wrong([Inspection(output="y", case="c", rungs=rungs)]) == (("c",) if is_wrong else ())


@pytest.mark.slow
def test_a_trial_that_overruns_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is killed while it has a folder for its file."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    target = make_target("onnx")
    context = Context(
        contract=PROMISED,
        program=None,
        folder=tmp_path,
        input_names=("x",),
        outputs=(),
        names={},
        metadata={},
        has_basis=False,
    )
    laboratory = Laboratory(
        factory=Factory(make=nn.Identity, reference="", kwargs={}, base=tmp_path), parameters=(), names={}
    )
    converter = Converter(
        context=context,
        target=target,
        parameters=(),
        cases=(),
        references={},
        tolerance=lambda _: Tolerance(),
        masks=Masks(contract=PROMISED, laboratory=laboratory, axes={}),
        factory=lambda: time.sleep(30) or nn.Identity(),
        separate={},
        allowance=Allowance(),
        stopped_at=GuiltyNode(name="n", operator="own.attention.default"),
    )
    assert converter.trials(0.1, with_switches=True) == ()
    assert list(tmp_path.iterdir()) == []
