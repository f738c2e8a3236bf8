"""Find why eager raises inside its contract although the model is not wrong."""

from __future__ import annotations

import re

from export_gate.rules.cases import is_layout_case
from export_gate.wall.contract import ModelContract
from export_gate.wall.inputs import tensors
from export_gate.wall.observation import ModelObservation, PromiseBroken

RAISED = re.compile(r"\w+: ")
"""An exception's class begins the message; other broken promises are sentences."""
OF_LAYOUT = re.compile(r"contiguous|stride")
"""What torch says about a memory layout that it refuses."""
EMPTY = {"keep": (0,), "drop": (1,), "any": (), None: (0, 1)}
"""What 1 means in a mask -> the values that keep nothing if all elements have them."""


def refused_layouts(observation: ModelObservation) -> tuple[PromiseBroken, ...]:
    """Promises broken only because of the memory layout, about which the contract says nothing."""
    refused = {broken.case for broken in observation.broken}
    # Eager that accepts no input at all has another problem.
    if all(member.name in refused for member in observation.control_inputs):
        return ()
    raised = [promise for promise in observation.broken if RAISED.match(promise.message)]
    strided = [promise for promise in raised if is_layout_case(observation, promise.case)]
    # Where dense tensors raise too, the layout is the reason only if the message says so.
    lines = {promise.source for promise in raised if promise not in strided and promise.source is not None}
    return tuple(p for p in strided if p.source not in lines or OF_LAYOUT.search(p.message))


def refused_empty_masks(
    contract: ModelContract, observation: ModelObservation
) -> tuple[tuple[PromiseBroken, ...], str | None]:
    """The inputs at which eager raised, and the mask that keeps nothing at each of them; none if there is no such mask.

    Fast paths refuse an input in which every row is padding; no caller sends one.
    """
    layouts = refused_layouts(observation)
    raised = [p for p in observation.broken if RAISED.match(p.message) and p not in layouts]
    refused = {promise.case for promise in observation.broken}
    if not raised or all(member.name in refused for member in observation.control_inputs):
        return (), None
    for path, value in raised[0].flat_masks.items():
        is_everywhere = all(promise.flat_masks.get(path) == value for promise in raised)
        if is_everywhere and value in EMPTY.get(_meaning(contract, path), ()):
            return tuple(raised), path
    return (), None


def _meaning(contract: ModelContract, path: str) -> str | None:
    """What the contract says that 1 means in that input."""
    spec = dict(tensors(contract.inputs)).get(path)
    return spec.mask if spec else "any"
