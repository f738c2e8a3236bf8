"""Project code that tries to talk the gate into green: each attempt is prevented or detected, none disturbs the others.

The lying models compute something else while they are exported, so that every verdict but red is a success of theirs.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from leftovers import MARKER, processes_with

HOSTILE = Path(__file__).parents[1] / "models" / "hostile"
GATE = Path(sys.executable).with_name("export-gate")

RED = ("value-mismatch",)
REPLACED = "replaced"
"""The gate's own code was changed: the model has a problem, and no verdict of its own."""
GREEN = ()
SOMEHOW_RED = "red"
"""Whether facts are stolen, or seen in time to be false, is a race: there is a violation either way."""
HONEST = "honest"
"""No lie is told; when torch's own state is left as it was found, and with it what converts, is the collector's."""

ATTEMPTS: dict[str, tuple[str, tuple[str, ...] | str]] = {
    "late": ("forging.py:make_late", ("load-failed",)),  # first, so that others are at work when its daemon acts
    "honest": ("lying.py:make_honest", GREEN),
    "exporting": ("lying.py:make_exporting", RED),
    "watching": ("lying.py:make_watching", RED),
    "counting": ("lying.py:make_counting", ("nondeterministic-model",)),
    "torch-functions": ("tampering.py:make_torch_functions", RED),
    "tensor-methods": ("tampering.py:make_tensor_methods", RED),
    "numpy-functions": ("tampering.py:make_numpy_functions", RED),
    "numpy-core": ("tampering.py:make_numpy_core", RED),
    "array-methods": ("tampering.py:make_array_methods", RED),
    "json": ("tampering.py:make_json", RED),
    "builtins": ("tampering.py:make_builtins", ("export-failed",)),
    "os-write": ("tampering.py:make_os_write", RED),
    "gate-targets": ("tampering.py:make_gate_targets", RED),
    "gate-function": ("tampering.py:make_gate_function", REPLACED),
    "gate-code": ("tampering.py:make_gate_code", REPLACED),
    "gate-class": ("tampering.py:make_gate_class", REPLACED),
    "gate-in-forward": ("tampering.py:make_gate_in_forward", REPLACED),
    "modes": ("unsettling.py:make_modes, {lies: false}", GREEN),
    "modes-lying": ("unsettling.py:make_modes, {lies: true}", RED),
    "modes-in-forward": ("unsettling.py:make_modes_in_forward", ("nondeterministic-model",)),
    "inference-mode": ("unsettling.py:make_inference_mode, {lies: false}", HONEST),
    "inference-mode-lying": ("unsettling.py:make_inference_mode, {lies: true}", RED),
    "seeds": ("unsettling.py:make_seeds, {lies: false}", GREEN),
    "seeds-lying": ("unsettling.py:make_seeds, {lies: true}", RED),
    "surroundings": ("unsettling.py:make_surroundings, {lies: false}", GREEN),
    "surroundings-lying": ("unsettling.py:make_surroundings, {lies: true}", RED),
    "files": ("unsettling.py:make_files", RED),
    "results": ("forging.py:make_results", RED),
    "config": ("forging.py:make_config", RED),
    "lines": ("forging.py:make_lines", RED),
    "replay": ("forging.py:make_replay", REPLACED),
    "steal": ("forging.py:make_steal", SOMEHOW_RED),
    "swap": ("forging.py:make_swap", ("load-failed",)),
    "delete": ("forging.py:make_delete", ("load-failed",)),
    "missing": ("forging.py:make_missing", ("load-failed",)),
    "last": ("lying.py:make_honest", GREEN),
}
"""Name -> factory (and its kwargs), and the rules that must be among the violations: none for an honest model."""

DEFAULTS = (
    "defaults: {controls: {limit: 3, affine-basis: never}, timeout: 2m, tolerance: {atol: 1e-6, rtol: 1e-6}, "
    "targets: {exported-program: {}, onnx: {}}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the command line."""

    status: int
    output: str
    folder: Path
    left_behind: list[str]
    config_sha256: str

    @property
    def results(self) -> dict[str, Any]:
        """What the driver wrote."""
        found: dict[str, Any] = json.loads((self.folder / "results.json").read_text())
        return found

    def model(self, name: str) -> dict[str, Any]:
        """What was observed of a model."""
        (found,) = [model for model in self.results["run"]["models"] if model["model"] == name]
        return found

    def violations(self, name: str) -> list[dict[str, Any]]:
        """Violations of a model."""
        return [f for f in self.results["findings"] if f["model"] == name and f["severity"] == "violation"]


def config_text(attempts: dict[str, tuple[str, tuple[str, ...] | str]]) -> str:
    """All models under one contract."""
    lines = ["version: 1", DEFAULTS, "models:"]
    for name, (factory, _) in attempts.items():
        place, _, kwargs = factory.partition(", ")
        lines.append(
            f"  {name}: {{factory: '{place}', kwargs: {kwargs or '{}'}, dims: {{batch: {{min: 1, max: 4}}}}, "
            "inputs: {x: {dtype: float32, shape: [batch, 2], range: [-1, 1]}}}"
        )
    return "\n".join(lines) + "\n"


def attempt(folder: Path, attempts: dict[str, tuple[str, tuple[str, ...] | str]], *options: str) -> Run:
    """The attempts in one run, two at a time."""
    for source in HOSTILE.glob("*.py"):
        shutil.copy(source, folder)
    config = folder / "export-gate.yml"
    config.write_text(config_text(attempts))
    before = hashlib.sha256(config.read_bytes()).hexdigest()
    marker = uuid.uuid4().hex
    environment = {**os.environ, MARKER: marker, "OMP_NUM_THREADS": "1"}
    command = [GATE, "run", "--jobs", "2", "--report-dir", folder / "report", *options]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    return Run(
        status=done.returncode,
        output=done.stdout + done.stderr,
        folder=folder / "report",
        left_behind=processes_with(marker),
        config_sha256=before,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All attempts in one run; experiments after a failure leave its verdict as it is."""
    return attempt(tmp_path_factory.mktemp("hostile"), ATTEMPTS, "--no-diagnosis")


def outcome(run: Run, name: str) -> tuple[str, set[str]]:
    """What was said of a model: the start of its problem, or nothing; and the rules of its violations."""
    problem = run.model(name)["problem"]
    return problem["message"] if problem else "", {found["rule"] for found in run.violations(name)}


@pytest.mark.slow(seconds=60)
@pytest.mark.parametrize("name", ATTEMPTS)
def test_no_attempt_is_green(run: Run, name: str):
    """Each attempt ends red, or the message names what it replaced; honest models next to it are verified."""
    require_as_expected(run, name)


@pytest.mark.slow(seconds=12)
def test_experiments_do_not_help_an_attempt(tmp_path: Path):
    """They run the project's code again after a difference was found, and whatever it does then, there is one."""
    names = ("exporting", "json", "results")
    run = attempt(tmp_path, {name: ATTEMPTS[name] for name in names})
    for name in names:
        assert any(target["inspections"] for target in run.model(name)["targets"])
        require_as_expected(run, name)


def require_as_expected(run: Run, name: str) -> None:
    """What was said of an attempt is what `ATTEMPTS` expects."""
    expected = ATTEMPTS[name][1]
    problem, rules = outcome(run, name)
    sys.stdout.write(f"{name:22} {', '.join(sorted(rules)) or '-':45} {problem}\n")
    if expected == REPLACED:
        assert problem.startswith(f"models.{name}: the project's code replaced export_gate.")
        assert problem.endswith("which is part of export-gate")
    elif expected == SOMEHOW_RED:
        assert (problem, bool(rules)) == ("", True)
    elif expected == HONEST:
        assert (problem, rules <= {"conversion-failed"}) == ("", True)
    else:
        assert (problem, set(expected) <= rules, bool(rules)) == ("", True, bool(expected)), run.violations(name)


@pytest.mark.slow
def test_the_drivers_files_are_the_drivers(run: Run):
    """Whatever was written to the results, the config and the artifacts meanwhile, the files have what was observed."""
    assert run.status == 2, run.output  # a replaced function is a problem, which outweighs violations
    assert run.results["verdict"] == "problem"
    assert [model["model"] for model in run.results["run"]["models"]] != []
    assert sorted(model["model"] for model in run.results["run"]["models"]) == sorted(ATTEMPTS)
    assert run.results["config_sha256"] == run.config_sha256
    assert "violations" in (run.folder / "report.md").read_text()
    for name in ATTEMPTS:
        manifest = run.folder / "artifacts" / name / "manifest.json"
        if manifest.exists():
            assert not json.loads(manifest.read_text())["verified"], name  # not while any model has a problem


@pytest.mark.slow
@pytest.mark.parametrize("name", ["swap", "late"])
def test_an_artifact_that_changes_is_not_verified(run: Run, name: str):
    """If a file is not the one that was loaded, both digests are reported, whoever changed it and when."""
    (found,) = run.violations(name)
    verified = run.model(name)["targets"][-1]["artifact"]["sha256"]
    path = run.folder / "artifacts" / name / "model.onnx"
    now = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    assert found["message"] == (
        f"{name}, onnx: the artifact changed while it was verified: artifacts/{name}/model.onnx was sha256 "
        f"{verified[:12]}... when it was loaded; now it is {now}..."
    )
    assert found["hint"] == (
        "Find what writes to it while the gate runs (the model's code, or another job in the folder): the file "
        "there now is not the one that was verified, so do not ship it."
    )


@pytest.mark.slow
def test_nothing_outlives_the_run(run: Run):
    """Daemons in sessions of their own have ended before the results are written."""
    assert run.left_behind == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no /proc here")
def test_a_line_put_into_the_workers_pipe_ends_the_run(tmp_path: Path):
    """A fact that the worker did not send is noticed: there is no verdict and no result."""
    run = attempt(tmp_path, {"server-line": ("forging.py:make_server_line", RED)})
    assert run.status == 3, run.output
    assert "the worker's events were damaged: expected number " in run.output
    assert not (run.folder / "results.json").exists()
