"""The config compared with the one at the base of a change, in real repositories."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from harness.repositories import commit, git

from export_gate.config import load_config
from export_gate.config.limits import require_short_waivers
from export_gate.lock.file import lock_text
from export_gate.lock.find import find_lock
from export_gate.loosening.record import ConfigChange
from export_gate.rules.lock.record import Lock, LockedModel, LockedTarget, LockedTensor, Margin
from export_gate.run.change import base_of, find_change
from export_gate.wall.errors import UserError

CONFIG = """
version: 1
relaxed: fail
models:
  m:
    factory: "net:make"
    inputs: {x: {dtype: float32, shape: [2]}}
    controls: {limit: 100, data: [{path: real.npz}]}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config in a folder of a repository, committed."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    path = tmp_path / "nets" / "export-gate.yml"
    path.parent.mkdir()
    path.write_text(CONFIG)
    (path.parent / "real.npz").touch()
    commit(tmp_path)
    return path


def found(config: Path, base: str) -> ConfigChange:
    """What the change does."""
    change, _ = find_change(load_config(config), base, dict(os.environ))
    assert change is not None
    return change


def loosened(config: Path, base: str) -> list[str]:
    """What is said to be loosened, once git knows the files."""
    git(config.parent, "add", "--all", ":/")
    return [each.text for each in found(config, base).of("loosened")]


def test_the_base_counts_and_the_change_cannot_switch_it_off(config: Path):
    """The base's policy applies, and a weaker policy now is reported as well."""
    config.write_text(CONFIG.replace("relaxed: fail", "relaxed: warn").replace("100", "1"))

    change = found(config, "HEAD")

    assert change.policy == "fail"
    assert change.origin == f"export-gate.yml at {git(config.parent, 'rev-parse', 'HEAD')[:10]}"
    assert [each.text for each in change.of("loosened")] == ["relaxed fail -> warn", "`m`: controls.limit 100 -> 1"]


def test_the_same_config_is_no_change(config: Path):
    """Most changes do not touch the config."""
    assert found(config, "HEAD").alterations == ()


def test_files_that_only_the_base_has_are_compared_too(config: Path):
    """A data file that the change removes, together with its key, does not make the base's config invalid."""
    (config.parent / "real.npz").unlink()
    config.write_text(CONFIG.replace(", data: [{path: real.npz}]", ""))

    assert loosened(config, "HEAD") == ["`m`: controls.data.real.npz removed"]


def test_a_config_under_its_other_name_is_the_same_config(config: Path):
    """`export-gate.yaml` is read if there is no `.yml`, so a change cannot evade the comparison by renaming."""
    other = config.with_suffix(".yaml")
    config.rename(other)
    other.write_text(CONFIG.replace("100", "1"))

    assert loosened(other, "HEAD") == ["`m`: controls.limit 100 -> 1"]


def test_a_second_config_beside_the_base_s_own_is_no_base(config: Path):
    """The base reads its `.yml`, so an unused, lax `.yaml` next to it cannot become the base."""
    other = config.with_suffix(".yaml")
    other.write_text(CONFIG.replace("100", "1"))
    base = commit(config.parent)
    config.unlink()

    assert loosened(other, base) == ["`m`: controls.limit 100 -> 1"]


def test_a_config_of_another_name_is_its_own_base(config: Path):
    """Only the default names stand for each other if both exist."""
    named = [config.with_name(name) for name in ("own.yaml", "own.yml")]
    for path, limit in zip(named, ("100", "7"), strict=True):
        path.write_text(CONFIG.replace("100", limit))
    base = commit(config.parent)

    assert found(named[0], base).alterations == ()


@pytest.mark.slow
def test_a_new_config_is_said(config: Path):
    """Nothing is compared with it. Beside another one, whatever chose it may have left the other's models out."""
    new = config.with_name("new.yml")
    new.write_text(CONFIG.replace("  m:", "  other:"))

    change = found(new, "HEAD")

    said = "new.yml is new: the base has none, and this run does not check the models of export-gate.yml"
    assert [(each.effect, each.text) for each in change.alterations] == [("loosened", said)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "pythonpath", "policy"),
    [
        ("nets/new.yml", "[.]", "fail"),
        ("other/new.yml", "[../nets]", "fail"),
        ("other/path.yml", "[.]", "fail"),
        ("other/link.yml", "[.]", "fail"),
        ("other/export-gate.yml", "[.]", "warn"),
    ],
)
def test_a_new_config_that_stands_in_for_another_one_has_its_policy(
    config: Path, place: str, pythonpath: str, policy: str
):
    """It is beside it or about the same code. That of another project has none, though it is made like this one."""
    text = CONFIG if place.endswith("export-gate.yml") else CONFIG.replace("  m:", "  m2:")
    new = config.parents[1] / place
    new.parent.mkdir(exist_ok=True)
    new.write_text(text.replace("models:", f"pythonpath: {pythonpath}\nmodels:", 1).replace("real.npz", "own.npz"))
    (new.parent / "own.npz").touch()
    if new.name == "path.yml":
        new.write_text(new.read_text().replace("net:make", "../nets/net.py:make"))
    if new.name == "link.yml":
        (new.parent / "net.py").symlink_to("../nets/net.py")

    change, terms = find_change(load_config(new), "HEAD", dict(os.environ))

    assert change is not None
    assert [(each.effect, each.what.partition(":")[0]) for each in change.alterations] == [
        ("loosened", f"{new.name} is new")
    ]
    assert (change.policy, terms.fail_on) == (policy, "violation")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (
            "version: 1\nmodels: 3\n",
            "export-gate.yml at {}:2:9: models: expected a mapping of at least one model by name",
        ),
        (None, "export-gate.yml at {}: expected a file, got a link"),
        (" " * (1024 * 1024 + 1), "export-gate.yml at {}: expected a config of at most 1048576 bytes, got 1048577"),
    ],
)
def test_a_base_that_is_no_config_is_not_a_base_without_one(config: Path, content: str | None, why: str):
    """The change that repairs it must pass, so it is a warning whatever the config says."""
    config.unlink()
    if content is None:
        config.symlink_to("/etc/passwd")
    else:
        config.write_text(content)
    base = commit(config.parent)
    config.unlink()
    config.write_text(CONFIG)

    change = found(config, base)

    (text,) = [each.text for each in change.of("loosened")]
    assert text.startswith(f"it is not known what this change loosens: {why.format(base[:10])}")
    assert change.policy == "warn"


def test_a_base_that_is_not_here_is_said_or_refused(config: Path):
    """Under `relaxed: fail`, an unreadable base is an error (exit code 2), with advice on getting it."""
    with pytest.raises(UserError, match=r"export-gate.yml: the base nope is not a commit of this repository") as caught:
        find_change(load_config(config), "nope", dict(os.environ))
    assert "fetch-depth: 0" in caught.value.hint

    config.write_text(CONFIG.replace("relaxed: fail", ""))
    assert loosened(config, "nope") == [
        "it is not known what this change loosens: the base nope is not a commit of this repository"
    ]


def test_a_checkout_of_another_user_is_no_missing_base(config: Path, tmp_path: Path):
    """In a workflow's container, git refuses the checkout: the message says what allows it."""
    config.write_text(CONFIG.replace("relaxed: fail", ""))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    change, _ = find_change(load_config(config), "main", environment)

    assert change is not None
    assert change.alterations[0].what == (
        "it is not known what this change loosens: the base main cannot be read: another user owns the checkout; "
        f"run `git config --global --add safe.directory {tmp_path}` in an earlier step"
    )


def test_the_base_of_a_push_is_what_the_remote_has():
    """pre-commit names the base; a named base takes precedence."""
    assert base_of(None, {"PRE_COMMIT_FROM_REF": "abc"}) == "abc"
    assert base_of("def", {"PRE_COMMIT_FROM_REF": "abc"}) == "def"
    assert base_of(None, {}) is None


def test_a_waiver_lasts_at_most_as_long_as_the_base_allows(config: Path):
    """A longer waiver is a mistake in the config, at its line; the change cannot raise its own limit."""
    waived = CONFIG + "    waivers: [{rule: train-mode, reason: r, until: %s}]\n"
    config.write_text((waived % "9999-12-31").replace("relaxed: fail", "waivers-max-days: 3000"))
    now = load_config(config)
    _, terms = find_change(now, "HEAD", dict(os.environ))

    assert terms.waivers_max_days == 90
    with pytest.raises(UserError) as caught:
        require_short_waivers(now, date(2026, 11, 30), terms.waivers_max_days)
    assert str(caught.value) == (
        f"{config}:9:45: models.m.waivers[0].until: expected a day up to 2027-02-28, 90 days from today "
        "(waivers-max-days), got '9999-12-31'"
    )
    config.write_text(waived % "2027-02-28")
    require_short_waivers(load_config(config), date(2026, 11, 30), 90)


def moved(config: Path, text: str, name: str = "ci/gate.yml") -> Path:
    """The config at another place of the repository, with that text; the old one is gone."""
    config.unlink()
    new = config.parents[1] / name
    new.parent.mkdir(exist_ok=True)
    new.write_text(text)
    (new.parent / "real.npz").touch()
    return new


@pytest.mark.slow
@pytest.mark.parametrize("is_tracked", [True, False])
def test_a_config_that_moved_is_compared_with_the_one_that_it_was(config: Path, is_tracked: bool):
    """Found by git, or by its models where git does not know the file: no change starts afresh by moving it."""
    new = moved(config, CONFIG.replace("100", "1").replace("relaxed: fail", ""))
    if is_tracked:
        git(new.parent, "add", "--all", ":/")

    change = found(new, "HEAD")

    assert change.policy == "fail"
    untracked = (
        "git does not store gate.yml as it was read (it is not tracked), so that the next change cannot be compared "
        "with it"
    )
    assert [each.text for each in change.of("loosened")] == [
        *(() if is_tracked else [untracked]),
        "pythonpath [nets] -> [ci]",
        "relaxed fail -> warn",
        "`m`: controls.limit 100 -> 1",
    ]
    assert [each.text for each in change.of("changed")] == ["the config moved from ../nets/export-gate.yml to gate.yml"]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("filter", "a filter or an encoding of .gitattributes changes it"),
        ("encoding", "a filter or an encoding of .gitattributes changes it"),
        ("link", "it is a link"),
        ("step", "it is not tracked"),
    ],
)
def test_a_config_that_git_does_not_store_is_said(config: Path, how: str, why: str):
    """The same config now, but with no base for the change after it: a filter, a link, or a step that writes it."""
    if how == "filter":
        (config.parent / ".gitattributes").write_text("*.yml filter=lfs\n")
        git(config.parent, "config", "filter.lfs.clean", "echo version https://git-lfs.github.com/spec/v1")
    elif how == "encoding":
        # Git stores a line end for `+AAo-`, and so another config than the one that is read.
        (config.parent / ".gitattributes").write_text("*.yml working-tree-encoding=UTF-7\n")
        config.write_text(CONFIG + "# +AAo-waivers-max-days: 300\n")
    elif how == "link":
        config.rename(config.with_name("real.yml"))
        config.symlink_to("real.yml")
    else:
        (config.parent / ".gitignore").write_text("*.yml\n")
        git(config.parent, "rm", "--quiet", "--cached", config.name)

    assert loosened(config, "HEAD") == [
        f"git does not store export-gate.yml as it was read ({why}), so that the next change cannot be compared with it"
    ]


def test_line_ends_are_no_other_text(config: Path):
    """Git may store others than the system has."""
    (config.parent / ".gitattributes").write_text("*.yml text eol=crlf\n")
    git(config.parent, "add", "--all")
    config.write_bytes(CONFIG.replace("\n", "\r\n").encode())

    assert found(config, "HEAD").alterations == ()


@pytest.mark.parametrize("is_old", [False, True])
def test_files_of_a_bare_repository_are_no_repository(config: Path, is_old: bool, monkeypatch: pytest.MonkeyPatch):
    """A change could bring one around its config, with another history and with commands that git runs."""
    if is_old:  # which does not know the setting
        monkeypatch.setattr("export_gate.run.git.OPTIONS", ("--no-replace-objects",))
    for folder in ("objects", "refs"):
        (config.parent / folder).mkdir()
        (config.parent / folder / "keep").touch()
    (config.parent / "HEAD").write_text("ref: refs/heads/main\n")
    (config.parent / "config").write_text(f"[core]\nworktree = {config.parent}\n")
    config.write_text(CONFIG.replace("100", "1"))
    git(config.parents[1], "add", "--all")

    assert [each.text for each in found(config, "HEAD").alterations] == ["`m`: controls.limit 100 -> 1"]


def test_a_config_with_another_ending_has_no_other_name(config: Path):
    """A folder that is called like it without the ending is no config of the base."""
    (config.parent / "gate").mkdir()
    (config.parent / "gate" / "notes.txt").touch()
    base = commit(config.parent)
    config.unlink()
    new = config.with_name("gate.cfg")
    new.write_text(CONFIG.replace("100", "1"))

    assert "`m`: controls.limit 100 -> 1" in loosened(new, base)


def test_a_copy_is_compared_with_the_config_that_stays(config: Path):
    """A workflow that is pointed at the copy checks the same models."""
    new = config.with_name("lax.yml")
    new.write_text(CONFIG.replace("100", "1"))

    assert loosened(new, "HEAD") == ["`m`: controls.limit 100 -> 1"]


def test_another_project_with_the_same_names_is_no_copy(config: Path):
    """In a repository of many projects a model's name says little; with another factory it is another model."""
    new = config.with_name("other.yml")
    new.write_text(CONFIG.replace("net:make", "other:make"))

    said = "other.yml is new: the base has none, and this run does not check the models of export-gate.yml"
    assert loosened(new, "HEAD") == [said]


def test_the_first_config_loosens_nothing(config: Path):
    """There was no check before."""
    config.unlink()
    base = commit(config.parent)
    config.write_text(CONFIG)

    change = found(config, base)

    assert [(e.effect, e.text) for e in change.alterations] == [
        ("changed", "export-gate.yml is new: the base has none")
    ]


def test_the_folder_of_the_old_config_may_be_gone(config: Path):
    """Git is asked from a folder that exists."""
    new = moved(config, CONFIG.replace("100", "1"))
    (config.parent / "real.npz").unlink()
    config.parent.rmdir()

    assert loosened(new, "HEAD") == ["pythonpath [nets] -> [ci]", "`m`: controls.limit 100 -> 1"]


def test_the_lock_of_a_config_that_moved_counts(config: Path):
    """Else a move would be a way around the interface that callers rely on."""
    config.with_suffix(".lock").write_text(lock_text(Lock()))
    base = commit(config.parent)
    new = moved(config, CONFIG)

    found = find_lock(load_config(new), base, dict(os.environ)).lock

    assert found is not None
    assert (found.origin, found.is_base) == (f"export-gate.lock at {base[:10]}", True)


ONNX = LockedTarget(sizes={"main": 1000}, margins={"y": Margin(measured=1e-6, allowed=1e-5)})
TARGETS = {"exported-program": LockedTarget(), "pt2": LockedTarget(), "onnx": ONNX}
TENSOR = LockedTensor(name="y", dtype="float32", shape=("3",), range=(0.0, 1.0))
MODEL = LockedModel(inputs=(), outputs=(TENSOR,), targets=TARGETS, parameters=3)


def onnx(**changed: Any) -> dict[str, LockedModel]:
    """The model with another record of its ONNX file."""
    return {"m": replace(MODEL, targets={**TARGETS, "onnx": replace(ONNX, **changed)})}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("now", "said"),
    [
        (None, "export-gate.lock is removed, so that no interface is compared after the merge"),
        ({}, "`m`: removed from the interface lock"),
        (
            {"m": replace(MODEL, targets={"pt2": LockedTarget(), "onnx": ONNX})},
            "`m`: in the interface lock, exported-program: the target is gone",
        ),
        (
            {"m": replace(MODEL, outputs=(), parameters=0)},
            "`m`: in the interface lock, the model: no outputs, parameters any more",
        ),
        (onnx(sizes={}, margins={}), "`m`: in the interface lock, onnx: no sizes, margins any more"),
        (
            {"m": replace(MODEL, outputs=(replace(TENSOR, dtype="float16"),))},
            "`m`: in the interface lock, the model: output 'y': float32 before, float16 now",
        ),
        (onnx(sizes={"main": 2000}), "`m`: in the interface lock, onnx: main 1000 -> 2000 bytes"),
        (onnx(sizes={"main": 1100}), ""),
        (
            onnx(margins={"y": Margin(measured=1e-5, allowed=1e-5)}),
            "`m`: in the interface lock, onnx: worst error of y 1e-06 -> 1e-05",
        ),
        (
            onnx(margins={"y": Margin(measured=1e3, allowed=1e9)}),
            "`m`: in the interface lock, onnx: worst error of y 1e-06 -> 1000",
        ),
        # Of a tenth of the bound, no error can be ten times as large.
        (
            onnx(margins={"y": Margin(measured=1e-6, allowed=1e-6)}),
            "`m`: in the interface lock, onnx: allowed error of y 1e-05 -> 1e-06",
        ),
        (
            onnx(margins={"y": Margin(measured=1e-6, allowed=math.inf)}),
            "`m`: in the interface lock, onnx: allowed error of y 1e-05 -> inf",
        ),
        (onnx(margins={"y": Margin(measured=2e-6, allowed=5e-6)}), ""),
        (onnx(sizes={"main": 0}), "`m`: in the interface lock, onnx: no size of main any more"),
        (
            onnx(margins={"z": Margin(measured=1, allowed=2)}),
            "`m`: in the interface lock, onnx: no margin of y any more",
        ),
        (
            {"m": replace(MODEL, outputs=(replace(TENSOR, shape=("?",)),))},
            "`m`: in the interface lock, the model: no shape of y any more",
        ),
        (
            {"m": replace(MODEL, outputs=(replace(TENSOR, range=None),))},
            "`m`: in the interface lock, the model: no range of y any more",
        ),
        ({"m": MODEL, "new": MODEL}, ""),
    ],
)
def test_what_a_change_takes_out_of_the_lock_is_said(config: Path, now: dict[str, LockedModel] | None, said: str):
    """The base's lock counts for this change, but the next one has only what this one leaves."""
    lock = config.with_suffix(".lock")
    lock.write_text(lock_text(Lock(models={"m": MODEL})))
    base = commit(config.parent)
    lock.unlink()
    if now is not None:
        lock.write_text(lock_text(Lock(models=now)))
    change, _ = find_change(load_config(config), base, dict(os.environ))

    change = find_lock(load_config(config), base, dict(os.environ)).said_with(change)

    assert change is not None
    assert change.policy == "fail"
    assert [each.text for each in change.of("loosened")] == ([said] if said else [])
    # Before a push the lock of the working tree counts, but what it lost is said all the same.
    pushed = find_lock(load_config(config), None, {**os.environ, "PRE_COMMIT_FROM_REF": base})
    assert [each.text for each in pushed.alterations] == ([said] if said else [])
    assert (pushed.lock is None) == (now is None)
    assert pushed.lock is None or not pushed.lock.is_base


@pytest.mark.slow
@pytest.mark.parametrize(("rtol", "is_said"), [("1e-5", False), ("9e-5", True)])
def test_a_lock_after_a_lower_tolerance_has_lower_bounds(config: Path, rtol: str, is_said: bool):
    """By as much as the tolerance was lowered, and no more."""
    lock, tolerance = config.with_suffix(".lock"), "    tolerance: {{atol: 0, rtol: {}}}\n"
    config.write_text(CONFIG + tolerance.format("1e-4"))
    lock.write_text(lock_text(Lock(models={"m": MODEL})))
    base = commit(config.parent)
    past = load_config(config)
    config.write_text(CONFIG + tolerance.format(rtol))
    lock.write_text(lock_text(Lock(models=onnx(margins={"y": Margin(measured=1e-6, allowed=8e-7)}))))

    found = find_lock(load_config(config), base, dict(os.environ), past)

    assert bool(found.alterations) == is_said


@pytest.mark.slow
def test_a_handed_in_file_that_moved_is_the_same_file(config: Path):
    """Another path is another file, unless git has the same bytes there."""
    handed_in = CONFIG + "    targets: {onnx: {artifact: a.onnx}}\n"
    (config.parent / "a.onnx").write_bytes(b"model")
    config.write_text(handed_in)
    base = commit(config.parent)
    (config.parent / "a.onnx").rename(config.with_name("b.onnx"))
    config.write_text(handed_in.replace("a.onnx", "b.onnx"))

    assert [each.text for each in found(config, base).of("changed")] == [
        "`m`: targets.onnx.artifact a.onnx -> b.onnx, the same file"
    ]
    config.with_name("b.onnx").write_bytes(b"another")
    assert loosened(config, base) == ["`m`: targets.onnx.artifact a.onnx -> b.onnx, so that another file is verified"]


@pytest.mark.slow
@pytest.mark.parametrize("length", [10, 200])
def test_a_handed_in_file_with_other_weights_beside_it_is_another(config: Path, length: int):
    """Large ONNX files name files of weights, which are read from their own folder."""
    weights = f"{'w' * length}.data"
    entry = b"\x0a\x08location\x12" + bytes([length + 5] if length < 100 else [(length + 5) & 127 | 128, 1])
    handed_in = CONFIG + "    targets: {onnx: {artifact: a/m.onnx}}\n"
    for name, text in ((f"a/{weights}", b"one"), (f"b/{weights}", b"two"), ("a/m.onnx", entry + weights.encode())):
        (config.parent / name).parent.mkdir(exist_ok=True)
        (config.parent / name).write_bytes(text)
    config.write_text(handed_in)
    base = commit(config.parent)
    (config.parent / "a" / "m.onnx").rename(config.parent / "b" / "m.onnx")
    config.write_text(handed_in.replace("a/m.onnx", "b/m.onnx"))

    said = "`m`: targets.onnx.artifact a/m.onnx -> b/m.onnx, so that another file is verified"
    assert loosened(config, base) == [said]
    (config.parent / "b" / weights).write_bytes(b"one")
    assert loosened(config, base) == []


@pytest.mark.slow
@pytest.mark.parametrize("place", ["real", "real/a.npz", "images"])
def test_control_inputs_behind_links_are_compared_where_they_are(config: Path, place: str):
    """Git keeps the text of a link alone, so that what it leads to could change unseen."""
    root = config.parent
    config.write_text(CONFIG.replace("{path: real.npz}", f"{{path: {place}}}"))
    for name in ("kept/a.npz", "other/a.npz", "images/b.npz"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("one")
    (root / "real").symlink_to("kept", target_is_directory=True)
    (root / "images" / "a.npz").symlink_to("../kept/a.npz")
    base = commit(root)
    said = [f"`m`: controls.data.{place} has another content, so that other inputs are tried"]

    assert loosened(config, base) == []
    (root / "kept" / "a.npz").write_text("two")
    assert loosened(config, base) == said
    git(root, "checkout", "--quiet", ".")
    for link, target in (("real", "other"), ("images/a.npz", "../other/a.npz")):
        (root / link).unlink()
        (root / link).symlink_to(target)
    assert loosened(config, base) == said


@pytest.mark.slow
def test_another_content_of_the_control_inputs_is_said(config: Path):
    """The config need not change: a golden file of the change expects whatever the broken model gives."""
    text = CONFIG.replace("{path: real.npz}]", "{path: real.npz}, {path: images}], golden: [{path: golden.npz}]")
    config.write_text(text)
    (config.parent / "images").mkdir()
    for name in ("golden.npz", "images/1.png", "images/2.png"):
        (config.parent / name).write_text("one")
    base = commit(config.parent)
    assert loosened(config, base) == []
    (config.parent / "golden.npz").write_text("two")
    (config.parent / "images" / "1.png").unlink()
    said = [
        "`m`: controls.data.images has another content, so that other inputs are tried",
        "`m`: controls.golden.golden.npz has another content, so that other answers are expected",
    ]

    assert loosened(config, base) == said
    git(config.parents[1], "mv", "nets", "ci")
    new = config.parents[1] / "ci" / "export-gate.yml"
    assert loosened(new, base) == ["pythonpath [nets] -> [ci]", *said]


@pytest.mark.slow
def test_control_inputs_that_git_does_not_have_are_known_by_other_means(config: Path):
    """Files of DVC change without git, which may only get them with the change."""
    (config.parent / ".gitignore").write_text("real.npz\n")
    git(config.parent, "rm", "--quiet", "--cached", "real.npz")
    base = commit(config.parent)
    (config.parent / "real.npz").write_text("two")

    assert loosened(config, base) == []
    (config.parent / ".gitignore").unlink()
    assert loosened(config, base) == ["`m`: controls.data.real.npz has another content, so that other inputs are tried"]


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["nets/real.npz.dvc", "nets.dvc"])
def test_control_inputs_of_dvc_are_known_by_its_files(config: Path, kept: str):
    """They name the content, of the inputs or of a folder above them."""
    root = config.parents[1]
    (config.parent / ".gitignore").write_text("real.npz\n")
    git(config.parent, "rm", "--quiet", "--cached", "real.npz")
    (root / kept).write_text("outs: [{md5: a}]\n")
    base = commit(root)
    (root / "README.dvc").touch()
    assert loosened(config, base) == []
    (root / kept).write_text("outs: [{md5: b}]\n")

    assert loosened(config, base) == ["`m`: controls.data.real.npz has another content, so that other inputs are tried"]


def test_a_folder_that_became_a_link_has_its_own_base(config: Path):
    """Else a change could link the config's folder to another one, whose config was lax at the base too."""
    other = config.parents[1] / "examples"
    other.mkdir()
    (other / "export-gate.yml").write_text(CONFIG.replace("  m:", "  example:").replace("100", "1"))
    (other / "real.npz").touch()
    base = commit(config.parents[1])
    git(config.parents[1], "rm", "-r", "--quiet", "nets")
    config.parent.symlink_to("examples", target_is_directory=True)

    assert "`m`: renamed to `example`, so that its lock, waivers and history no longer apply" in loosened(config, base)


def test_an_interpreter_may_be_in_the_root_folder(config: Path):
    """There is no folder above that one."""
    change, _ = find_change(load_config(config), "HEAD", {**os.environ}, "/python")
    assert change is not None
    assert change.alterations == ()


@pytest.mark.slow
@pytest.mark.parametrize("place", [".venv/bin/python", "nets/.venv/bin/python", "tools/python", ".python-version"])
def test_an_interpreter_of_the_change_is_said(config: Path, place: str):
    """An environment in the repository comes before that of the workflow, and can print any result."""
    root = config.parents[1]
    (root / "tools").mkdir()
    (root / "tools" / "python").touch()
    config.write_text(CONFIG.replace("relaxed: fail", "python: ../tools/python"))
    base = commit(root)
    assert loosened(config, base) == []
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / place).write_text("#!/bin/sh\n")
    git(root, "add", "--all", "--force")

    assert loosened(config, base) == [
        f"the interpreter that runs the check is the change's own: {place} is not as at the base"
    ]


def test_an_interpreter_that_a_variable_names_is_said(config: Path):
    """A job may put a folder of the checkout on PATH, or an environment in it."""
    python = config.parents[1] / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    git(config.parent, "add", "--all", "--force", ":/")

    change, _ = find_change(load_config(config), "HEAD", {**os.environ, "VIRTUAL_ENV": str(python.parents[1])})

    assert change is not None
    assert [each.text for each in change.of("loosened")] == [
        "the interpreter that runs the check is the change's own: venv/bin/python is not as at the base"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["nets/.venv/bin/python", "nets/.venv", "tools/link"])
def test_an_interpreter_behind_a_link_is_said(config: Path, place: str):
    """The link stays as it was; what it leads to is another file of the repository."""
    root = config.parents[1]
    config.write_text(CONFIG.replace("relaxed: fail", "python: ../tools/link" if place == "tools/link" else ""))
    real = root / "real" / ("bin/python" if place == "nets/.venv" else "python")
    real.parent.mkdir(parents=True)
    real.touch()
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / place).symlink_to(root / "real" if place == "nets/.venv" else real)
    git(root, "add", "--all", "--force")
    base = commit(root)
    assert loosened(config, base) == []
    real.write_text("#!/bin/sh\n")

    assert loosened(config, base) == [
        f"the interpreter that runs the check is the change's own: {real.relative_to(root)} is not as at the base"
    ]


@pytest.mark.slow
def test_an_environment_that_git_does_not_track_is_no_change(config: Path):
    """It is the machine's, as is an interpreter elsewhere."""
    (config.parent / ".venv" / "bin").mkdir(parents=True)
    (config.parent / ".venv" / "bin" / "python").touch()

    for python in (None, "/python", "python3", "/usr/bin/python3"):
        change, _ = find_change(load_config(config), "HEAD", dict(os.environ), python)
        assert change is not None
        assert change.alterations == ()


def test_a_config_that_is_gone_for_a_new_one_is_said(config: Path):
    """Other names and another place: nothing tells that it is the same check, but that one is gone is seen."""
    new = moved(config, CONFIG.replace("  m:", "  other:").replace("relaxed: fail", "") + "# words\n" * 9)

    change = found(new, "HEAD")

    assert [each.text for each in change.of("loosened")] == [
        "../nets/export-gate.yml of the base is gone, so that its models are not checked: m"
    ]
    assert change.policy == "fail"


@pytest.mark.slow
def test_another_config_that_is_gone_is_said(config: Path):
    """A script that runs whatever configs it finds would not miss it; one that moved is still there."""
    other = config.parents[1] / "other" / "export-gate.yml"
    other.parent.mkdir()
    other.write_text(CONFIG.replace("  m:", "  other:").replace(", data: [{path: real.npz}]", ""))
    config.write_text(CONFIG.replace("relaxed: fail", ""))
    base = commit(config.parents[1])
    git(config.parents[1], "mv", "other/export-gate.yml", "other/gate.yml")
    assert found(config, base).alterations == ()
    other.with_name("gate.yml").unlink()

    change = found(config, base)

    assert [each.text for each in change.alterations] == [
        "../other/export-gate.yml of the base is gone, so that its models are not checked: other"
    ]
    assert change.policy == "fail"


def test_a_config_that_is_gone_is_not_hidden_behind_other_files(config: Path):
    """A change may touch any number of files."""
    other = config.with_name("z.yml")
    other.write_text(CONFIG.replace("  m:", "  other:").replace("relaxed: fail", ""))
    many = [config.with_name(f"{n}.yml") for n in range(30)]
    for path in many:
        path.write_text("a: 1\n")
    base = commit(config.parents[1])
    for path in (*many, other):
        path.unlink()

    assert loosened(config, base) == ["z.yml of the base is gone, so that its models are not checked: other"]


@pytest.mark.slow
def test_a_name_of_several_commits_is_no_base(config: Path):
    """Git takes a tag for the branch of the same name, and a tag may be anybody's."""
    root = config.parents[1]
    git(root, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert loosened(config, "origin/main") == []
    git(root, "tag", "origin/main")
    with pytest.raises(UserError, match="of refs/remotes/origin/main and refs/tags/origin/main: origin/main~0"):
        find_change(load_config(config), "origin/main~0", dict(os.environ))
    assert loosened(config, "refs/remotes/origin/main") == []


@pytest.mark.slow
def test_a_config_that_is_none_any_more_is_gone(config: Path):
    """A file that is left in its place, with a comment or a mistake in it, checks nothing."""
    other = config.with_name("other.yml")
    other.write_text(CONFIG.replace("  m:", "  other:").replace("relaxed: fail", ""))
    base = commit(config.parent)
    for text in ("# moved\n", CONFIG + "x: 1\n"):
        config.write_text(text)

        assert loosened(other, base) == ["export-gate.yml of the base is gone, so that its models are not checked: m"]


@pytest.mark.slow
def test_a_workflow_that_chooses_a_lax_config_chooses_no_policy(config: Path):
    """`relaxed: fail` of any config of the base counts for what points the check elsewhere."""
    lax, workflow = config.with_name("lax.yml"), config.parents[1] / ".github" / "workflows" / "ci.yml"
    lax.write_text(CONFIG.replace("  m:", "  tiny:").replace("relaxed: fail", ""))
    workflow.parent.mkdir(parents=True)
    step = (
        "on: pull_request\njobs: {gate: {steps: [{uses: acme/export-gate@v1, with: {config: nets/export-gate.yml}}]}}\n"
    )
    workflow.write_text(step)
    base = commit(config.parents[1])
    assert found(lax, base).policy == "warn"
    workflow.write_text(step.replace("nets/export-gate", "nets/lax"))

    change = found(lax, base)

    assert [each.text for each in change.of("loosened")] == [
        ".github/workflows/ci.yml, job gate: input config nets/export-gate.yml -> nets/lax.yml"
    ]
    assert change.policy == "fail"


def in_submodule(config: Path) -> str:
    """The config's folder becomes a repository of its own in the outer one, which records its commit."""
    inner, root = config.parent, config.parents[1]
    git(root, "rm", "-r", "--quiet", "--cached", inner.name)
    git(inner, "init", "--quiet", "--initial-branch=main")
    commit(inner)
    git(root, "-c", "advice.addEmbeddedRepo=false", "add", inner.name)
    return commit(root)


LOOSER = CONFIG.replace("100", "1").replace("relaxed: fail", "")
SAID = ["relaxed fail -> warn", "`m`: controls.limit 100 -> 1"]


@pytest.mark.slow
def test_a_config_in_a_submodule_is_compared_at_the_commit_of_the_base(config: Path):
    """The base records which commit of the submodule it had, and the outer repository has the workflows."""
    workflow = config.parents[1] / ".github" / "workflows" / "ci.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text("on: push\njobs: {gate: {steps: [{uses: acme/export-gate@v1}]}}\n")
    base = in_submodule(config)
    config.write_text(LOOSER)
    commit(config.parent)
    workflow.write_text(workflow.read_text().replace("}]", ", with: {models: tiny}}]"))

    change = found(config, base)

    assert change.policy == "fail"
    assert [each.text for each in change.of("loosened")] == [
        ".github/workflows/ci.yml, job gate: input models any -> tiny",
        *SAID,
    ]


@pytest.mark.slow
def test_a_folder_that_became_a_submodule_keeps_its_base(config: Path):
    """The files are at the same place, only in another repository."""
    base = git(config.parent, "rev-parse", "HEAD")
    config.write_text(LOOSER)
    config.with_suffix(".lock").write_text(lock_text(Lock()))
    in_submodule(config)

    assert found(config, base).policy == "fail"
    assert loosened(config, base) == SAID
    lock = find_lock(load_config(config), base, dict(os.environ)).lock
    assert lock is not None
    assert lock.origin == f"{base[:10]}, which has no export-gate.lock"


@pytest.mark.slow
def test_a_config_that_moves_out_of_a_submodule_is_compared(config: Path):
    """The submodule is still there, without it."""
    base = in_submodule(config)
    new = moved(config, LOOSER)
    commit(config.parent)

    assert loosened(new, base) == ["pythonpath [nets] -> [ci]", *SAID]


@pytest.mark.parametrize("is_in_place", [True, False])
def test_a_submodule_that_cannot_be_read_any_more_is_said(config: Path, is_in_place: bool):
    """Its commit is not here, so nobody can tell what its config checked; policies of other configs count."""
    other = config.parents[1] / "other.yml"
    other.write_text(CONFIG.replace("  m:", "  other:").replace(", data: [{path: real.npz}]", ""))
    base = in_submodule(config)
    sha = git(config.parent, "rev-parse", "HEAD")
    (config.parent / ".git").rename(config.parents[1] / ".git" / "gone")
    git(config.parents[1], "rm", "--quiet", "--cached", "nets")
    place = config if is_in_place else config.with_name("new.yml")
    place.write_text(LOOSER)

    change = found(place, base)

    (said,) = [each.text for each in change.of("loosened")]
    assert said == (
        f"it is not known what this change loosens: the base {base[:10]} has the submodule nets at {sha[:10]}, "
        "which is not here"
    )
    assert change.policy == "fail"


@pytest.mark.slow
def test_an_interpreter_in_a_submodule_is_said(config: Path):
    """It runs the check like one of the repository itself."""
    python = config.parent / ".venv" / "bin" / "python"
    config.write_text(CONFIG.replace("relaxed: fail", ""))
    base = in_submodule(config)
    assert loosened(config, base) == []
    python.parent.mkdir(parents=True)
    python.touch()
    assert found(config, base).alterations == ()
    git(config.parent, "add", "--force", "--all")
    commit(config.parent)

    assert loosened(config, base) == [
        "the interpreter that runs the check is the change's own: nets/.venv/bin/python is not as at the base"
    ]


@pytest.mark.slow
def test_a_branch_is_one_of_where_the_command_runs(config: Path, monkeypatch: pytest.MonkeyPatch):
    """The outer repository may have nothing to do with this one."""
    in_submodule(config)
    config.write_text(LOOSER)
    monkeypatch.chdir(config.parent)

    assert loosened(config, "main") == SAID
    monkeypatch.setenv("GIT_DIR", str(config.parents[1] / ".git"))
    assert loosened(config, "main") == SAID
