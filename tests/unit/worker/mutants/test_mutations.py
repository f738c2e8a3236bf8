"""Small faults of ONNX files: what is planted, that it does what it says, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from export_gate.worker.mutants.anatomy import Anatomy
from export_gate.worker.mutants.plan import plan_mutations
from export_gate.worker.mutants.record import Mutation

HALVES = np.array([-2.5, -1.5, -0.5, -0.2, 0.0, 0.5, 0.7, 1.5, 2.5], np.float32)


def file(
    nodes: Sequence[Any], weights: dict[str, Any] | None = None, outputs: Iterable[str] = ("y",), rank: int = 1
) -> Any:
    """A model of one float input `x`; output types are left to the runtime."""
    shape = ["n"] if rank == 1 else ["n", *range(3, 2 + rank)]
    tensors = [numpy_helper.from_array(np.asarray(values), name) for name, values in (weights or {}).items()]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    returned = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(list(nodes), "g", [given], returned, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def plan(model: Any, seed: int = 0, **sizes: Any) -> tuple[Mutation, ...]:
    """All mutations of a model."""
    return plan_mutations(Anatomy.of(model, Path()), seed, {name: np.asarray(size) for name, size in sizes.items()})


def planted(model: Any, *, change: str, **sizes: Any) -> Any:
    """The model with the one mutation of which these are the words."""
    (mutation,) = [each for each in plan(model, **sizes) if each.change == change]
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    mutation.edit(copy)
    return copy


def returned(model: Any, x: np.ndarray) -> list[Any]:
    """What ONNX Runtime returns."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})


def node(operator: str, *inputs: str, to: str = "y", **attributes: Any) -> Any:
    """One node."""
    return helper.make_node(operator, list(inputs), [to], **attributes)


@pytest.mark.parametrize(
    ("operator", "change", "expected"),
    [
        ("Floor", "-> truncation", np.trunc(HALVES)),
        ("Floor", "-> Ceil", np.ceil(HALVES)),
        ("Round", "-> halves away from zero", np.sign(HALVES) * np.floor(np.abs(HALVES) + 0.5)),
        ("Relu", "-> LeakyRelu", np.where(HALVES < 0, np.float32(0.01) * HALVES, HALVES)),
        ("Relu", "-> ReLU6", np.clip(HALVES, 0, 6)),
        ("Relu", "float32 -> float16 -> float32", np.maximum(HALVES, 0).astype(np.float16)),
    ],
)
def test_variants_compute_what_they_say(operator: str, change: str, expected: np.ndarray):
    """A variant of several nodes is the function that it is named after."""
    (found,) = returned(planted(file([node(operator, "x")]), change=change), HALVES)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_erf_has_the_tanh_form_of_gelu():
    """It differs from erf by less than half a thousandth, as the two forms of GELU do, but not by nothing."""
    model = file([node("Erf", "x")])
    x = np.linspace(-3, 3, 61, dtype=np.float32)
    (exact,), (other,) = returned(model, x), returned(planted(model, change="-> its tanh form"), x)
    assert 1e-4 < np.abs(exact - other).max() < 5e-4


def test_bounds_move_by_one_step():
    """A comparison with a constant is wrong only at that constant."""
    model = file(
        [node("Greater", "x", "bound", to="g"), helper.make_node("Cast", ["g"], ["y"], to=TensorProto.FLOAT)],
        {"bound": np.float32(0.5)},
    )
    above = np.nextafter(np.float32(0.5), np.float32(1))
    x = np.array([0.5, above, np.nextafter(above, np.float32(1))], np.float32)
    assert returned(model, x)[0].tolist() == [0, 1, 1]
    assert returned(planted(model, change="0.5 + 1 ulp"), x)[0].tolist() == [0, 0, 1]
    assert returned(planted(model, change="-> GreaterOrEqual"), x)[0].tolist() == [1, 1, 1]


def test_attributes_that_a_node_does_not_have_get_other_values_too():
    """`keepdims` and `select_last_index` are 1 and 0 by default."""
    changes = {each.change for each in plan(file([node("ArgMax", "x", axis=0)])) if each.kind == "attribute"}
    assert changes == {"keepdims 1 -> 0", "select_last_index 0 -> 1"}


def test_modes_that_say_nothing_are_left_alone():
    """`nearest_mode` has no effect on linear resizing."""
    resize = node("Resize", "x", "", "scales", mode="linear")
    changes = [each.change for each in plan(file([resize], {"scales": np.ones(1, np.float32)}))]
    assert "mode linear -> nearest" in changes
    assert not any(change.startswith(("nearest_mode", "cubic_coeff_a")) for change in changes)


def test_weights_change_in_one_element_one_channel_or_as_a_whole():
    """So do weights in half precision, which a file saved elsewhere may have."""
    weights = np.array([[1.0, 2.0], [3.0, 0.1]], np.float32)
    model = file([node("MatMul", "x", "w")], {"w": weights}, rank=2)
    found = {}
    for each in plan(model):
        if each.change.startswith("w: "):
            copy = onnx.ModelProto()
            copy.CopyFrom(model)
            each.edit(copy)
            found[each.change] = numpy_helper.to_array(copy.graph.initializer[0])
    assert len(found) == 4
    differing = {change: (values != weights).sum() for change, values in found.items()}
    assert sorted(differing.values()) == [1, 1, 2, 4]  # 0.1 is the only one that float16 does not hold
    assert differing["w: one channel * 1.05"] == 2


def test_sizes_are_fixed_where_they_differ_between_inputs():
    """Only the values that the caller measured are fixed."""
    nodes = [node("Shape", "x", to="s"), node("Gather", "s", "zero", to="n"), node("Expand", "one", "n")]
    model = file(nodes, {"zero": np.array([0]), "one": np.float32(1)})
    assert Anatomy.of(model, Path()).sizes() == {"s", "n"}
    fixed = planted(model, change="fixed at [4]", n=[4])
    assert returned(model, HALVES)[0].shape == (9,)
    assert returned(fixed, HALVES)[0].shape == (4,)
    assert not any(each.kind == "operator" for each in plan(model))  # of sizes only what is said of sizes


def test_outputs_are_exchanged_retyped_left_out_and_reordered():
    """The names stay those of the interface."""
    model = file([node("Abs", "x", to="a"), node("Neg", "x", to="b")], outputs=("a", "b"))
    x = np.array([2.0], np.float32)
    assert [value.item() for value in returned(model, x)] == [2.0, -2.0]
    assert [value.item() for value in returned(planted(model, change="outputs a and b exchanged"), x)] == [-2.0, 2.0]
    exchanged = planted(model, change="outputs a and b exchanged")
    assert [value.name for value in exchanged.graph.output] == ["a", "b"]
    assert exchanged.graph.node[0].output[0] == "b"
    assert returned(planted(model, change="output a: float32 -> float64"), x)[0].dtype == np.float64
    assert len(planted(model, change="output b left out").graph.output) == 1
    reordered = planted(model, change="outputs a and b listed in the other order")
    assert [value.name for value in reordered.graph.output] == ["b", "a"]


def test_the_order_is_a_fair_sample_that_the_seed_decides():
    """Each kind has its turn before any has a second one, and in a kind each operator."""
    nodes = [node("Add", "x", "w", to="h"), node("Relu", "h", to="r"), node("Mul", "r", "v")]
    model = file(nodes, {"w": np.ones(4, np.float32), "v": np.full(4, 0.3, np.float32)})
    first, again, other = plan(model), plan(model), plan(model, seed=1)
    assert [each.change for each in first] == [each.change for each in again]
    assert [each.change for each in first] != [each.change for each in other]
    assert sorted(each.change for each in first) == sorted(each.change for each in other)
    kinds = {each.kind for each in first}
    assert {each.kind for each in first[: len(kinds)]} == kinds
    operators = [each.operator for each in first if each.kind == "operator"]
    assert set(operators[:3]) == {"Add", "Relu", "Mul"}


def test_every_mutation_changes_the_model_or_says_nothing():
    """None of them raises, whatever it is applied to."""
    nodes = [
        node("Pad", "x", "pads", to="p"), node("Slice", "p", "from", "to", to="s"),
        node("Reshape", "s", "shape", to="r"),
        node("ReduceMean", "r", "axes", to="m"), node("Softmax", "m", to="q", axis=-1), node("Mul", "q", "factor"),
    ]  # fmt: skip
    weights = {
        "pads": np.array([1, 2]), "from": np.array([1]), "to": np.array([2**63 - 1]), "shape": np.array([-1, 2]),
        "axes": np.array([0]), "factor": np.float32(0.3),
    }  # fmt: skip
    model = file(nodes, weights)
    found = plan(model)
    assert len(found) > 15
    for each in found:
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        each.edit(copy)
        assert copy.graph != model.graph, each.change
