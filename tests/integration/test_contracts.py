"""Contracts of models whose callers send lengths, offsets, masks, ordered boxes, edges or pairs of images.

The healthy ones are green within the default tolerances. Where the contract is lenient (a mask, `where`, `none`), the
same model with a fault that only its export or file has is red.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness.gate import gate

SOURCE = Path(__file__).parents[1] / "models" / "contracts"
CHEAP = ("packed-lstm", "packed-lstm-fault", "suppression", "detector", "detector-fault", "padded-fault")
FAULTS = {
    "packed-lstm-fault": {"value-mismatch"},
    "detector-fault": {"structure-mismatch", "guard-missing"},
    "padded-fault": {"value-mismatch"},
    "bert-fault": {"value-mismatch"},
    "mistral-fault": {"value-mismatch"},
    "modernbert-fault": {"value-mismatch"},
}
Rules = dict[str, set[str]]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models, and the files that were made of one of them."""
    folder = tmp_path_factory.mktemp("contracts") / "project"
    shutil.copytree(SOURCE, folder)
    subprocess.run([sys.executable, "files.py", "."], cwd=folder, check=True)
    return folder


def broken(project: Path, config: str, *models: str) -> Rules:
    """The rules that each verified model breaks."""
    done = gate(project, "run", "-q", "-c", config, "--no-diagnosis", *models)
    assert done.returncode == 1, done.stdout + done.stderr
    results = json.loads((project / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    observed = results["run"]["models"]
    assert all(target["cases"] for model in observed for target in model["targets"])
    found: Rules = {model["model"]: set() for model in observed}
    for finding in results["findings"]:
        if finding["severity"] == "violation":
            found[finding["model"]].add(finding["rule"])
    return found


def expected(names: list[str]) -> Rules:
    """Nothing of a healthy model."""
    return {name: FAULTS.get(name, set()) for name in names}


@pytest.mark.slow(seconds=20)
def test_lengths_boxes_and_none_outputs(project: Path):
    """A packed LSTM beside its ONNX file, ordered boxes, losses that are None, and padding that a mask switches off."""
    assert broken(project, "export-gate.yml", *CHEAP) == expected(list(CHEAP))


@pytest.mark.nightly
def test_every_contract(project: Path):
    """Bags of words, message passing and pairs of images as well."""
    found = broken(project, "export-gate.yml")
    assert found == expected(list(found))
    assert len(found) == 10


@pytest.mark.nightly
def test_language_models_with_padding(project: Path):
    """BERT as it is; Mistral and ModernBERT, whose windows write anything at padding, with `where`."""
    pytest.importorskip("transformers")
    found = broken(project, "language.yml")
    assert found == expected(["bert", "bert-fault", "mistral", "mistral-fault", "modernbert", "modernbert-fault"])
