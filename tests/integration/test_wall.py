"""The wall: the driver needs nothing from the project, the worker nothing from the driver, and no secret crosses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from environments import clean_environment

from export_gate.run.interpreter import why_no_python

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
AFFINE = ROOT / "examples" / "affine" / "export-gate.yml"
PROJECT_PACKAGES = ("torch", "numpy", "onnx", "onnxruntime", "onnxscript", "onnx_ir")
DRIVER_PACKAGES = ("click", "yaml", "jinja2", "rich", "urllib3")
SECRETS = (
    "GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "INPUT_GITHUB-TOKEN",
    "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_SECRET", "WANDB_API_KEY", "OPENAI_API_KEY", "NETRC",
    "PIP_INDEX_URL", "TORCH_HUB_TOKEN", "CUDA_API_KEY", "TWINE_PASSWORD", "SSH_AUTH_SOCK", "DATABASE_URL",
    "GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "HTTPS_PROXY", "MKL_SECRET",
    "HF_HUB_PASSWD", "XDG_CREDENTIALS",
)  # fmt: skip
OWN_MODULES = ("model", "compare", "export", "guards", "engine", "channel", "server", "values", "contract", "codec")
SPY = """
import contextlib, json, os, sys
import {modules}
import torch

def descriptors():
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the listing's own
            yield os.readlink("/proc/self/fd/" + number)

def make():
    facts = {{
        "environment": dict(os.environ),
        "path": sys.path,
        "modules": sorted(sys.modules),
        "own": {{name: sys.modules[name].__file__ for name in {names!r}}},
        "descriptors": sorted(descriptors()),
    }}
    with open(os.path.join(os.path.dirname(__file__), "facts.json"), "w") as file:
        json.dump(facts, file)
    return torch.nn.Linear(2, 2).eval()
"""
CONFIG = """
version: 1
models:
  spy:
    factory: spy:make
    inputs: {input: {dtype: float32, shape: [3, 2], range: [0, 1]}}
    controls: {limit: 2}
    targets: {exported-program: {}}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the driver's dependencies and nothing else; finds the source tree by PYTHONPATH."""
    return clean_environment(tmp_path_factory.mktemp("driver"), "export-gate") / "python"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with what a project has: none of the driver's dependencies."""
    roots = ("torch", "numpy", "onnx", "onnxscript", "onnxruntime")
    return clean_environment(tmp_path_factory.mktemp("project"), *roots) / "python"


@pytest.fixture(scope="module")
def without_onnxruntime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's interpreter that lacks ONNX Runtime alone."""
    return clean_environment(tmp_path_factory.mktemp("lacking"), "torch", "numpy", "onnx", "onnxscript") / "python"


def gate(driver: Path, *arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line under the driver's interpreter."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [driver, "-m", "export_gate.cli.main", *arguments],
        cwd=cwd,
        env={
            **inherited,
            "PYTHONPATH": str(ROOT / "src"),
            "COLUMNS": "200",
            "EXPORT_GATE_RUN_NO_CACHE": "1",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def lacking(python: Path, names: tuple[str, ...], tmp_path: Path) -> list[str]:
    """Those of the packages that an interpreter does not have."""
    code = f"import importlib.util as u; print([n for n in {names!r} if not u.find_spec(n)])"
    done = subprocess.run([python, "-c", code], cwd=tmp_path, env={}, capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout.replace("'", '"')))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spied:
    """What a model saw from the inside, and its project."""

    facts: dict[str, Any]
    folder: Path


@pytest.fixture(scope="module")
def spied(driver: Path, project: Path, tmp_path_factory: pytest.TempPathFactory) -> Spied:
    """A run over a model that notes its surroundings, with many secrets in the driver's environment."""
    folder = tmp_path_factory.mktemp("spy")
    for name in OWN_MODULES:
        (folder / f"{name}.py").write_text(f"OWN = {name!r}\n")
    (folder / "spy.py").write_text(SPY.format(modules=", ".join(OWN_MODULES), names=OWN_MODULES))
    (folder / "export-gate.yml").write_text(CONFIG)
    done = gate(
        driver,
        "run",
        "--python",
        project,
        cwd=folder,
        **dict.fromkeys(SECRETS, "do-not-tell"),
        OMP_NUM_THREADS="1",
        LC_ALL="C.UTF-8",
        HF_HOME="/hf",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Spied(facts=json.loads((folder / "facts.json").read_text()), folder=folder)


@pytest.mark.slow
def test_affine_example_is_verified_across_two_environments(driver: Path, project: Path, tmp_path: Path):
    """A driver without torch verifies a project without click on all targets, and the report names its interpreter."""
    assert lacking(driver, PROJECT_PACKAGES, tmp_path) == list(PROJECT_PACKAGES)
    assert set(DRIVER_PACKAGES) - set(lacking(project, DRIVER_PACKAGES, tmp_path)) == {"jinja2"}, "which torch needs"
    done = gate(driver, "run", "-c", AFFINE, "--python", project, "--report-dir", tmp_path / "report", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"export-gate 0.1.0: 1 model with {project} (--python)" in done.stderr
    results = json.loads((tmp_path / "report" / "results.json").read_text())
    assert results["run"]["environment"]["executable"] == str(project)
    assert [target["target"] for target in results["run"]["models"][0]["targets"]] == [
        "exported-program",
        "pt2",
        "onnx",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [("validate", "-c", str(AFFINE)), ("rules",), ("schema",), ("schema", "--results"), ("--version",)]
)
def test_driver_commands_import_none_of_the_projects_packages(arguments: tuple[str, ...]):
    """Commands that need no model stay fast, even in an environment with torch."""
    code = (
        "import sys; from export_gate.cli.main import main\n"
        f"sys.argv = ['export-gate', *{arguments!r}]\n"
        "try: main()\n"
        "except SystemExit as ended: assert not ended.code, ended.code\n"
        f"print([name for name in {PROJECT_PACKAGES!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")


@pytest.mark.slow
def test_worker_loads_nothing_of_the_drivers(spied: Spied):
    """In the project's process there is no click, YAML, Jinja2, rich or urllib3, nor the driver's modules."""
    loaded = set(spied.facts["modules"])
    assert loaded & set(DRIVER_PACKAGES) == set()
    driver_modules = {
        f"export_gate.{name}" for name in ("cli", "pipeline", "config", "rules", "report", "run", "outcome", "lock")
    }
    assert loaded & driver_modules == set()


@pytest.mark.slow
def test_projects_modules_are_not_shadowed(spied: Spied):
    """A project's own `model.py`, `compare.py`, `export.py`, ... are imported, whatever the gate's are called."""
    assert spied.facts["own"] == {name: str(spied.folder / f"{name}.py") for name in OWN_MODULES}


@pytest.mark.slow
def test_gates_folders_are_not_on_the_projects_path(spied: Spied):
    """Neither the worker's folder nor the package's is on the model's `sys.path`; the config's folder is first."""
    gates = [entry for entry in spied.facts["path"] if Path(entry).is_relative_to(ROOT / "src" / "export_gate")]
    assert gates == []
    assert spied.facts["path"][0] == str(spied.folder)


@pytest.mark.slow
def test_no_secret_crosses_the_wall(spied: Spied):
    """Project code sees an allow-listed environment: no token, key or CI file, but the settings that it needs."""
    environment = spied.facts["environment"]
    assert {name for name in environment if name in SECRETS} == set()
    assert "do-not-tell" not in environment.values()
    assert {name: environment.get(name) for name in ("OMP_NUM_THREADS", "LC_ALL", "HF_HOME")} == {
        "OMP_NUM_THREADS": "1",
        "LC_ALL": "C.UTF-8",
        "HF_HOME": "/hf",
    }


@pytest.mark.slow
def test_model_has_no_descriptor_of_the_driver(spied: Spied):
    """Open in a model's process: the null device, its log, the pipe of its events and the listing itself.

    And the nameless file of its own in which its forked copies note what they read.
    """
    named = [name for name in spied.facts["descriptors"] if not name.endswith(" (deleted)")]
    assert len(named) == len(spied.facts["descriptors"]) - 1
    found = [name for name in named if not name.startswith(("pipe:", "/dev/null"))]
    assert found == [str(spied.folder / ".export-gate" / "logs" / "spy.log")] * 2
    assert sum(name.startswith("pipe:") for name in spied.facts["descriptors"]) == 1


@pytest.mark.slow
def test_missing_torch_names_the_interpreter_and_what_to_install(driver: Path, tmp_path: Path):
    """A project's interpreter without torch and numpy is the user's mistake: exit 2, with the command to run."""
    done = gate(driver, "run", "-c", AFFINE, "--python", driver, "--report-dir", tmp_path / "report", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        f"export-gate 0.1.0: 1 model with {driver} (--python)",
        (
            f"{driver} (the project's interpreter) cannot import torch, numpy: install with `{driver} -m pip install "
            "torch numpy`, or name another interpreter with `--python`, EXPORT_GATE_PYTHON or `python:` in the config"
        ),
    ]


@pytest.mark.slow
def test_missing_onnxruntime_fails_the_onnx_target_alone(driver: Path, without_onnxruntime: Path, tmp_path: Path):
    """The other targets are verified, and the finding has the command to run."""
    done = gate(
        driver, "run", "-c", AFFINE, "--python", without_onnxruntime, "--report-dir", tmp_path / "r", cwd=tmp_path
    )
    assert done.returncode == 1, done.stdout + done.stderr
    results = json.loads((tmp_path / "r" / "results.json").read_text())
    violations = [finding for finding in results["findings"] if finding["severity"] == "violation"]
    assert [(finding["rule"], finding["target"]) for finding in violations] == [("load-failed", "onnx")]
    assert violations[0]["message"] == (
        f"affine-map, onnx: the artifact does not load: a package is missing: {without_onnxruntime} (the project's "
        f"interpreter) cannot import onnxruntime: install with `{without_onnxruntime} -m pip install onnxruntime`, or "
        "name another interpreter with `--python`, EXPORT_GATE_PYTHON or `python:` in the config"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nowhere/python", "python-of-no-path"])
def test_interpreter_that_does_not_exist(driver: Path, tmp_path: Path, name: str):
    """A named interpreter that does not exist is never replaced by another: exit 2, with the path."""
    done = gate(driver, "run", "-c", AFFINE, "--python", name, cwd=tmp_path)
    expected = f"--python: there is no interpreter {name!r} (looked for {tmp_path / name})\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


@pytest.mark.slow
def test_interpreter_that_is_not_executable(driver: Path, tmp_path: Path):
    """A file without the executable bit: exit 2."""
    (tmp_path / "python").write_text("#!/bin/sh\n")
    done = gate(driver, "run", "-c", AFFINE, cwd=tmp_path, EXPORT_GATE_PYTHON=str(tmp_path / "python"))
    expected = f"EXPORT_GATE_PYTHON: {tmp_path / 'python'} is not executable\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#!/bin/true\n", "it ended with exit status 0 and printed nothing"),
        ("#!/bin/sh\necho no such venv >&2; exit 3\n", "it ended with exit status 3 and printed no such venv"),
        ("#!/nowhere/at/all\n", "No such file or directory"),
        ("\x7fELF", "Exec format error"),
    ],
)
def test_interpreter_that_is_no_python(driver: Path, tmp_path: Path, text: str, why: str):
    """A file that starts but does not run Python, a dangling shebang and a broken binary: exit 2, with the reason."""
    python = tmp_path / "python"
    python.write_text(text)
    python.chmod(0o755)
    done = gate(driver, "run", "-c", AFFINE, "--python", python, "--report-dir", tmp_path / "report", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[1:] == [f"{python} does not run Python: {why}"]


@pytest.mark.slow
def test_interpreter_that_is_too_old(driver: Path, tmp_path: Path):
    """Python 3.9: exit 2, with both versions."""
    candidates = (*Path.home().glob(".pyenv/versions/3.9.*/bin/python"), shutil.which("python3.9"))
    old = next((str(path) for path in candidates if path and not why_no_python(Path(path), os.environ)), None)
    if old is None:
        pytest.skip("no Python 3.9 on this machine")
    done = gate(driver, "run", "-c", AFFINE, "--python", old, "--report-dir", tmp_path / "report", cwd=tmp_path)
    version = subprocess.run(
        [old, "-c", "import platform; print(platform.python_version())"], capture_output=True, text=True, check=True
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[1:] == [
        f"export-gate needs Python 3.10 or newer in the project; {old} is {version.stdout.strip()}"
    ]
