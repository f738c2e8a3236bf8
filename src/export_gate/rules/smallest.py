"""The smallest failing input, in words: whole if it is small."""

from __future__ import annotations

from export_gate.rules.wording import exact, shape
from export_gate.wall.smallest import SmallestInput, SmallTensor
from export_gate.wall.words import count

LONGEST = 200
"""Characters of values that a sentence takes."""


def smallest_words(smallest: SmallestInput | None, target: str | None) -> str:
    """`x = [[0.75]]: eager 1, onnx 2 (shrunk from 32 to 1 element)`, or its shapes; empty if it is not known."""
    if smallest is None:
        return ""
    values = ", ".join(f"{tensor.path} = {tensor.text}" for tensor in smallest.tensors)
    is_small = len(values) <= LONGEST and all(tensor.text is not None for tensor in smallest.tensors)
    shown = f"`{values}`" if is_small else ", ".join(map(_shape, smallest.tensors))
    answers = ""
    if smallest.expected_at is not None and smallest.actual_at is not None:
        answers = f": eager {exact(smallest.expected_at)}, {target} {exact(smallest.actual_at)}"
    before, after = smallest.elements_before, smallest.elements
    shrunk = f" (shrunk from {before} to {count(after, 'element')})" if after < before else ""
    return f"{shown}{answers}{shrunk}"


def _shape(tensor: SmallTensor) -> str:
    return f"`{tensor.path}` of {tensor.dtype} and shape {shape(tensor.shape)}"
