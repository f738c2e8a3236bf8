"""Write the interface lock next to the config, from verified results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from export_gate.config import Config, load_config
from export_gate.lock.file import lock_path, write_lock
from export_gate.report.results import Results, read_results
from export_gate.rules.judge import Verdict, judge
from export_gate.rules.lock.facts import locked_model
from export_gate.rules.lock.record import Lock
from export_gate.wall.errors import UserError

RUN_ALL = "Run `export-gate run` without models, --target, --skip-target, --case and --shard, then lock."


def write_lock_of(path: Path, config_path: Path) -> tuple[Path, int]:
    """Write the lock of a run, and return its path and the number of models in it.

    Raises:
        UserError: the results are not from a complete, verified run of the current config.
    """
    config, results = load_config(config_path), read_results(path)
    # A new lock exists to record a changed interface, so do not compare with the old one.
    judgement = judge(results.contracts, results.run, replace(results.terms, lock=None))
    for message, hint in _objections(results, config, judgement.verdict):
        raise UserError(f"{path}: {message}", hint)
    models = {measured.contract.name: locked_model(measured) for measured in judgement.measured}
    target = lock_path(config_path)
    write_lock(Lock(models=models), target)
    return target, len(models)


def _objections(results: Results, config: Config, verdict: Verdict) -> Iterator[tuple[str, str]]:
    """The reasons why the results cannot be locked, with the next steps."""
    if results.config_sha256 != config.sha256:
        expected, found = config.sha256[:12], results.config_sha256[:12]
        yield (
            f"results of another {config.path}: expected config sha256 {expected}, got {found}",
            "Run `export-gate run` again, then lock.",
        )
    # A lock replaces the whole file, so a partial run would drop the rest from it.
    missing = [model.name for model in config.models if model.name not in {c.name for c in results.contracts}]
    if missing or results.narrowed or results.planned:
        lacks = f"model {missing[0]}" if missing else "some targets, control inputs or shards"
        yield f"results of only part of the config, without {lacks}: expected a run of all of it", RUN_ALL
    if verdict != "verified":
        yield (
            f"expected verified results, got the verdict {verdict!r}",
            "A lock records what was verified: fix the findings (or waive them), run again, then lock.",
        )
