"""`export-gate plan`: spread models over the machines of a GitHub workflow, or list those that a change can touch."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click

from export_gate.cli.options import cache_option, config_option, find_config, python_option
from export_gate.cli.terminal import say

if TYPE_CHECKING:
    from export_gate.cache.folder import CacheFolder
    from export_gate.run.plan import Selection


@click.command()
@click.argument("models", nargs=-1)
@config_option
@python_option
@click.option("--target", "targets", multiple=True, help="Plan only this target. Can be repeated.")
@click.option("--shards", type=click.IntRange(1, 256), help="Spread the models over this many machines.")
@click.option(
    "--changed-since", metavar="COMMIT", help="List the models that the change since this commit can touch, and why."
)
@cache_option
def plan(
    models: tuple[str, ...],
    config: Path | None,
    python: str | None,
    targets: tuple[str, ...],
    shards: int | None,
    changed_since: str | None,
    cache_dir: Path | None,
) -> None:
    """Spread MODELS over machines, or list what a change can touch.

    MODELS defaults to all. The matrix is one line of JSON, for a GitHub workflow. It is balanced by how long the models
    took, as far as the cache knows.
    """
    if (shards is None) == (changed_since is None):
        raise click.UsageError("give either --shards or --changed-since")
    from export_gate.cache.durations import durations
    from export_gate.cache.folder import CacheFolder
    from export_gate.cache.place import choose_folder
    from export_gate.config import load_config
    from export_gate.run.plan import Selection, select
    from export_gate.run.shards import matrix

    path, selection = find_config(config), Selection(models=models, targets=targets)
    place = choose_folder(cache_dir, os.environ)
    folder = None if place is None else CacheFolder(path=place, keeps=False)
    if changed_since is not None:
        say(_touched(changed_since, path, python, selection, folder))
    elif shards is not None:
        contracts = select(load_config(path), selection)
        known = {} if folder is None else durations(folder, path, [contract.name for contract in contracts], os.environ)
        say(matrix(contracts, shards, known))


def _touched(ref: str, path: Path, python: str | None, selection: Selection, folder: CacheFolder | None) -> str:
    """A line for each model: whether it runs, and why."""
    from export_gate.cache.affected import affected, changed_since
    from export_gate.cache.scene import make_scene
    from export_gate.config import load_config
    from export_gate.run.interpreter import find_interpreter
    from export_gate.run.plan import make_plan
    from export_gate.wall.repository import config_folder

    config, base = load_config(path), config_folder(path)
    jobs = make_plan(config, selection, path.parent / ".export-gate")
    changed = changed_since(ref, base, os.environ)
    if folder is None:
        return "\n".join(f"{job.contract.name}: runs: there is no cache" for job in jobs)
    found = find_interpreter(python, config.python, base, os.environ)
    scene = make_scene(folder, path, found.path, os.environ, datetime.now(timezone.utc).date().isoformat())
    lines = affected(scene, jobs, changed, ref)
    return "\n".join(f"{each.model}: {'runs: ' if each.runs else ''}{each.why}" for each in lines)
