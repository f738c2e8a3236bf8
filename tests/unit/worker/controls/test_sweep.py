"""Every size of each dim, and size tuples."""

from __future__ import annotations

import pytest
from control_samples import contract, tensor

from export_gate.wall.contract import Controls, Dim
from export_gate.worker.controls.generate import case_named
from export_gate.worker.controls.sweep import LONGEST, TUPLES, sweep_cases


def x(*shape: str | int):
    """A float input."""
    return tensor("float32", *shape, range=(-4, 4))


def test_every_size_of_a_dim_is_swept():
    """A dim of hundreds of sizes has one input at each of them, in an order that is spread from the start."""
    sizes = [case.sizes["h"] for case in sweep_cases(contract(Dim(name="h", min=8, max=256), x=x("h")))]
    assert sorted(sizes) == list(range(8, 257))
    assert max(sizes[:16]) - min(sizes[:16]) > 100


def test_dims_are_swept_apart_and_together():
    """Each dim's sizes come with the others at the reference, and seeded tuples vary all of them."""
    dims = Dim(name="a", min=2, max=20), Dim(name="b", min=0, max=800, multiple_of=8)
    found = [(case.sizes["a"], case.sizes["b"]) for case in sweep_cases(contract(*dims, x=x("a", "b")))]
    assert {(a, 400) for a in range(2, 21)} <= set(found)
    assert {b for a, b in found if a == 11} >= set(range(8, 801, 8))
    assert 0 < len(found) - 19 - 100 <= TUPLES
    assert len(set(found)) == len(found)


def test_a_long_dim_is_swept_evenly():
    """Of thousands of sizes, a limited number is swept, including both ends."""
    sizes = [case.sizes["n"] for case in sweep_cases(contract(Dim(name="n", min=1, max=9999), x=x("n")))]
    assert (len(sizes), min(sizes), max(sizes)) == (LONGEST, 1, 9999)


def test_declared_sizes_and_static_dims_are_not_swept():
    """If the project lists the sizes of a dim, or it has only one, no other size is tried."""
    dims = Dim(name="a", min=2, max=20), Dim(name="s", min=2, max=9, mode="static")
    assert sweep_cases(contract(*dims, controls=Controls(sizes={"a": (2, 5)}), x=x("a", "s"))) == ()


@pytest.mark.parametrize(
    ("name", "is_known"),
    [
        ("normal-1@a=7,b=9", True),
        ("halves-2@a=1,b=2", True),
        ("normal-1@a=99,b=9", False),
        ("normal-1@b=9,a=7", False),
        ("odd-1@a=7,b=9", False),
        ("normal-*", False),
    ],
)
def test_an_input_of_a_sweep_is_made_again_from_its_name(name: str, is_known: bool):
    """The name of a generated input is enough to run it again, at any declared sizes."""
    dims = Dim(name="a", min=2, max=20, separate=(1,)), Dim(name="b", min=2, max=20)
    made = case_named(contract(*dims, x=x("a", "b")), name)
    assert (made is not None) == is_known
    assert made is None or made.name == name
