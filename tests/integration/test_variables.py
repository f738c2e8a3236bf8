"""Environment variables of the project's code: passed on, set, or missed with a warning that names them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness.gate import gate, surroundings

pytestmark = pytest.mark.slow

MODELS = """
import os
import torch
import libread

class Scale(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((scale,), 1.0))

    def forward(self, x):
        return x * self.weight.sum()

def by_get(name="CKPT"):
    return Scale(int(os.environ.get(name, "1"))).eval()

def by_item(name="CKPT"):
    try:
        return Scale(int(os.environ[name])).eval()
    except KeyError:
        return Scale(1).eval()

def by_getenv(name="CKPT"):
    return Scale(int(os.getenv(name) or 1)).eval()

def by_package(name="CKPT"):
    return Scale(int(libread.setting(name))).eval()

def of_the_system():
    libread.setting("COLUMNS"), libread.setting("https_proxy"), libread.setting("HF_TOKEN")
    return Scale(1).eval()

def of_nobody():
    os.environ["WRITTEN"] = "2"
    dict(os.environ), os.environ.copy(), list(os.environ)
    os.environ.get("NOWHERE_SET")
    return Scale(1).eval()

def fails(name="CKPT"):
    return Scale(int(os.environ[name])).eval()
"""
LIBRARY = """
import os

AT_IMPORT = os.environ.get("SEEN_AT_IMPORT")

def setting(name):
    return os.environ.get(name, "1")
"""
CONFIG = """
version: 1
pythonpath: [., vendor/site-packages]
env: [SHARED]
defaults:
  targets: {exported-program: {}}
  controls: {limit: 2}
models:
"""
CASES = {
    "get": ("by_get", "", 1, ("CKPT",)),
    "item": ("by_item", "", 1, ("CKPT",)),
    "getenv": ("by_getenv", "", 1, ("CKPT",)),
    "package": ("by_package", "", 1, ("CKPT",)),
    "passed": ("by_get", "env: [CKPT]", 3, ()),
    "set": ("by_item", 'env: {CKPT: "4"}', 4, ()),
    "shared": ("by_get", "kwargs: {name: SHARED}", 5, ()),
    "shared-own": ("by_get", 'kwargs: {name: SHARED}, env: {SHARED: "6"}', 6, ()),
    "unset": ("by_get", "kwargs: {name: UNSET}, env: [UNSET]", 1, ("UNSET",)),
    "credential": ("by_get", "kwargs: {name: HF_TOKEN}", 1, ("HF_TOKEN",)),
    "system": ("of_the_system", "", 1, ()),
    "nobody": ("of_nobody", "", 1, ()),
}
"""Model -> factory, further keys, its number of parameters, the variables that it misses."""
ENVIRONMENT = {
    "CKPT": "3", "SHARED": "5", "SEEN_AT_IMPORT": "1", "WRITTEN": "1", "COLUMNS": "80", "https_proxy": "http://proxy",
    "HF_TOKEN": "7", "GITHUB_SHA": "0", "EDITOR": "vi", "WANDB_MODE": "offline",
}  # fmt: skip


def _entry(name: str, factory: str, more: str) -> str:
    keys = f", {more}" if more else ""
    inputs = "inputs: {x: {dtype: float32, shape: [2], range: [-1, 1]}}"
    return f'  {name}: {{factory: "models:{factory}", {inputs}{keys}}}\n'


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All models in one run."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "vendor" / "site-packages").mkdir(parents=True)
    (folder / "vendor" / "site-packages" / "libread.py").write_text(LIBRARY, encoding="utf-8")
    (folder / "models.py").write_text(MODELS, encoding="utf-8")
    models = "".join(_entry(name, factory, more) for name, (factory, more, _, _) in CASES.items())
    (folder / "export-gate.yml").write_text(CONFIG + models + _entry("fails", "fails", ""), encoding="utf-8")
    done = gate(folder, "run", "-q", environment=surroundings(ENVIRONMENT))
    assert done.returncode == 2, done.stdout + done.stderr
    found: dict[str, Any] = json.loads((folder / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    return found


def _model(results: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [model for model in results["run"]["models"] if model["model"] == name]
    return dict(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_variable_reaches_the_factory_or_is_named(results: dict[str, Any], name: str):
    """A variable that the caller has set and the factory does not get is a warning; the model itself is verified."""
    _, _, parameters, missed = CASES[name]
    model = _model(results, name)
    assert model["parameters"] == parameters
    assert tuple(model["variables_missed"]) == missed
    found = [each for each in results["findings"] if each["model"] == name and each["severity"] != "note"]
    assert [(each["rule"], each["severity"]) for each in found] == [("variable-not-passed", "warning")] * len(missed)
    assert all(variable in each["message"] for each in found for variable in missed)


def test_a_factory_that_fails_for_want_of_a_variable_is_told_so(results: dict[str, Any]):
    """The warning is shown next to the problem."""
    assert "KeyError" in _model(results, "fails")["problem"]["message"]
    (found,) = [each for each in results["findings"] if each["model"] == "fails"]
    assert (found["rule"], found["key"]) == ("variable-not-passed", "env")


def test_values_stay_out_of_the_results(results: dict[str, Any]):
    """Of the caller's environment, only names are recorded."""
    assert "http://proxy" not in json.dumps(results)
