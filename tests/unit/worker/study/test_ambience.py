"""Whether eager's answer depends on the clock, the environment, the locale or the working directory."""

from __future__ import annotations

import datetime as dt
import locale
import os
import time
from collections.abc import Callable
from datetime import date
from datetime import datetime as moment
from pathlib import Path

import pytest
import torch
from torch import nn
from worker_samples import Recorder, contract, subject, tensor

from export_gate.wall.contract import Controls, Dim, ModelContract
from export_gate.worker.controls.build import build_control_set
from export_gate.worker.study.ambience import observe_ambience
from export_gate.worker.study.eager import observe_behaviour

PROMISED = contract(
    {"x": tensor("batch", 3, range=(-1.0, 1.0))}, Dim(name="batch", min=1, max=4), controls=Controls(random=1, limit=4)
)


class Shifted(nn.Module):
    """The input and a number that is asked for at every call."""

    def __init__(self, ask: Callable[[], float]) -> None:
        super().__init__()
        self.ask = ask

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, 3] to the same."""
        return x + self.ask()


AMBIENT: dict[str, tuple[Callable[[], float], str]] = {
    "the year, from the module": (lambda: dt.date.today().year, "clock"),  # noqa: DTZ011 - a model's code
    "the year, by its own name": (lambda: date.today().year, "clock"),  # noqa: DTZ011
    "the year, by another name": (lambda: moment.now().year, "clock"),  # noqa: DTZ005
    "the year in seconds": (lambda: time.time() // (365 * 86400), "clock"),
    "the year as a field": (lambda: time.gmtime().tm_year, "clock"),
    "the year as text": (lambda: float(time.strftime("%Y")), "clock"),
    "a switch": (lambda: float(os.environ.get("AMBIENT_SWITCH", "0")), "environment"),
    "a factor that is 1 by default": (lambda: float(os.getenv("AMBIENT_FACTOR", "1")), "environment"),
    "a switch that is passed on": (lambda: float("AMBIENT_PASSED" in os.environ), "environment"),
    "the user": (lambda: len(os.environ.get("USER", "")), "environment"),
    "the time zone": (lambda: time.timezone, "environment"),
    "the encoding": (lambda: len(locale.nl_langinfo(locale.CODESET)), "locale"),
    "the folder": (lambda: len(list(Path().iterdir())), "working directory"),
    "a file in the folder": (lambda: float(Path("pyproject.toml").read_text()[0] == "["), "working directory"),
}


def told(module: nn.Module, promised: ModelContract, folder: Path) -> list[tuple[str, bool]]:
    """What was changed, and whether eager raised then."""
    cases = build_control_set(promised, folder).cases
    return [(effect.surrounding, bool(effect.raised)) for effect in observe_ambience(cases, subject(module, promised))]


@pytest.mark.slow
@pytest.mark.parametrize("name", AMBIENT)
def test_what_the_answer_depends_on_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    """The surrounding is named, however the model reads it. Another time zone may also change the year."""
    ask, expected = AMBIENT[name]
    monkeypatch.setenv("AMBIENT_PASSED", "1")
    monkeypatch.setenv("USER", "me")
    promised = contract(PROMISED.inputs, *PROMISED.dims, controls=PROMISED.controls, env={"AMBIENT_PASSED": None})
    is_file = "file" in name
    found = told(Shifted(ask), promised, tmp_path)
    assert (expected, is_file) in found
    assert {what for what, _ in found} <= {expected, "environment"}


class Counter(nn.Module):
    """Counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, 3] to the same."""
        self.calls += 1
        return x + self.calls


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        nn.Linear(3, 2),
        Counter(),
        nn.BatchNorm1d(3).eval(),
        Shifted(lambda: 0.0 * time.time()),
        Shifted(lambda: 0.0 * len(os.environ.get("AMBIENT_UNSET", ""))),
        Shifted(lambda: float(torch.rand(()))),
    ],
    ids=["weights", "state", "buffers", "a clock without effect", "a variable without effect", "seeded chance"],
)
def test_a_model_that_depends_on_none_is_told_nothing(tmp_path: Path, module: nn.Module):
    """State, buffers and seeded draws are the same in each copy."""
    name = "input" if isinstance(module, (nn.Linear, nn.BatchNorm1d)) else "x"
    promised = contract({name: PROMISED.inputs["x"]}, *PROMISED.dims, controls=PROMISED.controls)
    assert told(module, promised, tmp_path) == []


@pytest.mark.slow
def test_the_process_itself_keeps_its_surroundings(tmp_path: Path):
    """Only its copies have other surroundings."""
    before = _surroundings()
    assert told(Shifted(lambda: date.today().year), PROMISED, tmp_path)  # noqa: DTZ011
    assert _surroundings() == before


def _surroundings() -> tuple[object, ...]:
    clock = time.time, dt.datetime
    return Path.cwd(), dict(os.environ), type(os.environ), clock, locale.setlocale(locale.LC_ALL)


def test_chance_is_not_told_as_surroundings(tmp_path: Path):
    """A model that differs anyway gets only the finding about randomness."""
    recorder = Recorder(tmp_path)
    cases = build_control_set(PROMISED, tmp_path).cases
    observe_behaviour(cases, subject(Shifted(lambda: os.urandom(1)[0]), PROMISED), recorder.desk)
    seen = recorder.observation()
    assert seen.hygiene.nondeterministic
    assert seen.ambient == ()
