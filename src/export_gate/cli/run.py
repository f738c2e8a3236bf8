"""`export-gate run`: verify models and print the report."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from export_gate.cli.options import (
    cache_option,
    config_option,
    fail_on_option,
    find_config,
    python_option,
    quiet_option,
)
from export_gate.cli.terminal import complain, follow, say, show


@click.command()
@click.argument("models", nargs=-1)
@config_option
@python_option
@click.option(
    "--report-dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write results.json, the reports and the artifacts to this folder. Default: .export-gate next to the config.",
)
@click.option("--target", "targets", multiple=True, help="Verify only this target. Can be repeated.")
@click.option("--skip-target", "skipped", multiple=True, help="Skip this target. Can be repeated.")
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="GLOB",
    help="Use only the control inputs that match this pattern, or the one in this .npz file. Can be repeated.",
)
@click.option(
    "--base",
    metavar="COMMIT",
    help="Compare with the interface lock of this commit instead of the working tree's, and report what the config"
    " loosens since then.",
)
@click.option("--shard", metavar="N/TOTAL", help="Verify only this part of the models, e.g. 1/4 (see `plan`).")
@fail_on_option
@click.option(
    "-j", "--jobs", type=click.IntRange(1, 64), help="Verify this many models at a time. Default: one per core."
)
@click.option(
    "--save-case",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the smallest failing input that is found to this .npz file; `--case FILE` runs it again.",
)
@click.option("--no-diagnosis", is_flag=True, help="Skip the experiments that find the cause of a failure.")
@click.option("--no-cache", is_flag=True, help="Verify unchanged models again, and keep no verdict.")
@cache_option
@click.option("--cache-read-only", is_flag=True, help="Use kept verdicts, but keep no new ones.")
@click.option(
    "--cache-size",
    type=click.FloatRange(min=0, min_open=True),
    default=2.0,
    show_default=True,
    metavar="GB",
    help="Remove what was used longest ago once the cache is larger.",
)
@quiet_option
def run(
    models: tuple[str, ...],
    config: Path | None,
    python: str | None,
    folder: Path | None,
    targets: tuple[str, ...],
    skipped: tuple[str, ...],
    cases: tuple[str, ...],
    base: str | None,
    shard: str | None,
    fail_on: str,
    jobs: int | None,
    save_case: Path | None,
    no_diagnosis: bool,
    no_cache: bool,
    cache_dir: Path | None,
    cache_read_only: bool,
    cache_size: float,
    quiet: bool,
) -> None:
    """Export and verify MODELS (default: all), and print the report."""
    if no_diagnosis and save_case is not None:
        raise click.UsageError("--save-case needs the experiments that --no-diagnosis skips")
    path = find_config(config)
    if is_idle(path, python):
        return
    from export_gate.cache.place import choose_folder

    place = None if no_cache else choose_folder(cache_dir, os.environ)
    with follow(quiet=quiet, last_s=partial(_last_s, place, path)) as announce:
        # Only now: the imports take longer than to see that a push needs no verdict.
        from export_gate import pipeline
        from export_gate.cache.standing import command_name
        from export_gate.outcome import judging
        from export_gate.run.order import CachePlace, Order, default_parallel
        from export_gate.run.plan import Selection, from_config
        from export_gate.run.pushing import find_push
        from export_gate.run.shards import parse_shard
        from export_gate.wall.repository import config_folder

        push = find_push(os.environ, config_folder(path))
        for line in push.notes:
            complain(f"note: {line}")
        order = Order(
            config=path,
            selection=Selection(models=models, targets=targets, skipped=skipped, cases=from_config(cases, path)),
            python=python,
            parallel=jobs or default_parallel(),
            folder=folder or path.parent / ".export-gate",
            environment=dict(os.environ),
            shard=parse_shard(shard) if shard else None,
            base=base or None,
            unpushed=push.unpushed,
            diagnosis=not no_diagnosis,
            save_case=save_case,
            cache=None
            if place is None
            else CachePlace(
                folder=place,
                keeps=not cache_read_only,
                limit_bytes=round(cache_size * 1e9),
                # `--fail-on` is applied to what the run has found.
                standing=command_name(str(Path.cwd()), sys.argv[2:]) if fail_on == "violation" else "",
            ),
        )
        outcome = pipeline.run(order, announce)
    # The option only adds strictness: the config's own `fail-on` was applied by the judge.
    if fail_on == "warning":
        outcome = judging.fail_on_warnings(outcome)
    show(outcome, order.folder)
    for line in outcome.notes:
        complain(f"note: {line}")
    sys.exit(outcome.judgement.exit_code)


def _last_s(place: Path | None, config: Path, models: Sequence[str]) -> Mapping[str, float]:
    """How long each of these models took last, where the cache knows it."""
    from export_gate.cache.durations import durations
    from export_gate.cache.folder import CacheFolder

    return {} if place is None else durations(CacheFolder(path=place, keeps=False), config, models, os.environ)


def is_idle(path: Path, python: str | None) -> bool:
    """Whether this runs before a push that cannot change a verdict; if so, say it."""
    if "PRE_COMMIT_TO_REF" not in os.environ:
        return False
    from export_gate.config import load_config
    from export_gate.run.ignored import nothing_to_verify

    idle = nothing_to_verify(load_config(path), os.environ, python)
    if idle is not None:
        say(f"export-gate: {idle}")
    return idle is not None
