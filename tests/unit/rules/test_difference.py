"""What the interface lock calls a change, and for whom it breaks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from export_gate.lock.file import lock_text, parse_lock
from export_gate.rules.lock.difference import Difference, differences
from export_gate.rules.lock.record import Lock, LockedDim, LockedModel, LockedTarget, LockedTensor, Margin
from export_gate.rules.lock.sizes import Sizes

X = LockedTensor(name="x", dtype="float32", shape=("batch", "3"), range=(0.0, 1.0))
IDS = LockedTensor(name="ids", dtype="int64", shape=("batch", "2*seq+1"))
LOGITS = LockedTensor(name="logits", dtype="float32", shape=("batch", "10"))
MODEL = LockedModel(
    inputs=(X, IDS),
    outputs=(LOGITS,),
    dims={"batch": LockedDim(min=1, max=16), "seq": LockedDim(min=1, max=8)},
    targets={"onnx": LockedTarget(opsets={"ai.onnx": 20}), "pt2": LockedTarget()},
    parameters=30,
)


def changed(**fields: Any) -> LockedModel:
    """MODEL with what `fields` replace."""
    return replace(MODEL, **fields)


def dims(**fields: LockedDim) -> LockedModel:
    """MODEL with other dims."""
    return replace(MODEL, dims={**MODEL.dims, **fields})


def tensor(old: LockedTensor, **fields: Any) -> LockedTensor:
    """A tensor with what `fields` replace."""
    return replace(old, **fields)


BREAKING = {
    "input gone": (changed(inputs=(X,)), ["input 'ids' is gone", "callers that pass it"]),
    "input new": (
        changed(inputs=(X, IDS, LockedTensor(name="mask", dtype="bool", shape=("batch", "3")))),
        ["input 'mask' is new", "callers that do not pass it"],
    ),
    "input renamed": (
        changed(inputs=(tensor(X, name="image"), IDS)),
        ["input 'x' is now called 'image'", "callers that pass it by name"],
    ),
    "inputs swapped": (
        changed(inputs=(IDS, X)),
        ["inputs in the order x, ids before, ids, x now", "callers that pass them by position"],
    ),
    "input dtype": (
        changed(inputs=(tensor(X, dtype="float16"), IDS)),
        ["input 'x': float32 before, float16 now", "callers that pass float32"],
    ),
    "input rank": (
        changed(inputs=(tensor(X, shape=("batch", "3", "1")), IDS)),
        ["input 'x': shape [batch, 3] before, shape [batch, 3, 1] now", "every caller that passes it"],
    ),
    "static size": (
        changed(inputs=(tensor(X, shape=("batch", "4")), IDS)),
        ["input 'x', axis 1: 3 before, 4 now", "callers that pass size 3"],
    ),
    "dim to static": (
        changed(inputs=(X, tensor(IDS, shape=("batch", "3")))),
        ["input 'ids', axis 1: 2*seq+1 (3..17 in steps of 2) before, 3 now", "callers that pass size 5"],
    ),
    "values narrower": (
        changed(inputs=(tensor(X, range=(0.0, 0.5)), IDS)),
        ["input 'x': values 0..1 before, 0..0.5 now", "callers that pass 1"],
    ),
    "minimum raised": (
        dims(batch=LockedDim(min=2, max=16)),
        ["dim 'batch': 1..16 before, 2..16 now", "callers that pass batch=1"],
    ),
    "maximum lowered": (
        dims(batch=LockedDim(min=1, max=8)),
        ["dim 'batch': 1..16 before, 1..8 now", "callers that pass batch=9"],
    ),
    "steps": (
        dims(batch=LockedDim(min=4, max=16, multiple_of=4)),
        ["dim 'batch': 1..16 before, 4..16 in steps of 4 now", "callers that pass batch=1"],
    ),
    "shared dim": (
        replace(changed(inputs=(X, tensor(IDS, shape=("batch", "batch")))), dims={"batch": LockedDim(min=1, max=16)}),
        [
            "x[0] and ids[1] had dims of their own before, and share 'batch' now",
            "callers that pass them in different sizes",
        ],
    ),
    "output gone": (
        changed(outputs=(tensor(LOGITS, name="a", dtype="int64"), tensor(LOGITS, name="b"))),
        ["output 'logits' is gone", "callers that use it"],
    ),
    "output renamed": (
        changed(outputs=(tensor(LOGITS, name="scores"),)),
        ["output 'logits' is now called 'scores'", "callers that use it by name"],
    ),
    "output first": (
        changed(outputs=(tensor(LOGITS, name="aux"), LOGITS)),
        ["output 'aux' is new, before others", "callers that use outputs by position"],
    ),
    "output dtype": (
        changed(outputs=(tensor(LOGITS, dtype="float16"),)),
        ["output 'logits': float32 before, float16 now", "callers that expect float32"],
    ),
    "output size": (
        changed(outputs=(tensor(LOGITS, shape=("batch", "11")),)),
        ["output 'logits', axis 1: 10 before, 11 now", "callers that rely on its size"],
    ),
    "output rank": (
        changed(outputs=(tensor(LOGITS, shape=("batch",)),)),
        ["output 'logits': shape [batch, 10] before, shape [batch] now", "every caller that uses it"],
    ),
    "target gone": (
        changed(targets={"pt2": LockedTarget()}),
        ["the target is gone", "callers that load its artifact"],
    ),
    "kind of a target": (
        changed(targets={**MODEL.targets, "onnx": LockedTarget(kind="pt2")}),
        ["kind onnx before, pt2 now", "callers that load its artifact"],
    ),
    "opset raised": (
        changed(targets={**MODEL.targets, "onnx": LockedTarget(opsets={"ai.onnx": 21})}),
        ["opset ai.onnx 20 before, 21 now", "runtimes that support ai.onnx only up to 20"],
    ),
    "operator domain": (
        changed(targets={**MODEL.targets, "onnx": LockedTarget(opsets={"ai.onnx": 20, "com.microsoft": 1})}),
        ["operator domain com.microsoft is new", "runtimes that do not have it"],
    ),
}
ADDITIVE = {
    "output last": (
        changed(outputs=(LOGITS, tensor(LOGITS, name="aux"))),
        "output 'aux' is new",
    ),
    "wider": (dims(batch=LockedDim(min=1, max=32)), "dim 'batch': 1..16 before, 1..32 now"),
    "separate": (
        dims(batch=LockedDim(min=1, max=16, separate=(64,))),
        "dim 'batch': 1..16 before, 1..16 and 64 now",
    ),
    "static to dim": (
        replace(
            changed(inputs=(tensor(X, shape=("batch", "width")), IDS)),
            dims={**MODEL.dims, "width": LockedDim(min=2, max=4)},
        ),
        "input 'x', axis 1: 3 before, width (2..4) now",
    ),
    "values wider": (
        changed(inputs=(tensor(X, range=(-1.0, 1.0)), IDS)),
        "input 'x': values 0..1 before, -1..1 now",
    ),
    "dim renamed": (
        changed(
            inputs=(tensor(X, shape=("n", "3")), tensor(IDS, shape=("n", "2*seq+1"))),
            outputs=(tensor(LOGITS, shape=("n", "10")),),
            dims={"n": LockedDim(min=1, max=16), "seq": LockedDim(min=1, max=8)},
        ),
        "dim 'batch' is now called 'n'",
    ),
    "target new": (changed(targets={**MODEL.targets, "aoti": LockedTarget()}), "the target is new"),
    "target of another name": (
        changed(targets={**MODEL.targets, "half": LockedTarget(kind="onnx", opsets={"ai.onnx": 17})}),
        "the target is new",
    ),
    "opset lowered": (
        changed(targets={**MODEL.targets, "onnx": LockedTarget(opsets={"ai.onnx": 18})}),
        "opset ai.onnx 20 before, 18 now",
    ),
    "parameters": (changed(parameters=31), "parameters: 30 before, 31 now"),
}


@pytest.mark.parametrize("name", BREAKING)
def test_a_breaking_change_says_what_and_whom(name: str):
    """If something that a caller relied on is gone, the difference names it, before and now, and who breaks."""
    after, words = BREAKING[name]

    assert words in [[found.what, found.breaks] for found in differences(MODEL, after)]


@pytest.mark.parametrize("name", ADDITIVE)
def test_an_additive_change_breaks_nobody(name: str):
    """It is the only difference, and existing callers are not affected."""
    after, what = ADDITIVE[name]

    assert [(found.what, found.breaks) for found in differences(MODEL, after)] == [(what, "")]


def test_each_target_of_a_kind_is_compared_by_its_name():
    """Of two ONNX files, one is gone and the other has another opset."""
    before = changed(targets={name: LockedTarget(kind="onnx", opsets={"ai.onnx": 17}) for name in ("half", "old")})
    after = changed(targets={"old": LockedTarget(kind="onnx", opsets={"ai.onnx": 18})})
    assert [(found.target, found.what) for found in differences(before, after)] == [
        ("half", "the target is gone"),
        ("old", "opset ai.onnx 17 before, 18 now"),
    ]


def test_one_change_is_told_once():
    """A narrower dim is one difference, however many axes it has."""
    assert list(differences(MODEL, dims(batch=LockedDim(min=2, max=16)))) == [
        Difference(what="dim 'batch': 1..16 before, 2..16 now", breaks="callers that pass batch=1")
    ]


def test_a_size_that_keeps_an_export_of_its_own_is_still_accepted():
    """From 1..16 to 2..16 with a separate export at 1, nobody breaks and nothing is reported."""
    assert list(differences(MODEL, dims(batch=LockedDim(min=2, max=16, separate=(1,))))) == []


@pytest.mark.parametrize("axis", ["seq+past", "past+seq"])
def test_a_dim_of_one_size_does_not_fill_the_steps_of_another(axis: str):
    """Eight steps on from 12, 20 is the next size of the sum, so that nobody has passed 13."""
    before = replace(
        changed(inputs=(replace(X, shape=(axis, "3")),)),
        dims={"past": LockedDim(min=4, max=4), "seq": LockedDim(min=8, max=64, multiple_of=8)},
    )
    after = replace(
        changed(inputs=(replace(X, shape=("seq+4", "3")),)), dims={"seq": LockedDim(min=8, max=64, multiple_of=8)}
    )
    assert not any(difference.breaks for difference in differences(before, after))


def test_outputs_that_were_not_observed_are_not_gone():
    """A model that failed before eager ran has no outputs to compare; it fails by another rule."""
    assert list(differences(MODEL, changed(outputs=(), parameters=0))) == []


def test_an_unknown_size_of_an_output_is_not_compared():
    """`?` means that nothing is known."""
    assert list(differences(MODEL, changed(outputs=(tensor(LOGITS, shape=("batch", "?")),)))) == []


names = st.sampled_from(["x", "ids", "state.hidden", "pyramid.0"])
sizes = st.one_of(st.sampled_from(["batch", "seq", "2*seq+1", "?"]), st.integers(0, 64).map(str))
tensors = st.builds(
    LockedTensor,
    name=names,
    dtype=st.sampled_from(["float32", "int64"]),
    shape=st.lists(sizes, max_size=3).map(tuple),
    range=st.none() | st.tuples(st.floats(-9, 0), st.floats(0, 9)),
)
locked_dims = st.builds(
    lambda low, more, step, apart: LockedDim(
        min=low * step, max=(low + more) * step, multiple_of=step, separate=tuple(apart)
    ),
    st.integers(0, 5), st.integers(0, 40), st.integers(1, 4), st.lists(st.integers(0, 99), max_size=2),
)  # fmt: skip
targets = st.dictionaries(
    st.sampled_from(["pt2", "onnx"]),
    st.builds(
        LockedTarget,
        kind=st.sampled_from(["", "onnx"]),
        opsets=st.dictionaries(st.sampled_from(["ai.onnx", "com.microsoft"]), st.integers(18, 25)),
        sizes=st.dictionaries(st.just("main"), st.integers(1, 10**12)),
        margins=st.dictionaries(names, st.builds(Margin, measured=st.floats(0, 1), allowed=st.floats(0, 1))),
    ),
)
unique = st.lists(tensors, max_size=3, unique_by=lambda t: t.name).map(tuple)
models = st.builds(
    LockedModel,
    inputs=unique,
    outputs=unique,
    dims=st.fixed_dictionaries({"batch": locked_dims, "seq": locked_dims}),
    targets=targets,
    parameters=st.integers(0, 10**12),
    weights_bytes=st.integers(0, 10**12),
)


@given(model=models)
@settings(max_examples=200, deadline=None)
def test_an_interface_differs_in_nothing_from_itself(model: LockedModel):
    """Without changes there is no difference, also after a round trip through the file."""
    (again,) = parse_lock(lock_text(Lock(models={"m": model})).encode(), "x.lock").models.values()

    assert again == model
    assert list(differences(model, again)) == []


@pytest.mark.slow
@given(before=models, after=models)
@settings(max_examples=200, deadline=None)
def test_any_two_interfaces_can_be_compared(before: LockedModel, after: LockedModel):
    """Whatever two locks contain, the comparison ends and has words."""
    for found in differences(before, after):
        assert found.what


@given(before=locked_dims, after=locked_dims)
@settings(max_examples=300, deadline=None)
def test_a_narrower_range_always_names_a_size_that_is_missing(before: LockedDim, after: LockedDim):
    """The result equals a comparison of all sizes one by one."""
    old, new = (Sizes(low=d.min, high=d.max, step=d.multiple_of, others=d.separate) for d in (before, after))
    missing = [size for size in range(300) if size in old and size not in new]

    assert old.first_missing(new) in (missing or [None])
