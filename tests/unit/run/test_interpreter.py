"""Which Python runs the project's code, and which variables it sees."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from export_gate.run import interpreter
from export_gate.run.environment import worker_environment
from export_gate.run.interpreter import find_interpreter, find_runtime, why_no_python
from export_gate.wall.errors import UserError


def python_in(folder: Path) -> Path:
    """An executable file that stands for an interpreter."""
    folder.mkdir(parents=True)
    path = folder / "python"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Whether the driver's own environment has torch; not, until a test says so."""
    has = {"torch": False}
    monkeypatch.setattr(interpreter, "find_spec", lambda name: object() if has[name] else None)
    return has


def test_search_order(tmp_path: Path, own: dict[str, bool]):
    """Option, variable, config, .venv next to the config, VIRTUAL_ENV, the own one if it has torch, PATH: in order."""
    own["torch"] = True
    option, variable, configured = (python_in(tmp_path / name) for name in ("option", "variable", "configured"))
    beside, active, on_path = (python_in(tmp_path / name) for name in (".venv/bin", "active/bin", "path"))
    environment = {
        "EXPORT_GATE_PYTHON": str(variable),
        "VIRTUAL_ENV": str(tmp_path / "active"),
        "PATH": str(tmp_path / "path"),
    }

    def found(named: str | None, config: str | None) -> tuple[Path, str]:
        result = find_interpreter(named, config, tmp_path, environment)
        return result.path, result.reason

    assert found(str(option), "configured/python") == (option, "--python")
    assert found(None, "configured/python") == (variable, "EXPORT_GATE_PYTHON")
    del environment["EXPORT_GATE_PYTHON"]
    assert found(None, "configured/python") == (configured, "`python:` in the config")
    assert found(None, None) == (beside, ".venv beside the config")
    beside.unlink()
    assert found(None, None) == (active, "VIRTUAL_ENV")
    del environment["VIRTUAL_ENV"]
    assert found(None, None) == (Path(sys.executable), "export-gate's own environment has torch")
    own["torch"] = False
    assert found(None, None) == (on_path, "python on PATH")


def test_a_monorepo_has_one_environment(tmp_path: Path, own: dict[str, bool]):
    """From a project's folder the nearest `.venv` above it is used, up to the root of the checkout."""
    root, project = tmp_path / "shop", tmp_path / "shop" / "packages" / "vision"
    project.mkdir(parents=True)
    (root / ".git").mkdir()
    on_path = python_in(tmp_path / "path")
    python_in(tmp_path / ".venv" / "bin")
    environment = {"PATH": str(tmp_path / "path")}
    assert find_interpreter(None, None, project, environment).path == on_path
    at_root = python_in(root / ".venv" / "bin")
    found = find_interpreter(None, None, project, environment)
    assert (found.path, found.reason) == (at_root, ".venv in shop, above the config")
    between = python_in(root / "packages" / ".venv" / "bin")
    assert find_interpreter(None, None, project, environment).path == between
    beside = python_in(project / ".venv" / "bin")
    assert find_interpreter(None, None, project, environment).path == beside


def test_own_environment_without_torch_is_passed_over(tmp_path: Path, own: dict[str, bool]):
    """An activated environment that only holds export-gate, and its `python` on PATH, are not the project's."""
    on_path = python_in(tmp_path / "path")
    path = f"{Path(sys.prefix) / 'bin'}:{tmp_path / 'path'}"
    found = find_interpreter(None, None, tmp_path, {"VIRTUAL_ENV": sys.prefix, "PATH": path})
    assert (found.path, found.reason) == (on_path, "python on PATH")


def test_command_name_is_looked_up_on_the_given_path(tmp_path: Path):
    """A name without a separator is a command."""
    expected = python_in(tmp_path / "bin")
    found = find_interpreter("python", None, tmp_path, {"PATH": str(tmp_path / "bin")})
    assert found.path == expected


def test_configured_path_is_relative_to_the_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It does not matter where the gate is started."""
    expected = python_in(tmp_path / "project" / "env")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert find_interpreter(None, "env/python", tmp_path / "project", {}).path == expected


def test_no_interpreter_at_all(tmp_path: Path, own: dict[str, bool]):
    """Nothing is guessed: the message lists the ways to name one."""
    with pytest.raises(UserError) as raised:
        find_interpreter(None, None, tmp_path, {"PATH": ""})
    assert str(raised.value) == (
        "no Python with the project's packages was found: set it with `--python`, EXPORT_GATE_PYTHON or `python:`"
    )


def test_named_interpreter_is_never_replaced(tmp_path: Path):
    """A named interpreter that does not exist is an error, even if there are others."""
    python_in(tmp_path / ".venv" / "bin")
    with pytest.raises(UserError) as raised:
        find_interpreter(None, "env/python", tmp_path, {})
    assert str(raised.value) == (
        f"`python:` in the config: there is no interpreter 'env/python' (looked for {tmp_path / 'env' / 'python'})"
    )


def test_folder_is_no_interpreter(tmp_path: Path):
    """A virtual environment's folder is not its python."""
    with pytest.raises(UserError) as raised:
        find_interpreter(str(tmp_path), None, tmp_path, {})
    assert str(raised.value) == f"--python: there is no interpreter {str(tmp_path)!r} (looked for {tmp_path})"


@pytest.mark.parametrize(
    ("name", "crosses"),
    [
        ("PATH", True),
        ("HOME", True),
        ("OMP_NUM_THREADS", True),
        ("CUDA_VISIBLE_DEVICES", True),
        ("HF_HOME", True),
        ("TOKENIZERS_PARALLELISM", True),
        ("LC_CTYPE", True),
        ("Path", True),
        ("HF_TOKEN", False),
        ("TOKENIZERS_TOKEN", False),
        ("TORCH_API_KEY", False),
        ("XDG_CREDENTIALS_FILE", False),
        ("GITHUB_TOKEN", False),
        ("GITHUB_ENV", False),
        ("AWS_ACCESS_KEY_ID", False),
        ("SSH_AUTH_SOCK", False),
        ("HTTPS_PROXY", False),
        ("BASH_ENV", False),
        ("PYTHONSTARTUP", False),
        ("LD_AUDIT", False),
    ],
)
def test_environment_is_allow_listed(name: str, crosses: bool):
    """What a model needs to run is passed on; what is not listed, or looks like a secret, is not."""
    assert (name in worker_environment({name: "x"})) is crosses


def test_python_is_recognised(tmp_path: Path):
    """This interpreter runs Python; it is tried without the environment's secrets."""
    assert why_no_python(Path(sys.executable), {"PATH": "/usr/bin"}) == ""
    spy = tmp_path / "python"
    spy.write_text("#!/bin/sh\necho \"token is '$GITHUB_TOKEN'\"\n")
    spy.chmod(0o755)
    said = why_no_python(spy, {"GITHUB_TOKEN": "do-not-tell", "PATH": "/usr/bin:/bin"})
    assert said == "it ended with exit status 0 and printed token is ''"


def test_search_order_for_a_replay(tmp_path: Path, own: dict[str, bool]):
    """Option, variable, VIRTUAL_ENV, the own one if it has ONNX Runtime, PATH; torch does not matter."""
    own.update(torch=True, onnxruntime=True)
    option, variable, active, on_path = (python_in(tmp_path / name) for name in ("option", "var", "active/bin", "path"))
    environment = {
        "EXPORT_GATE_PYTHON": str(variable),
        "VIRTUAL_ENV": str(tmp_path / "active"),
        "PATH": str(tmp_path / "path"),
    }

    def found(named: str | None = None) -> tuple[Path, str]:
        result = find_runtime(named, environment)
        return result.path, result.reason

    assert found(str(option)) == (option, "--python")
    assert found() == (variable, "EXPORT_GATE_PYTHON")
    del environment["EXPORT_GATE_PYTHON"]
    assert found() == (active, "VIRTUAL_ENV")
    environment["VIRTUAL_ENV"] = sys.prefix
    own["onnxruntime"] = False
    assert found() == (on_path, "python on PATH"), "an environment that only holds export-gate is passed over"
    own["onnxruntime"] = True
    del environment["VIRTUAL_ENV"]
    assert found() == (Path(sys.executable), "export-gate's own environment has onnxruntime")


def test_no_interpreter_for_a_replay(tmp_path: Path, own: dict[str, bool]):
    """A named interpreter that does not exist is an error, and so is none at all."""
    own["onnxruntime"] = False
    with pytest.raises(UserError) as caught:
        find_runtime("nowhere/python", {})
    assert str(caught.value) == (
        f"--python: there is no interpreter 'nowhere/python' (looked for {Path.cwd() / 'nowhere/python'})"
    )
    with pytest.raises(UserError) as caught:
        find_runtime(None, {"PATH": str(tmp_path)})
    assert str(caught.value) == ("no Python with onnxruntime was found: set it with `--python` or EXPORT_GATE_PYTHON")
