"""Starts export-gate from this checkout: `python -I -X utf8 action/gate.py ...`.

Isolated mode, with the sources put on the path here, keeps a project's PYTHONPATH out of the gate's own process and
leaves it to the worker.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from export_gate.cli.main import main

if __name__ == "__main__":
    main()
