"""Projects whose config does not fit their code: each message is complete, with the next step, and exits 2."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness.gate import gate

MODELS = """
import sys

import torch


class One(torch.nn.Module):
    def __init__(self, width=2):
        super().__init__()
        self.linear = torch.nn.Linear(2, width)

    def forward(self, x, *, scale=1.0):
        return torch.relu(self.linear(x)) * scale


class Two(One):
    def forward(self, x, y):
        return super().forward(x) + y


def one(width=2):
    return One(width).eval()


def two():
    return Two().eval()


def raises():
    raise RuntimeError("no weights at " + "w.pt")


def exits():
    sys.exit("bye")


def number():
    return 3


def nothing():
    pass


def script():
    return torch.jit.script(torch.nn.Linear(2, 2).eval())


value = 1.5
"""
X = "{x: {dtype: float32, shape: [3, 2], range: [0, 1]}}"
Y_BEFORE_X = "{y: {dtype: float32, shape: [3, 2], range: [0, 1]}, x: {dtype: float32, shape: [3, 2], range: [0, 1]}}"
MISTAKES = {
    "no-module": (
        "factory: nowhere.models:make",
        X,
        "factory 'nowhere.models:make': the module 'nowhere' was not found (searched {base}, ...)",
        "add the folder that contains it to `pythonpath`",
    ),
    "no-file": (
        "factory: src/models.py:make",
        X,
        "factory 'src/models.py:make': the file src/models.py does not exist in {base}",
        "a path is relative to the config's folder",
    ),
    "no-attribute": (
        "factory: models:ones",
        X,
        "factory 'models:ones': models has no attribute 'ones'; did you mean 'one'?",
        "name a function or class of models",
    ),
    "no-dependency": (
        "factory: needy:make",
        X,
        (
            "factory 'needy:make': importing needy needs the module 'torch_of_tomorrow', which is not installed "
            "(at needy.py:1: import torch_of_tomorrow)"
        ),
        "install it for the project's interpreter, {python}, or add its folder to `pythonpath`",
    ),
    "import-raises": (
        "factory: broken.py:make",
        X,
        (
            "factory 'broken.py:make': importing broken.py raised ZeroDivisionError: division by zero "
            "(at broken.py:1: 1 / 0)"
        ),
        "import it with the project's interpreter, {python}, in {base}",
    ),
    "import-syntax": (
        "factory: syntax:make",
        X,
        "factory 'syntax:make': importing syntax raised SyntaxError: invalid syntax (syntax.py, line 1)",
        "import it with the project's interpreter, {python}, in {base}",
    ),
    "import-opens": (
        "factory: opens.py:make",
        X,
        (
            "factory 'opens.py:make': importing opens.py raised FileNotFoundError: [Errno 2] No such file or "
            "directory: 'weights.bin' (at opens.py:1: open('weights.bin'))"
        ),
        "import it with the project's interpreter, {python}, in {base}",
    ),
    "import-exits": (
        "factory: script:make",
        X,
        "factory 'script:make': importing script called sys.exit(4) (at script.py:1: raise SystemExit(4))",
        "move code for scripts under `if __name__ == '__main__':`",
    ),
    "value": (
        "factory: models:value",
        X,
        "factory 'models:value' is a float, expected a function or class",
        "name a callable that creates the model, not a value",
    ),
    "raises": (
        "factory: models:raises",
        X,
        (
            "factory 'models:raises' raised RuntimeError: no weights at w.pt (at models.py:{raise_line}: raise "
            'RuntimeError("no weights at " + "w.pt"))'
        ),
        "call it with the project's interpreter, {python}, in {base}",
    ),
    "exits": (
        "factory: models:exits",
        X,
        "factory 'models:exits' called sys.exit('bye'): it must return the model",
        "raise an exception instead, or name a factory that is not a script",
    ),
    "number": (
        "factory: models:number",
        X,
        "factory 'models:number' returned an int, expected a torch.nn.Module",
        "return the module itself, its weights loaded and in eval mode",
    ),
    "nothing": (
        "factory: models:nothing",
        X,
        "factory 'models:nothing' returned None, expected a torch.nn.Module",
        "return the module itself, its weights loaded and in eval mode",
    ),
    "kwargs": (
        "factory: models:one, kwargs: {depth: 3}",
        X,
        (
            "factory 'models:one' cannot be called with kwargs {{'depth': 3}}: got an unexpected keyword argument "
            "'depth'; its parameters are (width=2)"
        ),
        "write `models.kwargs.kwargs` as the factory takes them",
    ),
    "unknown-input": (
        "factory: models:one",
        X.replace("x:", "xs:"),
        "input 'xs' is not a parameter of forward(x, scale=...); did you mean 'x'?",
        "name `models.unknown-input.inputs` as forward's parameters are named",
    ),
    "missing-input": (
        "factory: models:two",
        X,
        "parameter 'y' of forward(x, y) is not declared under `inputs`",
        "add it to `models.missing-input.inputs`, as a tensor or as a constant",
    ),
    "order": (
        "factory: models:two",
        Y_BEFORE_X,
        "inputs are declared as y, x, but the order of forward(x, y) is x, y",
        "write `models.order.inputs` in forward's order",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the command line over all mistakes."""

    status: int
    output: str
    folder: Path
    results: dict[str, Any]

    def model(self, name: str) -> dict[str, Any]:
        """What was observed of a model."""
        (found,) = [model for model in self.results["run"]["models"] if model["model"] == name]
        return found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a model for each mistake and a sound one."""
    folder = tmp_path_factory.mktemp("mistaken").resolve()
    (folder / "models.py").write_text(MODELS)
    (folder / "needy.py").write_text("import torch_of_tomorrow\n")
    (folder / "broken.py").write_text("1 / 0\n")
    (folder / "syntax.py").write_text("def make(:\n")
    (folder / "opens.py").write_text("open('weights.bin')\n")
    (folder / "script.py").write_text("raise SystemExit(4)\n")
    models = [f"  {name}: {{{keys}, inputs: {inputs}}}" for name, (keys, inputs, *_) in MISTAKES.items()]
    models.append(f"  script: {{factory: 'models:script', inputs: {X.replace('x:', 'input:')}}}")
    models.append(f"  sound: {{factory: 'models:one', inputs: {X}}}")
    defaults = "defaults: {controls: {limit: 2, affine-basis: never}, targets: {exported-program: {}}}"
    (folder / "export-gate.yml").write_text("\n".join(["version: 1", defaults, "models:", *models]))
    return folder


@pytest.fixture(scope="module")
def run(project: Path) -> Run:
    """All models in one run."""
    done = gate(project, "run")
    results = json.loads((project / ".export-gate" / "results.json").read_text())
    return Run(status=done.returncode, output=done.stdout + done.stderr, folder=project, results=results)


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_told_in_full(run: Run, name: str):
    """The message says what is wrong, where, what was expected and what to do next."""
    _, _, message, hint = MISTAKES[name]
    line = 1 + MODELS.splitlines().index('    raise RuntimeError("no weights at " + "w.pt")')
    words = {"base": str(run.folder), "python": sys.executable, "raise_line": line}
    problem = run.model(name)["problem"]
    found = problem["message"].replace(sys.path[0], "")
    if name == "no-module":
        found = f"{found.partition('searched')[0]}searched {found.partition('searched ')[2].split(', ')[0]}, ...)"
    assert (found, problem["hint"]) == (message.format(**words), hint.format(**words))


@pytest.mark.slow
def test_mistakes_exit_2_and_cost_no_other_model_its_verdict(run: Run):
    """A model that cannot be checked as declared is the user's mistake (exit 2), and the sound model is verified."""
    assert run.status == 2, run.output
    assert run.results["verdict"] == "problem"
    assert all(run.model(name)["problem"] for name in MISTAKES)
    (target,) = run.model("sound")["targets"]
    assert (run.model("sound")["problem"], len(target["cases"])) == (None, 2)
    assert "Traceback" not in run.output


@pytest.mark.slow
def test_torchscript_is_a_violation(run: Run):
    """A ScriptModule is refused with advice on what to do; it is not a mistake in the config."""
    found = [finding for finding in run.results["findings"] if finding["model"] == "script"]
    assert [(finding["rule"], finding["severity"]) for finding in found] == [("torchscript-model", "violation")]
    assert found[0]["message"] == (
        "script: the factory models:script returns TorchScript, which torch.export does not accept"
    )


@pytest.mark.slow
def test_torchscript_alone_exits_1(project: Path, tmp_path: Path):
    """A run over TorchScript alone has the exit code of a violation."""
    assert gate(project, "run", "-q", "script", "--report-dir", str(tmp_path)).returncode == 1


@pytest.mark.slow
def test_case_that_matches_nothing(project: Path, tmp_path: Path):
    """--case without a match is never a pass: exit 2, with the existing names."""
    done = gate(project, "run", "-q", "sound", "--case", "nowhere-*", "--report-dir", str(tmp_path))
    assert done.returncode == 2
    (seen,) = json.loads((tmp_path / "results.json").read_text())["run"]["models"]
    assert seen["problem"] == {
        "message": "no control input matches 'nowhere-*'; there are 2: normal-1, halves-1",
        "hint": "list them with `export-gate controls MODEL`",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "sond"), "export-gate.yml: there is no model 'sond'; did you mean 'sound'?\n"),
        (
            ("run", "sound", "--target", "pt3"),
            "export-gate.yml: no selected model has the target 'pt3'; it has exported-program\n",
        ),
        (("controls", "sond"), "export-gate.yml: there is no model 'sond'; did you mean 'sound'?\n"),
        (
            ("run", "-c", "other.yml"),
            "other.yml: expected a config file, but it does not exist; create it or name another one\n",
        ),
        (
            ("validate", "-c", "other.yml"),
            "other.yml: expected a config file, but it does not exist; create it or name another one\n",
        ),
    ],
)
def test_wrong_names_on_the_command_line(project: Path, arguments: tuple[str, ...], message: str):
    """For a name that the config does not have, the message suggests the nearest one; exit 2, and nothing is run."""
    done = gate(project, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


@pytest.mark.parametrize("command", [("run",), ("validate",), ("controls", "sound")])
def test_no_config_at_all(tmp_path: Path, command: tuple[str, ...]):
    """Without a config, the message says how to get one: exit 2."""
    done = gate(tmp_path, *command)
    expected = "there is no export-gate.yml here; write one with `export-gate init FACTORY` or name it with -c\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


@pytest.mark.slow
def test_controls_of_a_model_that_cannot_be_made(project: Path):
    """`controls` prints the same message as a run, and the next step: exit 2."""
    done = gate(project, "controls", "number")
    expected = (
        "factory 'models:number' returned an int, expected a torch.nn.Module\n"
        "return the module itself, its weights loaded and in eval mode\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)
