"""The command line: its commands, and how exceptions become exit codes.

Exit codes: 0 verified, 1 violations, 2 usage or config, 3 the gate itself failed.
"""

from __future__ import annotations

import signal
import sys

import click

from export_gate import __version__
from export_gate.cli.calibrate import calibrate
from export_gate.cli.controls import controls
from export_gate.cli.init import init
from export_gate.cli.judge import judge
from export_gate.cli.kit import kit
from export_gate.cli.lock import lock
from export_gate.cli.merge import merge
from export_gate.cli.options import NAMED_CONFIG
from export_gate.cli.plan import plan
from export_gate.cli.publish import publish
from export_gate.cli.replay import replay
from export_gate.cli.report import report
from export_gate.cli.rules import rules
from export_gate.cli.run import run
from export_gate.cli.schema import schema
from export_gate.cli.strength import strength
from export_gate.cli.terminal import complain, complain_of_bug, complain_of_usage, route_warnings
from export_gate.cli.validate import validate
from export_gate.wall.errors import GateError, UserError

USAGE, BROKEN = 2, 3
INTERRUPTED = 130
"""128 + SIGINT, as shells have it."""
COMMANDS = (
    init,
    validate,
    controls,
    calibrate,
    strength,
    run,
    report,
    judge,
    lock,
    plan,
    merge,
    publish,
    kit,
    replay,
    rules,
    schema,
)
"""In the order in which `--help` lists them."""


class InOrder(click.Group):
    """A group that lists its commands in the order in which people use them."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """The names, not sorted."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; the commands that a message prints name its config."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            from export_gate.report.commands import DEFAULT_CONFIG, Caller

            caller = Caller(config=str(ctx.meta.get(NAMED_CONFIG, DEFAULT_CONFIG)))
            raise UserError(caller.located(str(error)), caller.located(error.hint)) from error


# With the prefix, each option has a variable too, such as EXPORT_GATE_RUN_JOBS: `cli/idle.py` looks for those.
@click.group(cls=InOrder, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "EXPORT_GATE"})
@click.version_option(__version__, prog_name="export-gate")
def cli() -> None:
    """Check that a PyTorch model still computes the same function after export.

    Exit codes: 0 verified, 1 violations, 2 wrong usage or config, 3 the gate itself failed.
    """


for command in COMMANDS:
    cli.add_command(command)


def main() -> None:
    """Run the command line; exceptions become exit codes here and nowhere else."""
    # CI cancels with SIGTERM. As an exception it unwinds, and so stops the worker and removes temporary folders.
    signal.signal(signal.SIGTERM, _interrupt)
    route_warnings()
    try:
        # Standalone, click would print errors and exit by itself.
        cli(standalone_mode=False)
    except click.exceptions.Exit as ended:
        sys.exit(ended.exit_code)
    except click.ClickException as error:
        complain_of_usage(error)
        sys.exit(USAGE)
    except UserError as error:
        complain(error.text)
        sys.exit(USAGE)
    except (KeyboardInterrupt, click.Abort):
        complain("interrupted: no verdict, nothing was written")
        sys.exit(INTERRUPTED)
    except GateError as error:
        complain(f"{error}\nno verdict: the gate itself failed")
        sys.exit(BROKEN)
    except Exception as error:  # noqa: BLE001 - the last frame: a bug of ours, shown whole
        complain_of_bug(error)
        complain("no verdict: this is a bug in export-gate, please report it with the lines above")
        sys.exit(BROKEN)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
