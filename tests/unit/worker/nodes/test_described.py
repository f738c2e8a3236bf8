"""What is told of a node besides its values."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from export_gate.worker.nodes.program import described


class Resize(nn.Module):
    """An upsampling operator with these arguments."""

    def __init__(self, **given: Any) -> None:
        super().__init__()
        self.given = given

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[1, 1, h, w] to another size."""
        return F.interpolate(x, **self.given)


@pytest.mark.parametrize(
    ("given", "factors"),
    [
        ({"scale_factor": 0.7}, (0.7, 0.7)),
        ({"scale_factor": (0.5, 2.0), "mode": "bilinear"}, (0.5, 2.0)),
        ({"size": (5, 5)}, ()),
    ],
)
def test_the_factors_of_an_upsampling_operator_are_told(given: dict[str, Any], factors: tuple[float, ...]):
    """As the program has them; none where it resizes to a size."""
    program = torch.export.export(Resize(**given), (torch.ones(1, 1, 20, 20),))
    (node,) = [node for node in program.graph.nodes if "upsample" in str(node.target)]

    assert described(node, ()).scale_factors == factors
