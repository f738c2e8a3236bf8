"""What GitHub reads of this repository is valid and safe: workflows, issue forms, dependabot, pre-commit."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
FILES = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.dependabot": [GITHUB / "dependabot.yml"],
    "vendor.github-issue-forms": FORMS,
    "vendor.github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
}


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """A command and what it printed."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("schema", FILES)
def test_files_fit_githubs_schemas(schema: str):
    """GitHub accepts the workflows, the issue forms and dependabot's config."""
    done = run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *FILES[schema])
    assert done.returncode == 0, done.stdout + done.stderr


def test_workflows_are_safe():
    """An offline audit by zizmor finds nothing in the workflows and in dependabot's config."""
    zizmor = Path(sys.executable).with_name("zizmor")
    done = run(zizmor, "--offline", "--no-progress", "--config", ROOT / "tests" / "zizmor.yml", GITHUB)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ci.yml" in done.stderr


@pytest.mark.slow
def test_pre_commit_config_is_valid():
    """pre-commit accepts the config, and its hooks are what `make lint` runs, with zizmor."""
    path = ROOT / ".pre-commit-config.yaml"
    done = run(sys.executable, "-m", "pre_commit", "validate-config", path)
    assert done.returncode == 0, done.stdout + done.stderr
    entries = {hook["entry"] for repo in yaml.safe_load(path.read_text())["repos"] for hook in repo["hooks"]}
    for tool in ("ruff check", "ruff format", "mypy", "lint-imports"):
        assert any(entry.startswith(f".venv/bin/{tool}") for entry in entries)


def test_actions_of_others_are_the_examples():
    """The workflows use each action at the commit that examples/workflows and the actions use, where those use it."""
    pattern = r"uses: ([\w-]+/[\w-]+)@([0-9a-f]{40}) # (v[\d.]+)"
    shown = [*(ROOT / "examples" / "workflows").glob("*.yml"), ROOT / "action.yml", ROOT / "post" / "action.yml"]
    examples = {name: (sha, version) for path in shown for name, sha, version in re.findall(pattern, path.read_text())}
    ours = {found for path in WORKFLOWS for found in re.findall(pattern, path.read_text())}
    assert len(ours) >= 5
    assert {(name, *examples[name]) for name, *_ in ours if name in examples} == {
        found for found in ours if found[0] in examples
    }


def test_ci_checks_each_declared_python():
    """The matrix has the versions of the classifiers, on the three systems."""
    declared = re.findall(r"Python :: (3\.\d+)\"", (ROOT / "pyproject.toml").read_text())
    matrix = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text())["jobs"]["driver"]["strategy"]["matrix"]
    assert matrix["python"] == declared
    assert [system.partition("-")[0] for system in matrix["system"]] == ["ubuntu", "macos", "windows"]


def test_every_form_asks_for_the_results():
    """Each issue form asks for results.json, which contains everything that a verdict rests on."""
    assert len(FORMS) >= 2
    for form in FORMS:
        fields = {field.get("id"): field for field in yaml.safe_load(form.read_text())["body"]}
        assert fields["results"]["attributes"]["label"] == "results.json"


def test_release_runs_for_versions_only():
    """The tag v1, which the workflow moves, does not start it again."""
    triggers = yaml.safe_load((GITHUB / "workflows" / "release.yml").read_text())[True]
    assert triggers == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}
