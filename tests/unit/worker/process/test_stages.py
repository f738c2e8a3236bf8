"""Stages announce themselves, and turn exceptions into records."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from worker_samples import Doubled, Recorder, contract, job, tensor

from export_gate.wall.errors import UserError
from export_gate.worker.process.channel import Channel
from export_gate.worker.process.stages import StageFailed, at_desk


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    """A desk whose events can be read."""
    return Recorder(tmp_path)


def test_a_stage_is_announced_before_it_begins(recorder: Recorder):
    """A death inside a stage has a place, because the stage was announced before."""
    with recorder.desk.stage("export"):
        assert recorder.observation().reached == "export"


def test_a_targets_stage_is_the_targets(recorder: Recorder):
    """With a target, the stage is the target's."""
    with recorder.desk.stage("load", target="onnx@batch=1"):
        pass
    recorder.desk.channel.set("parameters", 0)
    (target,) = recorder.observation().targets
    assert (target.target, target.reached) == ("onnx", "load")


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit("no"), KeyboardInterrupt("no")])
def test_whatever_is_raised_becomes_a_failure(recorder: Recorder, error: BaseException):
    """Exceptions, exits and interrupts of a model end the stage with a record of it."""
    with pytest.raises(StageFailed) as raised, recorder.desk.stage("convert", target="onnx"):
        raise error
    failure = raised.value.failure
    assert (failure.stage, failure.type, failure.message) == ("convert", type(error).__name__, "no")
    assert raised.value.__cause__ is error


def test_the_failure_names_the_projects_own_line(recorder: Recorder):
    """The innermost frame below the desk's folders is the source line."""
    with pytest.raises(StageFailed) as raised, recorder.desk.stage("eager"):
        Doubled()(None)
    source = raised.value.failure.source
    assert source is not None
    assert (Path(source.path).name, source.text) == ("worker_samples.py", "return 2 * x")


def test_the_users_mistake_stays_one(recorder: Recorder):
    """A UserError passes through: it is not a failure of the model."""
    with pytest.raises(UserError, match="mistake"), recorder.desk.stage("model"):
        raise UserError("mistake")


def test_an_inner_stages_failure_stays_its_own(recorder: Recorder):
    """A failure in a stage inside another one has the inner stage."""
    with (
        pytest.raises(StageFailed) as raised,
        recorder.desk.stage("export"),
        recorder.desk.stage("convert", target="onnx"),
    ):
        raise ValueError("inner")
    assert raised.value.failure.stage == "convert"


def test_the_projects_folders_come_first_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`pythonpath` comes first on sys.path, once, and its folders are the project's code."""
    monkeypatch.setattr(sys, "path", ["/elsewhere", str(tmp_path / "known")])
    work = job(contract({"x": tensor(2)}), tmp_path)
    folders = (str(tmp_path / "src"), str(tmp_path / "known"))
    with at_desk(replace(work, pythonpath=folders), Channel(descriptor=-1)) as desk:
        assert sys.path == [folders[0], "/elsewhere", folders[1]]
    assert desk.roots == (tmp_path, Path(folders[0]), Path(folders[1]))
