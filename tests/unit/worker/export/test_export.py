"""Contracts to torch's dynamic shapes, and programs back to the contract's dims."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from worker_samples import contract, tensor

from export_gate.wall.contract import ConstantSpec, DictSpec, Dim, ModelContract, SequenceSpec, make_target
from export_gate.wall.observation import DimFound, Failure
from export_gate.worker.controls.build import reference_sizes, reference_values
from export_gate.worker.export.axes import found_dims, is_static
from export_gate.worker.export.program import (
    Exported,
    dynamic_shapes,
    export_program,
    in_contract_words,
    torch_names,
)
from export_gate.worker.model.factory import bind, forward_parameters
from export_gate.worker.process.failures import failure_of

pytestmark = pytest.mark.slow

BATCH = Dim(name="batch", min=2, max=16)
SEQ = Dim(name="seq", min=2, max=8)
SIDE = Dim(name="side", min=8, max=64, multiple_of=8)
SYMPY_NAMES = ("S", "N", "I", "E", "Q", "O", "pi", "beta", "gamma", "zeta", "rf", "test", "oo", "lambda", "is", "None")
"""What sympy makes something else of than a symbol: constants, functions, registries, Python's own words."""


class Rows(nn.Module):
    """The sum of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, ...] to float32[batch]."""
        return x.flatten(1).sum(1)


def export(module: nn.Module, promised: ModelContract, **separate: int) -> Exported:
    """The program of a model."""
    parameters = forward_parameters(module)
    sizes = {**reference_sizes(promised), **separate}
    call = bind(reference_values(promised, sizes), parameters)
    return export_program(module, call, promised, parameters, separate)


def shapes(module: nn.Module, promised: ModelContract, **separate: int) -> dict[str, Any]:
    """Torch's dynamic shapes of a model."""
    return dynamic_shapes(promised, forward_parameters(module), separate)


def found(module: nn.Module, promised: ModelContract, **separate: int) -> tuple[DimFound, ...]:
    """The dims of a model as its program has them."""
    exported = export(module, promised, **separate)
    return found_dims(exported.program, exported.axes, promised)


def bounds(dim: Any) -> tuple[str, int, int]:
    """A torch Dim's name and range."""
    return dim.__name__, dim.min, dim.max


def test_no_weight_wants_gradients():
    """Whoever exports: a decomposition of weights that do may take another kernel than the one that was checked."""
    module = nn.Linear(4, 2)
    program = export(module, contract({"input": tensor("n", 4)}, Dim(name="n", min=2, max=8))).program
    assert not any(weight.requires_grad for weight in (*module.parameters(), *program.parameters()))


def test_plain_dim_is_a_torch_dim_of_the_same_name_and_range():
    """`batch: {min: 2, max: 16}` exports as Dim("batch", min=2, max=16); constant axes are static."""
    given = shapes(Rows(), contract({"x": tensor("batch", 3)}, BATCH))
    assert given.keys() == {"x"}
    assert given["x"].keys() == {0}
    assert bounds(given["x"][0]) == ("batch", 2, 16)


def test_axes_of_one_dim_share_one_torch_dim():
    """The same dim on two inputs is one torch Dim, so that torch requires equal sizes."""

    class Pair(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

    given = shapes(Pair(), contract({"x": tensor("batch", 3), "y": tensor("batch", 3)}, BATCH))
    assert given["x"][0] is given["y"][0]


@pytest.mark.parametrize(
    ("axis", "name", "low", "high"),
    [
        ("2*seq+1", "2*seq + 1", 5, 17),
        ("3*seq", "3*seq", 6, 24),
        ("seq-1", "seq - 1", 1, 7),
        ("seq+4", "seq + 4", 6, 12),
    ],
)
def test_derived_axis_is_a_derived_torch_dim(axis: str, name: str, low: int, high: int):
    """`2*seq+1` is derived from the torch Dim of `seq`, with the range that follows."""
    given = shapes(Rows(), contract({"x": tensor("seq", axis)}, SEQ))
    assert bounds(given["x"][1]) == (name, low, high)
    assert given["x"][1].root is given["x"][0]


def test_multiple_of_counts_steps():
    """`multiple-of: 8` is eight times a torch Dim that counts the steps."""
    axis = shapes(Rows(), contract({"x": tensor("batch", "side")}, BATCH, SIDE))["x"][1]
    assert bounds(axis) == ("8*_side", 8, 64)
    assert bounds(axis.root) == ("_side", 1, 8)


def test_multiple_of_rounds_its_ends_inwards():
    """A range of 5..30 in steps of 8 is 8..24."""
    dim = Dim(name="side", min=5, max=30, multiple_of=8)
    assert bounds(shapes(Rows(), contract({"x": tensor("batch", "side")}, BATCH, dim))["x"][1]) == ("8*_side", 8, 24)


def test_expression_over_steps():
    """`2*side+1` with `multiple-of: 8` is derived from the steps."""
    axis = shapes(Rows(), contract({"x": tensor("batch", "2*side+1")}, BATCH, SIDE))["x"][1]
    assert bounds(axis) == ("16*_side + 1", 17, 129)


@pytest.mark.parametrize(
    "dim",
    [
        Dim(name="batch", min=4, max=4),
        Dim(name="batch", min=2, max=16, mode="static"),
        Dim(name="batch", min=5, max=15, multiple_of=8),
    ],
)
def test_dim_with_one_size_is_static(dim: Dim):
    """With min == max, one multiple in the range, or `mode: static`, nothing is dynamic or reported as such."""
    promised = contract({"x": tensor("batch", 3)}, dim)
    assert is_static(dim)
    assert shapes(Rows(), promised) == {"x": {}}
    assert found(Rows(), promised) == ()


def test_auto_dim_leaves_the_relation_to_torch():
    """`mode: auto` gives each axis Dim.AUTO with its own bounds, for expressions too."""
    auto = Dim(name="seq", min=2, max=8, mode="auto")
    given = shapes(Rows(), contract({"x": tensor("seq", "2*seq+1")}, auto))["x"]
    assert [(type(axis).__name__, axis.min, axis.max) for axis in given.values()] == [
        ("_DimHint", 2, 8),
        ("_DimHint", 5, 17),
    ]


def test_separate_dim_is_static_in_its_export():
    """The export for `separate: [1]` fixes that dim and leaves the others dynamic."""
    promised = contract({"x": tensor("batch", "seq")}, BATCH, SEQ)
    assert shapes(Rows(), promised, batch=1)["x"].keys() == {1}


class Nested(nn.Module):
    """A list, a tuple and a dict of tensors around constants."""

    def forward(
        self, parts: list[torch.Tensor], pair: tuple[torch.Tensor, float], named: dict[str, Any], mode: str = "mean"
    ) -> torch.Tensor:
        """Everything of length batch, summed."""
        total = (
            parts[0].sum(1) + parts[1].sum(1) + pair[0].sum(1) * pair[1] + named["b"].sum(1) + named["a"]["c"].sum(1)
        )
        return total if mode == "sum" else total / 5


def nested_contract() -> ModelContract:
    """A contract for Nested; the dict's keys are not in alphabetical order, and the constant is called as an input."""
    return contract(
        {
            "parts": SequenceSpec(kind="list", items=(tensor("batch", 3), tensor("batch", "seq"))),
            "pair": SequenceSpec(kind="tuple", items=(tensor("batch", 5), ConstantSpec(value=0.5))),
            "named": DictSpec(items={"b": tensor("batch", 6), "a": DictSpec(items={"c": tensor("batch", 7)})}),
            "mode": ConstantSpec(value="parts_0"),
        },
        BATCH,
        SEQ,
    )


def test_nested_inputs_have_the_structure_of_the_call():
    """Lists, tuples and dicts of shapes as the call has them; a constant is None."""
    given = shapes(Nested(), nested_contract())
    assert type(given["parts"]) is list
    assert [sorted(axes) for axes in given["parts"]] == [[0], [0, 1]]
    assert type(given["pair"]) is tuple
    assert given["pair"][1] is None
    assert list(given["named"]) == ["b", "a"]
    assert given["mode"] is None


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
def test_axes_of_nested_inputs_are_found_in_the_program(strict: bool):
    """Every axis of a list, tuple or dict is named by its path, whatever constants come between."""
    promised = nested_contract()
    if strict:
        promised = contract(promised.inputs, BATCH, SEQ, strict=True)
    axes = {axis.axis: (axis.dim, axis.found) for axis in found(Nested(), promised)}
    assert axes == {
        "parts.0[0]": ("batch", (2, 16)),
        "parts.1[0]": ("batch", (2, 16)),
        "parts.1[1]": ("seq", (2, 8)),
        "pair.0[0]": ("batch", (2, 16)),
        "named.b[0]": ("batch", (2, 16)),
        "named.a.c[0]": ("batch", (2, 16)),
    }


class OpenEnded(nn.Module):
    """Any number of tensors, by position or by name."""

    def forward(self, x: torch.Tensor, *rest: torch.Tensor, scale: float = 1.0, **named: torch.Tensor) -> torch.Tensor:
        """The row sums of all, with those by name counted twice."""
        return sum((y.sum(1) for y in rest), x.sum(1)) * scale + sum((2 * y.sum(1) for y in named.values()), 0)


class ByName(nn.Module):
    """Any number of tensors by name."""

    def forward(self, x: torch.Tensor, *, bias: torch.Tensor, **named: torch.Tensor) -> torch.Tensor:
        """The row sums of all, with the bias taken off."""
        return x.sum(1) - bias.sum(1) + sum((y.sum(1) for y in named.values()), 0)


@pytest.mark.slow
def test_arguments_of_star_args_are_a_tuple_of_shapes():
    """What forward takes as `*rest` gets its shapes under that name; an empty `**named` has no entry."""
    promised = contract({"x": tensor("batch", 3), "a": tensor("batch", "seq"), "b": tensor("batch", 2)}, BATCH, SEQ)
    given = shapes(OpenEnded(), promised)
    assert list(given) == ["x", "rest"]
    assert [sorted(axes) for axes in given["rest"]] == [[0, 1], [0]]
    assert {axis.axis for axis in found(OpenEnded(), promised)} == {"x[0]", "a[0]", "a[1]", "b[0]"}


def test_nothing_for_star_args_that_get_nothing():
    """An open-ended forward that gets only its named parameters is exported with those."""
    promised = contract({"x": tensor("batch", 3), "scale": ConstantSpec(value=2.0)}, BATCH)
    assert list(shapes(OpenEnded(), promised)) == ["x", "scale"]
    assert [axis.axis for axis in found(OpenEnded(), promised)] == ["x[0]"]


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
def test_arguments_through_star_kwargs_are_dynamic(strict: bool):
    """Dims of `**named` arguments are kept, which torch.export alone refuses (2.13)."""
    promised = contract(
        {
            "x": tensor("batch", 3),
            "bias": tensor("batch", 4),
            "left": tensor("batch", "seq"),
            "right": tensor("batch", 2),
        },
        BATCH,
        SEQ,
        strict=strict,
    )
    exported = export(ByName(), promised)
    axes = found_dims(exported.program, exported.axes, promised)
    assert {axis.axis: axis.found for axis in axes} == {
        "x[0]": (2, 16),
        "bias[0]": (2, 16),
        "left[0]": (2, 16),
        "left[1]": (2, 8),
        "right[0]": (2, 16),
    }
    call = bind(reference_values(promised, {"batch": 3, "seq": 7}), forward_parameters(ByName()))
    assert torch.equal(exported.program.module()(*call.args, **call.kwargs), ByName()(*call.args, **call.kwargs))


def test_keyword_only_inputs_in_any_order():
    """Keyword-only inputs are bound by name, in the order of the contract, and so are their axes."""

    class Keywords(nn.Module):
        def forward(self, *, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
            return first.sum(1) - second.sum(1)

    promised = contract({"second": tensor("batch", "seq"), "first": tensor("batch", 3)}, BATCH, SEQ)
    assert [axis.axis for axis in found(Keywords(), promised)] == ["second[0]", "second[1]", "first[0]"]


def test_ranges_found_are_those_declared():
    """An untouched dim keeps its range; a derived axis has the range of the axis."""
    axes = found(Rows(), contract({"x": tensor("batch", "2*seq+1")}, BATCH, SEQ))
    assert axes == (
        DimFound(axis="x[0]", dim="batch", declared=(2, 16), found=(2, 16)),
        DimFound(axis="x[1]", dim="seq", declared=(5, 17), found=(5, 17)),
    )


def test_multiple_of_is_found_as_sizes():
    """The program's steps are reported as sizes, from two steps on: torch treats 0 and 1 separately."""
    axes = found(Rows(), contract({"x": tensor("batch", "side")}, BATCH, SIDE))
    assert axes[1] == DimFound(axis="x[1]", dim="side", declared=(8, 64), found=(16, 64))


@pytest.mark.parametrize("mode", ["strict", "auto"])
@pytest.mark.parametrize(("low", "high", "step"), [(1, 2, 1), (16, 32, 16), (0, 2, 1)])
def test_a_dim_of_two_sizes_is_not_specialized(low: int, high: int, step: int, mode: str):
    """A dim of which torch treats all steps but one as constants still has a symbol, and serves both sizes."""
    side = Dim(name="side", min=low, max=high, multiple_of=step, mode=mode)
    promised = contract({"x": tensor("batch", "side")}, BATCH, side)
    exported = export(Rows(), promised)
    axes = found_dims(exported.program, exported.axes, promised)
    assert [axis.specialized for axis in axes] == [False, False]
    for size in (low, high):
        assert exported.program.module()(torch.ones(3, size)).shape == (3,)


def test_fixed_auto_dim_is_found_specialized():
    """A dim that torch could fix, and did, is found with one size."""

    class Fixed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.reshape(9, -1)

    (axis,) = found(Fixed(), contract({"x": tensor("batch", 3)}, Dim(name="batch", min=2, max=16, mode="auto")))
    assert axis == DimFound(axis="x[0]", dim="batch", declared=(2, 16), found=(9, 9), specialized=True)


def test_axis_fixed_by_a_relation_is_found_specialized():
    """An axis whose length is a SymInt with a constant in it is also found with one size."""

    class Equal(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            torch._check(y.shape[0] == 5)
            return x + y.sum()

    auto = Dim(name="seq", min=2, max=8, mode="auto")
    axes = found(Equal(), contract({"x": tensor("batch", 3), "y": tensor("seq")}, BATCH, auto))
    assert [(axis.axis, axis.found, axis.specialized) for axis in axes] == [
        ("x[0]", (2, 16), False),
        ("y[0]", (5, 5), True),
    ]


def test_range_that_a_branch_splits_is_found_narrowed():
    """A size check in forward leaves only the side of the reference input."""

    class Split(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if x.shape[0] > 6 else x

    (axis,) = found(Split(), contract({"x": tensor("batch", 3)}, Dim(name="batch", min=2, max=16, mode="auto")))
    assert (axis.found, axis.specialized) == ((7, 16), False)


def test_separate_dim_is_not_looked_for():
    """In a separate export, nothing is looked for about the fixed dim."""
    axes = found(Rows(), contract({"x": tensor("batch", "seq")}, BATCH, SEQ), batch=1)
    assert [axis.axis for axis in axes] == ["x[1]"]


def test_unused_input_has_axes_too():
    """An input that the program does not use is one of its inputs nevertheless."""

    class Ignoring(nn.Module):
        def forward(self, x: torch.Tensor, unused: torch.Tensor) -> torch.Tensor:
            return x.sum(1)

    axes = found(Ignoring(), contract({"x": tensor("batch", 3), "unused": tensor("batch")}, BATCH))
    assert [axis.axis for axis in axes] == ["x[0]", "unused[0]"]


@pytest.mark.parametrize("name", SYMPY_NAMES)
def test_name_that_means_something_to_sympy_is_not_given_to_torch(name: str):
    """Such a dim gets another name in torch, which sympy reads as a symbol."""
    dim = Dim(name=name, min=2, max=16)
    assert torch_names(contract({"x": tensor(name)}, dim)) == {name: f"_{name}"}


@pytest.mark.parametrize("name", ["batch", "seq", "C", "n", "s", "Height", "side_1"])
def test_other_names_are_kept(name: str):
    """Torch's messages use the contract's name if it is a plain symbol."""
    assert torch_names(contract({}, Dim(name=name, min=2, max=16))) == {name: name}


def test_names_for_torch_do_not_collide():
    """Two dims never become one in torch."""
    dims = [Dim(name=name, min=2, max=16) for name in ("N", "_N", "__N")]
    steps = Dim(name="_side", min=8, max=64, multiple_of=8)
    names = torch_names(contract({}, *dims, steps, SIDE))
    assert names == {"N": "___N", "_N": "_N", "__N": "__N", "_side": "__side", "side": "___side"}


class Added(nn.Module):
    """Two inputs whose lengths must be equal."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The sum."""
        return x + y


@pytest.mark.slow
@pytest.mark.parametrize("name", SYMPY_NAMES)
def test_broken_relation_is_told_in_the_contracts_names(name: str):
    """For a dim named like a sympy function, torch explains the relation, and the failure has the contract's name."""
    promised = contract(
        {"x": tensor(name, 3), "y": tensor("other", 3)},
        Dim(name=name, min=2, max=16, example=4),
        Dim(name="other", min=2, max=16, example=4),
    )
    with pytest.raises(Exception, match="Constraints violated") as raised:
        export(Added(), promised)
    failure = in_contract_words(failure_of(raised.value, "export", ()), promised)
    assert (
        f"The values of other = L['y'].size()[0] and {name} = L['x'].size()[0] must always be equal" in failure.message
    )
    assert failure.suggestions == (f"other = {name}",)
    assert f"_{name}" not in failure.message + failure.trace


@pytest.mark.parametrize("name", ["N", "beta"])
def test_derived_axis_of_a_dim_with_such_a_name(name: str):
    """`2*N+1` works like any other expression."""
    promised = contract({"x": tensor(name, f"2*{name}+1")}, Dim(name=name, min=2, max=8))
    assert [(axis.dim, axis.found) for axis in found(Rows(), promised)] == [(name, (2, 8)), (name, (5, 17))]


def test_steps_keep_their_name_in_messages():
    """The Dim that counts the steps of `side` has another name in a message, because it is another number."""
    promised = contract({"x": tensor("batch", "side")}, BATCH, SIDE)
    said = Failure(stage="export", kind="exception", type="UserError", message="_side = 3", suggestions=("_side = 3",))
    assert in_contract_words(said, promised) == said


def test_strict_export_serves_all_targets():
    """A strict contract is exported in strict mode, whichever targets are selected."""

    class Reading(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + float(next(iter(open(__file__)))[0] == '"')  # noqa: PTH123 - what dynamo refuses

    inputs = {"x": tensor("batch", 3)}
    lenient = contract(inputs, BATCH, targets=(make_target("exported-program"), make_target("onnx")))
    strict = contract(inputs, BATCH, targets=(make_target("onnx"),), strict=True)
    assert export(Reading(), lenient).program is not None
    with pytest.raises(torch._dynamo.exc.Unsupported):
        export(Reading(), strict)
