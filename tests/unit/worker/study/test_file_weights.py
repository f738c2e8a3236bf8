"""Files beside the module: made from its weights, from others, or from these under other names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from export_gate.wall.contract import make_target
from export_gate.worker.study.file_weights import compare_weights

ONNX, PT2 = make_target("onnx"), make_target("pt2")


def _model(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)).eval()


def _file(path: Path, seed: int, *, names: str = "{}", transposed: bool = False) -> Path:
    """An ONNX file that holds the weights, whatever it computes."""
    arrays = {names.format(name): tensor.numpy() for name, tensor in _model(seed).state_dict().items()}
    return _saved(path, {name: array.T.copy() if transposed else array for name, array in arrays.items()})


def _saved(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [x], [y], tensors)
    onnx.save(helper.make_model(graph), path)
    return path


@pytest.mark.parametrize(
    ("names", "transposed", "by_name"), [("{}", False, True), ("onnx::{}_1", False, False), ("val_{}", True, False)]
)
def test_the_same_weights_agree_and_other_ones_do_not(tmp_path: Path, names: str, transposed: bool, by_name: bool):
    """Weights are matched by name, by value, and by the value of a transposed matrix."""
    same = compare_weights(_file(tmp_path / "s.onnx", 0, names=names, transposed=transposed), ONNX, _model(0))
    other = compare_weights(_file(tmp_path / "o.onnx", 1, names=names, transposed=transposed), ONNX, _model(0))

    assert (same.differing_count, same.by_name) == (0, by_name)
    assert (other.differing_count, other.found) == (4, 4)


def test_one_retrained_layer_is_named(tmp_path: Path):
    """It is named with the largest difference."""
    model = _model(0)
    with torch.no_grad():
        model[1].weight[0, 0] += 2.5
    found = compare_weights(_file(tmp_path / "m.onnx", 0), ONNX, model)

    assert (found.differing, found.differing_count) == (("1.weight by 2.5",), 1)


def test_an_edited_matrix_is_found_though_the_file_has_it_transposed(tmp_path: Path):
    """Exporters keep the names of biases and fold the transposed weight of a linear layer into a constant."""
    arrays = {name: tensor.numpy().copy() for name, tensor in _model(0).state_dict().items()}
    arrays |= {"val_2": arrays.pop("0.weight").T.copy(), "val_5": arrays.pop("1.weight").T.copy()}
    arrays["val_5"][2, 1] += 1.5
    found = compare_weights(_saved(tmp_path / "m.onnx", arrays), ONNX, _model(0))

    assert (found.differing, found.found, found.by_name) == (("1.weight by 1.5",), 4, True)


class Tied(nn.Module):
    """A table, and experts that are chosen by index."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(8, 4)
        self.experts = nn.Parameter(torch.randn(3, 4, 2))


@pytest.mark.parametrize(
    ("edit", "differing"),
    [
        (lambda arrays: None, 0),
        (lambda arrays: np.put(arrays["permute"], 5, 9.0), 1),
        (lambda arrays: np.put(arrays["val_0"], 5, 9.0), 1),
        (lambda arrays: np.multiply(arrays["val_0"], 1.01, out=arrays["val_0"]), 1),
        (lambda arrays: np.copyto(arrays["val_0"], np.random.default_rng(1).normal(size=(2, 3, 4))), 0),
    ],
)
def test_a_copy_of_a_weight_under_another_name_is_compared_too(tmp_path: Path, edit: Any, differing: int):
    """A tied head is a second copy, and a table of experts a constant; what is like no weight says nothing."""
    model = Tied()
    state = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}
    arrays = {
        "table.weight": state["table.weight"],
        "permute": state["table.weight"].T.copy(),
        "val_0": state["experts"].transpose(2, 0, 1).copy(),
    }
    edit(arrays)
    found = compare_weights(_saved(tmp_path / "m.onnx", arrays), ONNX, model)

    assert found.differing_count == differing


@pytest.mark.parametrize(
    ("edit", "differing"),
    [
        (lambda array: array[::-1], 1),
        (lambda array: array[:, np.random.default_rng(0).permutation(array.shape[1])], 1),
        (lambda array: array, 0),
        (lambda array: array * np.float32(0.125), 0),
        (lambda array: np.random.default_rng(0).normal(size=array.shape).astype(np.float32), 0),
    ],
    ids=["reversed", "shuffled", "same", "scaled", "other"],
)
def test_a_matrix_in_another_order_is_found_by_its_numbers(tmp_path: Path, edit: Any, differing: int):
    """A factor is what an optimiser may put into it, and other numbers may be a product with another weight."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 7)).eval()
    arrays = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    arrays["val_3"] = np.ascontiguousarray(edit(arrays.pop("1.weight")).T)
    arrays["mask"] = np.tril(np.ones((5, 7), np.float32))
    found = compare_weights(_saved(tmp_path / "m.onnx", arrays), ONNX, model)
    assert found.differing_count == differing
    assert all(name.startswith("1.weight by ") for name in found.differing)


def test_a_weight_in_half_precision_is_the_same_weight():
    """A weight that only rounding to the file's dtype changes is not another weight."""
    from export_gate.worker.study.file_weights import _gap

    weight = _model(0)[0].weight.detach().numpy()
    assert _gap(weight, weight.astype("float16")) == 0
    assert _gap(weight, (weight * 1.01).astype("float16")) > 0


def test_folded_batch_norms_are_not_taken_for_other_weights(tmp_path: Path):
    """The values before such a layer change when an exporter folds it."""
    model = nn.Sequential(_model(0)[0], nn.BatchNorm1d(3)).eval()
    found = compare_weights(_file(tmp_path / "m.onnx", 1, names="val_{}"), ONNX, model)

    assert found.differing_count == 0


@pytest.mark.parametrize(("seed", "differing"), [(0, 0), (1, 2)])
def test_a_norm_that_was_put_into_a_named_layer_is_no_other_weight(tmp_path: Path, seed: int, differing: int):
    """The layer keeps its names and gets other values, from the norm's scale, shift and statistics."""
    norm = nn.BatchNorm1d(3).eval()
    with torch.no_grad():
        for tensor in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
            assert tensor is not None
            tensor.uniform_(0.5, 2.0)
    layer, model = _model(seed)[0], nn.Sequential(_model(0)[0], norm).eval()
    assert norm.running_var is not None
    assert norm.running_mean is not None
    scale = norm.weight * (norm.running_var + norm.eps).rsqrt()
    merged = {"0.weight": layer.weight * scale[:, None], "0.bias": (layer.bias - norm.running_mean) * scale + norm.bias}
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    tensors = [numpy_helper.from_array(tensor.detach().numpy(), name) for name, tensor in merged.items()]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [x], [y], tensors)
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")

    assert compare_weights(tmp_path / "m.onnx", ONNX, model).differing_count == differing


def test_a_pt2_file_is_compared_by_name(tmp_path: Path):
    """Its state dict has the module's names."""
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(_model(1), (torch.ones(1, 4),)), path)

    assert compare_weights(path, PT2, _model(0)).differing_count == 4
    assert compare_weights(path, PT2, _model(1)).differing_count == 0


def test_a_file_that_computes_with_quantised_numbers_is_recognised(tmp_path: Path):
    """Whatever its weights are: they have other values on purpose."""
    path = _file(tmp_path / "m.onnx", 1)
    model = onnx.load(path)
    model.graph.node.append(helper.make_node("DequantizeLinear", ["q", "scale"], ["w"]))
    onnx.save(model, path)
    assert compare_weights(path, ONNX, _model(0)).quantised == 1
    assert compare_weights(_file(tmp_path / "f.onnx", 1), ONNX, _model(0)).quantised == 0


class Recurrent(nn.Module):
    """A layer over a sequence and a head."""

    def __init__(self, layer: nn.RNNBase, *, has_head: bool) -> None:
        super().__init__()
        self.layer = layer
        width = layer.hidden_size * (2 if layer.bidirectional else 1)
        self.head = nn.Linear(width, 2) if has_head else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[2, 4, 5] to float32[2, 4, n]."""
        return self.head(self.layer(x)[0])


@pytest.fixture(scope="module", params=["lstm", "gru", "lstm-alone"])
def recurrent(request: pytest.FixtureRequest) -> tuple[nn.Module, dict[str, np.ndarray]]:
    """A module, and the tensors of the file that torch makes of it."""
    torch.manual_seed(5)
    kinds = {"lstm": nn.LSTM(5, 6, batch_first=True), "gru": nn.GRU(5, 6, batch_first=True, bidirectional=True)}
    layer = kinds.get(request.param, nn.LSTM(5, 6, batch_first=True, num_layers=2))
    module = Recurrent(layer, has_head=request.param != "lstm-alone").eval()
    made = torch.onnx.export(module, (torch.randn(2, 4, 5),), dynamo=True, verbose=False)
    assert made is not None
    tensors = made.model_proto.graph.initializer
    assert {"LSTM", "GRU"} & {node.op_type for node in made.model_proto.graph.node}
    return module, {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}


@pytest.mark.slow
def test_stacked_weights_of_recurrent_layers_are_compared(
    recurrent: tuple[nn.Module, dict[str, np.ndarray]], tmp_path: Path
):
    """A file has their gates in another order, and all directions and both biases in one tensor."""
    module, arrays = recurrent
    assert compare_weights(_saved(tmp_path / "same.onnx", arrays), ONNX, module).differing_count == 0

    stacked = [name for name, array in arrays.items() if array.ndim > 1 and array.shape[1] in (18, 24, 36, 48)]
    assert len(stacked) >= 3
    for name in stacked:
        edited = arrays[name].copy()
        edited[0, 7] *= 1.5
        found = compare_weights(_saved(tmp_path / "m.onnx", {**arrays, name: edited}), ONNX, module)
        assert found.differing_count == 1, name
        assert found.differing[0].startswith("layer.")
