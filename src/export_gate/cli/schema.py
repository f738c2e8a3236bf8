"""`export-gate schema`: print the JSON Schema of a file that export-gate reads or writes."""

from __future__ import annotations

import click

from export_gate.cli.terminal import say


@click.command()
@click.option("--results", is_flag=True, help="Print the schema of results.json instead.")
def schema(results: bool) -> None:
    """Print the JSON Schema of export-gate.yml."""
    import json

    from export_gate.config import json_schema
    from export_gate.report.schema import results_schema

    say(json.dumps(results_schema() if results else json_schema(), indent=2))
