"""Every command prints a stranger's texts as lines that no runner takes for commands, by GitHub's own rules."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import report_samples as samples
from hostile_samples import hostile
from workflow_log import HOSTILE, commands

from export_gate.cli.main import main
from export_gate.report.results import write_results
from export_gate.wall.codec import encode
from export_gate.wall.errors import GateError

pytestmark = pytest.mark.slow

NAME = "x\n::add-path::owned\r::add-mask::owned\u2028::add-path::owned ##[add-path]owned"
"""A name that a file can have."""


@dataclass(kw_only=True)
class Shell:
    """Runs commands in a folder, in this process."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)
    status: int = -1

    def __call__(self, *arguments: str | Path) -> str:
        """All that the command printed."""
        printed = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(printed):
            patch.chdir(self.folder)
            patch.setattr(sys, "argv", ["export-gate", *map(str, arguments)])
            patch.setattr(os, "environ", {"PATH": os.environ["PATH"], **self.environ})
            with pytest.raises(SystemExit) as ended:
                main()
        self.status = int(ended.value.code or 0)
        return printed.getvalue()

    def write(self, name: str, text: str) -> Path:
        """A file in the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A shell in an empty folder."""
    return Shell(folder=tmp_path)


RESULTS = {
    "version": lambda: json.dumps({"schema_version": 99, "tool_version": HOSTILE}),
    "schema": lambda: json.dumps({"schema_version": HOSTILE}),
    "key": lambda: json.dumps({"schema_version": 1, HOSTILE: 1}),
    "value": lambda: json.dumps({**encode(samples.red()), "verdict": HOSTILE}),
    "digest": lambda: json.dumps({**encode(samples.red()), "config_sha256": 3, "tool_version": HOSTILE}),
    "model": lambda: json.dumps(encode(replace(samples.red(), contracts=samples.red().contracts[:1]))),
    "twice": lambda: json.dumps({"schema_version": 1})[:-1] + f", {json.dumps(HOSTILE)}: 1, {json.dumps(HOSTILE)}: 2}}",
    "garbage": lambda: f"{HOSTILE}{{",
    "all": lambda: json.dumps(encode(hostile(samples.red()))),
}
READERS: dict[str, Callable[[str], list[str]]] = {
    "report": lambda path: ["report", path],
    "merge": lambda path: ["merge", path, path, "-o", "out.json"],
    "judge": lambda path: ["judge", path, "--atol", "1", "--target", NAME],
    "lock": lambda path: ["lock", path],
    "publish": lambda path: ["publish", path, "--comment", "never", "--log", path],
}


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", RESULTS)
def test_results_of_a_stranger(shell: Shell, reader: str, kind: str):
    """Versions, digests, keys and values of a results file, with any file name, are printed inertly."""
    shell.write("export-gate.yml", "version: 1\nmodels: {a: {factory: 'm:f', inputs: {}}}\n")
    shell.write(NAME, RESULTS[kind]())
    assert set(commands(shell(*READERS[reader](NAME)))) <= ({"error", "warning"} if reader == "publish" else set())


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["terminal", "markdown", "comment", "summary", "html", "json", "junit", "sarif"])
def test_a_report_in_every_format(shell: Shell, format_: str):
    """A report that is printed instead of saved is inert in every format."""
    write_results(hostile(samples.red()), shell.folder / "results.json")
    printed = shell("report", "results.json", "--format", format_)
    assert len(printed) > 500
    assert commands(printed) == []


@pytest.mark.slow
def test_shards_of_other_runs(shell: Shell):
    """What two files disagree about is quoted on one line."""
    for number in (1, 2):
        digest = f"{NAME}{number}"
        write_results(
            replace(samples.red(), config_sha256=digest, tool_version=digest), shell.folder / f"{number}.json"
        )
    printed = shell("merge", "1.json", "2.json", "-o", "out.json")
    assert shell.status == 2
    assert "add-path" in printed
    assert commands(printed) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        f"version: {json.dumps(HOSTILE)}\n",
        f"version: 1\n{json.dumps(HOSTILE)}: 1\n",
        f"version: 1\nmodels: {{a: {{factory: {json.dumps(HOSTILE)}}}}}\n",
        f"version: 1\nmodels: {{{json.dumps(HOSTILE)}: {{factory: 'm:f'}}}}\n",
        f"version: 1\npython: {json.dumps(HOSTILE)}\nmodels: {{a: {{factory: 'm:f', inputs: {{}}}}}}\n",
        "a: [\n::add-path::owned\n##[add-path]owned\n",
        "a: !<::add-path::owned> 1",
    ],
)
@pytest.mark.parametrize("command", ["validate", "run", "plan", "judge", "controls"])
def test_configs_of_a_stranger(shell: Shell, text: str, command: str):
    """Keys and values of a config are quoted in messages, inertly."""
    write_results(samples.red(), shell.folder / "results.json")
    shell.write(NAME, text)
    arguments = {
        "validate": ["validate", NAME],
        "run": ["run", "-c", NAME],
        "plan": ["plan", "--shards", "2", "-c", NAME],
        "judge": ["judge", "results.json", "-c", NAME],
        "controls": ["controls", NAME, "-c", NAME],
    }
    printed = shell(*arguments[command])
    assert printed
    assert commands(printed) == []


@pytest.mark.parametrize(
    "manifest",
    [
        {"schema_version": 99, "tool_version": HOSTILE, "exports": []},
        {"schema_version": HOSTILE, "exports": []},
        {"schema_version": 1, "exports": [], HOSTILE: 1},
    ],
)
def test_kits_of_a_stranger(shell: Shell, manifest: dict[str, object]):
    """A kit's manifest and the names of its files are printed inertly."""
    shell.write(f"{NAME}/kit.json", json.dumps(manifest))
    shell.write(f"{NAME}/{NAME}", "")
    printed = shell("replay", NAME)
    assert shell.status == 2
    assert commands(printed) == []


@pytest.mark.parametrize(
    "arguments",
    [
        [HOSTILE],
        ["report", HOSTILE],
        ["report", "x", "--format", HOSTILE],
        ["report", "x", "-o", f"{NAME}/{NAME}"],
        ["run", HOSTILE],
        ["run", "--jobs", HOSTILE],
        ["run", "--python", HOSTILE],
        ["run", "--base", HOSTILE],
        ["run", "--shard", HOSTILE],
        ["run", "--target", HOSTILE],
        ["run", "--report-dir", HOSTILE],
        ["init", HOSTILE],
        ["init", f"{NAME}:f", "-o", NAME],
        ["kit", HOSTILE],
        ["replay", HOSTILE],
        ["publish", HOSTILE, "--comment-id", HOSTILE],
        ["publish", "x", "--stage", HOSTILE],
    ],
)
def test_arguments_of_a_stranger(shell: Shell, arguments: list[str]):
    """A path or a name from the command line is repeated in the message, inertly; also in click's messages."""
    shell.write("export-gate.yml", "version: 1\nmodels: {a: {factory: 'm:f', inputs: {}}}\n")
    printed = shell(*arguments)
    assert shell.status != 0
    assert commands(printed) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["GITHUB_REPOSITORY", "GITHUB_EVENT_NAME", "GITHUB_API_URL", "GITHUB_STEP_SUMMARY"])
def test_environment_of_a_stranger(shell: Shell, name: str):
    """Branch names and the like, which come from the environment, are printed inertly."""
    write_results(samples.green(), shell.folder / "results.json")
    shell.environ = {name: NAME, "GITHUB_TOKEN": "t"}
    assert set(commands(shell("publish", "results.json"))) <= {"warning"}
    shell.environ["EXPORT_GATE_PYTHON"] = NAME
    shell.write("export-gate.yml", "version: 1\nmodels: {a: {factory: 'm:f', inputs: {}}}\n")
    assert commands(shell("run")) == []


@pytest.mark.parametrize("error", [RuntimeError, GateError, KeyError, UnicodeError])
def test_a_fault_of_ours_quotes_inertly(shell: Shell, error: type[Exception], monkeypatch: pytest.MonkeyPatch):
    """A traceback's message may be a stranger's text: all its lines are printed, and none is a command."""

    def fail(_: object) -> Path:
        raise error(HOSTILE)

    monkeypatch.setattr("export_gate.cli.validate.find_config", fail)
    printed = shell("validate")
    assert shell.status == 3
    assert "no verdict" in printed
    assert "add-path" in printed
    assert commands(printed) == []
