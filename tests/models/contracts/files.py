"""The ONNX files of the packed tagger: with the lengths as the LSTM's own input, and one that forgot them."""

import sys
from pathlib import Path

import numpy as np
import onnx
from models import make
from onnx import TensorProto, helper, numpy_helper


def gates(weights: np.ndarray) -> np.ndarray:
    """Turn torch's order of gates (input, forget, cell, output) into that of ONNX (input, output, forget, cell)."""
    i, f, c, o = np.split(weights, 4)
    return np.concatenate([i, o, f, c])


def tagger(has_lengths: bool) -> onnx.ModelProto:
    """The model as ONNX."""
    rnn = make("PackedTagger").rnn
    found = {name: value.detach().numpy() for name, value in rnn.named_parameters()}
    ways = ("", "_reverse")
    arrays = {
        "W": np.stack([gates(found[f"weight_ih_l0{way}"]) for way in ways]),
        "R": np.stack([gates(found[f"weight_hh_l0{way}"]) for way in ways]),
        "B": np.stack(
            [np.concatenate([gates(found[f"bias_{part}_l0{way}"]) for part in ("ih", "hh")]) for way in ways]
        ),
        "shape": np.int64([0, 0, -1]),
    }
    nodes = [
        helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
        helper.make_node("Cast", ["lengths"], ["counts"], to=TensorProto.INT32),
        helper.make_node(
            "LSTM",
            ["steps", "W", "R", "B", "counts" if has_lengths else ""],
            ["states"],
            hidden_size=4,
            direction="bidirectional",
        ),
        helper.make_node("Transpose", ["states"], ["rows"], perm=[2, 0, 1, 3]),
        helper.make_node("Reshape", ["rows", "shape"], ["tags"]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "seq", 3]),
        helper.make_tensor_value_info("lengths", TensorProto.INT64, ["batch"]),
    ]
    outputs = [helper.make_tensor_value_info("tags", TensorProto.FLOAT, ["batch", "seq", 8])]
    tensors = [numpy_helper.from_array(value, name) for name, value in arrays.items()]
    graph = helper.make_graph(nodes, "tagger", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    onnx.save(tagger(has_lengths=True), folder / "tagger.onnx")
    onnx.save(tagger(has_lengths=False), folder / "forgetful.onnx")
