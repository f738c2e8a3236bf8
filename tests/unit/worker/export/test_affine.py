import contextlib
import io
from collections.abc import Callable
from functools import cache
from typing import Any

import onnx.parser
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from export_gate.worker.export.affine import is_affine_graph
from export_gate.worker.onnx_file.affine import is_affine_onnx

pytestmark = pytest.mark.slow

ROWS = torch.export.Dim("rows", min=2, max=8)


class Model(nn.Module):
    """Some weights, and a function of them and the inputs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.linear = nn.Linear(6, 6)
        self.conv = nn.Conv2d(2, 3, 2)
        self.norm = nn.BatchNorm1d(6)
        self.drop = nn.Dropout()
        self.w = nn.Parameter(torch.randn(6, 6))
        self.row = nn.Parameter(torch.randn(1, 6))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, *inputs: Any):
        """The function's value."""
        return self.function(self, *inputs)


def counted(m: Any, x: Any):
    """Adds how often it was called."""
    m.seen.add_(1)
    return x + m.seen


# name -> function, by rows, at all; x is float32[rows, 6], y alike, z float32[rows, 2, 4, 3]
ONE = {
    "identity": (lambda m, x: x + 0, True, True),
    "linear": (lambda m, x: m.linear(x), True, True),
    "matmul": (lambda m, x: x @ m.w + m.row, True, True),
    "folded-weights": (lambda m, x: F.linear(x, m.w.exp().t() @ m.w, m.row[0].sin()), True, True),
    "scaled": (lambda m, x: 1 - x * 2 / 3, True, True),
    "eval-norm": (lambda m, x: m.drop(m.norm(x)), True, True),
    "reshaped": (lambda m, x: x.reshape(-1, 2, 3).transpose(1, 2).flatten(1), True, True),
    "sliced": (lambda m, x: torch.cat([x[:, 2:], x[:, :2], x.mean(1, keepdim=True)], 1), True, True),
    "stacked": (lambda m, x: torch.stack([x, -x], 1).sum(1), True, True),
    "padded": (lambda m, x: F.pad(x, (1, 2)), True, True),
    "left-product": (lambda m, x: m.w[:2, :3] @ x.view(-1, 3, 2), True, True),
    "mean-over-rows": (lambda m, x: x - x.mean(0, keepdim=True), False, True),
    "total": (lambda m, x: x + x.sum(), False, True),
    "squared": (lambda m, x: x * x, False, False),
    "product-of-parts": (lambda m, x: x[:, :3] * x[:, 3:], False, False),
    "gram": (lambda m, x: x @ x.t(), False, False),
    "divided": (lambda m, x: 1 / (x + 10), False, False),
    "relu": (lambda m, x: m.linear(x).relu(), False, False),
    "absolute": (lambda m, x: x.abs(), False, False),
    "clamped": (lambda m, x: x.clamp(-1, 1), False, False),
    "softmax": (lambda m, x: x.softmax(1), False, False),
    "largest": (lambda m, x: x.max(1).values, False, False),
    "branch": (lambda m, x: torch.where(x > 0, x, 2 * x), False, False),
    "truncated": (lambda m, x: x.to(torch.int64).float(), False, False),
    "mc-dropout": (lambda m, x: F.dropout(x, 0.5, training=True), False, False),
    "noise": (lambda m, x: x + torch.randn(1, 6), False, False),
}
CONV = {
    "conv": (lambda m, z: m.conv(z), True, True),
    "pooled": (lambda m, z: F.avg_pool2d(z, 2), True, True),
    "max-pooled": (lambda m, z: F.max_pool2d(z, 2), False, False),
    "resized": (lambda m, z: F.interpolate(z, size=(8, 6), mode="bilinear"), None, True),
}
TWO = {
    "x1*x2": (lambda m, x, y: x * y, False, False),
    "x1/x2": (lambda m, x, y: x / y, False, False),
    "x1@x2": (lambda m, x, y: x @ y.t(), False, False),
    "bilinear-in-weights": (lambda m, x, y: F.linear(x, m.w) - 3 * y, True, True),
    "weights-from-input": (lambda m, x, y: F.linear(x, y.t() @ y), False, False),
}
SAMPLES = {
    **{name: (*row, (torch.randn(3, 6),)) for name, row in ONE.items()},
    **{name: (*row, (torch.randn(3, 2, 4, 3),)) for name, row in CONV.items()},
    **{name: (*row, (torch.randn(3, 6), torch.randn(3, 6))) for name, row in TWO.items()},
}


@cache
def exported(function: Callable[..., Any], inputs: Any):
    """The program, with dynamic rows."""
    return torch.export.export(Model(function).eval(), inputs, dynamic_shapes=(({0: ROWS},) * len(inputs),))


def converted(program: Any):
    """The ONNX model, quietly."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return torch.onnx.export(program, dynamo=True, verbose=False, opset_version=20).model_proto


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_a_graph_is_affine_only_if_every_operator_is(name: str):
    """Affine models are recognised, whole or row by row; x1*x2 and the like never are."""
    function, by_row, whole, inputs = SAMPLES[name]
    program = exported(function, inputs)
    assert is_affine_graph(program, by_row=False) is whole
    if by_row is not None:
        assert is_affine_graph(program) is by_row


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_a_decomposed_graph_is_never_called_affine_wrongly(name: str):
    """Decomposition may hide that a graph is affine, but never makes it look affine."""
    function, by_row, whole, inputs = SAMPLES[name]
    program = exported(function, inputs).run_decompositions()
    assert whole or not is_affine_graph(program, by_row=False)
    assert by_row is not False or not is_affine_graph(program)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear", "sliced", "eval-norm", "conv", "pooled"])
def test_converted_affine_models_are_recognised(name: str):
    """What the exporter makes of plain affine models is in the list of ONNX operators."""
    function, _, _, inputs = SAMPLES[name]
    assert is_affine_onnx(converted(exported(function, inputs)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x1*x2", "gram", "total", "largest"])
def test_converted_models_that_mix_are_refused(name: str):
    """What the exporter makes of other models is not in the list."""
    function, _, _, inputs = SAMPLES[name]
    assert not is_affine_onnx(converted(exported(function, inputs)))


RAMP = """
    s = Shape<end = 1>(x) r = ConstantOfShape(s) u = Constant<value = int64[1] {1}>()
    c = Unsqueeze(r, u) out = Add(x, c)
"""
# body of a graph (float[rows, 6] x, float[rows, 6] y) => (float[rows, *] out), by rows, at all
ONNX = {
    "sum": ("out = Add(x, y)", True, True),
    "scaled": ("c = Constant<value = float {2.0}>() out = Mul(c, x)", True, True),
    "folded": ("c = Constant<value = float[6] {1,2,3,4,5,6}>() e = Exp(c) out = Mul(x, e)", True, True),
    "product": ("out = Mul(x, y)", False, False),
    "square": ("out = Mul(x, x)", False, False),
    "quotient": ("out = Div(x, y)", False, False),
    "inverse": ("c = Constant<value = float {1.0}>() out = Div(c, x)", False, False),
    "gram": ("t = Transpose<perm = [1, 0]>(y) out = MatMul(x, t)", False, False),
    "relu": ("out = Relu(x)", False, False),
    "concat": ("out = Concat<axis = 1>(x, y)", True, True),
    "concat-rows": ("out = Concat<axis = 0>(x, y)", False, True),
    "row-mean": ("m = ReduceMean<keepdims = 1>(x) out = Sub(x, m)", False, True),
    "to-integers": ("i = Cast<to = 7>(x) out = Cast<to = 1>(i)", False, False),
    "noise": ("n = RandomNormal<shape = [1, 6]>() out = Add(x, n)", False, False),
    "noise-like": ("n = RandomNormalLike(x) out = Add(x, n)", False, False),
    "gemm": ("w = Constant<value = float[6, 1] {1,2,3,4,5,6}>() out = Gemm(x, w)", True, True),
    "gemm-of-inputs": ("out = Gemm<transB = 1>(x, y)", False, False),
    "first-row": ("z = Constant<value = int64[1] {0}>() out = Gather<axis = 0>(x, z)", False, True),
    "shifted-rows": ("p = Constant<value = int64[4] {1, 0, -1, 0}>() out = Pad(x, p)", False, True),
    "padded": ("p = Constant<value = int64[4] {0, 1, 0, 2}>() out = Pad(x, p)", True, True),
    "ramp": (RAMP, False, True),
    "indices-from-input": ("i = ArgMax<axis = 1, keepdims = 0>(x) out = Gather<axis = 1>(y, i)", False, False),
}


def parsed(body: str):
    """An ONNX model of two inputs."""
    graph = "agraph (float[rows, 6] x, float[rows, 6] y) => (float out)"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]> {graph} {{ {body} }}')
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


@pytest.mark.parametrize("name", ONNX)
def test_an_onnx_graph_is_affine_only_if_every_operator_is(name: str):
    """The list of ONNX operators knows products, reductions and shifts of rows, casts and noise."""
    body, by_row, whole = ONNX[name]
    assert is_affine_onnx(parsed(body), by_row=False) is whole
    assert is_affine_onnx(parsed(body)) is by_row


@pytest.mark.parametrize(
    ("body", "by_row"), [("out = Pad<pads = [0, 1, 0, 2]>(x)", True), ("out = Pad<pads = [1, 0, -1, 0]>(x)", False)]
)
def test_pads_of_an_old_opset_are_an_attribute(body: str, by_row: bool):
    """A file of opset 10 has them there, and is read as any other."""
    model = parsed(body)
    model.opset_import[0].version = 10
    assert is_affine_onnx(model, by_row=False)
    assert is_affine_onnx(model) is by_row


def test_sparse_weights_are_constants():
    """They are not among the graph's other weights."""
    model = parsed("out = MatMul(x, w)")
    weight = model.graph.sparse_initializer.add(dims=[6, 2])
    weight.values.CopyFrom(onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [1], [3.0]))
    weight.indices.CopyFrom(onnx.helper.make_tensor("", onnx.TensorProto.INT64, [1], [4]))
    assert is_affine_onnx(model, by_row=False)


@pytest.mark.slow
def test_the_counterexample_agrees_on_the_basis():
    """x1*x2 equals 0 at 0, e1 and e2: by the basis alone it would be zero, but the list of operators refuses it."""
    basis = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert not (basis[:, 0] * basis[:, 1]).any()
    program = exported(lambda m, x: x[:, 0] * x[:, 1], (torch.randn(3, 2),))
    assert not is_affine_graph(program, by_row=False)
    assert not is_affine_onnx(converted(program), by_row=False)


def test_a_state_that_changes_is_not_affine():
    """With a counter, each call is another function."""
    assert not is_affine_graph(exported(counted, (torch.randn(3, 6),)), by_row=False)


@pytest.mark.slow
def test_rows_treated_differently_do_not_carry_points():
    """A ramp over the rows gives each row its own function."""
    program = exported(lambda m, x: x + torch.arange(x.shape[0])[:, None], (torch.randn(3, 6),))
    assert not is_affine_graph(program)
    assert not is_affine_onnx(converted(program))


def test_a_size_in_the_arithmetic_does_not_carry_points():
    """A result that depends on the batch's length is not one function of a row."""
    assert not is_affine_graph(exported(lambda m, x: x * x.shape[0], (torch.randn(3, 6),)))


def test_shifted_rows_do_not_carry_points():
    """Padding and cutting along the rows keeps their number but moves them."""
    program = exported(lambda m, x: F.pad(x, (0, 0, 1, -1)), (torch.randn(3, 6),))
    assert not is_affine_graph(program)
    assert is_affine_graph(program, by_row=False)


@pytest.mark.slow
def test_integer_inputs_are_no_affine_space():
    """An embedding of integers is not affine, and neither is a model with integer inputs."""
    ids = torch.ones(3, 6, dtype=torch.int64)
    assert not is_affine_graph(exported(lambda m, x: x * 2, (ids,)), by_row=False)
    assert not is_affine_onnx(converted(exported(lambda m, x: x * 2, (ids,))), by_row=False)


def test_outputs_keep_their_promise_at_random_points():
    """A model that is called affine by rows is determined by its basis, within rounding of float32."""
    for name, (function, by_row, _, inputs) in SAMPLES.items():
        if not by_row or len(inputs) > 1:
            continue
        module = Model(function).eval()
        x = inputs[0]
        flat = x[0].numel()
        basis = torch.cat([torch.zeros(1, flat), torch.eye(flat)]).reshape(-1, *x.shape[1:])
        with torch.no_grad():
            values = module(basis)
            origin, steps = values[0], values[1:] - values[0]
            predicted = origin + torch.einsum("nd,d...->n...", x.reshape(len(x), flat), steps)
            assert torch.allclose(module(x), predicted, atol=1e-4), name
