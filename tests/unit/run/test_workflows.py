"""Workflows of the base beside those of the change, in real repositories."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from harness.repositories import git

from export_gate.run.base import Base
from export_gate.run.scripts import MOST_NAMED, script_lines
from export_gate.run.workflows import MAX_BYTES, workflow_alterations

TEXT = """
name: CI
on:
  pull_request:
  push: {branches: [main]}
env: {EXPORT_GATE_PYTHON: .venv/bin/python, COLOR: "1"}
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - run: make test
  gate:
    runs-on: ubuntu-latest
    defaults: {run: {shell: bash}}
    strategy: {matrix: {config: [a.yml, b.yml]}}
    steps:
      - uses: actions/checkout@v7
      - uses: acme/export-gate@v1
        id: first
        with:
          config: ${{ matrix.config }}
          comment-id: gate
          fail-on: warning
      - run: |
          pip install export-gate
          export-gate run --config slow.yml \\
            --target onnx
      - if: steps.first.outcome == 'failure'
        run: exit 1
"""
FILE = ".github/workflows/ci.yml"
JOB = f"{FILE}, job gate: "
LOOSER = {
    "another config": ("${{ matrix.config }}", "lax.yml", "input config ${{ matrix.config }} -> lax.yml"),
    "another interpreter": (
        "id: first\n        with:",
        "with:\n          python: mock/python",
        "input python none -> mock/python",
    ),
    "another folder": (
        "id: first\n        with:",
        "with:\n          working-directory: lax",
        "input working-directory . -> lax",
    ),
    "fewer models": ("id: first\n        with:", "with:\n          models: small", "input models any -> small"),
    "warnings pass": ("          fail-on: warning\n", "", "input fail-on warning -> violation"),
    "no comment": ("comment-id: gate", "comment: never", "input comment always -> never"),
    "results of its own": (
        "comment-id: gate",
        "comment-id: gate\n          results: fake",
        "input results none -> fake",
    ),
    "results of another job": ("comment-id: gate", "comment-id: fake", "input comment-id gate -> fake"),
    "kept verdicts": ("comment-id: gate", "comment-id: gate\n          cache: fake", "input cache none -> fake"),
    "no token": ("comment-id: gate", "comment-id: gate\n          github-token: x", "input github-token none -> x"),
    "another action": ("acme/export-gate@v1", "evil/export-gate@v1", "action acme/export-gate -> evil/export-gate"),
    "a step that may fail": ("id: first", "continue-on-error: true", "continue-on-error none -> true"),
    "a step that is left out": ("id: first", "if: github.actor != 'me'", "if none -> github.actor != 'me'"),
    "an id by which a later step asks whether it failed": (
        "id: first",
        "id: second",
        "id first -> none",
    ),
    "a folder that the job's own defaults leave to the workflow's": (
        "name: CI\n",
        "name: CI\ndefaults: {run: {working-directory: lax}}\n",
        'job defaults {"run": {"shell": "bash"}} -> {"run": {"working-directory": "lax", "shell": "bash"}}',
    ),
    "a job that may fail": (
        "    strategy:",
        "    continue-on-error: true\n    strategy:",
        "job continue-on-error none -> true",
    ),
    "another interpreter by a variable": (
        ".venv/bin/python, COLOR",
        "mock/python, COLOR",
        "env EXPORT_GATE_PYTHON .venv/bin/python -> mock/python",
    ),
    "another matrix": (
        "[a.yml, b.yml]",
        "[a.yml]",
        'job matrix {"config": ["a.yml", "b.yml"]} -> {"config": ["a.yml"]}',
    ),
    "another command": (
        "--config slow.yml",
        "--config lax.yml",
        (
            "commands [export-gate run --config slow.yml --target onnx]"
            " -> [export-gate run --config lax.yml --target onnx]"
        ),
    ),
    "another machine": (
        "  gate:\n    runs-on: ubuntu-latest",
        "  gate:\n    runs-on: self-hosted",
        "job runs-on ubuntu-latest -> self-hosted",
    ),
    "another image": (
        "    strategy:",
        "    container: {image: lax, env: {A: b}}\n    strategy:",
        'job container none -> {"image": "lax", "env": {"A": "b"}}',
    ),
    "another image beside it": (
        "    strategy:",
        '    services: {db: {image: lax, volumes: ["/:/host"]}}\n    strategy:',
        'job services none -> {"db": {"image": "lax", "volumes": ["/:/host"]}}',
    ),
    "another shell": (
        "shell: bash",
        "shell: ./tools/bash",
        'job defaults {"run": {"shell": "bash"}} -> {"run": {"shell": "./tools/bash"}}',
    ),
    "another shell of the step": (
        "      - run: |",
        "      - shell: ./tools/bash\n        run: |",
        "shell none -> ./tools/bash",
    ),
    "a check under another name": ("    strategy:", "    name: old gate\n    strategy:", "job name none -> old gate"),
    "a job that must pass first": ("    strategy:", "    needs: test\n    strategy:", "job needs none -> test"),
    "other variables of the repository": (
        "    strategy:",
        "    environment: lax\n    strategy:",
        "job environment none -> lax",
    ),
    "an input in capitals": (
        "config: ${{ matrix.config }}",
        "Config: lax.yml",
        "input config ${{ matrix.config }} -> lax.yml",
    ),
    "another commit": (
        "actions/checkout@v7",
        "actions/checkout@v7\n        with: {ref: main}",
        'steps actions/checkout@v7 -> actions/checkout@v7 {"ref": "main"}',
    ),
    "another step": (
        "      - uses: acme/export-gate@v1",
        '      - run: echo "EXPORT_GATE_PYTHON=x" >> "$GITHUB_ENV"\n      - uses: acme/export-gate@v1',
        'steps also echo "EXPORT_GATE_PYTHON=x" >> "$GITHUB_ENV"',
    ),
    "another line of the script": (
        "pip install export-gate",
        "export EXPORT_GATE_PYTHON=x",
        "steps pip install export-gate -> export EXPORT_GATE_PYTHON=x",
    ),
    "a function of bash": ('COLOR: "1"', '"BASH_FUNC_git%%": x', "env BASH_FUNC_git%% none -> x"),
    "other settings of pip": ('COLOR: "1"', "PIP_CONFIG_FILE: x", "env PIP_CONFIG_FILE none -> x"),
    "another repository of git": ('COLOR: "1"', 'COLOR: "1", GIT_DIR: fake', "env GIT_DIR none -> fake"),
    "no step": (
        TEXT[TEXT.index("      - uses: acme") : TEXT.index("      - run: |")],
        "",
        "action acme/export-gate -> none",
    ),
}


def committed(root: Path, files: Mapping[str, str]) -> None:
    """A new repository with these files, and a folder for workflows."""
    git(root, "init", "--quiet", "--initial-branch=main")
    (root / FILE).parent.mkdir(parents=True)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "base")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with a workflow, committed."""
    root = tmp_path_factory.mktemp("repository")
    committed(root, {FILE: TEXT})
    (root / "sub").mkdir()
    return root


def said(root: Path, text: str, effect: str = "loosened", **environment: str) -> list[str]:
    """What is said of the workflow with that text."""
    (root / FILE).write_text(text)
    found = workflow_alterations(Base(commit="HEAD", root=root), {**os.environ, **environment})
    return [each.text for each in found if each.effect == effect]


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOSER)
def test_a_workflow_that_checks_less_is_said(repository: Path, name: str):
    """What chooses the config, the models and the interpreter, and whether a failure shows."""
    old, new, sentence = LOOSER[name]
    assert TEXT.count(old) == 1

    assert f"{JOB}{sentence}" in said(repository, TEXT.replace(old, new))


def test_events_that_no_longer_start_the_check_are_said(repository: Path):
    """Neither the event nor its filters may go unseen."""
    text = TEXT.replace("  pull_request:\n", "  pull_request: {paths-ignore: [nets/**]}\n").replace(
        "  push: {branches: [main]}\n", ""
    )
    assert said(repository, text) == [
        f'{FILE}: on pull_request always -> {{"paths-ignore": ["nets/**"]}}',
        f"{FILE}: on push removed",
    ]


def test_other_jobs_names_and_defaults_are_no_change(repository: Path):
    """What chooses nothing is not compared, and a default may be written out."""
    text = (
        TEXT.replace("make test", "make check")
        .replace('COLOR: "1"', 'COLOR: "2"')
        .replace("comment-id: gate", "comment-id: gate\n          comment: always")
    )
    assert said(repository, text.replace("# ", "## ")) == []
    assert said(repository, TEXT.replace("export-gate@v1", "export-gate@v2"), "changed") == [f"{JOB}version v1 -> v2"]


def test_steps_that_moved_to_another_file_still_run(repository: Path):
    """Only a step that is nowhere is gone."""
    (repository / FILE).with_name("gate.yml").write_text(TEXT)
    try:
        assert said(repository, "on: push\njobs: {}\n") == []
    finally:
        (repository / FILE).with_name("gate.yml").unlink()
    assert said(repository, "on: push\njobs: {}\n") == [f"{JOB}no longer runs the gate"] * 2


@pytest.mark.parametrize("place", [".github/ci.yml", ".github/workflows/old/ci.yml", "action.yml"])
def test_steps_that_moved_where_nothing_runs_them_are_gone(repository: Path, place: str):
    """GitHub runs the files of one folder."""
    (repository / FILE).unlink(missing_ok=True)
    new = repository / place
    new.parent.mkdir(parents=True, exist_ok=True)
    new.write_text(TEXT)
    try:
        found = workflow_alterations(Base(commit="HEAD", root=repository), dict(os.environ))
        assert [each.text for each in found] == [f"{JOB}no longer runs the gate"] * 2
    finally:
        new.unlink()


def test_steps_that_moved_to_other_events_are_gone(repository: Path):
    """What runs the gate elsewhere must start as often."""
    (repository / FILE).with_name("gate.yml").write_text(TEXT.replace("  pull_request:\n", ""))
    try:
        assert said(repository, "on: push\njobs: {}\n") == [f"{JOB}no longer runs the gate"] * 2
    finally:
        (repository / FILE).with_name("gate.yml").unlink()


def test_another_job_with_the_name_of_the_check_is_said(repository: Path):
    """Branch protection knows a check by its name, whichever file it is from; GitHub may read what we cannot."""
    other = (repository / FILE).with_name("other.yml")
    other.write_text(
        "on: push\njobs: {a: {name: gate, steps: [{run: 'true'}]}, b: {name: test, steps: [{run: 'true'}]}}\n"
    )
    broken = other.with_name("broken.yml")
    broken.write_text("jobs: [\n")
    try:
        assert said(repository, TEXT) == [
            ".github/workflows/broken.yml: cannot be read",
            ".github/workflows/other.yml: a job without the gate has the name of its check, gate",
        ]
    finally:
        other.unlink()
        broken.unlink()


@pytest.mark.parametrize(
    ("base", "job"),
    [
        ("gate: {name: the check, %s}", "name: \"${{ 'the check' }}\""),
        ("gate: {name: the check, %s}", 'name: "the ${{ matrix.word }}"'),
        ("gate: {strategy: {matrix: {leg: [one]}}, %s}", "name: gate (one)"),
        ("gate: {name: the check, %s}", 'name: " the  check "'),
        ("gate: {name: the check, %s}", "name: The Check"),
        ("gate: {uses: acme/ci/.github/workflows/export-gate.yml@v1}", "name: gate / verify"),
        ("gate: {name: the check, %s}", 'name: the check, "\\u0073teps": []'),
    ],
)
def test_a_name_that_may_become_that_of_the_check_is_said(tmp_path: Path, base: str, job: str):
    """GitHub works expressions out, and adds the leg of a matrix and the job of a called workflow."""
    text = f"on: push\njobs: {{{base.replace('%s', 'steps: [{uses: acme/export-gate@v1}]')}}}\n"
    committed(tmp_path, {FILE: text})
    other = (tmp_path / FILE).with_name("other.yml")
    other.write_text(f'on: push\n"j\\u006fbs": {{a: {{{job}}}, b: {{name: another}}}}\n')

    (sentence,) = said(tmp_path, text)
    assert sentence.startswith(".github/workflows/other.yml: a job without the gate ")
    assert " have the name of its check, " in sentence or " has the name of its check, " in sentence


def test_another_job_that_runs_the_gate_less_is_said(repository: Path):
    """It has the same name in a file that the base does not have, so nothing else of it is compared."""
    other = (repository / FILE).with_name("other.yml")
    other.write_text("on: push\njobs: {gate: {steps: [{uses: acme/export-gate@v1, with: {models: tiny}}]}}\n")
    try:
        name = ".github/workflows/other.yml: another job has the name of the gate's check, gate"
        assert said(repository, TEXT) == [name]
        (repository / FILE).unlink()
        found = workflow_alterations(Base(commit="HEAD", root=repository), dict(os.environ))
        assert [each.text for each in found] == [*[f"{JOB}no longer runs the gate"] * 2, name]
    finally:
        other.unlink()


@pytest.mark.slow
def test_an_event_without_a_base_is_said(tmp_path: Path):
    """A run on a push has the same check at the same commit, and compares the config with nothing."""
    text = "on: [pull_request]\njobs: {gate: {steps: [{uses: acme/export-gate@v1}]}}\n"
    committed(tmp_path, {FILE: text})

    assert said(tmp_path, text.replace("]\n", ", push, merge_group]\n", 1)) == [
        f"{FILE}: on push added, whose runs have no base"
    ]
    usual = text.replace("[pull_request]", "{pull_request: , push: {branches: [main]}}")
    assert said(tmp_path, usual) == []
    for old, new, event in [
        ("[main]", "[main, mine]", "push"),
        ("push: {branches: [main]}", "create: ", "create"),
        ("push: {branches: [main]}", "release: {types: [published]}", "release"),
    ]:
        assert said(tmp_path, usual.replace(old, new)) == [f"{FILE}: on {event} added, whose runs have no base"]
    assert said(tmp_path, usual.replace("push: {branches: [main]}", "schedule: [{cron: 0 0 * * *}]")) == []


def test_a_workflow_that_calls_one_that_runs_the_gate_is_compared(repository: Path):
    """Whatever its inputs are called, in the repository's own files and in another one's."""
    called = repository / ".github" / "actions" / "verify" / "action.yml"
    caller = repository / ".github" / "workflows" / "caller.yml"
    text = """
on: pull_request
jobs:
  own: {steps: [{uses: ./.github/actions/verify, with: {where: nets.yml}}]}
  inner: {uses: ./.github/workflows/ci.yml, with: {where: nets.yml}}
  outer: {uses: acme/ci/.github/workflows/export-gate.yml@v1, with: {where: nets.yml}}
  other: {uses: acme/ci/.github/workflows/lint.yml@v1, with: {where: nets.yml}}
"""
    called.parent.mkdir(parents=True)
    called.write_text("runs: {steps: [{uses: acme/export-gate@v1, with: {config: '${{ inputs.where }}'}}]}\n")
    caller.write_text(text)
    (repository / FILE).write_text(TEXT)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "calls")
    caller.write_text(text.replace("nets.yml", "lax.yml"))
    try:
        assert said(repository, TEXT) == [
            f".github/workflows/caller.yml, job {job}: input where nets.yml -> lax.yml"
            for job in ("own", "inner", "outer")
        ]
    finally:
        git(repository, "reset", "--quiet", "--hard", "HEAD^")


NEEDED = """
on: push
jobs:
  plan: {if: "true", steps: [{run: plan}]}
  build:
    needs: plan
    outputs: {shard: "${{ steps.other.outputs.shard }}"}
    steps: [{uses: acme/build@v1}, {run: "make"}]
  gate: {needs: [build], steps: [{uses: acme/export-gate@v1, with: {shard: "${{ needs.build.outputs.shard }}"}}]}
  report: {needs: gate, if: "!cancelled()", steps: [{uses: acme/export-gate/post@v1}]}
"""


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('if: "true"', 'if: "false"', "job gate: job plan if true -> false"),
        ('run: "make"', 'run: "true"', "job gate: steps build: make -> build: true"),
        ("    needs: plan\n", "    needs: plan\n    env: {A: b}\n", 'job gate: steps also build: env {"A": "b"}'),
        ("uses: acme/build@v1", "uses: acme/build@v1, id: other", 'job gate: steps also build: {"id": "other"}'),
        (
            "plan: {",
            "plan: {outputs: {a: b}, ",
            "",
        ),
        (
            "  report:",
            "  fake: {steps: [{uses: actions/upload-artifact@v7, with: {name: export-gate-results-2}}]}\n  report:",
            'job report: steps also fake: actions/upload-artifact@v7 {"name": "export-gate-results-2"}',
        ),
        (
            "  report:",
            "  fake: {uses: acme/ci/.github/workflows/any.yml@v1}\n  report:",
            "job report: steps also fake: acme/ci/.github/workflows/any.yml@v1",
        ),
        (
            "  report:",
            "  fake: {steps: [{uses: ./up}]}\n  report:",
            "job report: steps also fake: up/action.yml: Actions/Upload-artifact@v7",
        ),
        ("  report:", "  lint: {steps: [{uses: ./down}, {uses: acme/lint@v1}]}\n  report:", ""),
        ('if: "!cancelled()", ', "", "job report: job if !cancelled() -> none"),
        ("run: plan", "run: other", ""),
        ("acme/build@v1", "acme/build@v2", ""),
        ('if: "true", ', "", ""),
    ],
)
def test_jobs_that_the_gate_needs_are_compared(tmp_path: Path, old: str, new: str, sentence: str):
    """A job that is skipped counts as passed, and outputs of another job may choose what is verified."""
    up, down = (
        f"runs: {{using: composite, steps: [{{uses: {name}-artifact@v7}}]}}"
        for name in ("Actions/Upload", "actions/download")
    )
    committed(tmp_path, {FILE: NEEDED, "up/action.yml": up, "down/action.yml": down})

    assert f"{FILE}, {sentence}" in said(tmp_path, NEEDED.replace(old, new)) or not sentence
    assert bool(said(tmp_path, NEEDED.replace(old, new))) == bool(sentence)


def test_an_action_in_any_folder_is_compared_with_its_defaults(tmp_path: Path):
    """The repository's own action may be anywhere, and a default of its inputs may choose the config."""
    action = tmp_path / "tools" / "verify" / "action.yml"
    step = "{uses: acme/export-gate@v1, with: {config: '${{ inputs.where }}'}}"
    text = f"inputs: {{where: {{default: nets.yml}}}}\nruns: {{steps: [{step}]}}\n"
    workflow = "on: push\njobs: {gate: {steps: [{uses: ./tools/verify}]}}\n"
    committed(tmp_path, {FILE: workflow, "tools/verify/action.yml": text})
    action.write_text(text.replace("nets.yml", "lax.yml"))

    assert said(tmp_path, "on: push\njobs: {gate: {steps: [{uses: ./tools/verify, if: never}]}}\n") == [
        f"{FILE}, job gate: if none -> never",
        'tools/verify/action.yml: input where {"default": "nets.yml"} -> {"default": "lax.yml"}',
    ]


def test_scripts_that_start_the_gate_are_compared(tmp_path: Path):
    """A workflow may leave the command to a script, and the job that runs the script is the gate's."""
    workflow = "on: push\njobs: {gate: {steps: [{run: bash ci/gate.sh}]}, lint: {steps: [{run: bash ci/lint.sh}]}}\n"
    start = "set -e\nEXPORT_GATE_PYTHON=python3 \\\n  export-gate run --config nets.yml\n"
    committed(tmp_path, {FILE: workflow, "ci/gate.sh": start, "ci/lint.sh": "cat export-gate.yml\n"})
    script, other = tmp_path / "ci" / "gate.sh", tmp_path / "ci" / "lint.sh"
    other.write_text("cat export-gate.yaml\n")
    script.write_text(f"# Why.\n{script.read_text()}exit 0\n")
    assert said(tmp_path, workflow.replace("lint.sh", "other.sh")) == ["ci/gate.sh: steps also exit 0"]
    script.write_text(script.read_text().replace("nets.yml", "lax.yml").replace("exit 0\n", ""))

    command = "EXPORT_GATE_PYTHON=python3 export-gate run --config"
    assert said(tmp_path, workflow.replace("{run: bash ci/gate.sh}", "{run: bash ci/gate.sh, if: never}")) == [
        f"{FILE}, job gate: if none -> never",
        f"ci/gate.sh: commands [{command} nets.yml] -> [{command} lax.yml]",
    ]


@pytest.mark.parametrize(
    ("file", "text", "other"),
    [
        ("noxfile.py", 'session.run("export-gate", "run", "--config", "nets.yml")\n', ""),
        ("Makefile", "gate:\n\texport-gate run\n", "GNUmakefile"),
        ("tools/action.yaml", "runs: {steps: [{uses: acme/export-gate@v1}]}\n", "tools/action.yml"),
    ],
)
def test_a_script_is_compared_however_it_is_written_and_hidden(tmp_path: Path, file: str, text: str, other: str):
    """Commands may be lists of words, and a file of another name may be read in place of the one that is known."""
    committed(tmp_path, {file: text})
    if other:
        (tmp_path / other).write_text("gate:\n")
        assert said(tmp_path, "") == [f"{file}: hidden by {Path(other).name}, which is read in its place"]
    else:
        (tmp_path / file).write_text(text.replace("nets.yml", "lax.yml"))
        assert [line.partition(" [")[0] for line in said(tmp_path, "")] == [f"{file}: commands"]


def test_a_workflow_that_is_not_checked_out_still_runs(repository: Path):
    """A sparse checkout leaves it out here, not on GitHub."""
    git(repository, "reset", "--quiet", "--hard")
    git(repository, "sparse-checkout", "set", "--no-cone", "sub")
    try:
        assert not (repository / FILE).exists()
        assert workflow_alterations(Base(commit="HEAD", root=repository), dict(os.environ)) == ()
    finally:
        git(repository, "sparse-checkout", "disable")


@pytest.mark.slow
def test_hooks_are_compared(tmp_path: Path):
    """The arguments of the hook choose what it verifies, and other keys whether it runs."""
    hooks = tmp_path / ".pre-commit-config.yaml"
    text = """
repos:
  - {repo: https://example.invalid/export-gate, rev: v1, hooks: [{id: export-gate, args: [--jobs, "2"]}]}
  - {repo: https://example.invalid/lint, rev: v1, hooks: [{id: lint}]}
"""
    committed(tmp_path, {hooks.name: text})
    hooks.write_text(
        text.replace('--jobs, "2"]', "--config, lax.yml], files: never").replace(
            "rev: v1, hooks: [{id: lint", "rev: v2, hooks: [{id: test"
        )
    )

    assert said(tmp_path, "") == [
        '.pre-commit-config.yaml, hook export-gate: input args ["--jobs", "2"] -> ["--config", "lax.yml"]',
        ".pre-commit-config.yaml, hook export-gate: input files none -> never",
    ]
    for key in ("exclude: .*", "default_install_hook_types: [commit-msg]", "default_language_version: {python: x}"):
        hooks.write_text(f"{key}\n{text}")
        assert [line.partition(" none -> ")[0] for line in said(tmp_path, "")] == [
            f".pre-commit-config.yaml, hook export-gate: {key.partition(':')[0]}"
        ]
    hooks.unlink()
    assert said(tmp_path, "") == [".pre-commit-config.yaml, hook export-gate: no longer runs the gate"]


def test_a_workflow_that_cannot_be_read_is_said(repository: Path):
    """GitHub may still read it."""
    assert said(repository, TEXT + "jobs: [\n") == [f"{FILE}: cannot be read any more"]


def test_a_variable_may_have_any_name(repository: Path):
    """What the change writes is no pattern, which could be a mistake or take forever."""
    assert said(repository, TEXT.replace("{EXPORT_GATE_PYTHON", '{"A(": x, EXPORT_GATE_PYTHON')) == [
        f"{JOB}env A( none -> x"
    ]


def test_the_action_under_another_name_is_known_by_its_repository(tmp_path: Path):
    """A fork may be called anything; the runner says which one runs."""
    text = TEXT[: TEXT.index("      - run: |")].replace("acme/export-gate", "acme/verify")
    committed(tmp_path, {FILE: text})
    (tmp_path / "sub").mkdir()
    other = text.replace("fail-on: warning", "python: mock")

    assert f"{JOB}input python none -> mock" in said(tmp_path, other, GITHUB_ACTION_REPOSITORY="acme/verify")


SCRIPTS = {
    "a comment does not go on in the next line": ("# see the docs \\\nexport A=b\n", ["export A=b"]),
    "a command does": ("export-gate run \\\n    --config a.yml\n", [r"export-gate run --config a.yml"]),
    "a word that does is one word": ("export-gate run --config a\\\n.yml", ["export-gate run --config a.yml"]),
    "other characters end no line": ("echo \f# ; a\necho \u2028# ; b", ["echo \f# ; a", "echo \u2028# ; b"]),
    "other blanks part no words": ("A=b\u00a0export-gate run", ["A=b\u00a0export-gate run"]),
    "blanks in a text count": ("run --config 'a  b.yml'", ["run --config 'a  b.yml'"]),
    "others do not": ("  run   --config\tb.yml \r\n\n", ["run --config b.yml"]),
    "some comments act": ("#!/bin/lax\n#Requires -Modules Lax\n# none", ["#!/bin/lax", "#Requires -Modules Lax"]),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_commands_are_those_that_a_shell_sees(name: str):
    """What looks like a comment or a blank here and is none to the shell would hide a command."""
    text, lines = SCRIPTS[name]

    assert script_lines(text) == lines


WRAPPED = """
on: pull_request
jobs:
  called: {uses: acme/ci/.github/workflows/models.yml@v1, with: {config: a.yml}}
  wrapped: {runs-on: x, steps: [{uses: actions/cache@v1}, {uses: acme/ci/verify@v1, with: {models: a}}]}
"""


def test_the_gate_behind_another_repository_is_compared(tmp_path: Path):
    """The runner says which workflow a run comes from: if nothing in it is the gate, what it calls elsewhere is."""
    committed(tmp_path, {FILE: WRAPPED})
    ours = {"GITHUB_REPOSITORY": "me/nets", "GITHUB_WORKFLOW_REF": f"me/nets/{FILE}@refs/pull/1/merge"}
    lax = WRAPPED.replace("config: a.yml", "config: b.yml").replace("models: a", "models: b")

    assert said(tmp_path, lax, **ours) == [
        f"{FILE}, job called: input config a.yml -> b.yml",
        f"{FILE}, job wrapped: input models a -> b",
    ]
    assert said(tmp_path, lax, GITHUB_REPOSITORY="me/nets") == []


def test_scripts_that_a_workflow_names_are_compared(tmp_path: Path):
    """Whatever the language, and also as a module; what nobody names may be documentation."""
    script = 'import subprocess\nsubprocess.run([\n    "export-gate",\n    "run",\n    "--config=a.yml",\n])\n'
    names = ("ci/gate.py", "ci/other.py", "bin/gate", "Dockerfile", "ci/unused.py", "bin/notes/gate.md")
    runs = ("python ci/gate.py", "python -m ci.other", "./bin/gate bin/notes", "docker build -f Dockerfile .")
    steps = f"on: push\njobs: {{a: {{steps: [{', '.join(f'{{run: {run}}}' for run in runs)}]}}}}\n"
    committed(tmp_path, {FILE: steps, **dict.fromkeys(names, script)})
    for name in names:
        (tmp_path / name).write_text(script.replace("a.yml", "b.yml"))

    found = said(tmp_path, steps)

    change = 'steps "--config=a.yml", -> "--config=b.yml",'
    assert sorted(found) == [f"{name}: {change}" for name in ("Dockerfile", "bin/gate", "ci/gate.py", "ci/other.py")]


def test_a_new_workflow_that_is_too_large_to_read_is_said(tmp_path: Path):
    """It may have a job with the name of the gate's check; one that was there says nothing about the change."""
    large = f"{TEXT}#{'x' * MAX_BYTES}"
    other = FILE.replace("ci", "large")
    committed(tmp_path, {FILE: TEXT})
    (tmp_path / other).write_text(large)

    assert said(tmp_path, TEXT) == [f"{other}: cannot be read"]

    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "large")
    assert said(tmp_path, TEXT) == []


def test_a_workflow_is_read_as_it_is_committed(tmp_path: Path):
    """GitHub knows nothing of the encoding that .gitattributes gives a file in the working tree."""
    committed(tmp_path, {FILE: TEXT})
    other = FILE.replace("ci", "other")
    (tmp_path / ".gitattributes").write_text(f"{other} working-tree-encoding=UTF-16\n")
    (tmp_path / other).write_text("on: pull_request\njobs: {gate: {steps: [{run: 'true'}]}}\n", encoding="utf-16")
    git(tmp_path, "add", "--all")

    assert said(tmp_path, TEXT) == [f"{other}: a job without the gate has the name of its check, gate"]


def test_a_script_beside_the_gate_is_a_part_of_the_job(tmp_path: Path):
    """It can set the gate's variables as the job's own lines can; one of another job cannot."""
    text = (
        "on: push\njobs: {a: {steps: [{run: bash ci/setup.sh}, {uses: acme/export-gate@v1}]},"
        " b: {steps: [{run: bash ci/b.sh}]}}\n"
    )
    committed(tmp_path, {FILE: text, "ci/setup.sh": "pip install a\n", "ci/b.sh": "b\n"})
    (tmp_path / "ci" / "setup.sh").write_text("pip install a\necho X=y >> $GITHUB_ENV\n")
    (tmp_path / "ci" / "b.sh").write_text("c\n")

    assert said(tmp_path, text) == [f"{FILE}, job a: steps also ci/setup.sh: echo X=y >> $GITHUB_ENV"]


SCRIPT = "ci/setup.sh"
WAYS = {
    "a folder of the step": "jobs: {a: {steps: [{run: bash setup.sh, working-directory: ci}, %s]}}",
    "a folder of all steps": "defaults: {run: {working-directory: ci}}\njobs: {a: {steps: [{run: sh setup.sh}, %s]}}",
    "a folder that is entered": "jobs: {a: {steps: [{run: cd ci && bash setup.sh}, %s]}}",
    "a folder in a variable": "jobs: {a: {steps: [{run: bash $GITHUB_WORKSPACE/ci/setup.sh}, %s]}}",
    "a folder in an expression": "jobs: {a: {steps: [{run: 'bash ${{ github.workspace }}/ci/setup.sh'}, %s]}}",
    "a path in quotes": 'jobs: {a: {steps: [{run: \'bash "$PWD"/ci/"setup.sh"\'}, %s]}}',
    "a path of Windows": "jobs: {a: {steps: [{run: '.\\ci\\setup.sh'}, %s]}}",
    "what a shell loads": "jobs: {a: {steps: [%s]}}\nenv: {BASH_ENV: ci/setup.sh}",
    "a shell of the job": "jobs: {a: {defaults: {run: {shell: 'bash ci/setup.sh {0}'}}, steps: [%s]}}",
    "another script": "jobs: {a: {steps: [{run: ci/outer.sh}, %s]}}",
    "a script without an ending": "jobs: {a: {steps: [{run: bin/outer}, %s]}}",
    "an action of the repository": "jobs: {a: {steps: [{uses: ./ci}, %s]}}",
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_script_is_found_however_it_is_named(tmp_path: Path, way: str):
    """In whatever folder the step runs, through whatever runs it; one of the same name elsewhere is another."""
    text = f"on: push\n{WAYS[way] % '{uses: acme/export-gate@v1}'}\n"
    action = "runs: {using: composite, steps: [{shell: bash, run: bash $GITHUB_ACTION_PATH/setup.sh}]}\n"
    files = {FILE: text, SCRIPT: "a\n", "docs/setup.sh": "a\n", "ci/outer.sh": ". ci/setup.sh\n"}
    committed(tmp_path, files | {"bin/outer": f"#!/bin/sh\n. ./{SCRIPT}\n", "ci/action.yml": action})
    (tmp_path / "docs" / "setup.sh").write_text("b\n")
    assert said(tmp_path, text) == []

    (tmp_path / SCRIPT).write_text("b\n")

    assert said(tmp_path, text) == [f"{FILE}, job a: steps {SCRIPT}: a -> {SCRIPT}: b"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("ci/pick.sh", "c=strict", "c=lax"),
        ("ci/action.yml", "default: strict", "default: lax"),
        ("ci/action.yml", "value: strict", "value: lax"),
        (".github/workflows/called.yml", "value: strict", "value: lax"),
    ],
)
def test_what_gives_values_to_the_gate_is_compared(tmp_path: Path, name: str, old: str, new: str):
    """A script of a job whose outputs are used, and what an action or workflow of the repository gives by default."""
    files = {
        FILE: "on: push\njobs:\n  pick: {outputs: {c: x}, steps: [{run: bash ci/pick.sh}]}\n"
        "  called: {uses: ./.github/workflows/called.yml}\n"
        "  gate: {needs: [pick, called], steps: [{uses: ./ci}, {uses: acme/export-gate@v1, with: {config: "
        "'${{ needs.pick.outputs.c }}${{ needs.called.outputs.c }}'}}]}\n",
        "ci/pick.sh": "echo c=strict >> $GITHUB_OUTPUT\n",
        "ci/action.yml": "inputs: {a: {description: one, default: strict}}\noutputs: {c: {value: strict}}\n"
        "runs: {using: composite, steps: []}\n",
        ".github/workflows/called.yml": "on: {workflow_call: {outputs: {c: {value: strict}}}}\njobs: {}\n",
    }
    committed(tmp_path, files)
    assert said(tmp_path, files[FILE]) == []
    (tmp_path / name).write_text(files[name].replace(old, new).replace("one", "two"))

    (change,) = said(tmp_path, files[FILE])

    assert change.startswith(f"{FILE}, job gate: steps ")


@pytest.mark.slow
def test_a_hook_that_runs_a_script_of_the_gate_is_compared(tmp_path: Path):
    """Nothing in the hooks' file names the gate then."""
    hook = "repos: [{repo: local, hooks: [{id: own, entry: ci/gate, language: script}]}]\n"
    hooks = tmp_path / ".pre-commit-config.yaml"
    committed(tmp_path, {FILE: "on: push\n", hooks.name: hook, "ci/gate": "#!/bin/sh\nexport-gate run\n"})
    (tmp_path / "ci" / "gate").write_text("#!/bin/sh\nexport-gate run || true\n")
    change = "[export-gate run] -> [export-gate run || true]"
    assert said(tmp_path, "on: push\n") == [f"ci/gate: commands {change}"]

    git(tmp_path, "checkout", "--quiet", "ci/gate")
    hooks.write_text(hook.replace("ci/gate", "ci/other"))

    assert said(tmp_path, "on: push\n") == [f"{hooks.name}, hook own: no longer runs the gate"]


@pytest.mark.slow
@pytest.mark.parametrize("line", [". ci/vars", "cd ci; source ./vars", "cat ci/vars >> $GITHUB_ENV"])
def test_a_file_that_a_shell_loads_is_a_script(tmp_path: Path, line: str):
    """Whatever its name and its content: it sets variables for the gate. One that is only shown does not."""
    steps = f"[{{run: {json.dumps(line + chr(10) + 'cat ci/notes')}}}, {{uses: acme/export-gate@v1}}]"
    text = f"on: push\njobs: {{a: {{steps: {steps}}}}}\n"
    committed(tmp_path, {FILE: text, "ci/vars": "A=1\n", "ci/notes": "a\n", "docs/vars": "A=1\n"})
    for name in ("ci/notes", "docs/vars"):
        (tmp_path / name).write_text("b\n")
    said_before = said(tmp_path, text)
    (tmp_path / "ci" / "vars").write_text("EXPORT_GATE_PYTHON=x\n")

    change = "ci/vars: A=1 -> ci/vars: EXPORT_GATE_PYTHON=x"
    assert (said_before, said(tmp_path, text)) == ([], [f"{FILE}, job a: steps {change}"])


SHELL_RUNS = {
    "a file of any ending": "bash ci/vars.txt",
    "options": "bash -eo pipefail ci/vars.txt",
    "another shell": "zsh ci/vars.txt",
    "a command": "sh -c 'ci/vars.txt'",
    "its own start": "bash --rcfile ci/vars.txt -i -c true",
    "what it is given": "bash < ci/vars.txt",
    "what another command prints": "cat ci/vars.txt | sudo bash",
    "a text": 'eval "$(cat ci/vars.txt)"',
    "what a substitution prints": "source <(cat ci/vars.txt)",
    "by its place": "ci/vars",
    "by its place, on another shell": "./ci/vars.fish",
    "a block": "{\n  cat ci/vars.txt\n} >> $GITHUB_ENV",
    "a name": "f=$GITHUB_ENV\ncat ci/vars.txt >> $f",
    "a loop": 'while read line; do\n  echo "$line" >> $GITHUB_ENV\ndone < ci/vars.txt',
    "the rest": "exec >> $GITHUB_ENV\ncat ci/vars.txt",
}
"""How a step runs a file as a shell's, or sets variables by it; none of them has a first line for the system."""


@pytest.mark.slow
@pytest.mark.parametrize("way", SHELL_RUNS)
def test_what_a_shell_runs_or_sets_variables_by_is_compared(tmp_path: Path, way: str):
    """Whatever it is called; a file that another step installs from or shows is not."""
    name = next(each for each in ("ci/vars.txt", "ci/vars.fish", "ci/vars") if each in SHELL_RUNS[way])
    others = "{run: pip install -r reqs.txt | cat, shell: bash}, {run: cat ci/notes.txt}"
    steps = f"[{others}, {{run: {json.dumps(SHELL_RUNS[way])}}}, {{uses: acme/export-gate@v1}}]"
    text = f"on: push\njobs: {{a: {{steps: {steps}}}}}\n"
    committed(tmp_path, {FILE: text, name: "A=1\n", "ci/notes.txt": "a\n", "reqs.txt": "a\n"})
    for other in ("ci/notes.txt", "reqs.txt"):
        (tmp_path / other).write_text("b\n")
    assert said(tmp_path, text) == []
    (tmp_path / name).write_text("A=2\n")

    assert said(tmp_path, text) == [f"{FILE}, job a: steps {name}: A=1 -> {name}: A=2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [
        "uses: acme/export-gate@v1, env: {BASH_ENV: '${{ github.workspace }}/ci/vars'}",
        "run: export-gate run, shell: 'ci/vars {0}'",
        "run: export-gate run, env: {ENV: ci/vars}",
    ],
)
def test_what_the_shell_of_the_gates_own_step_loads_is_compared(tmp_path: Path, step: str):
    """It runs before the gate, and in the same process."""
    text = f"on: push\njobs: {{a: {{steps: [{{{step}}}]}}}}\n"
    committed(tmp_path, {FILE: text, "ci/vars": "a\n"})
    (tmp_path / "ci" / "vars").write_text("b\n")

    assert said(tmp_path, text) == [f"{FILE}, job a: steps ci/vars: a -> ci/vars: b"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "is_said"), [("ci/runtime.txt", True), ("pyproject.toml", False)])
def test_a_file_that_chooses_the_interpreter_is_compared(tmp_path: Path, name: str, is_said: bool):
    """Whatever it is called, unless it is about much else."""
    steps = f"{{uses: actions/setup-python@v6, with: {{python-version-file: {name}}}}}, {{uses: acme/export-gate@v1}}"
    text = f"on: push\njobs: {{a: {{steps: [{steps}]}}}}\n"
    committed(tmp_path, {FILE: text, name: "3.12\n"})
    (tmp_path / name).write_text("3.9\n")

    change = f"{FILE}, job a: steps {name}: 3.12 -> {name}: 3.9"
    assert said(tmp_path, text) == ([change] if is_said else [])


@pytest.mark.slow
@pytest.mark.parametrize("name", [".husky/pre-push", "tools/githooks/pre-commit", "ci/gate.zsh", "compose.yaml"])
def test_files_that_tools_run_by_their_names_are_compared(tmp_path: Path, name: str):
    """Nothing names them; of one about other things nothing is said."""
    committed(tmp_path, {FILE: "on: push\n", name: "export-gate run\n", ".husky/post-merge": "a\n"})
    (tmp_path / ".husky" / "post-merge").write_text("b\n")
    (tmp_path / name).write_text("export-gate run || true\n")

    (change,) = said(tmp_path, "on: push\n")

    assert change == f"{name}: commands [export-gate run] -> [export-gate run || true]"


@pytest.mark.slow
def test_a_file_that_git_ignores_and_has_is_read(tmp_path: Path):
    """Whoever adds it by force commits it all the same, and its workflow runs."""
    committed(tmp_path, {FILE: TEXT, ".gitignore": "other.yml\n"})
    other = FILE.replace("ci", "other")
    (tmp_path / other).write_text("on: pull_request\njobs: {gate: {steps: [{run: 'true'}]}}\n")
    assert said(tmp_path, TEXT) == []  # nobody else gets it

    git(tmp_path, "add", "--force", other)

    assert said(tmp_path, TEXT) == [f"{other}: a job without the gate has the name of its check, gate"]


@pytest.mark.slow
def test_a_template_of_the_change_is_said(tmp_path: Path):
    """By it, the comment may say that everything is verified."""
    text = "on: push\njobs: {a: {steps: [{uses: acme/export-gate@v1, with: {Template: ./ci/comment.md.j2}}]}}\n"
    committed(tmp_path, {FILE: text, "ci/comment.md.j2": "{{ report.headline }}\n"})
    (tmp_path / "ci" / "comment.md.j2").write_text("verified\n")

    name = "ci/comment.md.j2"
    assert said(tmp_path, text) == [f"{FILE}, job a: steps {name}: {{{{ report.headline }}}} -> {name}: verified"]


@pytest.mark.slow
def test_many_other_scripts_hide_none_of_the_gate(tmp_path: Path):
    """There is a limit to what is looked for, and files that name the gate come first."""
    text = f"on: push\njobs: {{a: {{steps: [{{run: bash {SCRIPT}}}, {{uses: acme/export-gate@v1}}]}}}}\n"
    lines = " ".join(f"s{number}.sh" for number in range(MOST_NAMED))
    first = FILE.replace("ci", "build")
    committed(tmp_path, {FILE: text, first: f"jobs: {{b: {{steps: [{{run: {lines}}}]}}}}\n", SCRIPT: "a\n"})
    (tmp_path / SCRIPT).write_text("b\n")

    assert said(tmp_path, text) == [f"{FILE}, job a: steps {SCRIPT}: a -> {SCRIPT}: b"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "step", ["run: bash bin/setup.sh", "run: bash linked/setup.sh", "uses: ./linked", "uses: ./below/./ci"]
)
def test_what_is_behind_a_link_or_below_another_folder_is_compared(tmp_path: Path, step: str):
    """Git has the text of the link alone, and a workflow may check out into a folder of its own."""
    text = f"on: push\njobs: {{a: {{steps: [{{{step}}}, {{uses: acme/export-gate@v1}}]}}}}\n"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "setup.sh").symlink_to("../ci/setup.sh")
    (tmp_path / "linked").symlink_to("ci")
    action = "runs: {using: composite, steps: [{shell: bash, run: a}]}\n"
    committed(tmp_path, {FILE: text, SCRIPT: "a\n", "ci/action.yml": action})
    assert said(tmp_path, text) == []
    base = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / SCRIPT).write_text("b\n")
    (tmp_path / "ci" / "action.yml").write_text(action.replace("run: a", "run: b"))
    git(tmp_path, "commit", "--all", "--quiet", "--message", "other")

    found = workflow_alterations(Base(commit=base, root=tmp_path), dict(os.environ))

    assert [each.text.partition(" steps ")[0] for each in found] == [f"{FILE}, job a:"]


@pytest.mark.slow
def test_a_comment_that_runs_something_on_windows_is_none(tmp_path: Path):
    """Its shell takes the sign for the name of a command, and goes on with the next one."""
    text = "on: push\njobs: {a: {steps: [{shell: cmd, run: '%s'}, {uses: acme/export-gate@v1}]}}\n"
    committed(tmp_path, {FILE: text % "# a"})

    assert said(tmp_path, text % "# b") == []
    assert said(tmp_path, text % "# a & b") == [f"{FILE}, job a: steps also # a & b"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("Makefile", "ARGS = --target pt2"),
        ("Makefile", ".IGNORE:"),
        ("Makefile", "include lax.mk"),
        ("tox.ini", "ignore_outcome = true"),
        (".gitlab-ci.yml", "allow_failure: true"),
        ("package.json", '"pregate": "cp lax.yml export-gate.yml",'),
        ("Makefile", ""),
    ],
)
def test_rules_of_a_build_tool_are_compared(tmp_path: Path, name: str, line: str):
    """They change the command that stays as it is, or what its failure means; other lines are about other things."""
    start, other = "export-gate run $(ARGS)\n", 'OTHER = 1\ninclude = ["src"]\nignore_errors = true\n'
    committed(tmp_path, {FILE: "on: push\n", name: start})
    (tmp_path / name).write_text(f"{line}\n{other}{start}")

    change = f"commands [export-gate run $(ARGS)] -> [{line}, export-gate run $(ARGS)]"
    assert said(tmp_path, "on: push\n") == ([f"{name}: {change}"] if line else [])
