"""action/prepare.sh on its own: what it refuses, each on its full text, and the environments that it makes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASE = Path(os.path.realpath(sys.executable)).parent
PROTECTION = re.compile(r"^(::stop-commands::[0-9a-f]{32}|::[0-9a-f]{32}::|)\n", re.MULTILINE)
OUTPUT = re.compile(r"^([\w-]+)<<[0-9a-f]{32}\n(.*)\n[0-9a-f]{32}$", re.MULTILINE)
IMPORTS = "import click, jinja2, rich, sys, urllib3, yaml; print(sys.prefix)"


def prepare(folder: Path, path: str, **variables: str) -> tuple[int, str, dict[str, str]]:
    """Exit code, what is printed (without the tokens around it), and the outputs."""
    output = folder / "output"
    output.touch()
    environment = {
        "PATH": path,
        "RUNNER_TEMP": str(folder),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_EVENT_NAME": "pull_request",
        "ALLOW_PULL_REQUEST_TARGET": "false",
        "UPLOAD_ARTIFACTS": "none",
        **variables,
    }
    done = subprocess.run(
        ["/bin/bash", str(ROOT / "action" / "prepare.sh")],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, PROTECTION.sub("", done.stdout), dict(OUTPUT.findall(output.read_text()))


def only(folder: Path, *tools: str) -> str:
    """A PATH with what the scripts need of the system, and no Python."""
    folder.mkdir()
    for tool in ("dirname", "mktemp", "od", "tr", *tools):
        (folder / tool).symlink_to(next(p for p in (Path("/usr/bin") / tool, Path("/bin") / tool) if p.exists()))
    return str(folder)


def test_pull_request_target_is_refused(tmp_path: Path):
    """The event that gives secrets to untrusted code is refused, with the reason and the alternative."""
    code, said, outputs = prepare(tmp_path, os.environ["PATH"], GITHUB_EVENT_NAME="pull_request_target")
    assert (code, outputs) == (2, {})
    assert said == (
        "::error title=export-gate::pull_request_target is refused: it would run a stranger's code with this "
        "repository's token and secrets; trigger on pull_request, and let post/ comment on forks from a workflow_run "
        "(docs/security.md)\n"
    )


def test_unknown_upload_is_refused(tmp_path: Path):
    """The message repeats an invalid value of upload-artifacts without anything that could be a workflow command."""
    code, said, _ = prepare(tmp_path, os.environ["PATH"], UPLOAD_ARTIFACTS="true\n::error::x")
    assert code == 2
    assert said == (
        "::error title=export-gate::upload-artifacts: expected none, results or all, got 'true???error??x'\n"
    )


def test_runner_without_python_is_told(tmp_path: Path):
    """Without a Python, or with one that is too old, the message names the step that provides it."""
    path = only(tmp_path / "bin")
    old = tmp_path / "bin" / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    code, said, _ = prepare(tmp_path, path)
    assert code == 2
    assert said == (
        "::error title=export-gate::there is no Python 3.10 or newer on PATH; put actions/setup-python before this "
        "step\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("has_pip", [True, False])
def test_environment_is_the_gates_own(tmp_path: Path, clean_environment: dict[str, str], has_pip: bool):
    """Whether or not that Python has pip, the environment has the pinned packages and ignores the project's."""
    pip = {name: value for name, value in clean_environment.items() if name.startswith("PIP_")}
    path = f"{BASE}:/usr/bin:/bin"
    if not has_pip:
        venv.create(tmp_path / "bare", symlinks=True, with_pip=False)
        path = f"{tmp_path / 'bare' / 'bin'}:{path}"
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "venv.py").write_text("raise SystemExit('the project was imported')")
    code, said, outputs = prepare(tmp_path, path, PYTHONPATH=str(tmp_path / "project"), **pip)
    assert code == 0, said
    done = subprocess.run([outputs["python"], "-I", "-c", IMPORTS], capture_output=True, text=True, check=False)
    assert done.stdout.strip().startswith(str(tmp_path / "export-gate-")), done.stderr
    version = [outputs["python"], "-I", "-X", "utf8", str(ROOT / "action" / "gate.py"), "--version"]
    assert "export-gate, version" in subprocess.run(version, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_changed_package_is_not_installed(tmp_path: Path, wheels: Path, clean_environment: dict[str, str]):
    """If a mirror serves other bytes for a pinned version, the hash shows it."""
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    for wheel in wheels.glob("*.whl"):
        (mirror / wheel.name).write_bytes(wheel.read_bytes())
    (click,) = mirror.glob("click-*.whl")
    with zipfile.ZipFile(click, "a") as archive:
        archive.writestr("click/extra.py", "print('stolen')")
    pip = {name: value for name, value in clean_environment.items() if name.startswith("PIP_")}
    code, said, outputs = prepare(tmp_path, f"{BASE}:/usr/bin:/bin", **{**pip, "PIP_FIND_LINKS": str(mirror)})
    assert (code, outputs) == (3, {})
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in said
    assert said.endswith(
        "::error title=export-gate::the gate's own packages could not be installed; the lines above say why\n"
    )
