"""How much of a run verifies, by the times at which the worker begins its stages."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

from export_gate.pipeline import verify
from export_gate.run.order import Order
from export_gate.wall.protocol import Event

MAKING = ("model", "export", "convert", "load")
"""Stages that any script has which makes the files."""


def verifying_share(config: Path, folder: Path) -> tuple[float, float]:
    """The part of a run that eager, the artifacts' runs, comparisons and guards take, and the run's seconds."""
    spent: Counter[str] = Counter()
    last = [("start", time.perf_counter())]

    def listen(event: Event) -> None:
        now = time.perf_counter()
        stage, since = last[0]
        spent[stage] += now - since
        last[0] = (event.field if event.op == "at" else "between" if event.op == "ended" else stage, now)

    began = time.perf_counter()
    verify(Order(config=config, folder=folder, environment=dict(os.environ)), lambda _python, _jobs: listen)
    total = time.perf_counter() - began
    making = sum(spent[stage] for stage in ("start", "between", *MAKING))
    return (sum(spent.values()) - making) / total, total
