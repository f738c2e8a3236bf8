"""Layers that take a step for each position of an axis, and the dim that this axis has in the contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from export_gate.worker.controls.build import reference_call, reference_sizes
from export_gate.worker.model.reference import module_runner
from export_gate.worker.study.subject import Subject

PACKED = "packed"
BATCHED_RANK = 3
"""Axes of a batch of sequences; a single sequence has two, the length first."""


def recurrent_layers(subject: Subject) -> dict[str, str]:
    """Name and class of each LSTM, GRU and RNN -> the dim of its length, or `packed`; empty if it has none.

    One forward of a twin at the reference sizes, which differ from dim to dim.
    """
    if not any(isinstance(part, torch.nn.RNNBase) for part in subject.module.modules()):
        return {}
    sizes = reference_sizes(subject.contract)
    twin = subject.twin()
    found: dict[str, str] = {}
    for name, part in twin.named_modules():
        if isinstance(part, torch.nn.RNNBase):
            part.register_forward_pre_hook(_note(found, f"{name or 'the model'} ({type(part).__name__})", sizes))
    try:
        module_runner(twin, {})(reference_call(subject.contract, subject.parameters))
    except (Exception, SystemExit):  # noqa: BLE001 - eager's failures are recorded where its references are made
        return {}
    return found


def _note(found: dict[str, str], label: str, sizes: dict[str, int]) -> Callable[[Any, Any], None]:
    def look(layer: Any, given: Any) -> None:
        first = given[0]
        # A packed sequence, whose lengths are data.
        if not isinstance(first, torch.Tensor):
            found[label] = PACKED
            return
        length = first.shape[1 if layer.batch_first and first.dim() == BATCHED_RANK else 0]
        found[label] = next((dim for dim, size in sizes.items() if size == length), "")

    return look
