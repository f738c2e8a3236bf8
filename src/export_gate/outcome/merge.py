"""Merge the results of several machines into those of one run, which is then judged as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from export_gate.report.results import Results
from export_gate.wall.contract import ModelContract
from export_gate.wall.errors import UserError
from export_gate.wall.observation import Environment, RunObservation

Part = tuple[Path, Results]
"""Results with their file's path, for messages."""


def merge(parts: Sequence[Part]) -> Results:
    """Merge all parts, in the order of the run that they are shards of.

    A planned model that is missing from all parts stays planned, so the verdict will be `broken`.

    Raises:
        UserError: the parts are not of one run, or a model is in two of them.
    """
    _, first = parts[0]
    _require_one_run(parts)
    contracts = _contracts(parts)
    order = {contract.name: place for place, contract in enumerate(contracts)}
    models = [model for _, part in parts for model in part.run.models]
    return replace(
        first,
        contracts=contracts,
        planned=(),
        run=RunObservation(
            environment=_environment([part.run.environment for _, part in parts]),
            models=tuple(sorted(models, key=lambda model: order[model.model])),
        ),
        findings=(),
        # The machines work at the same time, so the run lasts as long as the slowest.
        started=min(part.started for _, part in parts),
        duration_s=max(part.duration_s for _, part in parts),
        # If midnight passed between two machines, a waiver must hold on the later day.
        judged_on=max(part.judged_on for _, part in parts),
        narrowed=any(part.narrowed for _, part in parts),
        checkout=replace(
            first.checkout,
            lines={name: line for _, part in parts for name, line in part.checkout.lines.items()},
            keys={name: keys for _, part in parts for name, keys in part.checkout.keys.items()},
        ),
    )


def _require_one_run(parts: Sequence[Part]) -> None:
    facts: tuple[tuple[str, Callable[[Results], Any]], ...] = (
        ("version of export-gate", lambda part: part.tool_version),
        ("config sha256", lambda part: part.config_sha256),
        ("commit", lambda part: part.head),
        ("interface lock", lambda part: part.lock),
        ("`fail-on`", lambda part: part.fail_on),
        ("comparison with the base's config", lambda part: part.change),
        ("selection of models and targets", lambda part: [(c.name, len(c.targets)) for c in part.planned]),
    )
    (path, first), *others = parts
    for other, part in others:
        for what, fact in facts:
            if fact(part) != fact(first):
                raise UserError(
                    f"{other}: another {what} than {path}: expected {fact(first)!s:.80}, got {fact(part)!s:.80}",
                    "Join only results of one run: same commit, same config, same options.",
                )


def _contracts(parts: Sequence[Part]) -> tuple[ModelContract, ...]:
    """Each contract once, in planned order, or else in the order of the parts."""
    seen: dict[str, Path] = {}
    for path, part in parts:
        for contract in part.contracts:
            if contract.name in seen:
                raise UserError(
                    f"{path}: model {contract.name!r} is in {seen[contract.name]} too; expected it in only one of them",
                    "Give each machine its own shard: `--shard 1/2`, `--shard 2/2`.",
                )
            seen[contract.name] = path
    own = {contract.name: contract for _, part in parts for contract in part.contracts}
    planned = {contract.name: contract for _, part in parts for contract in part.planned}
    return tuple({**planned, **own}.values())


def _environment(seen: list[Environment | None]) -> Environment | None:
    """The environment that the machines share; values that differ are joined."""
    known = [environment for environment in seen if environment is not None]
    if not known:
        return None
    names = {name: None for environment in known for name in environment.versions}
    return Environment(
        python=_each([environment.python for environment in known]),
        executable=_each([environment.executable for environment in known]),
        platform=_each([environment.platform for environment in known]),
        cpu=_each([environment.cpu for environment in known]),
        versions={name: _each([e.versions[name] for e in known if name in e.versions]) for name in names},
        # A number, unlike the others: the most that one of them had.
        threads=max(environment.threads for environment in known),
    )


def _each(values: list[str]) -> str:
    return " and ".join(dict.fromkeys(values))
