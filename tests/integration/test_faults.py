"""One run over models that crash, hang, flood and leave daemons: each has its own finding, the rest is verified."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from leftovers import MARKER, processes_with

FAULTS = Path(__file__).parents[1] / "models" / "faults"
GATE = Path(sys.executable).with_name("export-gate")
EVERY_TARGET = "{onnx: {}, pt2: {}, exported-program: {}}"
ONE_TARGET = "{exported-program: {}}"

MODELS = {
    "first": ("healthy.py:make", EVERY_TARGET, "2m"),
    "segfault": ("in_forward.py:make_segfault", ONE_TARGET, "2m"),
    "exit": ("in_forward.py:make_exit", ONE_TARGET, "2m"),
    "sys-exit": ("in_forward.py:make_sys_exit", ONE_TARGET, "2m"),
    "kill": ("in_forward.py:make_kill", ONE_TARGET, "2m"),
    "hang": ("in_forward.py:make_hang", ONE_TARGET, "3s"),
    "out-of-memory": ("in_forward.py:make_out_of_memory", ONE_TARGET, "2m"),
    "recursion": ("in_forward.py:make_recursion", ONE_TARGET, "2m"),
    "overflow": ("in_forward.py:make_overflow", ONE_TARGET, "2m"),
    "unshowable": ("in_forward.py:make_unshowable", ONE_TARGET, "2m"),
    "loud": ("in_forward.py:make_loud", ONE_TARGET, "2m"),
    "junk": ("in_forward.py:make_junk", ONE_TARGET, "2m"),
    "deaf": ("in_forward.py:make_deaf", ONE_TARGET, "2m"),
    "daemon": ("in_forward.py:make_daemon", ONE_TARGET, "2m"),
    "segfault-in-onnx": ("in_target.py:make_segfault_in_onnx", EVERY_TARGET, "2m"),
    "hang-in-onnx": ("in_target.py:make_hang_in_onnx", EVERY_TARGET, "20s"),
    "unshowable-in-onnx": ("in_target.py:make_unshowable_in_onnx", EVERY_TARGET, "2m"),
    "abort-in-pt2": ("in_target.py:make_abort_in_pt2", EVERY_TARGET, "2m"),
    "last": ("healthy.py:make", EVERY_TARGET, "2m"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the command line."""

    status: int
    output: str
    folder: Path
    results: dict[str, Any]
    left_behind: list[str]

    def model(self, name: str) -> dict[str, Any]:
        """What was observed of a model."""
        (found,) = [model for model in self.results["run"]["models"] if model["model"] == name]
        return found

    def violations(self, name: str) -> list[dict[str, Any]]:
        """Violations of a model."""
        return [f for f in self.results["findings"] if f["model"] == name and f["severity"] == "violation"]

    def compared(self, name: str) -> dict[str, int]:
        """Target -> control inputs at which outputs were compared."""
        return {t["target"]: sum(bool(c["outputs"]) for c in t["cases"]) for t in self.model(name)["targets"]}


def config_text() -> str:
    """All models under one contract."""
    models = [
        f"  {name}: {{factory: '{factory}', targets: {targets}, timeout: {timeout}, "
        "dims: {batch: {min: 1, max: 4}}, inputs: {x: {dtype: float32, shape: [batch, 2], range: [-1, 1]}}}"
        for name, (factory, targets, timeout) in MODELS.items()
    ]
    defaults = "defaults: {controls: {limit: 5, affine-basis: never}}"
    return "\n".join(["version: 1", defaults, "models:", *models])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All models in one run, two at a time."""
    folder = tmp_path_factory.mktemp("faults")
    for source in FAULTS.glob("*.py"):
        shutil.copy(source, folder)
    (folder / "export-gate.yml").write_text(config_text())
    marker = uuid.uuid4().hex
    environment = {**os.environ, MARKER: marker, "OMP_NUM_THREADS": "1"}
    command = [GATE, "run", "--jobs", "2", "--report-dir", folder / "report"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    left_behind = processes_with(marker)
    results = json.loads((folder / "report" / "results.json").read_text())
    return Run(
        status=done.returncode,
        output=done.stdout + done.stderr,
        folder=folder / "report",
        results=results,
        left_behind=left_behind,
    )


@pytest.mark.slow(seconds=45)
def test_run_with_faults_is_red_and_complete(run: Run):
    """A dying model affects only its own verdict: exit 1, and results and report contain every model."""
    assert run.status == 1, run.output
    report = (run.folder / "report.md").read_text()
    assert [name for name in MODELS if name not in report] == []
    assert sorted(model["model"] for model in run.results["run"]["models"]) == sorted(MODELS)
    assert run.results["verdict"] == "violations"
    assert run.results["run"]["environment"]["versions"]["torch"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first", "last"])
def test_sound_models_beside_faulty_ones_are_verified(run: Run, name: str):
    """A model before all the faulty ones and one after them are verified on every target."""
    assert run.violations(name) == []
    assert run.compared(name) == {"exported-program": 5, "pt2": 5, "onnx": 5}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "ending"),
    [("segfault", "SIGSEGV"), ("overflow", "SIGSEGV"), ("kill", "SIGKILL"), ("exit", "exit 0")],
)
def test_death_in_forward_names_what_ended_the_process(run: Run, name: str, ending: str):
    """A crash, a stack overflow, the kernel's kill and a silent exit are each one violation of the model."""
    (found,) = run.violations(name)
    assert found["rule"] == "worker-died"
    assert re.fullmatch(
        rf"{name}(, case \S+)?: the worker died with {ending} in stage (controls|eager)", found["message"]
    )
    assert found["target"] is None


@pytest.mark.slow
def test_hanging_forward_is_stopped(run: Run):
    """A forward that never returns, ignores SIGTERM and has a child of its own ends with its timeout."""
    (found,) = run.violations("hang")
    assert found["rule"] == "timed-out"
    where = r"(controls|eager)( after \d+ of \d+ control inputs)?"
    expected = rf"hang(, case \S+)?: not finished within the timeout of 3 s; it was stopped in stage {where}"
    assert re.fullmatch(expected, found["message"])
    assert run.model("hang")["duration_s"] < 60


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "raised"),
    [
        ("sys-exit", "SystemExit: done here"),
        ("out-of-memory", "MemoryError"),
        ("recursion", "RecursionError: maximum recursion depth exceeded"),
        ("unshowable", "Local: (its text cannot be shown: RuntimeError)"),
    ],
)
def test_exception_in_forward_breaks_the_contract(run: Run, name: str, raised: str):
    """An exception of forward is shown with the project's own line, even if its text cannot be made."""
    (found,) = run.violations(name)
    assert found["rule"] == "contract-broken"
    assert raised in found["message"]
    assert found["source"]["path"].endswith("in_forward.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rule", "message"),
    [
        (
            "segfault-in-onnx",
            "worker-died",
            "segfault-in-onnx, onnx: the worker died with SIGSEGV in stage load",
        ),
        (
            "hang-in-onnx",
            "timed-out",
            "hang-in-onnx, onnx: not finished within the timeout of 20 s; it was stopped in stage load",
        ),
        (
            "abort-in-pt2",
            "worker-died",
            "abort-in-pt2, pt2, case normal-1@batch=1: the worker died with SIGABRT in stage run",
        ),
        (
            "unshowable-in-onnx",
            "run-failed",
            (
                "unshowable-in-onnx, onnx, case normal-1@batch=3: onnx raised where eager does not: Unshowable: "
                "(its text cannot be shown: RuntimeError)"
            ),
        ),
    ],
)
def test_target_that_takes_its_process_down_leaves_the_others_verified(run: Run, name: str, rule: str, message: str):
    """The finding names target, stage and case; another process observes the model's other targets."""
    found = run.violations(name)
    said = [(f["rule"], f["message"]) for f in found]
    assert (rule, message) in said
    broken = {f["target"] for f in found}
    assert broken == {"pt2" if name == "abort-in-pt2" else "onnx"}
    sound = {target: cases for target, cases in run.compared(name).items() if target not in broken}
    assert sound == dict.fromkeys(sorted({"exported-program", "pt2", "onnx"} - broken), 5)


@pytest.mark.slow
def test_flood_of_output_is_kept_apart(run: Run):
    """20 MB on standard output and error change no verdict: the log has all of it, the results the end."""
    assert run.violations("loud") == []
    assert run.compared("loud") == {"exported-program": 5}
    printed = run.model("loud")["printed"]
    assert len(printed) <= 4000
    assert printed.rstrip().endswith("the last words")
    assert (run.folder / "logs" / "loud.log").stat().st_size > 20_000_000
    assert "not a command" not in run.output


@pytest.mark.slow
def test_junk_on_every_descriptor_loses_no_fact(run: Run):
    """A model that writes to every open descriptor at each call is observed like any other."""
    assert run.violations("junk") == []
    assert run.compared("junk") == {"exported-program": 5}


@pytest.mark.slow
def test_lost_facts_are_never_green(run: Run):
    """If a model kept facts from arriving, it is red: one of them may have been a difference."""
    (found,) = run.violations("deaf")
    assert found["rule"] == "worker-died"
    assert re.fullmatch(r"deaf(, case \S+)?: the worker died with a damaged channel in stage \w+", found["message"])
    assert found["hint"] == (
        "Something in the model writes to file descriptors that it did not open, and observations were lost: "
        "write only to files that the model opens, or to standard output."
    )


@pytest.mark.slow
def test_nothing_is_left_running(run: Run):
    """Neither the process that a hanging model started nor a daemon in a session of its own outlives the run."""
    assert run.violations("daemon") == []
    assert run.left_behind == []
