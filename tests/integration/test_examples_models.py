"""The example projects compute what their READMEs say, and their configs are valid and in step."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
import yaml
from harness.gate import gate

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDERS = ("glyphlab", "affine", "transformer")
CONFIGS = (EXAMPLES / "export-gate.yml", *(EXAMPLES / folder / "export-gate.yml" for folder in FOLDERS))


@pytest.fixture
def glyphlab(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Model module of examples/glyphlab."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "glyphlab"))
    return import_module("glyphlab.model")


@pytest.fixture
def affine(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Model module of examples/affine."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "affine"))
    return import_module("affine.model")


@pytest.fixture
def sentence(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Model module of examples/transformer."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "transformer"))
    return import_module("sentence.model")


def same_weights(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    """Whether both have the same parameters and buffers, bit for bit."""
    pairs = zip(first.state_dict().items(), second.state_dict().items(), strict=True)
    return all(a == b and torch.equal(x, y) for (a, x), (b, y) in pairs)


@pytest.mark.parametrize("batch", [2, 3, 16])
def test_glyph_head_scores_three_classes(glyphlab: ModuleType, batch: int):
    """float32[batch, 1, 24, 24] in, finite float32[batch, 3] out, over the whole range of batches."""
    with torch.no_grad():
        scores = glyphlab.make_model()(torch.rand(batch, 1, 24, 24))
    assert (scores.dtype, tuple(scores.shape)) == (torch.float32, (batch, 3))
    assert torch.isfinite(scores).all()


def test_glyph_head_has_the_layers_of_its_readme(glyphlab: ModuleType):
    """Four 3x3 filters with biases and a 4-to-3 linear layer: 40 + 15 parameters, in eval mode."""
    model = glyphlab.make_model()
    assert sum(parameter.numel() for parameter in model.parameters()) == 55
    assert not any(module.training for module in model.modules())


def test_glyph_head_weights_come_from_the_seed(glyphlab: ModuleType):
    """Two calls of the factory give the same weights, whatever was drawn in between."""
    first = glyphlab.make_model()
    torch.rand(1)
    assert same_weights(first, glyphlab.make_model())
    torch.manual_seed(glyphlab.SEED + 1)
    assert not same_weights(first, glyphlab.MiniGlyphHead())


def test_affine_map_answers_its_golden_input(affine: ModuleType):
    """[0.5, 1.0] gives [-0.4, 1.3] within 1e-6, which is a few units of rounding in float32."""
    with torch.no_grad():
        y = affine.make_model()(torch.tensor([[0.5, 1.0]]))
    assert (y.double() - torch.tensor([[-0.4, 1.3]], dtype=torch.float64)).abs().max() <= 1e-6


def test_golden_file_is_what_its_script_writes(tmp_path: Path):
    """Running make_golden.py again gives the committed arrays."""
    committed = EXAMPLES / "affine" / "golden.npz"
    script = tmp_path / "make_golden.py"
    script.write_text((EXAMPLES / "affine" / "make_golden.py").read_text())
    runpy.run_path(str(script), run_name="__main__")
    with np.load(tmp_path / "golden.npz") as written, np.load(committed) as expected:
        assert sorted(written) == sorted(expected) == ["x", "y"]
        for key in expected:
            assert written[key].dtype == expected[key].dtype == np.float32
            np.testing.assert_array_equal(written[key], expected[key])


@pytest.mark.parametrize(("batch", "seq"), [(1, 1), (1, 64), (3, 7), (8, 1), (8, 64)])
def test_encoder_gives_a_vector_per_token_and_per_sentence(sentence: ModuleType, batch: int, seq: int):
    """A dict of float32[batch, seq, 32] and float32[batch, 32], over the whole range of both dims."""
    ids, mask = torch.randint(0, sentence.VOCABULARY, (batch, seq)), torch.ones(batch, seq, dtype=torch.bool)
    with torch.no_grad():
        outputs = sentence.make_model()(ids, mask)
    assert {name: (value.dtype, tuple(value.shape)) for name, value in outputs.items()} == {
        "hidden": (torch.float32, (batch, seq, 32)),
        "pooled": (torch.float32, (batch, 32)),
    }


def test_padding_does_not_reach_real_tokens(sentence: ModuleType):
    """Real positions and the pooled vector do not change with the ids under the padding."""
    model = sentence.make_model()
    mask = torch.arange(10).expand(2, 10) < torch.tensor([[4], [9]])
    ids = torch.randint(0, sentence.VOCABULARY, (2, 10), generator=torch.Generator().manual_seed(0))
    other = torch.where(mask, ids, (ids + 1) % sentence.VOCABULARY)
    with torch.no_grad():
        first, second = model(ids, mask), model(other, mask)
    assert torch.equal(first["hidden"][mask], second["hidden"][mask])
    assert torch.equal(first["pooled"], second["pooled"])
    assert not torch.equal(first["hidden"], second["hidden"])


def test_sentence_without_tokens_is_defined(sentence: ModuleType):
    """A fully padded row pools to zero and has no NaN anywhere."""
    mask = torch.tensor([[True, True, False], [False, False, False]])
    with torch.no_grad():
        outputs = sentence.make_model()(torch.zeros(2, 3, dtype=torch.int64), mask)
    assert torch.isfinite(outputs["hidden"]).all()
    assert torch.equal(outputs["pooled"][1], torch.zeros(32))
    assert outputs["pooled"][0].abs().max() > 0


def test_encoder_weights_come_from_the_seed(sentence: ModuleType):
    """Two calls of the factory give the same weights, in eval mode."""
    model = sentence.make_model()
    assert same_weights(model, sentence.make_model())
    assert not any(module.training for module in model.modules())


def test_one_config_runs_what_each_example_declares():
    """examples/export-gate.yml is the three configs together, with other paths."""
    together = yaml.safe_load(CONFIGS[0].read_text())
    assert together["pythonpath"] == list(FOLDERS)
    apart: dict[str, object] = {}
    for folder in FOLDERS:
        text = (EXAMPLES / folder / "export-gate.yml").read_text().replace("path: ", f"path: {folder}/")
        apart |= yaml.safe_load(text)["models"]
    assert together["models"] == apart


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.parent.name)
def test_configs_fit_the_published_schema(config: Path, tmp_path: Path):
    """An editor or check-jsonschema that reads the published schema accepts every example."""
    from export_gate.config import json_schema

    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(json_schema()))
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", str(schema), str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """results.json of what `make demo` runs."""
    folder = tmp_path_factory.mktemp("demo")
    done = gate(EXAMPLES.parent, "run", "--config", CONFIGS[0], "--report-dir", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "results.json"


@pytest.mark.slow(seconds=15)
def test_demo_verifies_three_models_on_three_targets(demo: Path):
    """`make demo`: one run, every model verified on every target without a warning, exit 0."""
    results = json.loads(demo.read_text())
    assert results["verdict"] == "verified"
    assert [finding for finding in results["findings"] if finding["severity"] != "note"] == []
    targets = {model["model"]: model["targets"] for model in results["run"]["models"]}
    assert sorted(targets) == ["affine-map", "glyph-head", "sentence-encoder"]
    for observed in targets.values():
        assert [target["target"] for target in observed] == ["exported-program", "pt2", "onnx"]
        assert min(len(target["cases"]) for target in observed) >= 10
    affine = {name: [target["affine"] for target in observed] for name, observed in targets.items()}
    assert affine == {"affine-map": [True] * 3, "glyph-head": [False] * 3, "sentence-encoder": [False] * 3}


@pytest.mark.slow
def test_readme_shows_the_demos_report(demo: Path):
    """The report in README.md has the demo's verdict, models and stages; `make readme` brings it up to date."""
    done = gate(EXAMPLES.parent, "report", demo, "--format", "comment")
    readme = (EXAMPLES.parent / "README.md").read_text()
    shown = readme.partition("<!-- report:start -->\n")[2].partition("<!-- report:end -->")[0]
    assert without_numbers(shown) == without_numbers(done.stdout)


def without_numbers(report: str) -> list[str]:
    """Headline, headings and table rows, without what differs between machines: errors, sizes and digests."""
    rows = [line for line in report.splitlines() if line.startswith(("#", "|", "<details>"))]
    return [re.sub(r"exact|\d+%|[\d.e-]+ of .*|\d[\d.]* k?B|`[0-9a-f]{12}`", "...", row) for row in rows]
