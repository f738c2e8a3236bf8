"""Options that several commands share, and the files that they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from export_gate.wall.errors import GateError, UserError

if TYPE_CHECKING:
    from export_gate.report.results import Results

NAMED_CONFIG = "export-gate.config"
"""In click's context: the config that the command uses, for the commands that messages print."""
DEFAULT_CONFIGS = ("export-gate.yml", "export-gate.yaml")

results_argument = click.argument("results", type=click.Path(path_type=Path))
config_option = click.option(
    "-c", "--config", type=click.Path(path_type=Path), help="Read this config. Default: export-gate.yml."
)
python_option = click.option(
    "--python", metavar="PATH", help="Run the project's code with this interpreter, which must have torch."
)
fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["violation", "warning"]),
    default="violation",
    show_default=True,
    help="Set the lowest severity that fails the check; `fail-on: warning` in the config applies regardless.",
)
cache_option = click.option(
    "--cache-dir",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="EXPORT_GATE_CACHE",
    help="Keep the verdicts of unchanged models here. Default: export-gate in the user's cache folder; in CI, none.",
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Hide the progress.")


def find_config(named: Path | None) -> Path:
    """The config to use.

    Raises:
        UserError: none was named and there is none here.
    """
    found = named or next((Path(name) for name in DEFAULT_CONFIGS if Path(name).exists()), None)
    if found is not None:
        click.get_current_context().meta[NAMED_CONFIG] = found
        return found
    raise UserError(
        f"there is no {DEFAULT_CONFIGS[0]} here; write one with `export-gate init FACTORY` or name it with -c"
    )


def save_text(text: str, path: Path) -> None:
    """Write a file that the user named.

    Raises:
        UserError: it cannot be written.
    """
    try:
        # As it is: an extended config keeps its line ends.
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from error


def save_results(results: Results, path: Path) -> None:
    """Write results to a file that the user named.

    Raises:
        UserError: it cannot be written.
    """
    from export_gate.report.results import write_results

    try:
        write_results(results, path)
    except GateError as error:
        raise UserError(str(error)) from error
