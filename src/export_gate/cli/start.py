"""Where the command begins: a hook that has nothing to do ends here, before the other commands are imported."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Answer a hook that changes no model; run the command line otherwise."""
    if "PRE_COMMIT" in os.environ and sys.argv[1:2] == ["run"]:
        from export_gate.cli.idle import is_nothing_changed

        if is_nothing_changed(sys.argv[2:]):
            return
    from export_gate.cli import main as commands

    commands.main()


if __name__ == "__main__":
    main()
