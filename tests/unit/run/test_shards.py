"""Shards are the same on every machine, contain every model once, and have about the same size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import report_samples as samples
from hypothesis import given
from hypothesis import strategies as st

from export_gate.run.shards import Shard, assign, jobs_of, matrix, parse_shard
from export_gate.wall.contract import Job, ModelContract
from export_gate.wall.errors import UserError


def contracts(*targets: int) -> tuple[ModelContract, ...]:
    """Models with that many targets each."""
    return tuple(
        samples.contract(f"m{number}", targets=samples.TARGETS[:count]) for number, count in enumerate(targets)
    )


@given(st.lists(st.integers(1, 3), max_size=30), st.integers(1, 12))
def test_every_model_is_in_one_shard(targets: list[int], total: int):
    """Nothing is checked twice or left out, and no shard is larger than another by more than one model."""
    planned = contracts(*targets)
    parts = assign(planned, total)
    assert len(parts) == total
    assert sorted(name for part in parts for name in part) == sorted(contract.name for contract in planned)
    weights = {contract.name: len(contract.targets) for contract in planned}
    loads = [sum(weights[name] for name in part) for part in parts]
    assert max(loads) - min(loads) <= max(weights.values(), default=0)


def test_large_models_are_spread_first():
    """Models weigh as much as they have targets; a shard keeps the config's order."""
    assert assign(contracts(1, 1, 3, 1, 3), 2) == (("m0", "m2", "m3"), ("m1", "m4"))


def test_the_matrix_is_one_line_for_a_workflow():
    """`matrix=$(export-gate plan --shards 3)` goes into GITHUB_OUTPUT as it is; empty shards need no machine."""
    text = matrix(contracts(2, 1), 3)
    assert text == '{"include": [{"shard": "1/3", "models": "m0"}, {"shard": "2/3", "models": "m1"}]}'
    assert json.loads(matrix((), 3)) == {"include": []}


def test_shards_are_balanced_by_what_models_took():
    """A model that never ran costs as much for each target as the others; each leg says which models it has."""
    planned = contracts(1, 1, 1, 3, 2)
    took = {"m0": 60.0, "m1": 20.0, "m2": 10.0, "m3": 6.0}
    assert assign(planned, 2, took) == (("m0", "m3"), ("m1", "m2", "m4"))
    legs = json.loads(matrix(planned, 2, took))["include"]
    assert [leg["shard"] for leg in legs] == ["1/2:m0,m3", "2/2:m1,m2,m4"]
    assert [parse_shard(leg["shard"]).models for leg in legs] == [("m0", "m3"), ("m1", "m2", "m4")]


def test_a_shard_that_names_its_models_runs_those(tmp_path: Path):
    """Whatever this machine would compute; a model that is not planned is a mistake."""
    jobs = tuple(
        Job(contract=contract, base=str(tmp_path), pythonpath=(), artifacts=str(tmp_path))
        for contract in contracts(1, 1, 1)
    )
    assert [job.contract.name for job in jobs_of(parse_shard("1/2:m2,m0"), jobs)] == ["m0", "m2"]
    with pytest.raises(UserError, match=r"--shard 1/2: there is no planned model 'm9'"):
        jobs_of(parse_shard("1/2:m0,m9"), jobs)


def test_a_shard_runs_its_jobs_in_order(tmp_path: Path):
    """`run --shard 2/2` runs what `plan` assigned to it."""
    jobs = tuple(
        Job(contract=contract, base=str(tmp_path), pythonpath=(), artifacts=str(tmp_path))
        for contract in contracts(1, 1, 1, 1)
    )
    assert [job.contract.name for job in jobs_of(Shard(number=2, total=2), jobs)] == ["m1", "m3"]
    assert jobs_of(Shard(number=9, total=9), jobs) == ()


@pytest.mark.parametrize(("text", "shard"), [("1/1", (1, 1)), (" 2/4 ", (2, 4)), ("256/256", (256, 256))])
def test_a_shard_is_written_as_a_fraction(text: str, shard: tuple[int, int]):
    """Shards are counted from 1."""
    assert parse_shard(text) == Shard(number=shard[0], total=shard[1])
    assert str(parse_shard(text)) == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "0/4",
        "5/4",
        "1/0",
        "-1/4",
        "1/257",
        "1/4/2",
        "a/b",
        "1.5/4",
        "01/4",
        "\u0661/4",
        "1/4:",
        "1/4:a b",
        "1/4:a/b",
    ],
)
def test_other_fractions_are_refused(text: str):
    """The message shows the form and the command that lists the shards."""
    with pytest.raises(UserError) as caught:
        parse_shard(text)
    assert str(caught.value) == f"--shard: expected NUMBER/TOTAL, from 1/1 to 256/256, got {text!r}"
    assert caught.value.hint == "`export-gate plan --shards TOTAL` prints the shards with their models."
