"""The condition at which eager goes another way is found by the lines that run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from worker_samples import written_module

from export_gate.worker.controls.record import ControlCase
from export_gate.worker.study.forks import fork
from export_gate.worker.study.laboratory import Laboratory

CODE = """
def helper(n):
    return n + 1

def forward(n, flag=False):
    total = helper(n)
    if n == 1:
        return total
    for _ in range(2):
        total += 1
    return total
"""


def _case(size: int) -> ControlCase:
    return ControlCase(name=f"c{size}", family="normal", group="generated", sizes={"n": size}, make=lambda: {"n": size})


def test_the_last_common_line_is_the_condition(tmp_path: Path):
    """And inputs that run the same lines have none."""
    with written_module(tmp_path, "parting", CODE) as module:

        class Runs:
            def again(self, values: Any) -> int:
                return cast("int", module.forward(**values))

        laboratory = cast("Laboratory", Runs())
        found = fork(laboratory, (tmp_path,), "output", _case(1), [_case(5), _case(3)]).forked_at
        assert found is not None
        assert (found.line, found.text) == (7, "if n == 1:")
        assert fork(laboratory, (tmp_path,), "output", _case(4), [_case(5)]).forked_at is None
