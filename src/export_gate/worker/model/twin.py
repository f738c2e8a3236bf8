"""A second instance of a module, at the cost of its buffers."""

from __future__ import annotations

import copy
from typing import Any

import torch


def twin_of(module: torch.nn.Module) -> torch.nn.Module:
    """A copy that shares the weights but neither buffers nor Python state."""
    # deepcopy takes what its memo holds for copied already.
    shared: dict[int, Any] = {id(weight): weight for weight in module.parameters()}
    return copy.deepcopy(module, shared)
