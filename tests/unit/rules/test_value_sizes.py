"""A call whose size depends on values is answered with the argument that fixes it."""

from __future__ import annotations

import pytest

from export_gate.rules.python_numbers import constant_advice
from export_gate.rules.value_sizes import value_size_advice
from export_gate.wall.source import SourceLine


def _line(text: str) -> SourceLine:
    return SourceLine(path="m.py", line=3, text=text)


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("hot = F.one_hot(codes).float()", "`F.one_hot(codes, num_classes=...)`"),
        ("n = torch.bincount(ids)", "`torch.bincount(ids, minlength=...)`"),
        ("dist = Normal(self.mu(x), self.std)", "`Normal(self.mu(x), self.std, validate_args=False)`"),
        ("hot = F.one_hot(codes, 5)", ""),
        ("dist = Normal(mu, std, validate_args=False)", ""),
        ("y = self.body(x)", ""),
    ],
)
def test_the_users_call_is_printed_with_the_argument(text: str, edit: str):
    """Nothing is said where it is there already."""
    found = value_size_advice(_line(text))
    assert edit in found
    assert bool(found) == bool(edit)


def test_numpy_on_a_size_is_answered_with_the_same_function_of_torch():
    """NumPy computes from the example alone."""
    found = constant_advice(_line("r = torch.from_numpy(np.linspace(0.0, 1.0, x.shape[1], dtype=np.float32))"))
    assert "write `torch.linspace(0.0, 1.0, x.shape[1])`" in found
