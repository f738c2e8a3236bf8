"""Guards to control inputs."""

from __future__ import annotations

from worker_samples import contract, tensor

from export_gate.wall.contract import Dim
from export_gate.worker.controls.generate import drawn_case
from export_gate.worker.export.branches import Guard
from export_gate.worker.study.branching import LIMIT, branching, with_swept

TWO = contract({"x": tensor("a"), "y": tensor("b")}, Dim(name="a", min=0, max=40), Dim(name="b", min=2, max=40))


def guard(words: str, holds: str) -> Guard:
    """A guard on both dims."""
    return Guard(words=words, holds=holds, dims=("a", "b"), code=compile(holds, "<guard>", "eval"))


def test_the_smallest_and_the_nearest_sizes_are_run():
    """Of all sizes that break a guard, the smallest with elements and those nearest to the reference are run."""
    found = branching(TWO, [guard("a == b", "a != b")], {}, ())
    assert found.cases[0].sizes == {"a": 2, "b": 2}
    assert len(found.cases) == 2
    assert {case.sizes["a"] - case.sizes["b"] for case in found.cases} == {0}
    assert [(branch.words, len(branch.cases)) for branch in found.branches] == [("a == b", 2)]


def test_a_guard_that_no_declared_size_breaks_asks_for_nothing():
    """A condition that holds over the whole contract is not a branch."""
    found = branching(TWO, [guard("a + b == 100", "a + b != 100")], {}, ())
    assert found.cases == ()
    assert found.branches == ()


def test_control_inputs_that_break_a_guard_are_told_too():
    """A control input that breaks a guard is not made twice, and gets the guard's words."""
    known = drawn_case(TWO, "normal", 1, {"a": 2, "b": 2})
    found = branching(TWO, [guard("a == b", "a != b")], {}, (known,))
    assert known.name not in [case.name for case in found.cases]
    assert known.name in found.branches[0].cases


def test_many_guards_are_cut_to_a_limit():
    """However many guards a program has, a limited number of sizes is run, in the order of the guards."""
    many = [guard(f"a == {size}", f"a != {size}") for size in range(3, 39)]
    assert len(branching(TWO, many, {}, ()).cases) == LIMIT


def test_sizes_of_the_sweep_that_take_the_branch_are_told():
    """A difference there is known by the condition as well."""
    equal = guard("a == b", "a != b")
    (branch,) = branching(TWO, [equal], {}, ()).branches
    swept = tuple(drawn_case(TWO, "normal", 1, sizes) for sizes in ({"a": 5, "b": 5}, {"a": 5, "b": 6}))

    assert branch.dims == ("a", "b")
    assert with_swept(branch, [equal], swept).swept == (swept[0].name,)
