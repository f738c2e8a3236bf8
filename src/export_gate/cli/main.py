"""The command line: the only place, with `commands`, that prints and exits.

Exit codes: 0 verified, 1 violations, 2 usage or config, 3 the gate itself failed.
"""

from __future__ import annotations

import signal
import sys

import click

from export_gate import __version__
from export_gate.cli import answers, checking, kits, results
from export_gate.wall.errors import GateError, UserError

USAGE, BROKEN = 2, 3
INTERRUPTED = 130
"""128 + SIGINT, as shells have it."""
COMMANDS = (
    checking.run,
    checking.controls,
    checking.init,
    results.report,
    results.judge_,
    results.lock_,
    results.merge,
    results.publish,
    kits.kit_,
    kits.replay_,
    answers.validate,
    answers.plan,
    answers.schema,
    answers.rules_,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "EXPORT_GATE"})
@click.version_option(__version__, prog_name="export-gate")
def cli() -> None:
    """Check that a PyTorch model still means the same thing after export.

    Exit codes: 0 verified, 1 violations, 2 usage or config, 3 the gate itself failed.
    """


for command in COMMANDS:
    cli.add_command(command)


def main() -> None:
    """Run the command line; exceptions become exit codes here and nowhere else."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as ended:
        sys.exit(ended.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(USAGE)
    except UserError as error:
        click.echo(str(error) + (f"\n{error.hint}" if error.hint else ""), err=True)
        sys.exit(USAGE)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted: no verdict, nothing was written", err=True)
        sys.exit(INTERRUPTED)
    except GateError as error:
        click.echo(f"{error}\nno verdict: the gate itself failed", err=True)
        sys.exit(BROKEN)
    except Exception:  # noqa: BLE001 - the last frame: a bug of ours, shown whole
        import traceback

        traceback.print_exc()
        click.echo("no verdict: this is a bug in export-gate, please report it with the lines above", err=True)
        sys.exit(BROKEN)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
