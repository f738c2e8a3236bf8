"""`export-gate init`: a factory's name to a config that is valid, and that runs where a trial of the guesses did."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.gate import gate

PROJECT = """
import torch
from torch import nn


class Around(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)


def make_linear():
    return Around(nn.Linear(5, 3)).eval()


def make_half():
    return Around(nn.Conv1d(2, 4, 3)).half().eval()


class Pair(Around):
    def forward(self, x):
        return self.layer(x), x.sum(1)


def make_pair():
    return Pair(nn.Linear(5, 3)).eval()


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2)
        self.head = nn.Linear(2 * 26 * 26, 3)

    def forward(self, image, scale: float = 1.0):
        return {"logits": self.head(torch.relu(self.norm(self.conv(image))).flatten(1)) * scale}


def make_digits():
    return Digits().eval()


class Sentence(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(50, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, ids, mask):
        weights = mask.unsqueeze(-1).to(torch.float32)
        pooled = (self.tokens(ids) * weights).sum(1) / weights.sum(1).clamp(min=1)
        return self.head(pooled)


def make_sentence():
    return Sentence().eval()


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(50, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, ids):
        hidden = self.tokens(ids)
        return self.head(hidden), hidden.mean(1)


def make_tagger():
    return Tagger().eval()


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 4, batch_first=True)

    def forward(self, x):
        outputs, (hidden, _) = self.lstm(x)
        return outputs, hidden


def make_lstm():
    return Recurrent().eval()


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 3), nn.Linear(6, 3)

    def forward(self, left, *, right):
        return self.first(left) + self.second(right)


def make_two():
    return Two().eval()


class Open(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x, *args, **kwargs):
        return self.layer(x)


def make_open():
    return Open().eval()


def make_bert():
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=40,
    )).eval()


def make_vit():
    from transformers import ViTConfig, ViTModel

    return ViTModel(ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=24, patch_size=8,
    )).eval()


class Graph(nn.Module):
    def forward(self, graph):
        return graph.nodes


def make_graph():
    return Graph().eval()


def make_sized(classes, width=8):
    return Around(nn.Linear(width, classes)).eval()
"""
INPUTS = {
    "linear": ["x: {dtype: float32, shape: [batch, 5], range: [-3, 3]}  # layer: Linear(5, 3)"],
    "half": ["x: {dtype: float16, shape: [batch, 2, 32], range: [0, 1]}  # layer: Conv1d(2, 4)"],
    "digits": [
        "image: {dtype: float32, shape: [batch, 1, 28, 28], range: [0, 1]}  # conv: Conv2d(1, 2)",
        "# scale: {constant: 1.0}  # optional, 1.0 by default",
    ],
    "sentence": [
        "ids: {dtype: int64, shape: [batch, seq], range: [0, 49]}  # tokens: Embedding(50, 8)",
        "mask: {dtype: bool, shape: [batch, seq]}  # its name",
    ],
    "lstm": ["x: {dtype: float32, shape: [batch, 16, 6], range: [-3, 3]}  # lstm: LSTM(6, 4)"],
    "two": [
        "left: {dtype: float32, shape: [batch, 4], range: [-3, 3]}  # first: Linear(4, 3)",
        "right: {dtype: float32, shape: [batch, 6], range: [-3, 3]}  # second: Linear(6, 3)",
    ],
    "open": [
        "x: {dtype: float32, shape: [batch, 4], range: [-3, 3]}  # layer: Linear(4, 3)",
        "# *args: further inputs can be declared here, in order, under names of your choice",
        "# **kwargs: further inputs can be declared here, by name",
    ],
    "bert": [
        "input_ids: {dtype: int64, shape: [batch, seq], range: [0, 63]}  # its name",
        "# attention_mask: {dtype: int64, shape: [batch, seq], range: [0, 1]}  # optional, None by default",
    ],
    "vit": ["pixel_values: {dtype: float32, shape: [batch, 3, 24, 24], range: [0, 1]}  # its name"],
}
"""Model -> the first lines under `inputs`."""


LSTM = (
    "# Every key is explained in docs/config.md. Next: review the lines with comments, then run `export-gate run`.\n"
    "version: 1\n"
    "\n"
    "defaults:\n"
    "  timeout: 10m\n"
    "  targets: {exported-program: {}, pt2: {}, onnx: {}}  # add aoti: {} for AOTInductor\n"
    "\n"
    "models:\n"
    "  lstm:\n"
    "    factory: zoo.nets:make_lstm\n"
    "    dims:  # sizes that vary: set min and max to the sizes that callers send\n"
    "      batch: {min: 1, max: 16}\n"
    "    # forward(x)\n"
    "    # These inputs were tested: forward runs at batch 1, 2, 3, 16.\n"
    "    # Ranges are guesses: replace them with those of your data.\n"
    "    # seq is fixed at 16, since torch.export does not let it vary:\n"
    "    # UserError: Constraints violated (seq)!\n"
    "    inputs:\n"
    "      x: {dtype: float32, shape: [batch, 16, 6], range: [-3, 3]}  # lstm: LSTM(6, 4)\n"
    "    outputs:  # as forward returned them: one that is dropped or changed is a violation\n"
    "      output.0: {dtype: float32, shape: [batch, 16, 4]}\n"
    "      output.1: {dtype: float32, shape: [1, batch, 4]}\n"
)
"""Where torch.export fixes a size that forward takes freely."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the package `zoo`."""
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "__init__.py").touch()
    (tmp_path / "zoo" / "nets.py").write_text(PROJECT)
    return tmp_path


@pytest.mark.nightly
@pytest.mark.slow(seconds=30)
def test_every_starter_whose_trial_worked_runs(project: Path):
    """init, validate and run for each kind of model: exit 0 without an edit."""
    together = "version: 1\nmodels:\n"
    for name, lines in INPUTS.items():
        file = f"{name}.yml"
        done = gate(project, "init", f"zoo.nets:make_{name}", "-o", file)
        assert done.returncode == 0, done.stderr
        assert done.stdout == (
            f"{file}: written and valid; review it, then run `export-gate run --config {file}`\n"
            f"Once it is green, `export-gate lock --config {file}` records the interface: a change that breaks callers "
            "is then found.\n"
        )
        assert gate(project, "validate", "-c", file).stdout == f"{file}: valid, 1 model\n"
        text = (project / file).read_text()
        assert "# These inputs were tested: forward runs at batch 1, 2, 3, 16" in text
        inputs = text.partition("    inputs:\n")[2].splitlines()
        assert [line.strip() for line in inputs[: len(lines)]] == lines
        together += text.partition("models:\n")[2]
    assert (project / "lstm.yml").read_text() == LSTM
    (project / "export-gate.yml").write_text(together)
    done = gate(project, "run", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(INPUTS)} of {len(INPUTS)} models verified" in done.stdout


@pytest.mark.slow
def test_output_that_the_model_drops_is_red(project: Path):
    """Starters declare the outputs: a model that returns one less is a violation, although its artifacts agree."""
    assert gate(project, "init", "zoo.nets:make_pair").returncode == 0
    nets = project / "zoo" / "nets.py"
    nets.write_text(PROJECT.replace("return self.layer(x), x.sum(1)", "return (self.layer(x),)"))
    done = gate(project, "run", "-q", "--target", "exported-program")
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert "eager returned 1 outputs (output.0), the contract declares 2 (output.0, output.1)" in said


@pytest.mark.slow
def test_failed_trial_still_gives_a_valid_config(project: Path):
    """If no guess works, the config is valid and says what to correct."""
    assert gate(project, "init", "zoo.nets:make_graph").returncode == 0
    text = (project / "export-gate.yml").read_text()
    assert (
        "    # CORRECT THESE INPUTS: 6 guesses were tested and forward accepted none; the first one raised\n"
        "    # AttributeError: 'Tensor' object has no attribute 'nodes'\n"
    ) in text
    assert gate(project, "validate").returncode == 0


@pytest.mark.slow
def test_existing_config_is_extended(project: Path):
    """Its lines stay unchanged; a factory that it already has is refused; only --force replaces the file."""
    config = project / "export-gate.yml"
    config.write_text("mine")
    done = gate(project, "init", "zoo.nets:make_linear")
    assert (done.returncode, done.stderr) == (
        2, "export-gate.yml:1:1: expected a mapping with version and models, got 'mine'\n",
    )  # fmt: skip
    assert config.read_text() == "mine"
    done = gate(project, "init", "zoo.nets:make_linear", "zoo.nets:make_sized", "--kwargs", "classes=3", "--force")
    assert done.returncode == 2
    assert "factory 'zoo.nets:make_linear' cannot be called with kwargs {'classes': 3}" in done.stderr
    assert gate(project, "init", "zoo.nets:make_linear", "zoo.nets:make_half", "--force").returncode == 0
    mine = config.read_text().replace("# Every key", "# Ours. Every key") + "ignore: [docs/**]  # no model reads them\n"
    config.write_text(mine)
    done = gate(project, "init", "zoo.nets:make_sized", "--kwargs", "classes=3", "-c", "export-gate.yml")
    assert done.stdout.startswith("export-gate.yml: extended and valid; review it, then run `export-gate run`\n")
    head, _, tail = mine.partition("ignore:")
    assert config.read_text().startswith(
        head + "  sized:\n    factory: zoo.nets:make_sized\n    kwargs: {classes: 3}\n"
    )
    assert config.read_text().endswith("\nignore:" + tail)
    assert gate(project, "validate").stdout == "export-gate.yml: valid, 3 models\n"
    done = gate(project, "init", "zoo.nets:make_half")
    assert done.returncode == 2
    assert done.stderr == (
        "export-gate.yml: the model `half` has the factory zoo.nets:make_half already\n"
        "edit that model, or use --force to write the file anew\n"
    )


@pytest.mark.slow
def test_file_says_what_the_inputs_are(project: Path):
    """Names, dtypes, dims, outputs and ranges come from the file, and the factory is the reference."""
    assert gate(project, "init", "zoo.nets:make_tagger", "-c", "made.yml").returncode == 0
    made = (project / "made.yml").read_text()
    made = made.replace("batch", "rows").replace("seq", "length").replace("[0, 49]", "[1, 40]")
    made = made.replace("output.0", "tags").replace("output.1", "pooled").replace("max: 16", "max: 12")
    (project / "made.yml").write_text(made)
    assert gate(project, "run", "-q", "-c", "made.yml", "--target", "onnx").returncode == 0
    file = project / ".export-gate" / "artifacts" / "tagger" / "model.onnx"
    (project / "tagger.onnx").write_bytes(file.read_bytes())
    assert gate(project, "init", "zoo.nets:make_tagger", "--artifact", "tagger.onnx").returncode == 0
    text = (project / "export-gate.yml").read_text()
    for line in (
        "      rows: {min: 1, max: 12}\n      length: {min: 1, max: 64}\n",
        "      ids: {dtype: int64, shape: [rows, length], range: [1, 40]}  # as the file has it\n",
        "      tags: {dtype: float32, shape: [rows, length, 2]}\n      pooled: {dtype: float32, shape: [rows, 8]}\n",
        "    targets: {onnx: {artifact: tagger.onnx}}\n",
    ):
        assert line in text
    done = gate(project, "run", "-q")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_config_elsewhere_names_what_it_needs(project: Path):
    """In another folder, the config says where the package is, or has the path of the file."""
    (project / ".git").mkdir()
    (project / "ci").mkdir()
    assert gate(project, "init", "zoo.nets:make_linear", "-o", "ci/a.yml").returncode == 0
    assert 'version: 1\npythonpath: [".."]\n' in (project / "ci" / "a.yml").read_text()
    assert gate(project, "init", "zoo/nets.py:make_linear", "-o", "ci/b.yml").returncode == 0
    assert '    factory: "../zoo/nets.py:make_linear"\n' in (project / "ci" / "b.yml").read_text()
    assert gate(project, "validate", "-c", "ci/b.yml").returncode == 0


@pytest.mark.slow
def test_factory_with_arguments_is_refused_with_the_next_step(project: Path):
    """Required arguments cannot be guessed: the message shows the signature and two solutions."""
    done = gate(project, "init", "zoo.nets:make_sized")
    assert (done.returncode, done.stdout) == (2, "")
    assert not (project / "export-gate.yml").exists()
    assert done.stderr == (
        "factory 'zoo.nets:make_sized' needs arguments: its parameters are (classes, width=8)\n"
        "pass them with `--kwargs classes=...`, or name a function that needs none, such as "
        "`def make_model(): return make_sized(classes=...)`\n"
    )
