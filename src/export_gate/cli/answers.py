"""Commands that answer at once from the config or from export-gate itself."""

from __future__ import annotations

from pathlib import Path

import click

from export_gate.cli.options import config_option, find_config
from export_gate.wall.errors import UserError


@click.command()
@click.argument("configs", nargs=-1, type=click.Path(path_type=Path))
@config_option
def validate(configs: tuple[Path, ...], config: Path | None) -> None:
    """Check CONFIGS (default: as `run` finds one) without running anything."""
    from export_gate.config import load_config

    mistakes = []
    for path in configs if configs and config is None else (*configs, find_config(config)):
        try:
            count = len(load_config(path).models)
            click.echo(f"{path}: valid, {count} {'model' if count == 1 else 'models'}")
        except UserError as error:
            mistakes.append(str(error) + (f"\n{error.hint}" if error.hint else ""))
    if mistakes:
        raise UserError("\n".join(mistakes))


@click.command()
@click.argument("models", nargs=-1)
@config_option
@click.option("--target", "targets", multiple=True, help="Only this target; may be repeated.")
@click.option("--shards", type=click.IntRange(1, 256), required=True, help="Machines to spread the models over.")
def plan(models: tuple[str, ...], config: Path | None, targets: tuple[str, ...], shards: int) -> None:
    """Print the matrix of a GitHub workflow that spreads MODELS (default: all) over machines, as one line of JSON."""
    from export_gate.config import load_config
    from export_gate.run.plan import Selection, select
    from export_gate.run.shards import matrix

    contracts = select(load_config(find_config(config)), Selection(models=models, targets=targets))
    click.echo(matrix(contracts, shards))


@click.command()
@click.option("--results", is_flag=True, help="Of results.json instead.")
def schema(results: bool) -> None:
    """Print the JSON Schema of export-gate.yml."""
    import json

    from export_gate.config import json_schema
    from export_gate.report.results import results_schema

    click.echo(json.dumps(results_schema() if results else json_schema(), indent=2))


@click.command(name="rules")
def rules_() -> None:
    """List what is checked, with severities."""
    from export_gate.rules import CATALOGUE

    width = max(len(rule.name) for rule in CATALOGUE)
    for rule in CATALOGUE:
        click.echo(f"{rule.name:{width}}  {rule.severity:9}  {rule.summary}")
