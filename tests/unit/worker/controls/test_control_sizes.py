import tracemalloc

import pytest
from control_samples import BATCH, SIDE, contract, tensor

from export_gate.wall.contract import Controls, Dim, Size
from export_gate.wall.errors import UserError
from export_gate.worker.controls.basis import affine_cases
from export_gate.worker.controls.columns import allowed_rows
from export_gate.worker.controls.generate import case_named
from export_gate.worker.controls.sizes import plan_sizes, reference_sizes


def x(*shape: str | int):
    """A float input."""
    return tensor("float32", *shape, range=(-4, 4))


def test_a_declared_example_is_the_reference_size():
    """The example size of a dim is the size of the exported example."""
    assert reference_sizes(contract(BATCH, SIDE, x=x("batch", 1, "side", "side"))) == {"batch": 9, "side": 24}


def test_reference_sizes_differ_between_dims():
    """Two dims of one range get different reference sizes, neither 0, 1 nor the maximum."""
    dims = [Dim(name=name, min=0, max=8) for name in ("a", "b", "c")]
    sizes = reference_sizes(contract(*dims, x=x("a", "b", "c")))
    assert len(set(sizes.values())) == 3
    assert not set(sizes.values()) & {0, 1, 8}


def test_the_reference_size_is_no_constant_axis_length():
    """A dim does not take the length of a constant axis if another middle size is available."""
    assert reference_sizes(contract(Dim(name="n", min=1, max=5), x=x("n", 3))) == {"n": 2}


@pytest.mark.parametrize(("low", "high", "expected"), [(0, 1, 0), (1, 1, 1), (1, 2, 2), (0, 2, 2), (5, 5, 5)])
def test_narrow_ranges_still_have_a_reference_size(low: int, high: int, expected: int):
    """If the range is too narrow to avoid 0, 1 and the maximum, the best available size is taken."""
    assert reference_sizes(contract(Dim(name="n", min=low, max=high), x=x("n")))["n"] == expected


@pytest.mark.parametrize(
    ("low", "high", "step", "expected"),
    [(32, 64, 32, 64), (32, 96, 32, 64), (0, 32, 16, 32), (8, 20, 8, 16), (7, 7, 7, 7)],
)
def test_the_reference_size_counts_its_steps(low: int, high: int, step: int, expected: int):
    """0 and 1 steps of multiple-of are avoided like 0 and 1, because torch.export traces the number of steps."""
    side = Dim(name="side", min=low, max=high, multiple_of=step)
    assert reference_sizes(contract(side, x=x("side")))["side"] == expected


@pytest.mark.parametrize(("axis", "expected"), [("n-1", 3), ("2*n-4", 3), ("n+1", 2)])
def test_the_reference_size_makes_no_constant_axis(axis: str, expected: int):
    """No axis of a dim has length 0 or 1 at the reference size if another size is available."""
    assert reference_sizes(contract(Dim(name="n", min=2, max=3), x=x("n"), y=x(axis)))["n"] == expected


def test_sizes_go_in_steps():
    """Every size of a dim with multiple-of is a multiple inside the range."""
    plan = plan_sizes(contract(Dim(name="n", min=3, max=29, multiple_of=4), x=x("n")))
    found = [sizes["n"] for sizes in (*plan.boundary, *plan.inner)]
    assert sorted(found) == [4, 8, 16, 24, 28]


def test_two_dims_get_their_ends_apart_and_together():
    """Middle, all-min and all-max come first, then each dim's ends with the other dim in the middle."""
    plan = plan_sizes(contract(Dim(name="a", min=0, max=4), Dim(name="b", min=1, max=9), x=x("a", "b")))
    assert plan.boundary == (
        {"a": 2, "b": 5},
        {"a": 0, "b": 1},
        {"a": 4, "b": 9},
        {"a": 0, "b": 5},
        {"a": 4, "b": 5},
        {"a": 2, "b": 1},
        {"a": 2, "b": 9},
    )
    assert plan.inner == (
        {"a": 1, "b": 5},
        {"a": 3, "b": 5},
        {"a": 2, "b": 2},
        {"a": 2, "b": 8},
        {"a": 3, "b": 3},
    )
    assert plan.pairs == ({"a": 0, "b": 9}, {"a": 4, "b": 1})
    assert (plan.smallest, plan.largest) == ({"a": 0, "b": 1}, {"a": 4, "b": 9})


def test_a_separate_export_gets_the_ends_of_the_other_dims():
    """In a separate export, its size is combined with the other dims' ends and their neighbours."""
    dims = Dim(name="a", min=2, max=9, separate=(1,)), Dim(name="b", min=2, max=8), Dim(name="c", min=0, max=80)
    plan = plan_sizes(contract(*dims, x=x("a", "b", "c")))
    assert {sizes["a"] for sizes in plan.beside} == {1}
    middle = plan.separate[0]
    assert {(s["b"], s["c"]) for s in plan.beside} >= {(2, 0), (8, 80), (3, middle["c"]), (middle["b"], 79)}


def test_declared_sizes_replace_those_of_their_dim():
    """`controls.sizes` replaces all sizes of its dim; other dims keep theirs."""
    plan = plan_sizes(contract(BATCH, controls=Controls(sizes={"batch": (2, 5)}), x=x("batch")))
    assert {sizes["batch"] for sizes in (*plan.boundary, *plan.inner, *plan.pairs)} == {2, 5}


def test_a_static_dim_stays():
    """A static dim has one size in every case."""
    static = Dim(name="s", min=3, max=9, mode="static")
    plan = plan_sizes(contract(BATCH, static, x=x("batch", "s")))
    assert {sizes["s"] for sizes in (*plan.boundary, *plan.inner, *plan.pairs)} == {6}


def test_separate_sizes_have_cases_of_their_own():
    """Sizes with a separate export are tried with the other dims in the middle."""
    dim = Dim(name="batch", min=2, max=16, separate=(1,))
    plan = plan_sizes(contract(dim, SIDE, x=x("batch", "side")))
    assert plan.separate == ({"batch": 1, "side": 24},)


def test_no_size_is_tried_twice():
    """The plan has no entry twice."""
    plan = plan_sizes(contract(Dim(name="a", min=1, max=3), Dim(name="b", min=1, max=3), x=x("a", "b")))
    tried = [tuple(sizes.items()) for sizes in (*plan.boundary, *plan.inner, *plan.pairs, *plan.separate)]
    assert len(set(tried)) == len(tried)


def test_a_model_without_dims_has_one_size():
    """Without dims there is one entry, and it is empty."""
    plan = plan_sizes(contract(x=x(2, 3)))
    assert (plan.boundary, plan.inner, plan.pairs, plan.separate) == (({},), (), (), ())


def test_a_range_without_a_multiple_is_the_users_mistake():
    """A range that holds no multiple of the step is refused."""
    with pytest.raises(UserError) as caught:
        reference_sizes(contract(Dim(name="n", min=5, max=7, multiple_of=8), x=x("n")))
    assert caught.value.text == (
        "models.m.dims.n: expected a multiple of 8 in 5..7, there is none\nWiden the range or change `multiple-of`."
    )


def test_a_declared_size_outside_the_range_is_the_users_mistake():
    """`controls.sizes` may only name sizes that the dim allows."""
    with pytest.raises(UserError) as caught:
        plan_sizes(contract(SIDE, controls=Controls(sizes={"side": (8, 12)}), x=x("side")))
    assert caught.value.text == (
        "models.m.controls.sizes.side: expected sizes in 8..64 in steps of 8, got 12\n"
        "Widen the dim's range or drop the size."
    )


def test_a_dim_of_millions_of_sizes_needs_no_list_of_them():
    """Samples of sound have such a range, and the largest allowed one would not fit in memory."""
    dims = [Dim(name=name, min=1, max=10_000_000) for name in ("rows", "samples")]
    promised = contract(*dims, x=x("rows", "samples"))
    tracemalloc.start()
    plan = plan_sizes(promised)
    affine_cases(promised, plan.middle)
    case_named(promised, "normal-1@rows=9999999,samples=3")
    assert allowed_rows(promised, Size(factors={"rows": 1}), 3) == (1, 2, 3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
    assert {"rows": 5_000_001, "samples": 5_000_001} in plan.inner
