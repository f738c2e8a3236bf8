"""An artifact that changes between conversion and first run is caught; a wrapper that changes nothing is not."""

from __future__ import annotations

import os
import sys

import pytest

from export_gate.outcome.judging import Outcome
from export_gate.pipeline import run
from export_gate.rules.base import Finding
from export_gate.run.order import Order

CONFIG = """\
version: 1
models:
"""

ENTRY = """\
  {name}:
    factory: tamper_{tamper}.py:make_model
    kwargs: {{shift: {shift}}}
    dims: {{batch: {{min: 1, max: 4}}}}
    inputs: {{x: {{dtype: float32, shape: [batch, 3], range: [-1, 1]}}}}
    outputs: {{hidden: {{dtype: float32}}, logits: {{dtype: float32}}}}
    targets: {{exported-program: {{}}, pt2: {{}}, onnx: {{}}}}
"""

MODEL = """\
import torch
from torch import nn

is_wrapped = False

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 5), nn.Linear(5, 2)

    def forward(self, x):
        hidden = torch.tanh(self.body(x))
        return hidden, self.head(hidden)

def make_model(shift):
    global is_wrapped
    if not is_wrapped:
        tamper(shift)
    is_wrapped = True
    torch.manual_seed(7)
    return Head().eval()
"""

ONNX = """
def tamper(shift):
    import onnx, onnxruntime
    from onnx import numpy_helper

    real = onnxruntime.InferenceSession

    class Session(real):
        def __init__(self, path, *args, **kwargs):
            model = onnx.load(path)
            (bias,) = [tensor for tensor in model.graph.initializer if list(tensor.dims) == [2]]
            values = numpy_helper.to_array(bias).copy()
            values[1] += shift
            bias.CopyFrom(numpy_helper.from_array(values, bias.name))
            onnx.save(model, path)
            super().__init__(path, *args, **kwargs)

    onnxruntime.InferenceSession = Session
"""

PT2 = """
def tamper(shift):
    real = torch.export.load

    def load(path, **kwargs):
        program = real(path, **kwargs)
        with torch.no_grad():
            program.state_dict["head.bias"][1] += shift
        return program

    torch.export.load = load
"""

SHIFT = 1e-3
LARGEST_LOGIT = 1.5
"""Above every |logit| of this model on [-1, 1]."""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """One run over a project whose factories install the wrappers, with and without a change."""
    folder = tmp_path_factory.mktemp("tampered")
    entries = [
        ENTRY.format(name=f"{tamper}-{name}", tamper=tamper, shift=shift)
        for tamper in ("onnx", "pt2")
        for name, shift in (("tampered", SHIFT), ("wrapped", 0.0))
    ]
    (folder / "export-gate.yml").write_text(CONFIG + "".join(entries), encoding="utf-8")
    (folder / "tamper_onnx.py").write_text(MODEL + ONNX, encoding="utf-8")
    (folder / "tamper_pt2.py").write_text(MODEL + PT2, encoding="utf-8")
    order = Order(
        config=folder / "export-gate.yml",
        python=sys.executable,
        parallel=2,
        folder=folder / ".export-gate",
        environment=os.environ,
        diagnosis=False,
    )
    return run(order, lambda *_: lambda _: None)


def violations(outcome: Outcome, model: str) -> list[Finding]:
    """What turns a model red."""
    return [f for f in outcome.judgement.findings if f.severity == "violation" and f.model == model]


def control_inputs(outcome: Outcome, model: str, target: str) -> set[str]:
    """Names of the control inputs that a target is run on."""
    (seen,) = [observed for observed in outcome.results.run.models if observed.model == model]
    assert seen.controls is not None
    return {control.name for control in seen.controls.run_on(target)}


@pytest.mark.slow
@pytest.mark.parametrize(("target", "tolerance"), [("onnx", 1e-5), ("pt2", 1e-6)])
def test_a_tampered_artifact_is_caught(outcome: Outcome, target: str, tolerance: float):
    """One weight off by 1e-3 fails its target alone, and the message has output, case, measured and allowed."""
    model = f"{target}-tampered"
    *further, found = violations(outcome, model)
    # The wrapper of ONNX Runtime changes the file itself, that of torch what was read from it.
    assert [finding.rule for finding in further] == (["load-failed"] if target == "onnx" else [])
    inputs = control_inputs(outcome, model, target)

    assert (found.rule, found.target, found.output) == ("value-mismatch", target, "logits")
    assert found.case in inputs
    assert found.occurrences == len(inputs)
    # The bias is added last, so the logit is off by the shift, within a few roundings at magnitude 1 (6e-8 each).
    assert found.measured == pytest.approx(SHIFT, abs=1e-6)
    assert found.allowed is not None
    assert tolerance < found.allowed < tolerance * (1 + LARGEST_LOGIT)
    assert found.message.startswith(
        f"{model}, {target}, output 'logits', case {found.case}: the largest difference is 1.0e-03 "
    )
    assert outcome.judgement.verdict == "violations"


@pytest.mark.slow
@pytest.mark.parametrize("target", ["onnx", "pt2"])
def test_a_wrapper_that_changes_nothing_stays_green(outcome: Outcome, target: str):
    """Loading, saving and wrapping alone are not violations."""
    assert violations(outcome, f"{target}-wrapped") == []
    assert len(control_inputs(outcome, f"{target}-wrapped", target)) > 0
