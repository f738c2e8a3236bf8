"""`export-gate replay`: check a conformance kit where it is deployed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from export_gate.cli.terminal import say


@click.command()
@click.argument("kit", type=click.Path(path_type=Path))
@click.option(
    "--provider",
    "providers",
    multiple=True,
    default=["CPUExecutionProvider"],
    show_default=True,
    help="Use this execution provider of ONNX Runtime. Can be repeated, in order of preference.",
)
@click.option(
    "--python", metavar="PATH", help="Replay with this interpreter, which must have numpy, onnx and onnxruntime."
)
def replay(kit: Path, providers: tuple[str, ...], python: str | None) -> None:
    """Check KIT with ONNX Runtime on this machine, without torch.

    The kit's files are checked first, then every data set.

    Exit codes: 0 conforms, 1 does not, 2 the kit was changed or cannot be replayed here.
    """
    from export_gate.kit import replay as replaying
    from export_gate.report.escape import one_line

    replayed = replaying.replay(kit, providers, python, os.environ)
    # A kit's names may be a stranger's, and must not start a line of their own.
    for line in replaying.report(replayed):
        say(one_line(line))
    sys.exit(replayed.exit_code)
