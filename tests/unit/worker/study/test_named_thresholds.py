"""Inputs at a program's constants, named on the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from worker_samples import Recorder, contract, job, tensor

from export_gate.wall.contract import Dim, make_target
from export_gate.wall.observation import ModelObservation
from export_gate.wall.request import Observe
from export_gate.worker.study.engine import observe_model

MODEL = """
import torch

class Clipped(torch.nn.Module):
    def forward(self, x):
        return x.clamp(max=0.25)
"""

ABOVE = """
import torch

class Above(torch.nn.Module):
    def forward(self, x):
        return (x > 0.3).float()
"""


def observe(folder: Path, *patterns: str) -> ModelObservation:
    """What the worker sees of the model above at these control inputs."""
    (folder / "clipped.py").write_text(MODEL)
    promised = contract({"x": tensor("batch", 3, range=(-1.0, 1.0))}, Dim(name="batch", min=2, max=6))
    recorder = Recorder(folder)
    observe_model(
        job(replace(promised, factory="clipped.py:Clipped"), folder, *patterns),
        recorder.desk.channel,
        task=Observe(diagnosis=False),
    )
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


@pytest.mark.slow
def test_a_wrong_comparison_in_a_file_that_was_handed_in_shows_at_its_constant(tmp_path: Path):
    """Nothing is exported for such a file, so that what eager compares with is read from eager."""
    (tmp_path / "above.py").write_text(ABOVE)
    graph = helper.make_graph(
        [
            helper.make_node("GreaterOrEqual", ["x", "bound"], ["is_above"]),  # eager: >
            helper.make_node("Cast", ["is_above"], ["output"], to=TensorProto.FLOAT),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(np.float32(0.3), "bound")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, str(tmp_path / "above.onnx"))
    promised = contract({"x": tensor("batch", 3, range=(-1.0, 1.0))}, Dim(name="batch", min=2, max=6))
    promised = replace(promised, factory="above.py:Above", targets=(make_target("onnx", artifact="above.onnx"),))
    recorder = Recorder(tmp_path)
    observe_model(job(promised, tmp_path), recorder.desk.channel, task=Observe(diagnosis=False))

    (seen,) = recorder.observation().targets
    wrong = {case.case.split("@")[0] for case in seen.cases for output in case.outputs if output.max_abs_diff}
    assert wrong
    assert all(name.startswith("threshold-rows") for name in wrong)
