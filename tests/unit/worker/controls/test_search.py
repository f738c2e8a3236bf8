"""Many size tuples at once, where a condition on sizes is looked for."""

from __future__ import annotations

import numpy as np
from control_samples import contract, tensor

from export_gate.wall.contract import Dim
from export_gate.worker.controls.search import SEEDED, search_sizes, sizes_at


def x(*shape: str | int):
    """A float input."""
    return tensor("float32", *shape, range=(-4, 4))


def test_all_tuples_are_tried_where_there_are_few():
    """Every declared size of every dim that matters is combined with every other; other dims stay at the reference."""
    dims = Dim(name="a", min=2, max=9), Dim(name="b", min=0, max=64, multiple_of=8), Dim(name="c", min=1, max=99)
    tuples = search_sizes(contract(*dims, x=x("a", "b", "c")), {}, ("a", "b"))
    assert {(int(a), int(b)) for a, b in zip(tuples["a"], tuples["b"], strict=True)} == {
        (a, b) for a in range(2, 10) for b in range(0, 65, 8)
    }
    assert set(tuples["c"]) == {50}
    assert sizes_at(tuples, 0) == {"a": 2, "b": 0, "c": 50}


def test_fixed_and_static_dims_stay():
    """A dim that an export fixes, and a static one, have one size in every tuple."""
    dims = (
        Dim(name="a", min=2, max=9, separate=(1,)),
        Dim(name="b", min=2, max=9),
        Dim(name="s", min=2, max=8, mode="static"),
    )
    tuples = search_sizes(contract(*dims, x=x("a", "b", "s")), {"a": 1}, ("a", "b", "s"))
    assert (set(tuples["a"]), set(tuples["s"])) == ({1}, {6})
    assert set(tuples["b"]) == set(range(2, 10))


def test_of_many_tuples_ends_equal_and_neighbouring_sizes_are_tried():
    """If there are too many tuples, each dim's sizes, pairs of ends, equal and neighbouring sizes are included."""
    dims = [Dim(name=name, min=1, max=5000) for name in ("a", "b", "c")]
    tuples = search_sizes(contract(*dims, x=x("a", "b", "c")), {}, ("a", "b", "c"))
    a, b = tuples["a"], tuples["b"]
    assert len(a) > SEEDED
    assert set(a[a == b]) == set(a[a == b + 1]) | {1} == set(range(1, 5001))
    assert np.any((a == 1) & (b == 5000))
    assert min(a) == 1
    assert max(a) == 5000


def test_a_dim_of_any_length_takes_little_memory():
    """A range of billions is sampled, not listed."""
    dims = [Dim(name=name, min=1, max=2**31 - 1, multiple_of=3) for name in ("a", "b")]
    tuples = search_sizes(contract(*dims, x=x("a", "b")), {}, ("a", "b"))
    assert all(np.all(column % 3 == 0) for column in tuples.values())
    assert len(tuples["a"]) < 10 * SEEDED
