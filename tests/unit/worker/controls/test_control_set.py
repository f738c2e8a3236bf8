from pathlib import Path
from typing import Any

import pytest
import torch
from control_samples import BATCH, SIDE, contract, tensor

from export_gate.wall.contract import ConstantSpec, Controls, DictSpec, Dim, ModelContract, SequenceSpec
from export_gate.worker.controls.build import build_control_set, digest, reference_sizes, reference_values
from export_gate.worker.leaves.values import flatten

BASE = Path()


def glyph(**controls: Any):
    """A model of gray images with two dims."""
    image = tensor("float32", "batch", 1, "side", "side", range=(0, 1))
    return contract(BATCH, SIDE, controls=Controls(**controls), x=image)


def names(model: ModelContract):
    """The names of the model's control set."""
    return [case.name for case in build_control_set(model, BASE).cases]


@pytest.mark.slow
def test_the_control_set_is_fixed():
    """The same contract gives the same inputs, bit for bit, on every machine."""
    mask, ids = tensor("bool", "batch", 5), tensor("int64", "batch", 5, range=(0, 30521))
    half = tensor("bfloat16", "batch", 3, range=(-4000, 4000), nonfinite=("nan", "inf"))
    cases = build_control_set(contract(BATCH, x=half, ids=ids, mask=mask), BASE).cases
    assert digest(cases) == "4863755bed94770ed7ab86ddabe1a9177ee5010444565c3cffd62cbf151336f3"
    assert digest(cases) == digest(build_control_set(contract(BATCH, x=half, ids=ids, mask=mask), BASE).cases)


def test_another_seed_gives_other_values_under_the_same_names():
    """The seed changes values, not names."""
    one, other = (build_control_set(glyph(seed=seed), BASE).cases for seed in (1, 2))
    assert [case.name for case in one] == [case.name for case in other]
    assert digest(one) != digest(other)


def test_names_say_family_index_and_sizes():
    """A case's name has its family, its number and the size of every dim."""
    found = names(glyph())
    assert found[:4] == [
        "normal-1@batch=9,side=24",
        "normal-1@batch=2,side=8",
        "normal-1@batch=16,side=64",
        "normal-1@batch=2,side=24",
    ]
    assert "halves-1@batch=9,side=24" in found
    assert "channels-last-1@batch=9,side=24" in found
    assert names(contract(x=tensor("float32", 2, range=(-4, 4))))[0] == "normal-1"


def test_names_are_unique():
    """No two cases share a name."""
    found = names(glyph())
    assert len(set(found)) == len(found)


def test_make_builds_fresh_values():
    """What a model writes into its input does not affect the next call."""
    for case in build_control_set(glyph(), BASE).cases:
        first = case.make()["x"]
        copy = first.clone()
        first.add_(1)
        assert torch.equal(case.make()["x"], copy)


def test_a_small_model_has_some_dozens_of_cases():
    """There are enough cases to catch faults, and few enough to be fast."""
    assert 30 <= len(names(glyph())) <= 60


def test_the_limit_keeps_the_first_cases_and_counts_the_rest():
    """Beyond `controls.limit` cases are dropped from the end, and counted."""
    whole, cut = build_control_set(glyph(), BASE), build_control_set(glyph(limit=7), BASE)
    assert cut.cases[-1].name == whole.cases[6].name
    assert len(cut.cases) == 7
    assert (cut.left_out, cut.left_out_reason) == (len(whole.cases) - 7, "beyond controls.limit of 7 cases")
    assert (whole.left_out, whole.left_out_reason) == (0, "")


def test_random_sets_the_number_of_seeded_draws():
    """`controls.random: 3` gives a third draw of the seeded families; zeros have one only."""
    found = names(glyph(random=3))
    assert "halves-3@batch=9,side=24" in found
    assert "zeros-2@batch=9,side=24" not in found
    assert not any(name.startswith("halves-2") for name in names(glyph(random=1)))


def test_undeclared_ranges_are_listed():
    """Tensor inputs without range or values are named; bool inputs need none."""
    model = contract(
        x=tensor("float32", 2), ids=tensor("int64", 2), mask=tensor("bool", 2), ok=tensor("uint8", 2, values=(0, 1))
    )
    found = build_control_set(model, BASE)
    assert (found.undeclared_range, found.undeclared_integers) == (("x",), ("ids",))


def test_mask_families_meet_normal_floats():
    """While a mask takes one of its families, floats are normal."""
    model = contract(BATCH, x=tensor("float32", "batch", 3, range=(-4, 4)), mask=tensor("bool", "batch", 3))
    case = next(c for c in build_control_set(model, BASE).cases if c.name == "row-off-1@batch=9")
    values = case.make()
    assert (~values["mask"]).all(1).sum().item() == 1
    assert values["x"].unique().numel() == 27


def test_integer_extremes_meet_normal_floats():
    """While integers are at their bounds, floats are normal."""
    model = contract(x=tensor("float32", 6, range=(-4, 4)), ids=tensor("int64", 6, range=(2, 9)))
    cases = {case.name: case for case in build_control_set(model, BASE).cases}
    values = cases["integer-high-1"].make()
    assert values["ids"].tolist() == [9] * 6
    assert values["x"].unique().numel() == 6
    assert cases["high-1"].make()["x"].unique().tolist() == [4]


def test_inputs_declared_alike_tie_in_one_case():
    """Two inputs with the same declaration get equal values in `same-1`, and different ones elsewhere."""
    pair = [tensor("float32", 4, range=(-4, 4)) for _ in range(2)]
    cases = {case.name: case for case in build_control_set(contract(x=pair[0], y=pair[1]), BASE).cases}
    same, normal = cases["same-1"].make(), cases["normal-1"].make()
    assert torch.equal(same["x"], same["y"])
    assert not torch.equal(normal["x"], normal["y"])


def test_several_inputs_mix_their_families():
    """`mixed` gives each input a family of its own."""
    model = contract(x=tensor("float32", 4, range=(-4, 4)), y=tensor("int64", 4, range=(0, 9)))
    assert {"mixed-1", "mixed-2"} <= set(names(model))


def test_nested_inputs_and_constants_are_built():
    """Lists, tuples, dicts and constants arrive as declared."""
    part = tensor("float32", "batch", 3, range=(-4, 4))
    model = contract(
        BATCH,
        xs=SequenceSpec(kind="list", items=(part, part)),
        pair=SequenceSpec(kind="tuple", items=(part, ConstantSpec(value=2))),
        state=DictSpec(items={"h": part}),
        scale=ConstantSpec(value=0.1),
    )
    values = reference_values(model, reference_sizes(model))
    assert isinstance(values["xs"], list)
    assert isinstance(values["pair"], tuple)
    assert values["pair"][1] == 2
    assert values["scale"] == 0.1
    assert [leaf.name for leaf in flatten(values)] == ["xs.0", "xs.1", "pair.0", "pair.1", "state.h", "scale"]


def test_size_0_is_tried_where_the_range_has_it():
    """An empty batch is one case, not one for each family."""
    model = contract(Dim(name="n", min=0, max=5), x=tensor("float32", "n", 3, range=(-4, 4)))
    assert [name for name in names(model) if name.endswith("@n=0")] == ["normal-1@n=0"]


def test_separate_sizes_are_tried_with_every_family():
    """A size with a separate export gets the plain draw early and all families later."""
    dim = Dim(name="batch", min=2, max=16, separate=(1,))
    cases = build_control_set(contract(dim, x=tensor("float32", "batch", 3, range=(-4, 4))), BASE).cases
    alone = [case.family for case in cases if case.sizes == {"batch": 1}]
    assert alone[0] == "normal"
    assert {"halves", "offset", "sweep", "uniform", "zeros"} <= set(alone)


def test_layout_variants_have_the_values_of_a_plain_case():
    """The non-contiguous and channels-last cases differ from `normal-1` in strides alone."""
    cases = {case.name: case.make()["x"] for case in build_control_set(glyph(), BASE).cases}
    plain = cases["normal-1@batch=9,side=24"]
    strided = cases["noncontiguous-1@batch=9,side=24"]
    assert torch.equal(strided, plain)
    assert strided.stride() != plain.stride()
    assert torch.equal(cases["channels-last-1@batch=9,side=24"], plain)


def test_a_model_of_constants_has_one_case():
    """Without tensor inputs there is one possible call."""
    assert names(contract(scale=ConstantSpec(value=1))) == ["constant-1"]
