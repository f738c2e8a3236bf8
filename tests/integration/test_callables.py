"""References that torch.export does not accept, with files that another job made: nothing is exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from harness.gate import Done, gate
from onnx import TensorProto, helper, numpy_helper

MODELS = """
import functools

import numpy as np
import torch
from torch import nn

FACTORS = [2.0, -1.0]


class Scaled(nn.Module):
    def __init__(self, counts: bool = False, drops: bool = False):
        super().__init__()
        self.factors, self.counts = nn.Parameter(torch.tensor(FACTORS)), counts
        self.drop = nn.Dropout(0.5 if drops else 0.0)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.counts:
            self.calls += 1
        return self.drop(torch.tanh(x) * self.factors) + self.calls

    def encode(self, x):
        return self.forward(x)


def make_script():
    return torch.jit.script(Scaled().eval())


def make_trace():
    return torch.jit.trace(Scaled().eval(), torch.ones(3, 2))


def make_loaded():
    torch.jit.save(make_script(), "scaled.ts")
    return torch.jit.load("scaled.ts")


def make_script_function():
    @torch.jit.script
    def scaled(x):
        return torch.tanh(x) * torch.tensor([2.0, -1.0])

    return scaled


def make_function():
    return lambda x: torch.from_numpy(np.tanh(x.numpy()) * np.float32(FACTORS))


def make_numpy():
    return lambda x: np.tanh(x.numpy()) * np.float32(FACTORS)


def make_keyword():
    return lambda *, x: torch.tanh(x) * torch.tensor(FACTORS)


def make_partial():
    return functools.partial(_scaled, Scaled().eval())


def _scaled(net, x):
    return net(x)


def make_method():
    return Scaled().eval().encode


def make_object():
    class Pipeline:
        def __init__(self):
            self.net = Scaled().eval()

        def __call__(self, x):
            return self.net(x)

    return Pipeline()


def make_script_in_train_mode():
    return torch.jit.script(Scaled(drops=True))


def make_function_in_train_mode():
    net = Scaled(drops=True)
    return lambda x: net(x)


def make_script_that_counts():
    return torch.jit.script(Scaled(counts=True).eval())


def make_function_that_counts():
    calls = 0

    def scaled(x):
        nonlocal calls
        calls += 1
        return torch.tanh(x) * torch.tensor(FACTORS) + calls

    return scaled


def make_function_that_writes():
    def scaled(x):
        found = torch.tanh(x) * torch.tensor(FACTORS)
        x.zero_()
        return found

    return scaled


def make_function_that_draws():
    return lambda x: torch.tanh(x) * torch.tensor(FACTORS) + 1e-3 * torch.rand(())


def make_wrong():
    return lambda x: torch.tanh(x) * torch.tensor([2.0, -1.001])
"""
HEALTHY = (
    "script",
    "trace",
    "loaded",
    "script_function",
    "function",
    "numpy",
    "keyword",
    "partial",
    "method",
    "object",
)
FAULTS = {
    "script_in_train_mode": "train-mode",
    "function_in_train_mode": "train-mode",
    "script_that_counts": "state-carried",
    "function_that_counts": "state-carried",
    "function_that_writes": "input-mutated",
    "function_that_draws": "nondeterministic-model",
    "wrong": "value-mismatch",
}
ENTRY = """\
  NAME:
    factory: refs:make_NAME
    dims: {batch: {min: 2, max: 5}}
    inputs: {x: {dtype: float32, shape: [batch, 2], range: [-2, 2]}}
    outputs: {y: {}}
    targets: TARGETS
"""
GIVEN = "{onnx: {artifact: dist/scaled.onnx}, second: {kind: onnx, artifact: dist/scaled.onnx, optimization: disable}}"


def entry(name: str, targets: str = GIVEN) -> str:
    """One model of the config."""
    return ENTRY.replace("NAME", name).replace("TARGETS", targets)


def write_project(folder: Path, entries: list[str]) -> None:
    """References and a file that computes what the healthy ones do."""
    (folder / "refs.py").write_text(MODELS, encoding="utf-8")
    head = "version: 1\ndefaults: {controls: {limit: 6, affine-basis: never}}\nmodels:\n"
    (folder / "export-gate.yml").write_text(head + "".join(entries), encoding="utf-8")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 2]) for name in "xy")
    nodes = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Mul", ["t", "factors"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(np.float32([2, -1]), "factors")])
    (folder / "dist").mkdir()
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "dist" / "scaled.onnx"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All references in one project."""
    folder = tmp_path_factory.mktemp("callables")
    write_project(folder, [entry(name) for name in (*HEALTHY, *FAULTS)])
    return folder


@pytest.fixture(scope="module")
def done(project: Path) -> Done:
    """One run."""
    return gate(project, "run", "-q", "--no-diagnosis")


@pytest.fixture(scope="module")
def results(project: Path, done: Done) -> dict[str, Any]:
    """What it recorded."""
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    found: dict[str, Any] = json.loads((project / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    return found


def violations(results: dict[str, Any], model: str) -> set[str]:
    """The rules that a model breaks."""
    return {f["rule"] for f in results["findings"] if f["model"] == model and f["severity"] == "violation"}


@pytest.mark.slow(seconds=14)
@pytest.mark.parametrize("name", HEALTHY)
def test_any_callable_verifies_a_file(results: dict[str, Any], name: str):
    """TorchScript (compiled, traced or loaded), functions, partials, methods and objects work; nothing is exported."""
    assert violations(results, name) == set()
    (model,) = [model for model in results["run"]["models"] if model["model"] == name]
    assert all(len(target["cases"]) >= 6 for target in model["targets"])
    assert [target["target"] for target in model["targets"]] == ["onnx", "second"]
    assert model["dims"] == []
    assert model["hygiene"]["repeats"] > 1


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rule"), FAULTS.items())
def test_the_checks_of_a_model_apply(results: dict[str, Any], name: str, rule: str):
    """Train mode, state, changed inputs and randomness are detected in TorchScript and in what a function reads."""
    assert rule in violations(results, name)


@pytest.mark.slow
def test_torchscript_is_refused_where_it_would_be_exported(tmp_path: Path):
    """One target that must be exported is enough for the refusal."""
    targets = "{onnx: {artifact: dist/scaled.onnx}, pt2: {}}"
    write_project(tmp_path, [entry("script", targets), entry("function", targets)])
    done = gate(tmp_path, "run", "-q")
    found = json.loads((tmp_path / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    assert done.returncode == 2
    assert violations(found, "script") == {"torchscript-model"}
    told = " ".join(done.stdout.split())
    assert "any callable will do only where every target has an `artifact`" in told
    assert gate(tmp_path, "run", "-q", "--target", "onnx").returncode == 0
