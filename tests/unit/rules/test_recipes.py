"""Every recipe gives the results of what it replaces, in eager torch and in ONNX Runtime, at several sizes."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch.nn import functional

from export_gate.rules.recipe_table import RECIPES, Recipe
from export_gate.rules.recipes import recipe_of
from export_gate.worker.nodes.program import described, nodes_of
from export_gate.worker.nodes.stopped import stopped_node

Inputs = dict[str, torch.Tensor]
EXPORTED, OTHER = 5, 8
"""Sizes of what is dynamic in an example: at export, and later."""
ERRORS = "output_padding; Indices vs updates; complex"
"""What runtimes say of operators that they refuse for some inputs alone."""
LONGEST_LINE = 92
"""Characters that a terminal shows of a line without a break."""


@dataclass(frozen=True)
class Example:
    """What a user has written, over its inputs at a size."""

    call: str
    inputs: Callable[[int], Inputs]


def _floats(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


def _whole(*shape: int, below: int) -> torch.Tensor:
    return torch.randint(0, below, shape)


def _holes(*shape: int) -> torch.Tensor:
    return torch.where(_floats(*shape) > 0.8, torch.nan, _floats(*shape))


def _multiples(*shape: int) -> Inputs:
    """Values whose quotient is a whole number up to rounding, where a rounded quotient may be the one above."""
    other = _floats(*shape)
    return {"x": _whole(*shape, below=5000) * other, "other": other}


def _complex(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.cfloat)


def _real(tensor: torch.Tensor) -> Any:
    """As ONNX holds it: complex numbers as two along a further axis."""
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).numpy()


EXAMPLES = (
    Example("torch.einsum('bix,iox->box', x, y)", lambda n: {"x": _complex(n, 4, 3), "y": _complex(4, 2, 3)}),
    Example("torch.cdist(x, y)", lambda n: {"x": _floats(2, n, 3), "y": _floats(2, n + 1, 3)}),
    Example("torch.cdist(x, y, p=1.0)", lambda n: {"x": _floats(n, 3), "y": _floats(4, 3)}),
    Example("torch.cdist(x, y, p=float('inf'))", lambda n: {"x": _floats(n, 3), "y": _floats(4, 3)}),
    Example("torch.cdist(x, y, p=3.0)", lambda n: {"x": _floats(n, 3), "y": _floats(4, 3)}),
    Example("F.adaptive_max_pool1d(x, 3)", lambda n: {"x": _floats(n, 2, n + 4)}),
    Example("F.adaptive_max_pool2d(x, (3, 2))", lambda n: {"x": _floats(n, 2, n + 4, 8)}),
    Example("F.adaptive_max_pool3d(x, (3, 2, 2))", lambda n: {"x": _floats(n, 2, 4, 5, 6)}),
    Example("F.adaptive_avg_pool1d(x, 3)", lambda n: {"x": _floats(n, 2, n + 4)}),
    Example("F.adaptive_avg_pool2d(x, (3, 2))", lambda n: {"x": _floats(n, 2, n + 4, 8)}),
    Example("F.adaptive_avg_pool3d(x, (3, 2, 2))", lambda n: {"x": _floats(n, 2, 4, 5, 6)}),
    Example("torch.remainder(x, 0.1)", lambda n: {"x": _floats(n, 9) * 1e4}),
    Example("x % other", lambda n: {"x": _floats(n, 9) * 1e4, "other": _floats(n, 9)}),
    Example("torch.remainder(x, -0.1)", lambda n: {"x": _floats(n, 9) * 1e4}),
    Example("x // 0.02", lambda n: {"x": _whole(n, 90, below=5000) * 0.02}),
    Example("x // other", lambda n: _multiples(n, 90)),
    Example("x.kthvalue(2, 0).values", lambda n: {"x": _floats(n, 4)}),
    Example("x.median()", lambda n: {"x": _floats(n, 4)}),
    Example("x.median(0).values", lambda n: {"x": _floats(n, 4)}),
    Example(
        "torch.searchsorted(boundaries, x)", lambda n: {"boundaries": _floats(n).sort().values, "x": _floats(3, n)}
    ),
    Example(
        "torch.searchsorted(boundaries, x, right=True)",
        lambda n: {"boundaries": _whole(3, n, below=9).float().sort().values, "x": _whole(3, 4, below=9).float()},
    ),
    Example("x.cummax(1).values", lambda n: {"x": _floats(3, n, 2)}),
    Example("x.cummin(1).values", lambda n: {"x": _floats(3, n, 2)}),
    Example("x.cumprod(1)", lambda n: {"x": _floats(3, n, 2)}),
    Example("torch.hypot(x, y)", lambda n: {"x": _floats(n, 4), "y": _floats(n, 4)}),
    Example("torch.copysign(x, y)", lambda n: {"x": _floats(n, 4), "y": _floats(n, 4)}),
    Example("torch.fmax(x, y)", lambda n: {"x": _holes(n, 4), "y": _holes(n, 4)}),
    Example("torch.fmin(x, y)", lambda n: {"x": _holes(n, 4), "y": _holes(n, 4)}),
    Example("torch.linalg.slogdet(x).logabsdet", lambda n: {"x": _floats(n, 3, 3)}),
    Example(
        "x.put(index, source)", lambda n: {"x": _floats(3, 4), "index": torch.randperm(12)[:n], "source": _floats(n)}
    ),
    Example("torch.masked_select(x, mask)", lambda n: {"x": _floats(n, 4), "mask": _floats(n, 4) > 0}),
    Example(
        "x.scatter_reduce(0, index, source, 'mean')",
        lambda n: {"x": _floats(3, 4), "index": _whole(n, 4, below=3), "source": _floats(n, 4)},
    ),
    Example(
        "x.scatter_reduce(0, index, source, 'mean', include_self=False)",
        lambda n: {"x": _floats(3, 4), "index": _whole(n, 4, below=2), "source": _floats(n, 4)},
    ),
    Example(
        "F.cross_entropy(x, target, ignore_index=1, label_smoothing=0.1)",
        lambda n: {"x": _floats(n, 6), "target": _whole(n, below=6)},
    ),
    Example("F.rrelu(x)", lambda n: {"x": _floats(n, 4)}),
    Example(
        "torch.conv_tbc(x, weight, bias, 1)",
        lambda n: {"x": _floats(6, 2, 3), "weight": _floats(3, 3, 4), "bias": _floats(4)},
    ),
    Example(
        "x.repeat_interleave(repeats, 0, output_size=12)",
        lambda n: {"x": _floats(3, 4), "repeats": torch.tensor([12 - n, n - 2, 2])},
    ),
    Example(
        "F.conv_transpose2d(x, weight, bias, 1, (3, 0), (1, 1), 1, 2)",
        lambda n: {"x": _floats(n, 2, 6, 7), "weight": _floats(2, 3, 2, 2), "bias": _floats(3)},
    ),
    Example(
        "F.conv_transpose1d(x, weight, bias, 1, 1, 2, 1, 3)",
        lambda n: {"x": _floats(n, 2, 7), "weight": _floats(2, 3, 2), "bias": _floats(3)},
    ),
    Example(
        "x.scatter_add(0, index, source)",
        lambda n: {"x": _floats(3, 4), "index": _whole(n, 2, below=3), "source": _floats(n + 1, 4)},
    ),
    Example("torch.sort(x, stable=True).indices", lambda n: {"x": _whole(n, n, below=3)}),
    Example("torch.sort(x, descending=True, stable=True).indices", lambda n: {"x": _whole(n, n, below=3)}),
    Example("x << y", lambda n: {"x": _whole(n, below=9), "y": _whole(n, below=5)}),
    Example("x >> y", lambda n: {"x": _whole(n, below=99), "y": _whole(n, below=5)}),
    Example("x.mode(-1).values", lambda n: {"x": _whole(n, 7, below=4)}),
    Example("x.nanmedian(1).values", lambda n: {"x": torch.cat([_holes(3, n), torch.full((1, n), torch.nan)])}),
    Example("torch.atan2(y, x)", lambda n: {"y": _floats(n, 9).round() + 0.0, "x": _floats(n, 9).round() + 0.0}),
)


def _function(names: list[str], code: str) -> Callable[..., torch.Tensor]:
    """The lines as a function of their inputs."""
    body = "\n".join(f"    {line}" for line in code.splitlines())
    scope: dict[str, Any] = {"torch": torch, "F": functional}
    exec(f"def written({', '.join(names)}):\n{body}\n    return out\n", scope)
    written: Callable[..., torch.Tensor] = scope["written"]
    return written


class Calls(torch.nn.Module):
    """Several functions in one program."""

    def __init__(self, functions: list[Callable[..., torch.Tensor]]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, given: list[Inputs]) -> list[torch.Tensor]:
        """The result of each, over its own inputs."""
        return [function(**inputs) for function, inputs in zip(self.functions, given, strict=True)]


def _given(examples: tuple[Example, ...], size: int) -> list[Inputs]:
    torch.manual_seed(0)
    return [example.inputs(size) for example in examples]


def _exported(functions: list[Callable[..., torch.Tensor]], examples: tuple[Example, ...]) -> Any:
    """The program, with an axis dynamic wherever the examples' sizes differ."""
    given, others = _given(examples, EXPORTED), _given(examples, OTHER)
    axes = [
        {
            name: {axis: torch.export.Dim.AUTO for axis in range(x.dim()) if x.shape[axis] != other[name].shape[axis]}
            for name, x in inputs.items()
        }
        for inputs, other in zip(given, others, strict=True)
    ]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.export(Calls(functions).eval(), (given,), dynamic_shapes={"given": axes})


def _converted(program: Any) -> Callable[[list[Inputs]], list[Any]]:
    quiet = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        warnings.simplefilter("ignore")
        made = torch.onnx.export(program, dynamo=True, verbose=False)
    assert made is not None
    stream = io.BytesIO()
    made.save(stream)
    session = onnxruntime.InferenceSession(stream.getvalue())
    used, names = {value.name for value in session.get_inputs()}, [value.name for value in made.model.graph.inputs]

    def run(given: list[Inputs]) -> list[Any]:
        leaves = [_real(tensor) for inputs in given for tensor in inputs.values()]
        feeds = {name: leaf for name, leaf in zip(names, leaves, strict=True) if name in used}
        return list(session.run(None, feeds))

    return run


def _recipes(example: Example) -> list[Recipe]:
    """What is advised for the nodes that the call becomes."""
    function = _function(list(example.inputs(EXPORTED)), f"out = {example.call}")
    program = _exported([function], (example,))
    nodes = nodes_of(program.module(check_guards=False)).values()
    return [recipe for node in nodes if (recipe := recipe_of(described(node, ()), ERRORS)) is not None]


@pytest.fixture(scope="module")
def advised() -> dict[str, Recipe]:
    """What is advised for each example, with its arguments."""
    found = {example.call: _recipes(example) for example in EXAMPLES}
    assert [call for call, recipes in found.items() if not recipes] == []
    return {call: recipes[0] for call, recipes in found.items()}


@pytest.mark.slow(seconds=9)
def test_each_recipe_has_an_example(advised: dict[str, Recipe]):
    """None is advised that was never run."""
    reached = {recipe.names for recipe in advised.values()}
    assert reached == {recipe.names for recipe in RECIPES}
    assert len({recipe.lines for recipe in advised.values()}) == len(advised) >= len(RECIPES)


@pytest.mark.slow
def test_recipes_have_short_lines_without_placeholders(advised: dict[str, Recipe]):
    """A terminal would break them, and a placeholder is no Python."""
    lines = [line for recipe in advised.values() for line in recipe.lines.splitlines()]
    assert [line for line in lines if len(line) > LONGEST_LINE] == []
    assert [line for line in lines if "{" in line] == []


@pytest.mark.slow
@pytest.mark.parametrize("size", [EXPORTED, OTHER])
def test_recipes_give_the_results_of_what_they_replace(advised: dict[str, Recipe], size: int):
    """In shape, dtype and values, up to the order of additions."""
    for example, given in zip(EXAMPLES, _given(EXAMPLES, size), strict=True):
        expected = _function(list(given), f"out = {example.call}")(**given)
        actual = _function(list(given), advised[example.call].lines)(**given)
        torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5, equal_nan=True, msg=example.call)


@pytest.mark.slow(seconds=17)
def test_recipes_convert_and_stay_right_at_other_sizes(advised: dict[str, Recipe]):
    """One program holds all of them, so that one conversion tests them."""
    names = [list(example.inputs(EXPORTED)) for example in EXAMPLES]
    functions = [_function(each, advised[example.call].lines) for each, example in zip(names, EXAMPLES, strict=True)]
    run = _converted(_exported(functions, EXAMPLES))
    for size in (EXPORTED, OTHER):
        given = _given(EXAMPLES, size)
        for example, inputs, actual in zip(EXAMPLES, given, run(given), strict=True):
            expected = _function(list(inputs), f"out = {example.call}")(**inputs)
            # Float32 of values around one; the powers in a distance and the products cost a few digits.
            np.testing.assert_allclose(actual, _real(expected), atol=1e-4, rtol=1e-4, err_msg=example.call)


@pytest.mark.nightly
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.call)
def test_what_a_recipe_replaces_still_fails(example: Example):
    """A recipe for something that converts right would be a detour; where it stops, the recipe is found."""
    function = _function(list(example.inputs(EXPORTED)), f"out = {example.call}")
    program = _exported([function], (example,))
    try:
        run = _converted(program)
    except torch.onnx.errors.OnnxExporterError as error:
        stopped = error
    else:
        assert any(_differs(function, run, _given((example,), size)) for size in (EXPORTED, OTHER))
        return
    assert recipe_of(stopped_node(stopped, (Path(),)), ERRORS) is not None


def _differs(
    function: Callable[..., torch.Tensor], run: Callable[[list[Inputs]], list[Any]], given: list[Inputs]
) -> bool:
    expected = _real(function(**given[0]))
    try:
        (actual,) = run(given)
    except Exception:  # noqa: BLE001 - whatever the runtime raises
        return True
    return actual.shape != expected.shape or not np.allclose(actual, expected, atol=1e-4, rtol=1e-4, equal_nan=True)
