"""Small faults in the files of eight kinds of model: what the control sets of their contracts catch."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from harness.gate import gate

MODELS = ("segmenter", "encoder", "cell", "tables", "detector", "sound", "pixels", "graph")
"""Resizing and pooling; attention with a mask; recurrence; gathers and buckets; the best few; remainders and floor
division; uint8 and rounding; scatters.
"""
LEAST = 98.5
"""Percent of the mutants that a random search tells apart."""
CAUGHT = ("caught", "refused")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the models and their config."""
    source = Path(__file__).parents[1] / "models" / "strength"
    return Path(shutil.copytree(source, tmp_path_factory.mktemp("set") / "strength"))


def mutants(project: Path, model: str, count: int) -> list[dict[str, Any]]:
    """The first mutants of one model."""
    done = gate(project, "strength", model, "--mutants", str(count), "--budget", "20m", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["mutants"]
    assert len(found) == count
    return [{**mutant, "model": model} for mutant in found]


def table(found: Sequence[dict[str, Any]], name: str, key: Callable[[dict[str, Any]], str]) -> Iterator[str]:
    """How many were caught of those that can be told apart, by model or by operator."""
    told = Counter(key(mutant) for mutant in found if mutant["outcome"] in (*CAUGHT, "survived"))
    caught = Counter(key(mutant) for mutant in found if mutant["outcome"] in CAUGHT)
    same = Counter(key(mutant) for mutant in found if mutant["outcome"] == "equivalent")
    yield f"{name:24}{'caught':>8}{'of':>8}{'equivalent':>12}"
    for each in sorted(told + same):
        yield f"{each:24}{caught[each]:8}{told[each]:8}{same[each]:12}"


def share(found: Sequence[dict[str, Any]]) -> float:
    """Caught of those that can be told apart, in percent."""
    outcomes = Counter(mutant["outcome"] for mutant in found)
    caught = sum(outcomes[outcome] for outcome in CAUGHT)
    return 100 * caught / (caught + outcomes["survived"])


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_control_sets_catch_nearly_all_that_a_random_search_does(project: Path, capsys: pytest.CaptureFixture[str]):
    """At least 98.5% of some three hundred faults in eight models."""
    found = [mutant for model in MODELS for mutant in mutants(project, model, 48)]
    survived = [mutant for mutant in found if mutant["outcome"] == "survived"]
    with capsys.disabled():
        lines = [
            f"\n{share(found):.1f}% caught",
            *table(found, "model", lambda mutant: mutant["model"]),
            "",
            *table(found, "kind", lambda mutant: mutant["kind"]),
            "",
            *table(found, "operator", lambda mutant: mutant["operator"] or "(outputs)"),
            *(f"survived: {m['model']}, {m['operator']} {m['node']}: {m['change']}" for m in survived),
        ]
        print("\n".join(lines))  # noqa: T201 - the figures are what this test is read for
    assert len(found) - sum(mutant["outcome"] == "equivalent" for mutant in found) >= 280
    assert share(found) >= LEAST


@pytest.mark.slow(seconds=8)
def test_a_detectors_control_set_catches_all_of_twenty_faults(project: Path):
    """A part of the above for every day: kinds and operators in turn, and the order that the seed decides."""
    found = mutants(project, "detector", 20)
    assert share(found) >= LEAST
    assert len({mutant["kind"] for mutant in found}) >= 5
    assert sum(mutant["outcome"] == "caught" for mutant in found) >= 10
    assert all(mutant["caught_by"] for mutant in found if mutant["outcome"] in CAUGHT)
