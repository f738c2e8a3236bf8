"""The command line as a user meets it: texts, exit codes, colours, live progress, interruption."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from harness.gate import GATE, real_gate
from harness.gate import gate as run_gate
from leftovers import MARKER, processes_with

from export_gate import __version__
from export_gate.rules import CATALOGUE

ANSI = re.compile(r"\x1b\[")
MODELS = """
import subprocess
import sys
import time

import torch


class Curve(torch.nn.Module):
    def forward(self, x):
        return {"y": torch.sigmoid(x) / 3}


class Slow(torch.nn.Module):
    def forward(self, x):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
        print("forward has begun", flush=True)
        time.sleep(3600)
        return x


def curve():
    return Curve().eval()


def slow():
    return Slow().eval()
"""
CONFIG = """
version: 1
models:
  curve:
    factory: models:curve
    dims: {batch: {min: 1, max: 4}}
    inputs: {x: {dtype: float32, shape: [batch, 2], range: [-1, 1]}}
    controls: {limit: 3, affine-basis: never}
    targets: {exported-program: {}, onnx: {}}
"""
SLOW_CONFIG = """
version: 1
models:
  slow:
    factory: models:slow
    inputs: {x: {dtype: float32, shape: [3, 2], range: [-1, 1]}}
    targets: {exported-program: {}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A command that has ended."""

    status: int
    stdout: str
    stderr: str


def gate(folder: Path, *arguments: str | Path, **environment: str) -> Done:
    """The command line in a folder, its output piped."""
    done = run_gate(folder, *arguments, environment=clean(environment))
    return Done(status=done.returncode, stdout=done.stdout, stderr=done.stderr)


def clean(extra: dict[str, str]) -> dict[str, str]:
    """This environment without what changes the output."""
    changing = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "EXPORT_GATE_PYTHON", "TTY_COMPATIBLE")
    inherited = {name: value for name, value in os.environ.items() if name not in changing}
    return {**inherited, "OMP_NUM_THREADS": "1", "TERM": "xterm-256color", **extra}


def on_terminal(folder: Path, *arguments: str | Path, **environment: str) -> tuple[int, str]:
    """Exit status and everything written, of a command whose standard output and error are a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [GATE, *arguments], cwd=folder, env=clean(environment), stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    written = b""
    while True:
        ready, _, _ = select.select([master], [], [], 0.2)
        if ready:
            try:
                chunk = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            written += chunk
        elif process.poll() is not None:
            break
    os.close(master)
    return process.wait(), written.decode()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one sound model."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "models.py").write_text(MODELS)
    (folder / "export-gate.yml").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def green(project: Path) -> Done:
    """A plain run, piped, in a process of its own."""
    done = real_gate(project, "run", environment=clean({}))
    return Done(status=done.returncode, stdout=done.stdout, stderr=done.stderr)


@pytest.fixture
def results(project: Path, green: Done, tmp_path: Path) -> Path:
    """A copy of the run's results.json."""
    assert green.status == 0, green.stdout + green.stderr
    return Path(shutil.copy(project / ".export-gate" / "results.json", tmp_path))


@pytest.mark.slow
def test_green_run_piped(project: Path, green: Done):
    """The report is on standard output and plain progress on standard error, without escape codes; exit 0."""
    assert green.status == 0, green.stdout + green.stderr
    assert green.stderr.splitlines()[1:] == [
        "curve: eager",
        "curve: export",
        "curve: exported-program",
        "curve: onnx",
        "curve: observed",
    ]
    assert re.fullmatch(rf"export-gate {re.escape(__version__)}: 1 model with \S+ \(.+\)", green.stderr.splitlines()[0])
    assert re.fullmatch(r"export-gate: 1 of 1 model verified in .+", green.stdout.splitlines()[-1])
    assert not ANSI.search(green.stdout + green.stderr)


@pytest.mark.slow
def test_report_folder_holds_everything_and_hides_from_git(project: Path, green: Done):
    """The folder has results.json, report.md, the artifacts with their manifest, the log, and a .gitignore for all."""
    folder = project / ".export-gate"
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert found == [
        ".gitignore",
        "artifacts/curve/manifest.json",
        "artifacts/curve/model.onnx",
        "logs/curve.log",
        "report.html",
        "report.md",
        "results.json",
    ]
    assert (folder / ".gitignore").read_text() == "*\n"


@pytest.mark.slow
def test_quiet_run_from_another_folder(project: Path, tmp_path: Path):
    """-q leaves standard error empty; -c and --report-dir may name any folder."""
    done = gate(tmp_path, "run", "-q", "-c", project / "export-gate.yml", "--report-dir", "out", "--target", "onnx")
    assert (done.status, done.stderr) == (0, "")
    (model,) = json.loads((tmp_path / "out" / "results.json").read_text())["run"]["models"]
    assert [target["target"] for target in model["targets"]] == ["onnx"]


@pytest.mark.slow
def test_terminal_shows_live_progress_and_colours(project: Path, tmp_path: Path):
    """On a terminal, the model's line is redrawn in place: time, control inputs done of planned, stage."""
    status, written = on_terminal(project, "run", "--report-dir", tmp_path)
    assert status == 0, written
    assert "\x1b[2K" in written, "a line was erased, to be drawn again"
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", written)
    assert re.search(r"curve +0:00:\d\d [^\r\n]* (eager|export|onnx (convert|load|run))", plain)
    assert re.search(r"curve +0:00:\d\d [^\r\n]*\d/\d+ +(eager|onnx run|exported-program run)", plain)
    assert re.search(r"models +0:00:\d\d [^\r\n]* 0/1", plain)
    assert re.search(r"\x1b\[[0-9;]*m", written[written.rindex("curve") :] + written)
    assert "curve: observed" not in written


@pytest.mark.slow
def test_a_terminal_says_something_within_a_second(project: Path, tmp_path: Path):
    """Before the worker has imported torch, which takes longer."""
    master, slave = pty.openpty()
    command = [GATE, "run", "--report-dir", tmp_path, "--no-cache"]
    process = subprocess.Popen(command, cwd=project, env=clean({}), stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    deadline, written = time.monotonic() + 1.0, ""
    try:
        while (
            "read the config" not in written
            and select.select([master], [], [], max(0.0, deadline - time.monotonic()))[0]
        ):
            written += os.read(master, 65536).decode()
        assert "read the config" in written
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.mark.slow
def test_no_color_is_honoured(project: Path, results: Path):
    """With NO_COLOR, a terminal shows the same report without a colour code."""
    _, coloured = on_terminal(project, "report", results)
    _, plain = on_terminal(project, "report", results, NO_COLOR="1")
    assert ANSI.search(coloured)
    assert not ANSI.search(plain)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format_", "beginning"),
    [
        ("terminal", "model  exported-program  onnx\n"),
        ("comment", "## "),
        ("summary", "## "),
        ("markdown", "## "),
        ("html", "<!DOCTYPE html>"),
        ("junit", '<testsuites name="export-gate"'),
        ("sarif", '"version": "2.1.0"'),
    ],
)
def test_report_renders_results_again(project: Path, results: Path, format_: str, beginning: str):
    """Each format is printed, or written to a file with the same content; the verdict sets the exit code."""
    done = gate(project, "report", results, "--format", format_)
    assert (done.status, done.stderr) == (0, "")
    assert beginning in done.stdout
    saved = results.with_name("saved")
    again = gate(project, "report", results, "--format", format_, "-o", saved)
    assert (again.status, again.stdout, again.stderr) == (0, "", "")
    assert saved.read_text() == done.stdout


@pytest.mark.slow
def test_report_as_json_is_the_results(project: Path, results: Path):
    """`--format json` gives the file back."""
    done = gate(project, "report", results, "--format", "json")
    assert json.loads(done.stdout) == json.loads(results.read_text())


@pytest.mark.slow
def test_report_into_a_folder_that_is_not_there(project: Path, results: Path):
    """An output that cannot be written is one line and exit 2, because the user named it."""
    done = gate(project, "report", results, "-o", "nowhere/report.md")
    expected = "nowhere/report.md: cannot be written: No such file or directory\n"
    assert (done.status, done.stdout, done.stderr) == (2, "", expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "file not found; `export-gate run` writes it\n"),
        ('{"a": 1}', "expected results of export-gate, got JSON without 'schema_version'\n"),
    ],
)
def test_report_of_a_file_that_is_none(tmp_path: Path, text: str | None, message: str):
    """A missing file, and JSON of another program, give exit 2."""
    file = tmp_path / "results.json"
    if text is not None:
        file.write_text(text)
    done = gate(tmp_path, "report", file)
    assert (done.status, done.stdout, done.stderr) == (2, "", f"{file}: {message}")


@pytest.mark.parametrize("command", ["judge", "report"])
def test_usage_errors_exit_2(tmp_path: Path, command: str):
    """A missing argument is a usage error with click's own text."""
    done = gate(tmp_path, command)
    expected = (
        f"Usage: export-gate {command} [OPTIONS] RESULTS\nTry 'export-gate {command} --help' for help.\n\n"
        "Error: Missing argument 'RESULTS'.\n"
    )
    assert (done.status, done.stdout, done.stderr) == (2, "", expected)


@pytest.mark.slow
def test_judge_without_a_change(project: Path, results: Path):
    """`judge` without a change is a usage error."""
    done = gate(project, "judge", results)
    assert done.status == 2
    assert done.stderr.endswith("Error: nothing to change: give --atol, --rtol, --config or --today\n")


@pytest.mark.slow
def test_judge_turns_red_and_green_again(project: Path, results: Path):
    """Other tolerances give another verdict from the same observations and are saved on request; no model is run."""
    strict = results.with_name("strict.json")
    red = gate(project, "judge", results, "--atol", "0", "--rtol", "0", "--target", "onnx", "-o", strict)
    assert red.status == 1, red.stdout
    assert "FAIL curve onnx, output y: value-mismatch" in red.stdout
    assert json.loads(strict.read_text())["verdict"] == "violations"
    assert gate(project, "report", strict).status == 1
    back = gate(project, "judge", strict, "--atol", "1e-5")
    assert (back.status, "FAIL" in back.stdout) == (0, False)
    assert gate(project, "judge", strict, "--config", "export-gate.yml").status == 0


@pytest.mark.slow
def test_judge_with_a_target_that_is_not_there(project: Path, results: Path):
    """A tolerance for a target that does not exist is refused: exit 2."""
    done = gate(project, "judge", results, "--atol", "1", "--target", "pt3")
    expected = f"{results}: no model has the target 'pt3'; it has exported-program, onnx\n"
    assert (done.status, done.stdout, done.stderr) == (2, "", expected)


@pytest.mark.slow
def test_controls_are_listed_shown_and_saved(project: Path, tmp_path: Path):
    """The list has what a run used; one input can be printed, or saved as the arrays that the model was given."""
    listed = gate(project, "controls", "curve")
    assert (listed.status, listed.stderr) == (0, "")
    names = [line.split()[0] for line in listed.stdout.splitlines()[:3]]
    assert names[0] == "normal-1@batch=3"
    shown = gate(project, "controls", "curve", "--show", names[1], "--save", tmp_path / "x.npz")
    assert shown.status == 0, shown.stderr
    with np.load(tmp_path / "x.npz") as saved:
        array = saved["x"]
    assert (array.dtype, array.shape) == (np.float32, (int(names[1].rpartition("=")[2]), 2))
    assert str(array).splitlines()[0].strip("[]").split()[0] in shown.stdout


@pytest.mark.slow
def test_controls_show_of_an_unknown_name(project: Path):
    """The message lists the existing names: exit 2."""
    done = gate(project, "controls", "curve", "--show", "nope")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith("no control input matches 'nope'; there are ")
    assert done.stderr.endswith("list them with `export-gate controls MODEL`\n")


def test_controls_save_needs_show(project: Path):
    """--save without --show is a usage error."""
    done = gate(project, "controls", "curve", "--save", "x.npz")
    assert done.status == 2
    assert done.stderr.endswith("Error: --save needs --show NAME\n")


def test_validate(project: Path):
    """A valid config is one line."""
    done = gate(project, "validate")
    assert (done.status, done.stdout, done.stderr) == (0, "export-gate.yml: valid, 1 model\n", "")


@pytest.mark.parametrize("arguments", [("schema",), ("schema", "--results")])
def test_schema_is_json_schema(tmp_path: Path, arguments: tuple[str, ...]):
    """Both schemas are objects of draft 2020-12."""
    done = gate(tmp_path, *arguments)
    schema = json.loads(done.stdout)
    assert (done.status, done.stderr) == (0, "")
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is False


def test_rules_are_listed_with_severities(tmp_path: Path):
    """Each rule is one line, in causal order."""
    done = gate(tmp_path, "rules")
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [[rule.name, rule.severity] for rule in CATALOGUE]


def test_version(tmp_path: Path):
    """The package's version."""
    assert gate(tmp_path, "--version").stdout == f"export-gate, version {__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(tmp_path: Path, shell: str):
    """Click's completion script for each shell, and a completed command."""
    script = gate(tmp_path, _EXPORT_GATE_COMPLETE=f"{shell}_source")
    assert script.status == 0
    assert "_EXPORT_GATE_COMPLETE" in script.stdout
    words = {"COMP_WORDS": "export-gate va", "COMP_CWORD": "va" if shell == "fish" else "1"}
    assert "validate" in gate(tmp_path, _EXPORT_GATE_COMPLETE=f"{shell}_complete", **words).stdout


@pytest.fixture
def heeds_interrupts() -> Iterator[None]:
    """Run the command so that it obeys Ctrl-C, even if a shell runs this suite in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("heeds_interrupts")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_leaves_nothing_behind(tmp_path: Path, number: signal.Signals):
    """After Ctrl-C or SIGTERM, the run exits with 130 within seconds, prints one clear line, and leaves nothing."""
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "export-gate.yml").write_text(SLOW_CONFIG)
    marker, log = uuid.uuid4().hex, tmp_path / ".export-gate" / "logs" / "slow.log"
    process = subprocess.Popen(
        [GATE, "run"], cwd=tmp_path, env=clean({MARKER: marker}), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 120
    while not (log.exists() and "forward has begun" in log.read_text()):
        assert time.monotonic() < deadline, "the model never began"
        time.sleep(0.1)
    assert len(processes_with(marker)) >= 4, "the driver, the worker, the model and its two children"
    process.send_signal(number)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output) == (130, b"")
    assert errors.decode().rstrip("\n").splitlines()[-1] == "interrupted: no verdict, nothing was written"
    assert b"Traceback" not in errors
    assert processes_with(marker) == []
    assert sorted(path.name for path in (tmp_path / ".export-gate").iterdir()) == [".gitignore", "logs"]


@pytest.mark.slow
def test_killed_driver_takes_its_worker_along(tmp_path: Path):
    """SIGKILL of the driver leaves no process either: the worker notices and ends its models."""
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "export-gate.yml").write_text(SLOW_CONFIG)
    marker, log = uuid.uuid4().hex, tmp_path / ".export-gate" / "logs" / "slow.log"
    process = subprocess.Popen(
        [GATE, "run"], cwd=tmp_path, env=clean({MARKER: marker}), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 120
    while not (log.exists() and "forward has begun" in log.read_text()):
        assert time.monotonic() < deadline, "the model never began"
        time.sleep(0.1)
    process.kill()
    process.communicate(timeout=30)
    while processes_with(marker):
        assert time.monotonic() < deadline + 30, "something goes on"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("folder", "reason"), [(".export-gate", "File exists"), ("/proc/nowhere", "No such file or directory")]
)
def test_report_folder_that_cannot_be_written(tmp_path: Path, folder: str, reason: str):
    """If the report folder cannot be written, the exit code is 3, with the reason, before anything is run."""
    (tmp_path / "export-gate.yml").write_text(CONFIG)
    (tmp_path / ".export-gate").touch()
    named = () if folder == ".export-gate" else ("--report-dir", folder)
    done = gate(tmp_path, "run", *named)
    expected = f"{folder}: cannot write the report folder: {reason}\nno verdict: the gate itself failed\n"
    assert (done.status, done.stdout, done.stderr) == (3, "", expected)


def test_report_folder_that_is_a_file(project: Path):
    """A file named as report folder on the command line is a usage error."""
    done = gate(project, "run", "--report-dir", "models.py")
    assert done.status == 2
    assert done.stderr.endswith("Error: Invalid value for '--report-dir': Directory 'models.py' is a file.\n")
