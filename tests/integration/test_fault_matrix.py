"""Every way that a process can fail at every stage that it can fail in, and what the run makes of it.

`pytest -s` prints the matrix. The models of one file are one run; the machine's own faults are runs of their own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from leftovers import MARKER, processes_with

pytestmark = pytest.mark.nightly  # test_faults.py has a fault of each kind

MODELS = Path(__file__).parents[1] / "models" / "faults"
GATE = Path(sys.executable).with_name("export-gate")

DIED = {"sigsegv": "SIGSEGV", "sigabrt": "SIGABRT", "sigkill": "SIGKILL", "os-exit": "exit 0", "overflow": "SIGSEGV"}
RAISED = {"memory": "MemoryError", "sys-exit": "SystemExit: 3"}
FAULTS = (*DIED, *RAISED, "hang")
STAGES = ("factory", "controls", "eager", "eager-probe", "export", "convert", "load", "run", "probe")
RULE_OF_STAGE = {
    "eager": "contract-broken",
    "controls": "contract-broken",
    "export": "export-failed",
    "convert": "conversion-failed",
    "load": "load-failed",
    "run": "run-failed",
}
"""What an exception there is called."""
NAMES = {
    "factory": "model",
    "eager": "(controls|eager)",
    "controls": "controls",
    "export": "export",
    "convert": "convert",
    "load": "load",
    "run": "run",
}
"""What messages call the stage; eager runs first while its work is counted for the control set."""
HANG_S = 25
ENTRY = """\
  {fault}-{stage}:
    factory: matrix.py:make
    kwargs: {{fault: {fault}, at: {stage}}}
    timeout: {timeout}
    dims: {{batch: {{min: 1, max: 4}}}}
    inputs: {{x: {{dtype: float32, shape: [batch, 2], range: [-1, 1]}}}}
    controls: {{limit: 3, affine-basis: never{function}}}
    targets: {{{target}: {{}}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the command line."""

    status: int
    output: str
    report: Path
    left_behind: list[str]

    @property
    def results(self) -> dict[str, Any]:
        """What the driver wrote."""
        found: dict[str, Any] = json.loads((self.report / "results.json").read_text())
        return found

    @property
    def files(self) -> set[str]:
        """Every file in the report folder."""
        return {path.relative_to(self.report).as_posix() for path in self.report.rglob("*") if path.is_file()}

    def said(self, model: str) -> tuple[str, str]:
        """The rule and message of a model's only violation, or its problem's; empty where it is verified."""
        (seen,) = [m for m in self.results["run"]["models"] if m["model"] == model]
        if seen["problem"]:
            return "problem", str(seen["problem"]["message"])
        found = [f for f in self.results["findings"] if f["model"] == model and f["severity"] == "violation"]
        assert len(found) <= 1, found
        return (found[0]["rule"], found[0]["message"]) if found else ("", "")


def gate(folder: Path, *options: str | Path, env: Mapping[str, str] | None = None) -> Run:
    """Run the command line in a project's folder."""
    marker = uuid.uuid4().hex
    environment = {**os.environ, MARKER: marker, "OMP_NUM_THREADS": "1", **(env or {})}
    report = folder / "report"
    named = () if "--report-dir" in options else ("--report-dir", report)
    done = subprocess.run(
        [GATE, "run", *named, *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    return Run(
        status=done.returncode,
        output=done.stdout + done.stderr,
        report=report,
        left_behind=processes_with(marker),
    )


def project(folder: Path, *entries: str) -> Path:
    """A project with the faulty models."""
    for source in MODELS.glob("*.py"):
        shutil.copy(source, folder)
    (folder / "export-gate.yml").write_text("version: 1\nmodels:\n" + "".join(entries))
    return folder


def entry(fault: str, stage: str) -> str:
    """The contract of one cell; only targets that have a file are converted and loaded."""
    return ENTRY.format(
        fault=fault,
        stage=stage,
        timeout=f"{HANG_S}s" if fault == "hang" else "3m",
        function=", function: matrix.py:cases" if stage == "controls" else "",
        target="pt2" if stage in ("convert", "load", "run", "probe") else "exported-program",
    )


AFTER = r"( after \d+ of \d+ control inputs)?"
"""Where a stage runs them."""


def expected(fault: str, stage: str) -> tuple[str, str]:
    """Rule and pattern of the message of one cell."""
    model = f"{fault}-{stage}"
    if stage in ("eager-probe", "probe"):
        return "", ""  # input that the contract does not admit: the answer is a refusal, whatever it was
    place = f"{model}(, pt2)?(, case \\S+)?: "
    if fault in DIED:
        return "worker-died", f"{place}the worker died with {DIED[fault]} in stage {NAMES[stage]}"
    if fault == "hang":
        return (
            "timed-out",
            f"{place}not finished within the timeout of {HANG_S} s; it was stopped in stage {NAMES[stage]}{AFTER}",
        )
    if stage == "factory":
        exit_or_raise = (
            r"called sys\.exit\(3\): it must return the model" if fault == "sys-exit" else "raised MemoryError: .*"
        )
        return "problem", f"factory 'matrix.py:make' {exit_or_raise}"
    if stage == "controls" and fault == "memory":
        return "problem", r"models\.memory-controls\.controls\.function: matrix\.py:cases: expected a dict of cases, .*"
    return RULE_OF_STAGE[stage], f"{place}.*{RAISED[fault]}.*"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All cells in one run; hanging ones cost no processor."""
    folder = tmp_path_factory.mktemp("matrix")
    project(folder, *(entry(fault, stage) for stage in STAGES for fault in FAULTS))
    return gate(folder, "--jobs", "4")


@pytest.mark.slow(seconds=35)
@pytest.mark.parametrize("stage", STAGES)
def test_each_fault_at_each_stage_is_told(run: Run, stage: str):
    """The finding says what ended the process and where; the run's other models have their own verdicts."""
    cells = {fault: run.said(f"{fault}-{stage}") for fault in FAULTS}
    sys.stdout.write(f"\n{stage:12}" + "".join(f"{fault} {rule or 'verified'}; " for fault, (rule, _) in cells.items()))
    for fault, (rule, message) in cells.items():
        wanted, pattern = expected(fault, stage)
        assert rule == wanted, (fault, rule, message)
        assert re.fullmatch(pattern, message, re.DOTALL), (fault, message)


@pytest.mark.slow
def test_matrix_leaves_whole_files_and_no_process(run: Run):
    """Results contain every model, no process is left, and the only artifacts are verified ones."""
    assert run.status == 2, run.output  # a factory that exits is the user's mistake, which outweighs violations
    assert len(run.results["run"]["models"]) == len(STAGES) * len(FAULTS)
    assert run.left_behind == []
    named = {
        name
        for model in run.results["run"]["models"]
        for target in model["targets"]
        if target["artifact"]
        for name in target["artifact"]["files"]
    }
    found = {name for name in run.files if name.startswith("artifacts/") and not name.endswith("manifest.json")}
    assert found == named
    assert [name for name in run.files if "partial" in name] == []


SOUND = """\
  sound:
    factory: {factory}
    dims: {{batch: {{min: 1, max: 4}}}}
    inputs: {{x: {{dtype: float32, shape: [batch, 2], range: [-1, 1]}}}}
    controls: {{limit: 3, affine-basis: never}}
    targets: {{{targets}}}
"""
LARGE = """
import torch
from healthy import Small

def make():
    model = Small().eval()
    model.register_buffer("table", torch.rand(1 << 20))
    return model
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("mounting is not allowed here")
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.slow
def test_artifact_that_the_disk_cannot_hold(tmp_path: Path, small_disk: Path):
    """A full disk ends the conversion (torch aborts): the incomplete file is removed, the results are complete."""
    project(tmp_path, SOUND.format(factory="large.py:make", targets="pt2: {}, exported-program: {}"))
    (tmp_path / "large.py").write_text(LARGE)
    done = gate(tmp_path, "--report-dir", small_disk / "report")
    assert done.status == 1, done.output
    results = json.loads((small_disk / "report" / "results.json").read_text())
    (found,) = [f for f in results["findings"] if f["severity"] == "violation"]
    assert found["message"] == "sound, pt2: the worker died with SIGABRT in stage convert"
    assert found["hint"] == (
        "Native code aborted on a failed assertion, which is usually among the last lines printed (see the details); "
        "in stage convert, torch also aborts if the disk is full."
    )
    assert not list(small_disk.rglob("*.pt2"))


@pytest.mark.slow
def test_results_that_the_disk_cannot_hold(tmp_path: Path, small_disk: Path):
    """Without room for the results, there is no verdict, one line says so, and no incomplete file is left."""
    project(tmp_path, SOUND.format(factory="filling.py:make", targets="exported-program: {}"))
    (tmp_path / "filling.py").write_text(
        "import contextlib, healthy\ndef make():\n"
        f"    with contextlib.suppress(OSError), open('{small_disk}/full', 'wb', 0) as file:\n"
        "        while file.write(b'0' * 4096): pass\n"
        "    return healthy.make()\n"
    )
    done = gate(tmp_path, "--report-dir", small_disk / "report")
    assert done.status == 3, done.output
    place = small_disk / "report" / "results.json"
    assert f"{place}: the results could not be written: No space left on device\n" in done.output
    assert done.output.endswith("no verdict: the gate itself failed\n")
    assert {path.name for path in small_disk.rglob("*.json*")} == set()


@pytest.mark.slow
def test_without_a_temporary_folder(tmp_path: Path):
    """If TMPDIR names a folder that does not exist, the run uses another one."""
    project(tmp_path, SOUND.format(factory="healthy.py:make", targets="exported-program: {}, pt2: {}"))
    done = gate(tmp_path, env={"TMPDIR": "/nowhere", "TMP": "/nowhere", "TEMP": "/nowhere"})
    assert (done.status, done.results["verdict"]) == (0, "verified"), done.output


def stub(tmp_path: Path, package: str, source: str) -> dict[str, str]:
    """An environment in which that package is this file."""
    folder = tmp_path / "stubs"
    folder.mkdir()
    (folder / f"{package}.py").write_text(source)
    return {"PYTHONPATH": str(folder)}


@pytest.mark.slow
def test_broken_onnxruntime_fails_its_target_alone(tmp_path: Path):
    """A package that raises while it is imported is a failed load of the ONNX target; the other target is verified."""
    project(tmp_path, SOUND.format(factory="healthy.py:make", targets="exported-program: {}, onnx: {}"))
    done = gate(tmp_path, env=stub(tmp_path, "onnxruntime", "raise ImportError('libonnx.so.1: cannot open')"))
    assert done.status == 1, done.output
    assert done.said("sound") == (
        "load-failed",
        "sound, onnx: the artifact does not load: ImportError: libonnx.so.1: cannot open",
    )


@pytest.mark.slow
def test_broken_torch_says_why(tmp_path: Path):
    """Torch is installed but does not import: exit 2 with torch's own message, not with advice to install it."""
    project(tmp_path, SOUND.format(factory="healthy.py:make", targets="exported-program: {}"))
    done = gate(
        tmp_path, "--python", sys.executable, env=stub(tmp_path, "torch", "raise OSError('libtorch.so: bad ELF')")
    )
    assert done.status == 2, done.output
    assert (
        f"{sys.executable} (the project's interpreter) has torch, but cannot import it: OSError: libtorch.so: bad ELF; "
        "install again, or name another interpreter with `--python`, EXPORT_GATE_PYTHON or `python:` in the config\n"
    ) in done.output
    assert not (done.report / "results.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_worker_that_is_killed_ends_the_run(tmp_path: Path, number: signal.Signals):
    """If the worker itself is killed, the run ends within seconds: exit 3, a clear line, no process and no results."""
    project(tmp_path, entry("hang", "eager").replace(f"{HANG_S}s", "3m"))
    marker = uuid.uuid4().hex
    environment = {**os.environ, MARKER: marker, "OMP_NUM_THREADS": "1"}
    command = [GATE, "run", "--report-dir", tmp_path / "report"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as driver:
        os.kill(worker_of(driver.pid), number)
        output, _ = driver.communicate(timeout=60)
    assert driver.returncode == 3, output
    assert "the worker under " in output
    assert "no verdict: the gate itself failed" in output
    assert not (tmp_path / "report" / "results.json").exists()
    assert processes_with(marker) == []


def worker_of(pid: int) -> int:
    """The driver's worker, once a model's process is at work."""
    for _ in range(1200):
        worker = children_of(pid)
        if worker and children_of(worker[0]):
            time.sleep(0.5)
            return worker[0]
        time.sleep(0.1)
    raise AssertionError("no model was started")


def children_of(pid: int) -> list[int]:
    """Processes that it started."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
