"""The worked examples of docs/config.md are verified as they stand: each model with the config below it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.gate import gate

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAIR = re.compile(
    r"^```python\n# (?P<file>[\w/]+\.py)\n(?P<code>.*?)^```\n\n```yaml\n(?P<config>.*?)^```", re.DOTALL | re.MULTILINE
)
EXAMPLES = [found.groupdict() for found in PAIR.finditer((ROOT / "docs" / "config.md").read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All examples in one run, at fewer control inputs than usual."""
    folder = tmp_path_factory.mktemp("examples")
    models: dict[str, Any] = {}
    for example in EXAMPLES:
        (folder / example["file"]).write_text(example["code"], encoding="utf-8")
        if '__name__ == "__main__"' in example["code"]:  # it writes files that the config names
            subprocess.run([sys.executable, example["file"]], cwd=folder, capture_output=True, check=True)
        models |= yaml.safe_load(example["config"])["models"]
    config = {"version": 1, "defaults": {"controls": {"limit": 12}}, "models": models}
    (folder / "export-gate.yml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    done = gate(folder, "run", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads((folder / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.slow(seconds=35)
def test_every_example_is_verified(results: dict[str, Any]):
    """No example on the page is out of date."""
    names = [name for example in EXAMPLES for name in yaml.safe_load(example["config"])["models"]]
    assert len(names) >= 7
    assert {model["model"] for model in results["run"]["models"]} == set(names)
    assert [finding for finding in results["findings"] if finding["severity"] == "violation"] == []


def test_a_sum_of_sizes_is_the_name_of_its_axis(results: dict[str, Any]):
    """The exported program has the sum as the size of its axis, and so does the ONNX file."""
    attend = next(model for model in results["run"]["models"] if model["model"] == "attend")
    (mask,) = [axis for axis in attend["dims"] if axis["axis"] == "mask[1]"]
    assert (mask["dim"], mask["declared"], mask["found"]) == ("past + cur", [1, 12], [1, 12])
