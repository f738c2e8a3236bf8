"""Models that are wrong where a careless check does not look, and sound models that it would refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness.gate import gate

MODELS = '''\
from collections import deque
from dataclasses import dataclass

import numpy as np
import torch


def other(x):
    """What the exported program computes is not what eager does."""
    return x * 2 if torch.compiler.is_exporting() else x * 3


@dataclass
class Record:
    values: torch.Tensor


torch.export.register_dataclass(Record, serialized_type_name="Record")


class Model(torch.nn.Module):
    def __init__(self, forward):
        super().__init__()
        self.function = forward
        self.table = np.broadcast_to(np.float32(1), (3,))  # cannot be written

    def forward(self, x):
        return self.function(x)


def make(forward):
    return lambda: Model(forward).eval()


in_a_record = make(lambda x: (x + 1, Record(other(x))))
in_a_deque = make(lambda x: deque([other(x)]))
in_words = make(lambda x: (x, "exported" if torch.compiler.is_exporting() else "eager"))
by_chance = make(lambda x: torch.nn.functional.dropout(x, 0.5, training=True))
all_nan = make(lambda x: x * float("nan") if torch.compiler.is_exporting() else x * 2)
record = make(lambda x: Record(x * 3))
branch = make(lambda x: torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y * 2, (x,)))
turned = make(lambda x: x * 2 + x.sum())
instance = Model(lambda x: x)
'''
WRONG = {
    "in_a_record": ("value-mismatch", "exported-program: {}, pt2: {}"),
    "in_a_deque": ("value-mismatch", "exported-program: {}"),
    "in_words": ("structure-mismatch", "exported-program: {}"),
    "by_chance": ("nondeterministic-model", "exported-program: {}"),
    "all_nan": ("nothing-compared", "onnx: {}"),
}
"""Factory -> the rule that finds it, and its targets."""
SOUND = ("record", "branch", "turned")


def entry(name: str, targets: str) -> str:
    """A model of the config."""
    dtype = "complex64" if name == "turned" else "float32, range: [-1, 1]"
    outputs = ", outputs: {y: {nonfinite: allow}}" if name == "all_nan" else ""
    return (
        f"  {name}: {{factory: 'models.py:{name}', inputs: {{x: {{dtype: {dtype}, shape: [3, 4]}}}}, "
        f"controls: {{limit: 6}}, targets: {{{targets}}}{outputs}}}\n"
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All of them in one run."""
    folder = tmp_path_factory.mktemp("uncompared")
    (folder / "models.py").write_text(MODELS)
    models = [entry(name, targets) for name, (_, targets) in WRONG.items()]
    models += [entry(name, "exported-program: {}, pt2: {}") for name in SOUND]
    models.append(entry("instance", "exported-program: {}"))
    (folder / "export-gate.yml").write_text("version: 1\nmodels:\n" + "".join(models))
    gate(folder, "run", "-q", "--no-diagnosis")
    found: dict[str, Any] = json.loads((folder / ".export-gate" / "results.json").read_text())
    return found


def rules(results: dict[str, Any], model: str) -> set[str]:
    """Rules that a model violates."""
    return {f["rule"] for f in results["findings"] if f["model"] == model and f["severity"] == "violation"}


@pytest.mark.slow(seconds=15)
@pytest.mark.parametrize("name", WRONG)
def test_what_differs_is_found(results: dict[str, Any], name: str):
    """Differences are found in containers, in text, behind a read-only array, and where everything is NaN."""
    assert WRONG[name][0] in rules(results, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOUND)
def test_what_is_sound_is_verified(results: dict[str, Any], name: str):
    """A record as the only output, `torch.cond` and complex input are verified."""
    assert rules(results, name) == set()


@pytest.mark.slow
def test_a_module_is_no_factory(results: dict[str, Any]):
    """A module is not called without arguments to see what happens."""
    (model,) = [model for model in results["run"]["models"] if model["model"] == "instance"]
    assert model["problem"]["message"] == (
        "factory 'models.py:instance' is an nn.Module itself (Model), expected a function or class that makes one"
    )
