"""Divide one run among many machines: each machine computes the same shards."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from export_gate.wall.contract import Job, ModelContract
from export_gate.wall.errors import UserError

MOST_SHARDS = 256
"""GitHub's limit for the jobs of one matrix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Part `number` of `total`, counted from 1."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"


def parse_shard(text: str) -> Shard:
    """The shard written as `2/4`.

    Raises:
        UserError: it is not of that form.
    """
    found = re.fullmatch(r"([1-9][0-9]{0,2})/([1-9][0-9]{0,2})", text.strip(), re.ASCII)
    if found is None or int(found[1]) > int(found[2]) or int(found[2]) > MOST_SHARDS:
        raise UserError(
            f"--shard: expected NUMBER/TOTAL, from 1/1 to {MOST_SHARDS}/{MOST_SHARDS}, got {text!r:.40}",
            "`export-gate plan --shards TOTAL` prints the shards with their models.",
        )
    return Shard(number=int(found[1]), total=int(found[2]))


def jobs_of(shard: Shard, jobs: Sequence[Job]) -> tuple[Job, ...]:
    """The jobs of that shard, in order."""
    chosen = assign([job.contract for job in jobs], shard.total)[shard.number - 1]
    return tuple(job for job in jobs if job.contract.name in chosen)


def matrix(contracts: Sequence[ModelContract], total: int) -> str:
    """GitHub's matrix as one line of JSON, a leg for every shard that has a model."""
    parts = assign(contracts, total)
    legs = [
        {"shard": str(Shard(number=number, total=total)), "models": " ".join(names)}
        for number, names in enumerate(parts, start=1)
        if names
    ]
    return json.dumps({"include": legs})


def assign(contracts: Sequence[ModelContract], total: int) -> tuple[tuple[str, ...], ...]:
    """Model names for each shard: the largest model first, each to the shard with the least work.

    A model weighs as much as it has targets. Equal inputs give equal shards on every machine.
    """
    parts: list[list[int]] = [[] for _ in range(total)]
    loads = [0] * total
    # Ties keep the config's order (`sorted` is stable) and go to the first shard (`index` of the minimum).
    for place in sorted(range(len(contracts)), key=lambda index: -len(contracts[index].targets)):
        least = loads.index(min(loads))
        parts[least].append(place)
        loads[least] += len(contracts[place].targets)
    return tuple(tuple(contracts[place].name for place in sorted(part)) for part in parts)
