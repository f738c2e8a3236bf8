"""The interface lock in a real repository: locked, changed, compared with the base, in whole and shallow clones."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from harness.gate import gate

from export_gate.config import load_config
from export_gate.lock.find import find_lock
from export_gate.outcome.judging import judged, rejudge
from export_gate.outcome.locking import write_lock_of
from export_gate.report.results import Results, write_results
from export_gate.rules.lock.record import LockUsed
from export_gate.wall.contract import ModelContract
from export_gate.wall.errors import UserError
from export_gate.wall.observation import (
    CaseResult,
    Comparison,
    ControlInput,
    ControlSetObservation,
    Environment,
    ModelObservation,
    OutputLeaf,
    RunObservation,
    TargetObservation,
)

pytestmark = pytest.mark.slow

CONFIG = """\
version: 1
models:
  affine:
    factory: model:make
    dims: {batch: {min: %s, max: 8}}
    inputs: {x: {dtype: float32, shape: [batch, 3], range: [-1, 1]}}
    targets: {exported-program: {}}
"""
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{role}_{what}": "gate@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


@dataclass(frozen=True, slots=True)
class Repository:
    """A project in git, whose model is not run: observations are those of a model that agrees."""

    folder: Path

    @property
    def config(self) -> Path:
        """The config, two folders below the root."""
        return self.folder / "ml" / "gate" / "export-gate.yml"

    @property
    def lock(self) -> Path:
        """The lock beside it."""
        return self.config.with_suffix(".lock")

    def git(self, *arguments: str) -> str:
        """What git prints."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, lowest: int = 1) -> str:
        """Commit the config with this lowest batch, and whatever else is there."""
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(CONFIG % lowest)
        return self.commit_all()

    def commit_all(self) -> str:
        """Commit everything; the commit."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Change", "--allow-empty")
        return self.git("rev-parse", "HEAD")

    def results(self, base: str | None = None, change: Callable[[Results], Results] = lambda results: results) -> Path:
        """results.json as a run against the lock of `base` leaves it."""
        config = load_config(self.config)
        made = Results(
            tool_version="0.1.0",
            config_path=str(self.config),
            config_sha256=config.sha256,
            started="2026-11-29T12:00:00Z",
            duration_s=1.0,
            contracts=config.models,
            run=RunObservation(
                environment=Environment(python="3.11.7", executable="python", platform="linux", cpu="AVX2"),
                models=tuple(seen(contract) for contract in config.models),
            ),
            findings=(),
            verdict="broken",
            lock=find_lock(config, base, ENVIRONMENT).lock,
        )
        path = self.folder / "results.json"
        write_results(judged(change(made)).results, path)
        return path


def seen(contract: ModelContract) -> ModelObservation:
    """A model that agrees at two sizes."""
    sizes = (contract.dims[0].min, 8)
    names = [f"normal-1@batch={size}" for size in sizes]
    cases = tuple(
        CaseResult(
            case=name,
            outputs=(
                Comparison(
                    output="out",
                    expected_dtype="float32",
                    actual_dtype="float32",
                    expected_shape=(size, 2),
                    actual_shape=(size, 2),
                    elements=2 * size,
                    max_abs_diff=1.04e-7,
                    expected_max_abs=1.0,
                ),
            ),
        )
        for name, size in zip(names, sizes, strict=True)
    )
    inputs = tuple(
        ControlInput(name=name, family="normal", sizes={"batch": s}) for name, s in zip(names, sizes, strict=True)
    )
    return ModelObservation(
        model=contract.name,
        reached="guards",
        parameters=8,
        weights_bytes=32,
        controls=ControlSetObservation(sha256="0" * 64, inputs=inputs),
        outputs=(OutputLeaf(name="out", dtype="float32", shape=(8, 2)),),
        targets=(TargetObservation(target="exported-program", reached="guards", cases=cases),),
    )


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """One commit with the config, not yet locked."""
    found = Repository(tmp_path / "project")
    found.folder.mkdir()
    found.git("init", "-q", "-b", "main")
    (found.folder / ".gitignore").write_text("results.json\n")
    found.commit()
    return found


def said(path: Path) -> list[tuple[str, str, str]]:
    """Rule, severity and message of what results find, judged again from the file alone."""
    found = rejudge(path, lambda contract: contract).judgement.findings
    return [(finding.rule, finding.severity, finding.message) for finding in found]


BROKEN = "affine: dim 'batch': 1..8 before, 2..8 now: breaks callers that pass batch=1"


def locked(repository: Repository) -> str:
    """Write and commit the lock; the commit."""
    write_lock_of(repository.results(), repository.config)
    return repository.commit_all()


def test_a_lock_is_written_beside_its_config_and_the_next_run_agrees_with_it(repository: Repository):
    """The first run has no lock and does not mention one; the same results give the same bytes twice."""
    assert said(repository.results()) == []
    assert write_lock_of(repository.results(), repository.config) == (repository.lock, 1)
    first = repository.lock.read_bytes()
    write_lock_of(repository.results(), repository.config)

    assert repository.lock.read_bytes() == first
    assert said(repository.results()) == []
    assert json.loads(first)["models"]["affine"] == {
        "dims": {"batch": {"max": 8, "min": 1, "multiple_of": 1, "separate": []}},
        "inputs": [{"dtype": "float32", "name": "x", "range": [-1.0, 1.0], "shape": ["batch", "3"]}],
        "outputs": [{"dtype": "float32", "name": "out", "range": None, "shape": ["batch", "2"]}],
        "parameters": 8,
        "targets": {
            "exported-program": {"margins": {"out": {"allowed": 2e-6, "measured": 1e-7}}, "opsets": {}, "sizes": {}}
        },
        "weights_bytes": 32,
    }


def test_a_change_that_edits_its_own_lock_is_held_against_the_base(repository: Repository):
    """The lock of the working tree agrees with the change; the lock of the base shows who breaks."""
    base = locked(repository)
    repository.commit(lowest=2)
    assert said(repository.results()) == [("interface-changed", "violation", BROKEN)]
    locked(repository)

    assert said(repository.results()) == []
    path = repository.results(base)
    assert said(path) == [("interface-changed", "violation", BROKEN)]
    (finding,) = rejudge(path, lambda contract: contract).judgement.findings
    assert finding.details == (f"before: export-gate.lock at {base[:10]}",)


def test_a_change_that_deletes_the_lock_is_held_against_the_base(repository: Repository):
    """Without a file in the working tree, the lock of the base still applies."""
    base = locked(repository)
    repository.lock.unlink()
    repository.commit(lowest=2)

    assert said(repository.results(base)) == [("interface-changed", "violation", BROKEN)]


def test_a_base_without_a_lock_is_a_note(repository: Repository):
    """The change that adds the lock passes, with a note that nothing was compared."""
    base = repository.git("rev-parse", "HEAD")
    locked(repository)

    message = f"affine: not in {base[:10]}, which has no export-gate.lock, so its interface cannot be compared"
    assert said(repository.results(base)) == [("interface-changed", "note", message)]


def test_without_any_lock_a_base_changes_nothing(repository: Repository):
    """A workflow can always name the base, even if there is no lock."""
    assert said(repository.results(repository.git("rev-parse", "HEAD"))) == []


def shallow(repository: Repository, folder: Path) -> Repository:
    """A clone of the last commit alone, as actions/checkout makes it."""
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.folder}", str(folder))
    return Repository(folder)


def test_a_base_that_a_shallow_clone_lacks_is_named_with_the_way_to_get_it(repository: Repository, tmp_path: Path):
    """Without the base there is no verdict: exit code 2, and advice to use `fetch-depth: 0`."""
    base = locked(repository)
    repository.commit(lowest=2)
    clone = shallow(repository, tmp_path / "clone")

    with pytest.raises(UserError) as caught:
        find_lock(load_config(clone.config), base, ENVIRONMENT)

    assert str(caught.value) == (
        f"export-gate.lock: the base {base[:10]} is not a commit of this clone, which is shallow"
    )
    assert caught.value.hint == (
        "In a workflow, set `fetch-depth: 0` for actions/checkout to get the base commit; elsewhere, fetch it, "
        "or omit --base to use the lock in the working tree."
    )
    clone.git("fetch", "-q", "--unshallow")
    assert said(clone.results(base)) == [("interface-changed", "violation", BROKEN)]


def test_a_base_that_git_cannot_list_is_not_a_base_without_a_lock(repository: Repository, tmp_path: Path):
    """A clone without trees, whose origin cannot be reached, has the commit but not its content."""
    base = locked(repository)
    repository.commit(lowest=2)
    origin = repository.folder.rename(tmp_path / "origin")
    Repository(origin).git("config", "uploadpack.allowFilter", "true")
    Repository(origin).git("clone", "-q", "--filter=tree:0", f"file://{origin}", str(tmp_path / "clone"))
    origin.rename(tmp_path / "gone")
    clone = Repository(tmp_path / "clone")

    with pytest.raises(UserError) as caught:
        find_lock(load_config(clone.config), base, ENVIRONMENT)

    assert str(caught.value) == f"export-gate.lock: git cannot list the files of the base {base[:10]}"


def test_without_a_lock_a_shallow_clone_is_only_told(repository: Repository, tmp_path: Path):
    """Projects without a lock get only a note: they do not need a deeper clone."""
    base = repository.git("rev-parse", "HEAD")
    repository.commit(lowest=2)
    clone = shallow(repository, tmp_path / "clone")

    found = find_lock(load_config(clone.config), base, ENVIRONMENT)

    assert found.lock is None
    assert found.note == (
        f"the base {base[:10]} is not a commit of this clone, which is shallow; the working tree has no lock, so the "
        "base was not searched for one"
    )


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("nope", "export-gate.lock: the base nope is not a commit of this repository"),
        ("--upload-pack=x", "--base: expected a commit, got '--upload-pack=x'"),
        ("HEAD:ml", "--base: expected a commit, got 'HEAD:ml'"),
        ("a\nb", "--base: expected a commit, got 'a\\nb'"),
    ],
)
def test_a_base_that_is_no_commit_is_refused(base: str, message: str, repository: Repository):
    """No option can reach git through the name of a commit."""
    locked(repository)

    with pytest.raises(UserError) as caught:
        find_lock(load_config(repository.config), base, ENVIRONMENT)

    assert str(caught.value) == message


def test_outside_of_git_a_base_cannot_be_looked_at(tmp_path: Path):
    """The lock of the working tree does not need git, but a base does."""
    config = tmp_path / "export-gate.yml"
    config.write_text(CONFIG % 1)
    config.with_suffix(".lock").write_text('{"version": 1, "models": {}}')

    assert find_lock(load_config(config), None, ENVIRONMENT).lock == LockUsed(origin="export-gate.lock")
    with pytest.raises(UserError) as caught:
        find_lock(load_config(config), "HEAD", ENVIRONMENT)
    assert str(caught.value) == (
        f"export-gate.lock: the base HEAD cannot be read: git finds no repository at {tmp_path}"
    )


@pytest.mark.slow
def test_a_hostile_lock_at_the_base_is_refused_with_its_place(repository: Repository):
    """Its size and kind are checked before it is parsed."""
    repository.lock.write_text('{"version": 1,\n "models": 3}')
    broken = repository.commit_all()
    repository.lock.unlink()
    repository.lock.symlink_to("/etc/passwd")
    linked = repository.commit_all()
    repository.lock.unlink()
    repository.lock.write_bytes(b" " * (8 * 1024 * 1024 + 1))
    large = repository.commit_all()
    repository.lock.unlink()
    config = load_config(repository.config)
    messages = {}
    for base in (broken, linked, large):
        with pytest.raises(UserError) as caught:
            find_lock(config, base, ENVIRONMENT)
        messages[base] = str(caught.value)

    assert messages == {
        broken: f"export-gate.lock at {broken[:10]}: not a lock: Lock.models: expected an object, got 3",
        linked: f"export-gate.lock at {linked[:10]}: expected a file, got a link",
        large: f"export-gate.lock at {large[:10]}: expected a lock of at most 8388608 bytes, got 8388609",
    }


def test_a_model_that_is_gone_and_one_that_a_change_drops(repository: Repository):
    """A model that is gone from the config is a violation until the change's own lock omits it too."""
    write_lock_of(repository.results(), repository.config)
    text = repository.lock.read_text()
    old = json.loads(text)
    old["models"]["old"] = old["models"]["affine"]
    repository.lock.write_text(json.dumps(old))
    base = repository.commit_all()

    config = load_config(repository.config)
    kept = find_lock(config, base, ENVIRONMENT).lock
    repository.lock.write_text(text)
    dropped = find_lock(config, base, ENVIRONMENT).lock

    assert kept is not None
    assert dropped is not None
    assert (kept.gone, kept.dropped) == (("old",), ())
    assert (dropped.gone, dropped.dropped) == (("old",), ("old",))


PART = "results of only part of the config, without "


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (
            lambda results: replace(results, config_sha256="f" * 64),
            "results of another {config}: expected config sha256 {sha256}, got ffffffffffff",
            "Run `export-gate run` again, then lock.",
        ),
        (
            lambda results: replace(results, narrowed=True),
            f"{PART}some targets, control inputs or shards: expected a run of all of it",
            "Run `export-gate run` without models, --target, --skip-target, --case and --shard, then lock.",
        ),
        (
            lambda results: replace(
                results, contracts=(), planned=results.contracts, run=replace(results.run, models=())
            ),
            f"{PART}model affine: expected a run of all of it",
            "Run `export-gate run` without models, --target, --skip-target, --case and --shard, then lock.",
        ),
        (
            lambda results: replace(results, run=replace(results.run, models=())),
            "expected verified results, got the verdict 'broken'",
            "A lock records what was verified: fix the findings (or waive them), run again, then lock.",
        ),
    ],
    ids=["other config", "narrowed", "a model less", "not verified"],
)
def test_only_a_whole_verified_run_of_this_config_is_locked(
    change: Callable[[Results], Results], message: str, hint: str, repository: Repository
):
    """A lock is a promise, so it is not made from partial or failed runs."""
    path = repository.results(change=change)

    with pytest.raises(UserError) as caught:
        write_lock_of(path, repository.config)

    sha256 = load_config(repository.config).sha256[:12]
    assert str(caught.value) == f"{path}: {message.format(config=repository.config, sha256=sha256)}"
    assert caught.value.hint == hint
    assert not repository.lock.exists()


def test_an_interface_that_changed_can_be_locked_again(repository: Repository):
    """The old lock does not matter for the new one."""
    locked(repository)
    repository.commit(lowest=2)
    path = repository.results()
    assert rejudge(path, lambda contract: contract).judgement.verdict == "violations"

    write_lock_of(path, repository.config)

    assert said(repository.results()) == []


def cli(repository: Repository, *arguments: str) -> tuple[int, str]:
    """Exit code and all output of a command in the config's folder."""
    done = gate(repository.config.parent, *arguments, environment=ENVIRONMENT)
    return done.returncode, done.stdout + done.stderr


def test_the_command_writes_the_last_runs_lock(repository: Repository):
    """`export-gate lock` needs only the config; without a run it says what to do."""
    assert cli(repository, "lock") == (2, ".export-gate/results.json: file not found; `export-gate run` writes it\n")
    (repository.config.parent / ".export-gate").mkdir()
    repository.results().rename(repository.config.parent / ".export-gate" / "results.json")

    assert cli(repository, "lock") == (0, "export-gate.lock: written, 1 model\n")
    assert cli(repository, "lock", str(repository.results())) == (0, "export-gate.lock: written, 1 model\n")


def test_a_change_is_accepted_by_a_waiver_until_its_date(repository: Repository):
    """A change that breaks callers on purpose is green with its reason, and red again the day after."""
    base = locked(repository)
    reason = "all callers send at least two since 3.1"
    waiver = f"    waivers: [{{rule: interface-changed, reason: {reason}, until: 2026-12-31}}]\n"
    repository.config.write_text(CONFIG % 2 + waiver)
    path = repository.results(base)

    code, report = cli(repository, "report", str(path))
    assert code == 0
    assert f"Waived until 2026-12-31: {reason}." in report
    assert "export-gate: 0 of 1 model verified, 1 waived until 2026-12-31" in report
    assert cli(repository, "judge", str(path), "--today", "2026-12-31")[0] == 0
    code, report = cli(repository, "judge", str(path), "--today", "2027-01-01")
    assert code == 1
    assert f"next: Its waiver expired on 2026-12-31 ({reason}), so it counts" in report
