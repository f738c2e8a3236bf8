"""The smallest failing input, in words: whole if it is small."""

from __future__ import annotations

from export_gate.rules.wording import count, exact, shape
from export_gate.wall.smallest import SmallestInput, SmallTensor

LONGEST = 200
"""Characters of values that a sentence takes."""


def smallest_words(smallest: SmallestInput | None, target: str | None) -> str:
    """`x = [[0.75]]: eager 1, onnx 2 (1 element, 32 before)`, or its shapes; empty if it is not known."""
    if smallest is None:
        return ""
    values = ", ".join(f"{tensor.path} = {tensor.text}" for tensor in smallest.tensors)
    is_small = len(values) <= LONGEST and all(tensor.text is not None for tensor in smallest.tensors)
    shown = f"`{values}`" if is_small else ", ".join(map(_shape, smallest.tensors))
    answers = ""
    if smallest.expected_at is not None and smallest.actual_at is not None:
        answers = f": eager {exact(smallest.expected_at)}, {target} {exact(smallest.actual_at)}"
    rest = "" if smallest.is_finished else ", not shrunk to the end"
    return f"{shown}{answers} ({count(smallest.elements, 'element')}, {smallest.elements_before} before{rest})"


def _shape(tensor: SmallTensor) -> str:
    return f"`{tensor.path}` of {tensor.dtype} and shape {shape(tensor.shape)}"
