"""The smallest failing input, in words: whole if it is small."""

from __future__ import annotations

from export_gate.rules.wording import exact, shape
from export_gate.wall.smallest import SmallestInput, SmallTensor
from export_gate.wall.words import count

LONGEST = 200
"""Characters of values that a sentence takes."""
ROUNDING = 1e-6
"""Share of a float32 number that is no difference."""


def smallest_words(smallest: SmallestInput | None, target: str | None) -> str:
    """`x = [[0.75]]: eager 1, onnx 2 (shrunk from 32 to 1 element)`, or its shapes; empty if it is not known."""
    if smallest is None:
        return ""
    values = ", ".join(f"{tensor.path} = {tensor.text}" for tensor in smallest.tensors)
    is_small = len(values) <= LONGEST and all(tensor.text is not None for tensor in smallest.tensors)
    shown = f"`{values}`" if is_small else ", ".join(map(_shape, smallest.tensors))
    answers = ""
    if _are_apart(smallest.expected_at, smallest.actual_at):
        answers = f": eager {exact(smallest.expected_at)}, {target} {exact(smallest.actual_at)}"
    before, after = smallest.elements_before, smallest.elements
    shrunk = f" (shrunk from {before} to {count(after, 'element')})" if after < before else ""
    return f"{shown}{answers}{shrunk}"


def _are_apart(expected: float | None, actual: float | None) -> bool:
    """Whether the values at the largest difference say anything: not where NaN elsewhere is what fails."""
    if expected is None or actual is None:
        return False
    return not abs(expected - actual) <= ROUNDING * max(abs(expected), abs(actual))


def _shape(tensor: SmallTensor) -> str:
    return f"`{tensor.path}` of {tensor.dtype} and shape {shape(tensor.shape)}"
