"""The action in real workflow runs: a repository with a model, the real runner, GitHub's API on this machine."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from github_server import GitHubServer
from harness.repositories import commit, git
from runner import HEAD, REPOSITORY, TOKEN, Runner, pull_request

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the models look for secrets in /proc"),
]

CONFIG = """
version: 1
models:
  head: &model
    factory: model:make
    inputs: {input: {dtype: float32, shape: [3, 2], range: [0, 1]}}
    controls: {limit: 2}
    targets: {exported-program: {}}
"""
GOOD = """
import torch

def make():
    return torch.nn.Linear(2, 2).eval()
"""
BROKEN = """
import torch

class Branches(torch.nn.Module):
    def forward(self, input):
        return input + 1 if input.sum() > 1 else input

def make():
    return Branches().eval()
"""
SPY = """
import json, os, torch
from pathlib import Path

def ancestors():
    pid = os.getpid()
    while pid > 1:
        yield Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace").split("\\0")
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def make():
    Path(SEEN).write_text(json.dumps(list(ancestors())))
    return torch.nn.Linear(2, 2).eval()
"""
THIEF = """
import os, torch
from pathlib import Path

def commands():
    pid = os.getpid()
    while pid > 1:
        for name in Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace").split("\\0"):
            if name.startswith("GITHUB_ENV="):
                return Path(name.partition("=")[2])
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def make():
    with commands().open("a") as file:
        file.write(f"BASH_ENV={STEAL}\\n")
    return torch.nn.Linear(2, 2).eval()
"""
CHECKOUT = {"uses": "actions/checkout@v6", "with": {"persist-credentials": False}}


def gate(**inputs: str) -> dict[str, Any]:
    """A step with the action."""
    return {"id": "gate", "uses": "acme/export-gate@v1", "with": {"python": sys.executable, **inputs}}


def job(*steps: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """A job of these steps."""
    return {"runs-on": "ubuntu-latest", **keys, "steps": list(steps)}


ONE_JOB = {"gate": job(CHECKOUT, gate())}


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    """GitHub's API, with nothing in it."""
    with GitHubServer() as server:
        yield server


@pytest.fixture
def runner(tmp_path: Path, checkout: Path, clean_environment: dict[str, str], github: GitHubServer) -> Runner:
    """A repository with a good model, and what runs its workflows."""
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "remote", "add", "origin", f"https://github.com/{REPOSITORY}")
    made = Runner(folder=folder, work=tmp_path, checkout=checkout, environment=clean_environment, api_url=github.url)
    write(made, model=GOOD, jobs=ONE_JOB)
    return made


def write(runner: Runner, *, model: str | None = None, jobs: dict[str, Any] | None = None, config: str = CONFIG):
    """Commit the repository's files."""
    (runner.folder / "export-gate.yml").write_text(config)
    if model is not None:
        (runner.folder / "model.py").write_text(model)
    if jobs is not None:
        events = ["pull_request", "pull_request_target", "merge_group", "push", "workflow_run", "issue_comment"]
        (runner.folder / ".github/workflows").mkdir(parents=True, exist_ok=True)
        (runner.folder / ".github/workflows/gate.yml").write_text(yaml.safe_dump({"on": events, "jobs": jobs}))
    commit(runner.folder)


def copy_example(runner: Runner, name: str):
    """Commit a workflow of examples/workflows, and the requirements that it installs."""
    shutil.copy2(runner.checkout / "examples" / "workflows" / name, runner.folder / ".github" / "workflows")
    (runner.folder / "requirements.txt").touch()
    commit(runner.folder)


@pytest.mark.slow(seconds=15)
def test_comment_turns_green_after_red(runner: Runner, github: GitHubServer):
    """A violation fails the job and writes a comment; when it is fixed, the same comment says so and the job passes."""
    write(runner, model=BROKEN)
    red = runner.run("pull_request", pull_request(), "gate.yml")
    assert red.code == 1, red.text
    assert red.outputs("gate")["verdict"] == "violations"
    assert red.outputs("gate")["violations"] == "1"
    (body,) = github.bodies()
    assert "❌ export-gate" in body
    assert "export-failed" in body

    seen = runner.work / "seen.json"
    write(runner, model=f"SEEN = {str(seen)!r}\n{SPY}")
    base = git(runner.folder, "rev-parse", "HEAD").strip()
    green = runner.run("pull_request", pull_request(base=base), "gate.yml")
    assert green.code == 0, green.text
    outputs = green.outputs("gate")
    assert outputs["verdict"] == "verified"
    assert (outputs["violations"], outputs["warnings"]) == ("0", "0")
    assert outputs["report-path"].endswith("/.export-gate/report.md")
    assert outputs["results-path"].endswith("/.export-gate/results.json")
    (body,) = github.bodies()
    assert "✅ export-gate: 1 of 1 model verified" in body
    assert HEAD[:10] in body
    assert outputs["comment-url"] == next(iter(github.comments.values()))["html_url"]

    environments = json.loads(seen.read_text())
    steps = [names for names in environments if any(name.startswith("GITHUB_STEP_SUMMARY=") for name in names)]
    assert steps, "the model saw no process of the step"
    assert not [name for names in environments for name in names if TOKEN in name]
    assert not [name for name in environments[0] if name.startswith(("GITHUB_", "RUNNER_", "ACTIONS_"))]


@pytest.mark.slow(seconds=15)
def test_verifying_job_has_no_token_to_steal(runner: Runner, github: GitHubServer):
    """Shards in jobs without a token, one report: a model that takes over its job's later steps finds no token there.

    In the one-job form it does, as docs/security.md says: the wall is the job.
    """
    steal = runner.work / "steal.sh"
    steal.write_text(f'env >> "{runner.work}/stolen-$GITHUB_JOB"\n')
    two = "".join(f"  {name}:\n    <<: *model\n" for name in ("second",))
    verify = gate(shard="${{ matrix.shard }}", comment="never", **{"upload-artifacts": "results"})
    legs = {"matrix": {"shard": ["1/2", "2/2"]}}
    jobs = {
        "verify": job(CHECKOUT, verify, strategy=legs, permissions={"contents": "read"}),
        "report": job({"uses": "acme/export-gate/post@v1"}, needs="verify", **{"if": "${{ !cancelled() }}"}),
        "alone": job(CHECKOUT, gate(models="head", **{"comment-id": "alone"})),
    }
    write(runner, model=f"STEAL = {str(steal)!r}\n{THIEF}", config=CONFIG + two, jobs=jobs)
    done = runner.run("pull_request", pull_request(), "gate.yml")
    assert done.code == 0, done.text
    stolen = (runner.work / "stolen-verify").read_text()
    assert "COMMENT=never" in stolen, "the thief did not reach the next step"
    assert TOKEN not in stolen
    assert not (runner.work / "stolen-report").exists()
    assert TOKEN in (runner.work / "stolen-alone").read_text()
    bodies = {"2 of 2 models verified": 0, "1 of 1 model verified": 0}
    for body in github.bodies():
        for headline in bodies:
            bodies[headline] += headline in body
    assert bodies == {"2 of 2 models verified": 1, "1 of 1 model verified": 1}


@pytest.mark.slow(seconds=15)
def test_recommended_workflow_reports_from_its_second_job(runner: Runner, github: GitHubServer):
    """As examples/workflows/two-jobs.yml stands, both jobs fail by the verdict and the second one comments."""
    write(runner, model=BROKEN)
    copy_example(runner, "two-jobs.yml")
    done = runner.run("pull_request", pull_request(), "two-jobs.yml")
    assert done.code == 1, done.text
    assert (done.result("verify"), done.result("report")) == ("failure", "failure")
    assert done.outputs("report")["verdict"] == "violations"
    (body,) = github.bodies()
    assert "❌ export-gate" in body
    (annotation,) = [line for line in done.text.splitlines() if "::error " in line and "export-failed" in line]
    assert "file=model.py,line=6" in annotation


@pytest.mark.slow(seconds=15)
def test_comment_on_a_fork_is_written_by_the_second_stage(runner: Runner, github: GitHubServer):
    """A fork's run cannot comment: it fails by its verdict and keeps its results; fork-comment.yml then comments."""
    fork = "stranger/shop"
    write(runner, model=BROKEN, jobs={"gate": job(CHECKOUT, gate(**{"upload-artifacts": "results"}))})
    github.can_write = False
    first = runner.run("pull_request", pull_request(repository=fork), "gate.yml")
    assert first.code == 1, first.text
    assert first.outputs("gate")["verdict"] == "violations"
    assert github.bodies() == []
    kept = runner.work / "artifacts" / "export-gate-results"
    assert {path.name for path in kept.iterdir()} == {"results.json", "exit-code", "report.md", "report.html"}

    github.can_write = True
    github.pulls = [{**pull_request(repository=fork)["pull_request"]}]
    copy_example(runner, "fork-comment.yml")
    run = {"id": 101, "run_attempt": 1, "event": "pull_request", "head_sha": HEAD, "head_branch": "feature"}
    run |= {"conclusion": "failure", "head_repository": {"full_name": fork}}
    event = {"action": "completed", "workflow_run": run, "repository": pull_request()["repository"]}
    second = runner.run("workflow_run", event, "fork-comment.yml")
    assert second.code == 0, second.text
    assert second.outputs("comment")["verdict"] == "violations"
    (body,) = github.bodies()
    assert "❌ export-gate" in body
    assert "actions/runs/101" in body


@pytest.mark.slow(seconds=15)
def test_the_base_of_a_shallow_checkout_is_fetched(runner: Runner, github: GitHubServer):
    """A copied workflow works in a repository with a lock: the checkout has one commit, and the base's lock counts."""
    lock = runner.folder / "export-gate.lock"
    lock.write_text('{"models": {}, "version": 1}\n')
    base = commit(runner.folder)
    write(runner, model=f"{GOOD}\n", jobs={"gate": job(CHECKOUT, gate(**{"upload-artifacts": "results"}))})
    upstream, shallow = runner.work / "upstream.git", runner.work / "shallow"
    git(runner.work, "clone", "--quiet", "--bare", str(runner.folder), str(upstream))
    git(runner.work, "clone", "--quiet", "--depth=1", f"file://{upstream}", str(shallow))
    git(shallow, "remote", "set-url", "origin", f"https://github.com/{REPOSITORY}")
    git(shallow, "config", f"url.file://{upstream}.insteadOf", f"https://github.com/{REPOSITORY}")
    assert git(shallow, "rev-list", "--count", "HEAD") == "1"
    runner.folder = shallow
    event = pull_request()
    event["pull_request"]["base"]["sha"] = base
    done = runner.run("pull_request", event, "gate.yml")
    assert done.code == 0, done.text
    results = json.loads((runner.work / "artifacts" / "export-gate-results" / "results.json").read_text())
    assert results["lock"]["origin"] == f"export-gate.lock at {base[:10]}"
    assert results["lock"]["is_base"] is True


@pytest.mark.slow(seconds=15)
def test_release_attests_the_verified_files(runner: Runner, github: GitHubServer):
    """As examples/workflows/release.yml stands, it attests what was verified, by the manifest's sha256."""
    write(runner, config=CONFIG.replace("exported-program", "pt2"))
    copy_example(runner, "release.yml")
    event = {"ref": "refs/heads/release/1", "repository": pull_request()["repository"]}
    done = runner.run("push", event, "release.yml")
    assert done.code == 0, done.text
    kept = runner.work / "artifacts" / "export-gate-results"
    manifest = json.loads((kept / "artifacts" / "head" / "manifest.json").read_text())
    assert manifest["verified"] is True
    (artifact,) = manifest["artifacts"]
    attested = dict(line.split()[::-1] for line in (runner.work / "artifacts" / "attested").read_text().splitlines())
    assert attested[f"verified/{artifact['path']}"] == artifact["sha256"]
    assert set(attested) == {f"verified/{artifact['path']}", "verified/artifacts/head/manifest.json"}


@pytest.mark.slow(seconds=15)
def test_merge_queue_is_gated_without_a_comment(runner: Runner, github: GitHubServer):
    """In a merge queue the verdict is the job's result. A config in a folder works, and a token in .git is reported."""
    git(runner.folder, "config", "http.https://github.com/.extraheader", "AUTHORIZATION: basic eA==")
    inputs = {
        "config": "nets/gate.yml",
        "models": "head, second",
        "targets": "exported-program",
        "python": "bin/python",
    }
    write(runner, jobs={"gate": job(CHECKOUT, gate(**inputs, **{"working-directory": "sub"}))})
    nets = runner.folder / "sub" / "nets"
    nets.mkdir(parents=True)
    python = runner.folder / "sub" / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    config = CONFIG + "  second:\n    <<: *model\n  third:\n    <<: *model\n    factory: model:nothing\n"
    (nets / "gate.yml").write_text(config)
    (nets / "model.py").write_text(GOOD)
    commit(runner.folder)
    event = {
        "action": "checks_requested",
        "merge_group": {"head_sha": HEAD},
        "repository": pull_request()["repository"],
    }
    done = runner.run("merge_group", event, "gate.yml")
    assert done.code == 0, done.text
    outputs = done.outputs("gate")
    assert outputs["verdict"] == "verified"
    assert outputs["results-path"].endswith("/sub/nets/.export-gate/results.json")
    assert "no comment: no pull request in a merge_group event" in done.text
    assert "actions/checkout left its token in .git" in done.text
    assert github.log == []


@pytest.mark.slow(seconds=15)
def test_unchanged_models_are_not_run_and_only_the_default_branch_keeps_verdicts(runner: Runner):
    """As docs/action.md has it, a push keeps what a pull request uses; what that changes runs, and is not kept."""
    section = (runner.checkout / "docs" / "action.md").read_text().partition("## Unchanged models")[2]
    workflow = section.partition("```yaml\n")[2].partition("```")[0]
    (runner.folder / ".github/workflows/gate.yml").write_text(workflow)
    (runner.folder / "requirements.txt").touch()
    (runner.folder / "other.py").write_text(GOOD)
    write(runner, config=CONFIG + '  other: {<<: *model, factory: "other:make"}\n')
    event = pull_request(base=git(runner.folder, "rev-parse", "HEAD"))
    event["repository"]["default_branch"] = "main"
    pushed = runner.run("push", {"ref": "refs/heads/main", "repository": event["repository"]}, "gate.yml")
    assert pushed.code == 0, pushed.text
    (kept,) = (runner.work / "artifacts" / "caches").iterdir()
    assert kept.name == f"export-gate-{git(runner.folder, 'rev-parse', 'HEAD')}"
    entries = sorted(kept.rglob("*.json"))
    assert len([path for path in entries if path.parent.parent.name == "entries"]) == 2

    write(runner, config=(runner.folder / "export-gate.yml").read_text(), model=GOOD.replace("2, 2", "2, 3"))
    asked = runner.run("pull_request", event, "gate.yml")

    assert asked.code == 0, asked.text
    assert "other: unchanged since " in asked.text
    assert "other: exported-program" not in asked.text
    assert "head: exported-program" in asked.text
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]

    config = (runner.folder / "export-gate.yml").read_text()
    write(runner, config=config, jobs={"gate": job(CHECKOUT, gate(cache=str(kept), comment="never"))})
    # This one has the default branch as its ref, too.
    commented = runner.run("issue_comment", {**event, "issue": {"number": 7}, "ref": "refs/heads/main"}, "gate.yml")

    assert commented.code == 0, commented.text
    assert "head: exported-program" in commented.text
    assert sorted(kept.rglob("*.json")) == entries


@pytest.mark.slow
def test_mistake_in_the_config_is_no_verdict(runner: Runner, github: GitHubServer):
    """A config that cannot be read fails the job, and the comment says so, whatever results lie in the repository."""
    lie = runner.folder / ".export-gate" / "results.json"
    lie.parent.mkdir()
    lie.write_text('{"schema_version": 2, "verdict": "verified"}')
    write(runner, config=CONFIG.replace("factory", "factroy"))
    done = runner.run("pull_request", pull_request(), "gate.yml")
    assert done.code == 1, done.text
    assert done.outputs("gate")["verdict"] == "broken"
    assert "export-gate.yml:5:5: models.head.factroy: " in done.text
    (body,) = github.bodies()
    assert "no verdict, no results" in body
    assert "models.head.factroy: " in body


@pytest.mark.slow
def test_pull_request_target_is_refused_before_anything_runs(runner: Runner, github: GitHubServer):
    """On pull_request_target no code of the pull request runs, and the job fails with the reason and what to do."""
    ran = runner.work / "ran"
    write(runner, model=f"from pathlib import Path\nPath({str(ran)!r}).touch()\n{GOOD}")
    reason = (
        "pull_request_target is refused: it would run a stranger's code with this repository's token and secrets; "
        "trigger on pull_request, and let post/ comment on forks from a workflow_run (docs/security.md)"
    )
    for _ in range(3):  # act may lose what a step prints that ends at once
        done = runner.run("pull_request_target", pull_request(), "gate.yml")
        assert done.code == 1, done.text
        if reason in done.text:
            break
    assert reason in done.text
    assert not ran.exists()
    assert github.log == []
