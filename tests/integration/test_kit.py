"""Conformance kits of real models: written by the gate, read by others, replayed where there is no torch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from environments import clean_environment
from harness.gate import GATE
from harness.gate import gate as run_gate
from onnx import numpy_helper

from export_gate import __version__
from export_gate.wall.digest import digest_file

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "export-gate.yml"
NAMES = ("glyph-head", "sentence-encoder")
MODELS = """
import torch

def curve():
    class Curve(torch.nn.Module):
        def forward(self, x):
            return {"y": torch.sigmoid(x) / 3}
    return Curve().eval()

def own():
    draws = torch.Generator().manual_seed(1)
    return {f"own-{number}": (2 * torch.rand(4, 2, generator=draws) - 1,) for number in range(8)}

def echo():
    class Echo(torch.nn.Module):
        def forward(self, x):
            return {"x": 2 * x}
    return Echo().eval()

def counted():
    class Counted(torch.nn.Module):
        def forward(self, x, mask):
            return {"y": 2 * x * mask, "rows": x.shape[0], "loss": None, "aux": x + 1}
    return Counted().eval()
"""
CONFIG = """
version: 1
models:
  curve:
    factory: models:curve
    inputs: {x: {dtype: float32, shape: [4, 2], range: [-1, 1]}}
    controls: {limit: 3, affine-basis: never, function: models:own}
    targets: {onnx: {tolerance: {atol: 0, rtol: 0}}}
  none:
    factory: models:curve
    inputs: {x: {dtype: float32, shape: [4, 2], range: [-1, 1]}}
    targets: {exported-program: {}}
  echo:
    factory: models:echo
    dims: {batch: {min: 1, max: 4, separate: [1]}}
    inputs: {x: {dtype: float32, shape: [batch, 2], range: [-1, 1]}}
    controls: {limit: 6, affine-basis: never}
    targets: {exported-program: {}, pt2: {}, onnx: {}}
  counted:
    factory: models:counted
    dims: {batch: {min: 2, max: 4}, seq: {min: 2, max: 4}}
    inputs:
      x: {dtype: float32, shape: [batch, seq], range: [-1, 1]}
      mask: {dtype: int64, shape: [batch, seq], range: [0, 1], mask: keep}
    outputs: {y: {where: mask}, rows: {}, loss: none, aux: ignore}
    controls: {limit: 6, affine-basis: never}
    targets: {onnx: {}}
  handed-in:
    factory: models:curve
    inputs: {x: {dtype: float32, shape: [4, 2], range: [-1, 1]}}
    controls: {limit: 3, affine-basis: never}
    targets: {onnx: {artifact: dist/curve.onnx}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A command that has ended."""

    status: int
    stdout: str
    stderr: str


def gate(*arguments: str | Path, cwd: Path, python: Path | None = None, **environment: str) -> Done:
    """The command line; under another interpreter if one is given, which finds the source tree by PYTHONPATH."""
    if python is None and not environment:
        done = run_gate(cwd, *arguments)
        return Done(status=done.returncode, stdout=done.stdout, stderr=done.stderr)
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    paths = os.pathsep.join(
        [str(ROOT / "src"), *([environment.pop("PYTHONPATH")] if "PYTHONPATH" in environment else [])]
    )
    done = subprocess.run(
        [*([GATE] if python is None else [python, "-m", "export_gate.cli.main"]), *arguments],
        cwd=cwd,
        env={**inherited, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return Done(status=done.returncode, stdout=done.stdout, stderr=done.stderr)


@pytest.fixture(scope="module")
def kits(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A kit of each example model, as the command line writes it."""
    folder = tmp_path_factory.mktemp("kits")
    for model in NAMES:
        done = gate("kit", model, "-c", EXAMPLES, "-q", "-o", model, cwd=folder)
        sha256 = digest_file(folder / model / "kit.json")
        sets = data_sets(folder / model)
        assert sets >= 30
        wanted = f"{model}: written, {model} with {sets} data sets; kit.json has sha256 {sha256}\n"
        assert (done.status, done.stdout, done.stderr) == (0, wanted, "")
    assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES), "nothing else is left beside the kits"
    return {model: folder / model for model in NAMES}


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter as a server has it: numpy, onnx and onnxruntime, no torch, none of the driver's packages."""
    return clean_environment(tmp_path_factory.mktemp("runtime"), "numpy", "onnx", "onnxruntime") / "python"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the driver's packages alone: no numpy."""
    return clean_environment(tmp_path_factory.mktemp("driver"), "export-gate") / "python"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose one model is not verified: its tolerance is zero, also for inputs of its own."""
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "export-gate.yml").write_text(CONFIG)
    return tmp_path


def manifest(kit: Path) -> dict[str, Any]:
    """What kit.json says."""
    read: dict[str, Any] = json.loads((kit / "kit.json").read_text(encoding="utf-8"))
    return read


def data_sets(kit: Path) -> int:
    """The number of data set folders."""
    return len(list(kit.rglob("test_data_set_*/input_0.pb")))


def tensors(folder: Path, kind: str) -> dict[str, Any]:
    """The tensors of a data set as onnx itself reads them, in order."""
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.partition("_")[2]))
    protos = [onnx.TensorProto.FromString(path.read_bytes()) for path in files]
    return {proto.name: numpy_helper.to_array(proto) for proto in protos}


@pytest.mark.slow(seconds=25)
@pytest.mark.parametrize("model", NAMES)
def test_data_sets_have_the_layout_of_onnx_backend_tests(kits: dict[str, Path], model: str):
    """Any reader of that layout finds a graph, its inputs by position and name, and the outputs that it reproduces."""
    session = onnxruntime.InferenceSession(str(kits[model] / "model.onnx"), providers=["CPUExecutionProvider"])
    folders = sorted(kits[model].glob("test_data_set_*"))
    assert len(folders) == len(manifest(kits[model])["exports"][0]["data_sets"])
    for folder in folders:
        inputs, expected = tensors(folder, "input"), tensors(folder, "output")
        assert list(inputs) == [value.name for value in session.get_inputs()]
        assert list(expected) == [value.name for value in session.get_outputs()]
        for wanted, found in zip(expected.values(), session.run(None, inputs), strict=True):
            assert (wanted.dtype, wanted.shape) == (found.dtype, found.shape)
            assert np.abs(wanted - found).max() <= 1e-5 + 1e-5 * np.abs(wanted).max()  # the target's tolerance


@pytest.mark.slow
def test_expected_outputs_are_eagers(kits: dict[str, Path], monkeypatch: pytest.MonkeyPatch):
    """The expected outputs are those of the eager model, not of an artifact: equal to the last bit."""
    import torch

    monkeypatch.syspath_prepend(str(ROOT / "examples" / "glyphlab"))
    from glyphlab.model import make_model

    torch.set_num_threads(1)
    model = make_model()
    for number in (0, 7, 32):
        folder = kits["glyph-head"] / f"test_data_set_{number}"
        with torch.no_grad():
            eager = model(torch.from_numpy(tensors(folder, "input")["x"].copy())).numpy()
        assert np.array_equal(eager, tensors(folder, "output")["logits"])


@pytest.mark.slow
@pytest.mark.parametrize("model", NAMES)
def test_manifest_says_what_the_kit_is(kits: dict[str, Path], model: str):
    """kit.json has the digest of every file, names the inputs, and says where the expected outputs come from."""
    kit, found = kits[model], manifest(kits[model])
    files = {path.relative_to(kit).as_posix(): path for path in kit.rglob("*") if path.is_file()}
    assert found["files"].keys() == files.keys() - {"kit.json"}
    for name, listed in found["files"].items():
        assert listed == {"sha256": digest_file(files[name]), "size_bytes": files[name].stat().st_size}
    properties = {entry.key: entry.value for entry in onnx.load(str(kit / "model.onnx")).metadata_props}
    assert found["controls_sha256"] == properties["export_gate.controls_sha256"]
    assert found["config_sha256"] == digest_file(EXAMPLES)
    assert (found["schema_version"], found["tool_version"], found["verified"]) == (1, __version__, True)
    assert found["versions"].keys() >= {"torch", "numpy", "onnx", "onnxruntime"}
    for output in found["outputs"]:
        assert output["tolerance"] == {"atol": 1e-5, "rtol": 1e-5, "axis": None}
        assert (output["nonfinite"], output["graph_name"]) == ("forbid", output["name"])
    names = [each["case"] for each in found["exports"][0]["data_sets"]]
    assert len(set(names)) == data_sets(kit)
    assert names[0].startswith(("normal-1@batch=", "random-1@batch="))


@pytest.mark.slow
@pytest.mark.parametrize("model", NAMES)
def test_kits_conform_without_torch(kits: dict[str, Path], driver: Path, runtime: Path, model: str, tmp_path: Path):
    """The driver does not need numpy; the machine that deploys needs only numpy, onnx and onnxruntime."""
    done = gate("replay", kits[model], "--python", runtime, cwd=tmp_path, python=driver)
    lines, sets = done.stdout.splitlines(), data_sets(kits[model])
    assert (done.status, done.stderr) == (0, "")
    assert lines[0].startswith("closest to its tolerance: output '")
    assert lines[-1] == (
        f"{model} conforms: {sets} of {sets} data sets in onnxruntime {onnxruntime.__version__} (CPUExecutionProvider)"
    )


@pytest.mark.slow
def test_torch_is_not_imported_where_it_is(kits: dict[str, Path], tmp_path: Path):
    """A replay does not import torch even if it is installed: a torch that ends its importer changes nothing."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')")
    done = gate("replay", kits["glyph-head"], "--python", sys.executable, cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert (done.status, done.stderr) == (0, "")


def perturb(kit: Path) -> None:
    """One weight of the kit's model is a thousandth larger."""
    model = onnx.load(str(kit / "model.onnx"))
    weight = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    values = numpy_helper.to_array(weight).copy()
    values.flat[0] += 0.1
    weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    onnx.save(model, kit / "model.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("model", NAMES)
def test_a_changed_weight_is_caught(kits: dict[str, Path], model: str, tmp_path: Path):
    """A changed weight is noticed at once by its digest, and by its values if somebody corrected the digest."""
    kit = tmp_path / "kit"
    shutil.copytree(kits[model], kit)
    perturb(kit)
    found, path = manifest(kit), kit / "model.onnx"
    first = gate("replay", "kit", cwd=tmp_path)
    hint = "fetch the kit again, or write it again with `export-gate kit`"
    listed = found["files"]["model.onnx"]
    if path.stat().st_size == listed["size_bytes"]:
        message = f"sha256 {digest_file(path)[:12]}..., expected {listed['sha256'][:12]}...: the file was changed"
    else:
        message = f"{path.stat().st_size} bytes, expected {listed['size_bytes']}: the file was changed or cut short"
    assert (first.status, first.stdout, first.stderr) == (2, "", f"kit/model.onnx: {message}\n{hint}\n")

    found["files"]["model.onnx"] = {"sha256": digest_file(path), "size_bytes": path.stat().st_size}
    (kit / "kit.json").write_text(json.dumps(found), encoding="utf-8")
    second = gate("replay", "kit", cwd=tmp_path)
    assert (second.status, second.stderr) == (1, "")
    assert second.stdout.startswith(f"{model}, onnx, output '")
    assert ": max |P-M| " in second.stdout.splitlines()[0]
    assert f"{model} does NOT conform: " in second.stdout.splitlines()[-1]


@pytest.mark.slow
def test_missing_packages_are_named(kits: dict[str, Path], driver: Path, tmp_path: Path):
    """The message has the command that installs what is missing; exit code 2."""
    done = gate("replay", kits["glyph-head"], "--python", driver, cwd=tmp_path)
    reasons = "numpy (not installed); onnx (not installed); onnxruntime (not installed)"
    wanted = (
        f"{driver} cannot import {reasons}: install with `{driver} -m pip install numpy onnx onnxruntime`, "
        "or name another interpreter with `--python` or EXPORT_GATE_PYTHON\n"
    )
    assert (done.status, done.stdout, done.stderr) == (2, "", wanted)


@pytest.mark.slow
def test_a_provider_that_is_not_there(kits: dict[str, Path], tmp_path: Path):
    """ONNX Runtime would run on the CPU with a warning, but the replay fails and lists the available providers."""
    done = gate("replay", kits["glyph-head"], "--provider", "MagicExecutionProvider", cwd=tmp_path)
    assert (done.status, done.stdout) == (2, "")
    has = f"onnxruntime {onnxruntime.__version__} of {Path(sys.executable).with_name('python')}"
    assert done.stderr.startswith(f"provider MagicExecutionProvider is not available: {has}")
    assert "CPUExecutionProvider" in done.stderr


@pytest.mark.slow
def test_kits_are_reproducible(kits: dict[str, Path], tmp_path: Path):
    """The same model gives the same kit, byte for byte, so one digest names it. An earlier kit is replaced."""
    shutil.copytree(kits["glyph-head"], tmp_path / "glyph-head-kit")
    (tmp_path / "glyph-head-kit" / "model.onnx").write_bytes(b"damaged")
    done = gate("kit", "glyph-head", "-c", EXAMPLES, "-q", cwd=tmp_path)
    assert (done.status, done.stderr) == (0, "")
    first, second = kits["glyph-head"], tmp_path / "glyph-head-kit"
    assert (first / "kit.json").read_bytes() == (second / "kit.json").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["glyph-head-kit"]


@pytest.mark.slow
def test_a_model_that_is_not_verified_gets_no_kit(project: Path):
    """Exit code 1 with the report; with --force there is a kit that says so, now and at every replay."""
    refused = gate("kit", "curve", "-q", cwd=project)
    assert refused.status == 1
    assert "value-mismatch" in refused.stdout
    assert refused.stderr == ("curve-kit: no kit was written: curve is not verified; --force writes one that says so\n")
    assert not (project / "curve-kit").exists()

    forced = gate("kit", "curve", "-q", "--force", cwd=project)
    assert (forced.status, forced.stderr) == (0, "warning: curve is not verified, and the kit says so\n")
    assert manifest(project / "curve-kit")["verified"] is False
    done = gate("replay", "curve-kit", cwd=project)
    assert done.status == 1
    assert "the model was NOT verified when the kit was written\n" in done.stdout


@pytest.mark.slow
def test_what_is_no_kit_is_not_replaced(project: Path):
    """A folder with anything else in it is not replaced without --force; the project itself never is."""
    (project / "dist").mkdir()
    (project / "dist" / "precious").write_text("x")
    done = gate("kit", "curve", "-o", "dist", cwd=project)
    hint = "name another folder, or use --force to replace it"
    assert (done.status, done.stderr) == (2, f"dist: already exists and is not only a kit\n{hint}\n")
    for place in (".", ".."):
        done = gate("kit", "curve", "--force", "-o", place, cwd=project)
        message = f"{place}: contains the project or the current folder, so a kit cannot replace it\nname another one\n"
        assert (done.status, done.stderr) == (2, message)
    assert (project / "dist" / "precious").read_text() == "x"

    done = gate("kit", "curve", "-q", "--force", "-o", "dist", cwd=project)
    assert done.status == 0
    assert not (project / "dist" / "precious").exists()
    assert sorted(path.name for path in project.iterdir() if path.name.startswith(".")) == []


def test_a_kit_needs_an_onnx_target(project: Path):
    """The message comes before anything runs and says what to add; so for an unknown model."""
    done = gate("kit", "none", cwd=project)
    message = "export-gate.yml: models.none has no target onnx, expected one for the kit; it has exported-program"
    assert (done.status, done.stderr) == (2, f"{message}\nadd `onnx: {{}}` to `models.none.targets`\n")
    done = gate("kit", "curved", cwd=project)
    assert (done.status, done.stderr) == (2, "export-gate.yml: there is no model 'curved'; did you mean 'curve'?\n")


@pytest.mark.slow
def test_separate_exports_and_names_that_differ(project: Path):
    """Separate exports have separate folders, a name that the graph cannot have is mapped, pt2 is added on request."""
    done = gate("kit", "echo", "-q", "-o", "kit", "--target", "pt2", cwd=project)
    assert (done.status, done.stderr) == (0, ""), done.stdout
    found = manifest(project / "kit")
    exports = {each["folder"]: each for each in found["exports"]}
    assert {folder: each["separate"] for folder, each in exports.items()} == {"": {}, "batch=1": {"batch": 1}}
    for folder in exports:
        files = {path.name for path in (project / "kit" / folder).iterdir() if path.is_file()} - {"kit.json"}
        assert files == {"model.onnx", "model.pt2"}
    shown = [(output["name"], output["graph_name"], output["dtype"], output["python"]) for output in found["outputs"]]
    assert shown == [("x", "x_output", "float32", False)]
    replayed = gate("replay", "kit", cwd=project)
    assert (replayed.status, replayed.stderr) == (0, "")
    assert "echo conforms: 6 of 6 data sets" in replayed.stdout


@pytest.mark.slow
def test_kit_holds_what_is_compared_of_the_outputs(project: Path):
    """An int is a 0-d int64 tensor; None has no file; what a mask keeps of an output counts."""
    done = gate("kit", "counted", "-q", cwd=project)
    assert (done.status, done.stderr) == (0, ""), done.stdout
    rows = manifest(project / "counted-kit")["outputs"][1]
    assert (rows["name"], rows["dtype"], rows["python"]) == ("rows", "int64", True)
    assert rows["tolerance"] == {"atol": 0.0, "rtol": 0.0, "axis": None}
    first = tensors(project / "counted-kit" / "test_data_set_0", "output")["rows"]
    assert (first.dtype, first.shape) == (np.int64, ())
    assert [output["is_compared"] for output in manifest(project / "counted-kit")["outputs"]] == [
        True,
        True,
        True,
        False,
    ]
    found = project / "counted-kit" / "test_data_set_0"
    assert sorted(path.name for path in found.glob("[co]*")) == ["compared_0.pb", *(f"output_{n}.pb" for n in range(3))]
    kept, given = (onnx.load_tensor(str(found / name)) for name in ("compared_0.pb", "input_1.pb"))
    assert (numpy_helper.to_array(kept) == numpy_helper.to_array(given)).all()
    replayed = gate("replay", "counted-kit", cwd=project)
    assert (replayed.status, replayed.stderr) == (0, "")
    assert "counted conforms: 6 of 6 data sets" in replayed.stdout


def curve_with_outer_weights(path: Path, location: str) -> None:
    """sigmoid(x) * (1 / 3), the factor in a file of its own."""
    third = numpy_helper.from_array(np.float32([1 / 3]), "third")
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [4, 2]) for name in "xy")
    nodes = [onnx.helper.make_node("Sigmoid", ["x"], ["s"]), onnx.helper.make_node("Mul", ["s", "third"], ["y"])]
    graph = onnx.helper.make_graph(nodes, "g", [x], [y], [third])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)
    path.parent.mkdir()
    onnx.save(model, str(path), save_as_external_data=True, location=location, size_threshold=0)


@pytest.mark.slow
def test_a_handed_in_artifact_with_its_weights(project: Path):
    """The kit contains what was verified: the file under the kit's name, its weights where the file looks for them."""
    curve_with_outer_weights(project / "dist" / "curve.onnx", "curve.weights")
    done = gate("kit", "handed-in", "-q", "-o", "kit", cwd=project)
    assert (done.status, done.stderr) == (0, ""), done.stdout
    assert (project / "kit" / "curve.weights").read_bytes() == (project / "dist" / "curve.weights").read_bytes()
    assert digest_file(project / "kit" / "model.onnx") == digest_file(project / "dist" / "curve.onnx")
    assert gate("replay", "kit", cwd=project).status == 0


@pytest.mark.slow
def test_weights_that_have_no_place_in_a_kit(project: Path):
    """Weights that are named like a data set are refused by name, with advice on saving the file."""
    curve_with_outer_weights(project / "dist" / "curve.onnx", "test_data_set_0")
    done = gate("kit", "handed-in", "-q", "-o", "kit", cwd=project)
    assert done.status == 2
    assert "its weights are in 'test_data_set_0', which has no place in a kit" in " ".join(done.stdout.split())
    assert not (project / "kit").exists()
