"""The documentation is true: every YAML block works, and action.yml agrees with the pages."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from export_gate.config import load_config

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md")))
WORKFLOWS = sorted((ROOT / "examples" / "workflows").glob("*.yml"))
ACTIONS = {"action.yml": ROOT / "action.yml", "post/action.yml": ROOT / "post" / "action.yml"}
MODEL = {"factory": "module:make", "inputs": {"x": {"dtype": "float32", "shape": [2]}}}
TRIGGERS = {"on": "pull_request", "permissions": {}}


@dataclass(frozen=True)
class Block:
    """A fenced block of YAML."""

    page: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def keys(self) -> set[str]:
        """Its keys at the top level; `on` is text in YAML 1.2."""
        return {"on" if key is True else key for key in yaml.safe_load(self.text)}


def blocks() -> Iterator[Block]:
    """The YAML blocks of all pages."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in re.finditer(r"^```ya?ml\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            yield Block(page=page, line=text.count("\n", 0, found.start()) + 1, text=found[1])


BLOCKS = tuple(blocks())
IS_WORKFLOW = [block for block in BLOCKS if block.keys & {"on", "jobs"}]
IS_HOOKS = [block for block in BLOCKS if "repos" in block.keys]
IS_CONFIG = [block for block in BLOCKS if block not in (*IS_WORKFLOW, *IS_HOOKS)]


TOP_LEVEL = ("defaults", "fail-on", "ignore", "relaxed", "waivers-max-days")
"""Keys of a config that are shown without a model."""


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """A command and what it printed."""
    return subprocess.run(command, capture_output=True, text=True, check=False)


def completed(value: dict[str, Any]) -> dict[str, Any]:
    """A part of a config with what it leaves out."""
    top = {key: value[key] for key in TOP_LEVEL if key in value}
    models = value.get("models") or {"model": {key: value[key] for key in value if key not in top}}
    return {"version": 1, **top, "models": {name: {**MODEL, **model} for name, model in models.items()}}


@pytest.mark.parametrize("block", IS_CONFIG, ids=str)
def test_configs_on_the_pages_are_valid(block: Block, tmp_path: Path):
    """A whole config is accepted as it stands, with the files that it names; a part is accepted with the rest added."""
    for name in re.findall(r"path: ([\w./-]+)", block.text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for names in re.findall(r"\b(?:pythonpath|paths): \[([\w./, -]+)\]", block.text):
        for name in names.split(", "):
            (tmp_path / name).mkdir(parents=True, exist_ok=True)
    is_whole = "version" in block.keys
    text = block.text if is_whole else yaml.safe_dump(completed(yaml.safe_load(block.text)))
    config = tmp_path / "export-gate.yml"
    config.write_text(text, encoding="utf-8")
    assert load_config(config).models


@pytest.mark.parametrize("block", IS_HOOKS, ids=str)
def test_hooks_on_the_pages_are_those_that_exist(block: Block, tmp_path: Path):
    """pre-commit accepts the block, and its hooks are in .pre-commit-hooks.yaml."""
    config = tmp_path / ".pre-commit-config.yaml"
    config.write_text(block.text, encoding="utf-8")
    done = run(sys.executable, "-m", "pre_commit", "validate-config", config)
    assert done.returncode == 0, done.stdout + done.stderr
    known = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    named = {hook["id"] for repo in yaml.safe_load(block.text)["repos"] for hook in repo["hooks"]}
    assert named
    assert named <= known


def test_hooks_are_valid():
    """pre-commit accepts .pre-commit-hooks.yaml."""
    done = run(sys.executable, "-m", "pre_commit", "validate-manifest", ROOT / ".pre-commit-hooks.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def workflows(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Every complete workflow, and every part of one with the rest added."""
    folder = tmp_path_factory.mktemp("workflows")
    written = []
    for number, block in enumerate(IS_WORKFLOW):
        path = folder / f"{block.page.stem}-{number}.yml"
        path.write_text(whole_workflow(block), encoding="utf-8")
        written.append(path)
    return [*WORKFLOWS, *written]


def whole_workflow(block: Block) -> str:
    """The block, with a job or the triggers that it leaves out; as text, since comments are part of it."""
    if "jobs" not in block.keys:
        return f"{block.text}\npermissions: {{}}\njobs: {{a: {{runs-on: ubuntu-latest, steps: [{{run: 'true'}}]}}}}\n"
    if "on" in block.keys:
        return block.text
    jobs = yaml.safe_load(block.text)["jobs"]
    needed = {job["needs"] for job in jobs.values() if "needs" in job} - set(jobs)
    others = "".join(f"  {name}: {{runs-on: ubuntu-latest, steps: [{{run: 'true'}}]}}\n" for name in needed)
    return f"on: push\npermissions: {{}}\n{block.text}\n{others}"


@pytest.mark.slow
def test_workflows_fit_githubs_schema(workflows: list[Path]):
    """GitHub accepts every workflow of the pages and of examples/workflows."""
    assert len(WORKFLOWS) >= 5
    done = run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_actions_fit_githubs_schema():
    """GitHub accepts both actions."""
    actions = ACTIONS.values()
    done = run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions", *actions)
    assert done.returncode == 0, done.stdout + done.stderr


def test_workflows_and_actions_are_safe(workflows: list[Path]):
    """An offline audit by zizmor finds nothing: no template injection, no unpinned action, no excess permission."""
    zizmor = (BIN / "zizmor", "--offline", "--no-progress", "--config", ROOT / "tests" / "zizmor.yml")
    done = run(*zizmor, *workflows, *ACTIONS.values())
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_would_find_an_injection(tmp_path: Path):
    """The audit works: it refuses the action after one input is put into a script."""
    bad = tmp_path / "action.yml"
    bad.write_text(
        ACTIONS["action.yml"].read_text().replace('bash "$GITHUB', 'echo ${{ inputs.config }}; bash "$GITHUB')
    )
    assert "template-injection" in run(BIN / "zizmor", "--offline", "--no-progress", bad).stdout


def used() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each step that uses one of our actions, with where it stands."""
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in WORKFLOWS}
    texts |= {str(block): block.text for block in IS_WORKFLOW}
    for place, text in texts.items():
        for job in (yaml.safe_load(text).get("jobs") or {}).values():
            for step in job["steps"]:
                if step.get("uses", "").startswith("acme/export-gate"):
                    yield place, step


def test_inputs_that_are_set_exist():
    """No workflow gives our actions an input that they do not have."""
    steps = list(used())
    assert len(steps) >= 10
    for place, step in steps:
        name = "post/action.yml" if "/post@" in step["uses"] else "action.yml"
        inputs = yaml.safe_load(ACTIONS[name].read_text())["inputs"]
        assert set(step.get("with", {})) <= set(inputs), place


def table(page: str, heading: str) -> dict[str, list[str]]:
    """The rows of the first table below a heading, by their first cell."""
    text = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return {row[0].strip(" `"): [cell.strip() for cell in row[1:]] for row in rows}


def test_every_input_is_documented_with_its_default():
    """docs/action.md and action.yml have the same inputs, in the same order, with the same defaults."""
    inputs = yaml.safe_load(ACTIONS["action.yml"].read_text())["inputs"]
    documented = table((ROOT / "docs" / "action.md").read_text(), "Inputs")
    assert list(documented) == list(inputs)
    shown = {name: cells[0].strip("`") for name, cells in documented.items()}
    assert shown == {name: str(given["default"]) or '""' for name, given in inputs.items()}
    assert all(given["description"] for given in inputs.values())


def test_every_output_is_documented():
    """docs/action.md and action.yml have the same outputs, and each comes from the report step."""
    outputs = yaml.safe_load(ACTIONS["action.yml"].read_text())["outputs"]
    assert list(table((ROOT / "docs" / "action.md").read_text(), "Outputs")) == list(outputs)
    for name, given in outputs.items():
        assert given["value"] == f"${{{{ steps.report.outputs.{name} }}}}"


def test_second_action_agrees_with_the_first():
    """post/action.yml shares names, defaults and outputs with action.yml; docs/action.md names all of it."""
    first, second = (yaml.safe_load(path.read_text()) for path in ACTIONS.values())
    own = {"results"}
    for name, given in second["inputs"].items():
        if name not in own:
            assert given["default"] == first["inputs"][name]["default"]
    assert set(second["outputs"]) <= set(first["outputs"])
    said = (ROOT / "docs" / "action.md").read_text().partition("`post/` has the inputs ")[2].partition(".\n")[0]
    inputs, _, outputs = said.partition("and the outputs")
    assert re.findall(r"`([a-z-]+)`", inputs) == list(second["inputs"])
    assert re.findall(r"`([a-z-]+)`", outputs.partition(", all")[0]) == list(second["outputs"])


def test_token_is_in_the_report_step_alone():
    """The only script that gets the token is the report; the step that runs the project's code gets it emptied."""
    for path in ACTIONS.values():
        steps = {step["id"]: step for step in yaml.safe_load(path.read_text())["runs"]["steps"] if "run" in step}
        with_token = [name for name, step in steps.items() if "inputs.github-token" in str(step)]
        assert with_token == ["report"]
        assert all(step["env"]["INPUT_GITHUB-TOKEN"] == "" for name, step in steps.items() if name == "verify")


def test_actions_of_others_are_pinned_alike():
    """Each action of others is one commit with its version, the same everywhere."""
    texts = [path.read_text() for path in (*WORKFLOWS, *ACTIONS.values())] + [block.text for block in IS_WORKFLOW]
    pins: dict[str, set[tuple[str, str]]] = {}
    for text in texts:
        for name, revision, version in re.findall(r"uses: (actions/[\w-]+)@(\S+)(?: # (v[\d.]+))?", text):
            assert re.fullmatch(r"[0-9a-f]{40}", revision)
            pins.setdefault(name, set()).add((revision, version))
    assert len(pins) >= 4
    assert {name: len(found) for name, found in pins.items()} == dict.fromkeys(pins, 1)


def test_pinned_requirements_are_the_projects():
    """requirements/action.txt pins each dependency of pyproject.toml within its bounds, by hash, and names no index."""
    text = (ROOT / "requirements" / "action.txt").read_text()
    pins = dict(re.findall(r"^([\w-]+)==(\S+) ", text, re.MULTILINE))
    declared = re.search(
        r"^dependencies = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE
    )
    assert declared is not None
    wanted = [Requirement(line) for line in re.findall(r'"(.+)"', declared[1])]
    assert len(wanted) >= 5
    for requirement in wanted:
        assert requirement.specifier.contains(pins[requirement.name]), requirement
    pinned = [part for part in re.split(r"^(?=\w)", text, flags=re.MULTILINE) if re.match(r"\w", part)]
    assert all("--hash=sha256:" in part for part in pinned)
    assert "://" not in text
    assert "index" not in text


def test_pictures_are_there_and_small():
    """README.md shows the pictures that `make images` draws, each with a description; 300 kB at most."""
    shown = dict(re.findall(r'<img src="([^"]+)" width="\d+" alt="([^"]+)">', (ROOT / "README.md").read_text()))
    drawn = {f"docs/images/{path.name}": path.stat().st_size for path in (ROOT / "docs" / "images").glob("*.png")}
    assert set(shown) == set(drawn)
    assert len(drawn) == 2
    assert all(len(description) > 40 for description in shown.values())
    assert 20_000 < sum(drawn.values()) < 300_000


LINKS = [
    (page, target)
    for page in PAGES
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    if "://" not in target
]


@pytest.mark.parametrize(("page", "target"), LINKS, ids=[f"{page.name}-{target}" for page, target in LINKS])
def test_links_lead_somewhere(page: Path, target: str):
    """Every link within the repository has its file, and its heading."""
    name, _, anchor = target.partition("#")
    file = page if not name else (page.parent / name)
    assert file.exists()
    if anchor:
        headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
