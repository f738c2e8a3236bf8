"""What is published works: the sdist builds the wheel, and the wheel runs with the declared dependencies alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from environments import clean_environment

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted(path.name for path in (ROOT / "templates").iterdir())
RENDER_ALL = """
from typing import get_args
from export_gate.wall.contract import ModelContract, Size, TensorSpec, make_target
from export_gate.wall.description import Description, Guess
from export_gate.wall.observation import ModelObservation, RunObservation
from export_gate.report.build import build_report
from export_gate.report.html import render_html
from export_gate.report.render import TEMPLATES, Format, render
from export_gate.report.results import Results
from export_gate.rules.base import Finding
from export_gate.starter.write import Starter, render_config, render_starter

results = Results(
    tool_version="0.1.0", config_path="export-gate.yml", config_sha256="0" * 64, started="2026-01-01T00:00:00Z",
    duration_s=1.0, verdict="violations", run=RunObservation(models=(ModelObservation(model="glyph-head"),)),
    contracts=(ModelContract(name="glyph-head", factory="m:f", inputs={}, targets=(make_target("onnx"),)),),
    findings=(Finding(rule="value-mismatch", severity="violation", model="glyph-head", message="off", hint="fix it"),),
)
for format in get_args(Format):
    text = render(build_report(results), format)
    assert "glyph-head" in text and "value-mismatch" in text, text
    print(TEMPLATES[format])
page = render_html(results, build_report(results))
assert "value-mismatch" in page and "@media" in page
print("report.html.j2 report.css")
guess = Guess(name="x", spec=TensorSpec(dtype="float32", shape=(Size(offset=2),)), reason="its name")
model = Description(signature="forward(x)", inputs=(guess,), verdict="works", tried=1)
starter = Starter(name="glyph-head", factory="m:f", kwargs={}, trial=(), outputs=())
assert "factory: m:f" in render_config(render_starter(starter, model))
print("starter.yml.j2 starter_model.yml.j2")
"""
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "EXPORT_GATE"))}
ENVIRONMENT["EXPORT_GATE_RUN_NO_CACHE"] = "1"


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the sdist, and the wheel built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`bin` of a clean environment that holds the wheel and what it declares, and no more.

    The dependencies are links to this environment's own, so that no test needs a network.
    """
    clean = tmp_path_factory.mktemp("clean")
    scripts = clean_environment(clean, "export-gate")
    (wheel,) = built.glob("*.whl")
    python = scripts / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=clean)
    return scripts


@pytest.mark.slow
def test_sdist_carries_all_that_builds_and_checks_it(built: Path):
    """Sources, templates, tests, examples and the licence are in the sdist."""
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = {"LICENSE", "README.md", "pyproject.toml", "Makefile", "constraints.txt", "examples/export-gate.yml"}
    expected |= {"src/export_gate/cli/main.py", "tests/integration/test_packaging.py"}
    expected |= {f"templates/{name}" for name in TEMPLATES}
    assert expected - names == set()


def test_wheel_holds_the_package_the_templates_and_the_licence(built: Path):
    """The wheel has every source file and template once, the licence, and nothing else."""
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    assert len(names) == len(set(names))
    package = {name for name in names if ".dist-info/" not in name}
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "export_gate").rglob("*.py")}
    assert package == sources | {f"export_gate/templates/{name}" for name in TEMPLATES}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_version_of_the_wheel_is_the_packages(built: Path):
    """The file name contains `__version__`, the only place that defines the version."""
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/export_gate/__init__.py").read_text())
    assert version is not None
    assert [path.name for path in built.glob("*.whl")] == [f"export_gate-{version[1]}-py3-none-any.whl"]


@pytest.mark.slow
def test_installed_command_says_its_version(installed: Path):
    """`export-gate --version` works with the declared dependencies alone."""
    assert re.fullmatch(
        r"export-gate, version \d+\.\d+\.\d+\n", run(installed / "export-gate", "--version", cwd=installed)
    )


def test_installed_environment_has_no_torch(installed: Path):
    """The driver's environment has none of the project's packages, and the command works without them."""
    code = "import importlib.util as u; print([n for n in ('torch', 'numpy', 'onnx', 'onnxruntime') if u.find_spec(n)])"
    assert run(installed / "python", "-c", code, cwd=installed) == "[]\n"


@pytest.mark.slow
def test_installed_templates_render(installed: Path):
    """Every template is found and rendered if only the wheel is installed."""
    rendered = run(installed / "python", "-c", RENDER_ALL, cwd=installed).split()
    assert set(rendered) == {name for name in TEMPLATES if not name.startswith("_")}


@pytest.mark.slow
def test_installed_command_drives_the_projects_interpreter(installed: Path, tmp_path: Path):
    """From an environment without torch, an example is verified by the interpreter of a project that has it."""
    config = ROOT / "examples" / "affine" / "export-gate.yml"
    gate = (installed / "export-gate", "run", "--config", config, "--python", sys.executable)
    assert "1 of 1 model verified" in run(*gate, "--report-dir", tmp_path / "report", cwd=installed)
    assert (tmp_path / "report" / "results.json").is_file()
    assert "1 of 1 model verified</h1>" in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_installed_rules_are_listed(installed: Path):
    """A command that reads the package's own data works from the wheel."""
    assert "value-mismatch" in run(installed / "export-gate", "rules", cwd=installed)


def test_licence_is_declared_and_included(built: Path):
    """The metadata names Apache-2.0, and LICENSE is its text."""
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        assert "License-Expression: Apache-2.0\n" in archive.read(metadata).decode()
    assert "Apache License\n                           Version 2.0" in (ROOT / "LICENSE").read_text()
