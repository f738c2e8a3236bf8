"""Divide one run among many machines: each machine computes the same shards."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
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
    models: tuple[str, ...] = ()
    """Its models, if they were planned by what each costs; empty if every machine computes them."""

    def __str__(self) -> str:
        return f"{self.number}/{self.total}{':' if self.models else ''}{','.join(self.models)}"


def parse_shard(text: str) -> Shard:
    """The shard written as `2/4`, or as `2/4:MODEL,MODEL`.

    Raises:
        UserError: it is not of that form.
    """
    pattern = r"([1-9][0-9]{0,2})/([1-9][0-9]{0,2})(?::([A-Za-z0-9._,-]+))?"
    found = re.fullmatch(pattern, text.strip(), re.ASCII)
    if found is None or int(found[1]) > int(found[2]) or int(found[2]) > MOST_SHARDS:
        raise UserError(
            f"--shard: expected NUMBER/TOTAL, from 1/1 to {MOST_SHARDS}/{MOST_SHARDS}, got {text!r:.40}",
            "`export-gate plan --shards TOTAL` prints the shards with their models.",
        )
    return Shard(number=int(found[1]), total=int(found[2]), models=tuple(filter(None, (found[3] or "").split(","))))


def jobs_of(shard: Shard, jobs: Sequence[Job]) -> tuple[Job, ...]:
    """The jobs of that shard, in order.

    Raises:
        UserError: it names a model that is not planned.
    """
    known = [job.contract.name for job in jobs]
    for name in shard.models:
        if name not in known:
            raise UserError(
                f"--shard {shard.number}/{shard.total}: there is no planned model {name!r}",
                "Plan and verify the same config with the same selection of models and targets.",
            )
    chosen = shard.models or assign([job.contract for job in jobs], shard.total)[shard.number - 1]
    return tuple(job for job in jobs if job.contract.name in chosen)


def matrix(contracts: Sequence[ModelContract], total: int, durations_s: Mapping[str, float] | None = None) -> str:
    """GitHub's matrix as one line of JSON, a leg for every shard that has a model.

    With the durations of earlier runs the shards are balanced by them. Another machine may know others, so each leg
    then says which models it has.
    """
    parts = assign(contracts, total, durations_s or {})
    legs = [
        {
            "shard": str(Shard(number=number, total=total, models=names if durations_s else ())),
            "models": " ".join(names),
        }
        for number, names in enumerate(parts, start=1)
        if names
    ]
    return json.dumps({"include": legs})


def assign(
    contracts: Sequence[ModelContract], total: int, durations_s: Mapping[str, float] | None = None
) -> tuple[tuple[str, ...], ...]:
    """Model names for each shard: the largest model first, each to the shard with the least work.

    A model weighs as much as it took, or as much as it has targets. Equal inputs give equal shards on every machine.
    """
    weights = _weights(contracts, durations_s or {})
    parts: list[list[int]] = [[] for _ in range(total)]
    loads = [0.0] * total
    # Largest first is at most a third slower than the best division, which takes exponential time to find.
    # Ties keep the config's order (`sorted` is stable) and go to the first shard (`index` of the minimum).
    for place in sorted(range(len(contracts)), key=lambda index: -weights[index]):
        least = loads.index(min(loads))
        parts[least].append(place)
        loads[least] += weights[place]
    return tuple(tuple(contracts[place].name for place in sorted(part)) for part in parts)


def _weights(contracts: Sequence[ModelContract], durations_s: Mapping[str, float]) -> list[float]:
    """Seconds of each model; one that never ran is taken to cost as much for each target as the others on average."""
    known = [contract for contract in contracts if contract.name in durations_s]
    seconds = sum(durations_s[contract.name] for contract in known)
    each = seconds / sum(len(contract.targets) for contract in known) if seconds else 1.0
    return [durations_s.get(contract.name, each * len(contract.targets)) for contract in contracts]
