"""`export-gate rules`: list what is checked."""

from __future__ import annotations

import click

from export_gate.cli.terminal import say


@click.command()
def rules() -> None:
    """List the rules with their severities."""
    from export_gate.rules import CATALOGUE

    width = max(len(rule.name) for rule in CATALOGUE)
    for rule in CATALOGUE:
        say(f"{rule.name:{width}}  {rule.severity:9}  {rule.summary}")
