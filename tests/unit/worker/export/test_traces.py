"""Stack traces in artifacts name no folder of the machine that made them."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from export_gate.worker.export.traces import relative, shorten_traces

HERE = Path(__file__).parent


class Doubled(nn.Module):
    """Twice the input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Any float to the same shape."""
        return 2 * x


def test_paths_of_the_project_and_of_packages_become_relative():
    """The innermost project folder is removed, and so is the path to an installed package."""
    trace = (
        'File "/home/me/net/src/net/model.py", line 3, in forward\n'
        'File "/home/me/net/.venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 9, in forward\n'
        'File "/usr/lib/python3.11/functools.py", line 5, in wrapper\n'
    )
    assert relative(trace, [Path("/home/me/net"), Path("/home/me/net/src")]) == (
        'File "net/model.py", line 3, in forward\n'
        'File "torch/nn/modules/linear.py", line 9, in forward\n'
        'File "functools.py", line 5, in wrapper\n'
    )


def test_a_program_keeps_its_lines_without_their_folder():
    """What a program says about its source is where in the project it is, not where the project is."""
    program = torch.export.export(Doubled(), (torch.ones(2),))
    shorten_traces(program, (HERE,))
    traces = "".join(node.meta.get("stack_trace") or "" for node in program.graph.nodes)
    assert 'File "test_traces.py", line' in traces
    assert str(HERE) not in traces
