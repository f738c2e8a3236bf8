"""Programs to ONNX files with the contract's names, and the files of an artifact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from worker_samples import contract, tensor

from export_gate.wall.contract import Dim, ModelContract, make_target
from export_gate.worker.controls.build import reference_sizes, reference_values
from export_gate.worker.controls.specs import tensor_leaves
from export_gate.worker.export.program import Exported, export_program
from export_gate.worker.leaves.values import Call
from export_gate.worker.model.factory import bind, forward_parameters
from export_gate.worker.model.reference import describe_outputs, module_runner
from export_gate.worker.targets import onnx as target
from export_gate.worker.targets.base import Context, describe_artifact, digest_file
from export_gate.worker.targets.onnx_names import dim_names

pytestmark = pytest.mark.slow

BATCH = Dim(name="batch", min=2, max=6)
SEQ = Dim(name="seq", min=2, max=5)


def export(module: nn.Module, promised: ModelContract) -> Exported:
    """The program of a model."""
    parameters = forward_parameters(module)
    call = bind(reference_values(promised, reference_sizes(promised)), parameters)
    return export_program(module, call, promised, parameters, {})


def context(module: nn.Module, promised: ModelContract, folder: Path) -> Context:
    """What a target is given."""
    exported = export(module, promised)
    return Context(
        contract=promised,
        program=exported,
        folder=folder,
        input_names=tuple(name for name, _ in tensor_leaves(promised)),
        outputs=describe_outputs(module_runner(module, {})(exported.call)),
        names={},
        metadata={},
        has_basis=False,
    )


class Joined(nn.Module):
    """Two inputs side by side."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The rows of both."""
        return torch.cat([x, y], 1)


@pytest.mark.parametrize(
    ("shape", "dims", "expected"),
    [
        ("seq", (BATCH, SEQ), {"{}": "seq", "2*{} + 1": "2*seq+1"}),
        ("2*seq+1", (BATCH, SEQ), {"2*{} + 1": "2*seq+1", "4*{} + 2": "4*seq+2", "{}": "seq"}),
        ("seq", (BATCH, Dim(name="seq", min=8, max=40, multiple_of=4)), {"4*{}": "seq", "{}": "(seq//4)"}),
        ("2*seq", (BATCH, Dim(name="seq", min=8, max=40, multiple_of=4)), {"8*{}": "2*seq", "{}": "(seq//4)"}),
        (
            "2*seq+1",
            (BATCH, Dim(name="seq", min=2, max=5, mode="auto")),
            {"{}": "2*seq+1", "2*{}": "2*(2*seq+1)"},
        ),
    ],
)
def test_symbols_are_read_as_the_contract_spells_lengths(shape: str, dims: tuple[Dim, ...], expected: dict[str, str]):
    """The program's symbol of an axis is the dim, a step of it or an expression in it; `{}` stands for that symbol."""
    axes = export(Joined(), contract({"x": tensor("batch", shape), "y": tensor("batch", 3)}, *dims)).axes
    translate = dim_names(axes)
    (symbol,) = axes[1].length.node.expr.free_symbols
    assert {text: translate(text.format(symbol)) for text in expected} == expected


def test_symbols_of_the_programs_own_are_kept():
    """A length that depends on values has no name in the contract."""
    axes = export(Joined(), contract({"x": tensor("batch", 2), "y": tensor("batch", 3)}, BATCH)).axes
    assert dim_names(axes)("u0") == "u0"
    assert dim_names(axes)(f"{axes[0].length} + u0") == "batch+u0"


def test_without_dims_nothing_is_renamed():
    """A graph without dynamic axes is left as it is."""
    axes = export(Joined(), contract({"x": tensor(2, 2), "y": tensor(2, 3)})).axes
    assert dim_names(axes)("s0 + 1") == "s0 + 1"


class Branch(nn.Module):
    """Outputs and inputs that are called as values of a branch may be."""

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """The input, changed one way or the other."""

        def up(a: torch.Tensor) -> torch.Tensor:
            return (a + 1) * 3

        def down(a: torch.Tensor) -> torch.Tensor:
            return (a - 1) * 3

        return {"add": torch.cond(x.sum() > 0, up, down, (x,)), "mul": x * 2, "sub": x - 5}


@pytest.mark.slow
def test_names_do_not_collide_with_those_of_a_branch(tmp_path: Path):
    """An output may have the name of a value inside a branch; the file is valid and computes the same."""
    promised = contract({"x": tensor("batch", 3)}, BATCH)
    path = target.convert(context(Branch(), promised, tmp_path), make_target("onnx"))
    assert path is not None
    model = onnx.load(str(path))
    onnx.checker.check_model(model, full_check=True)
    assert [output.name for output in model.graph.output] == ["add", "mul", "sub"]
    names = [name for graph in graphs(model.graph) for node in graph.node for name in node.output]
    assert len(names) == len(set(names))
    run = target.load(context(Branch(), promised, tmp_path), make_target("onnx"), path).run
    for sign in (1.0, -1.0):
        given = torch.full((4, 3), sign)
        found = {leaf.name: leaf.value for leaf in run(bind({"x": given}, forward_parameters(Branch())))}
        assert {name: value.tolist() for name, value in Branch()(given).items()} == {
            name: value.tolist() for name, value in found.items() if value is not None
        }


def graphs(graph: Any) -> list[Any]:
    """The graph and those of its branches."""
    inner = [a.g for node in graph.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return [graph, *(deeper for g in inner for deeper in graphs(g))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("opset", "said"),
    [
        (9, "operator If cannot be converted from opset 18 to 9, and the lowest opset"),
        (99, "opset 99 was asked for and torch's exporter made opset 18: it cannot make 99"),
    ],
)
def test_opset_that_cannot_be_made_is_told(tmp_path: Path, opset: int, said: str):
    """Torch's exporter silently writes opset 18 if it cannot make the requested one; here that is a failure."""
    made = make_target("onnx")
    given = context(Branch(), contract({"x": tensor("batch", 3)}, BATCH), tmp_path)
    with pytest.raises(ValueError) as raised:
        target.convert(given, replace(made, options={**made.options, "opset": opset}))
    assert str(raised.value).startswith(said)
    assert list(tmp_path.iterdir()) == []


def external(folder: Path) -> Path:
    """A model with two weights in files of its own and one inside."""

    def weight(name: str, location: str | None) -> onnx.TensorProto:
        made = helper.make_tensor(
            name, TensorProto.FLOAT, [2], bytes(8) if location else [1.0, 2.0], raw=bool(location)
        )
        if location:
            made.data_location = TensorProto.EXTERNAL
            made.ClearField("raw_data")
            made.external_data.add(key="location", value=location)
            made.external_data.add(key="length", value="8")
        return made

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    nodes = [helper.make_node("Sum", ["x", "a", "b", "c"], ["y"])]
    weights = [weight("a", "weights.bin"), weight("b", "more/weights.bin"), weight("c", None)]
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    path = folder / "model.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    (folder / "more").mkdir()
    (folder / "weights.bin").write_bytes(b"12345678")
    (folder / "more" / "weights.bin").write_bytes(b"87654321")
    (folder / "model.onnx.data").write_bytes(b"of an earlier run")
    return path


def test_an_artifact_has_the_files_that_it_names(tmp_path: Path):
    """External data are the files that the weights name, whatever other files are next to the model."""
    path = external(tmp_path)
    files = target.files(path)
    assert files == (path, tmp_path / "more" / "weights.bin", tmp_path / "weights.bin")
    found = describe_artifact(files, tmp_path)
    assert found.path == "model.onnx"
    assert found.size_bytes == path.stat().st_size + 16
    assert found.files == {
        "model.onnx": digest_file(path),
        "more/weights.bin": digest_file(files[1]),
        "weights.bin": digest_file(files[2]),
    }
    assert found.sha256 not in found.files.values()


def test_an_artifact_of_one_file_has_its_digest(tmp_path: Path):
    """The digest is the file's own, and a path outside the folder stays absolute."""
    path = tmp_path / "model.pt2"
    path.write_bytes(b"123")
    found = describe_artifact((path,), tmp_path / "elsewhere")
    assert (found.path, found.size_bytes) == (str(path), 3)
    assert found.sha256 == found.files[str(path)] == digest_file(path)


def test_the_reference_evaluator_refuses_weights_beside_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It would copy them all, and a graph of a few kilobytes does not say how large they are."""
    weight = numpy_helper.from_array(np.ones((8, 8), np.float32), "weight")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 8]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "weight"], ["y"])], "g", values[:1], values[1:], [weight])
    path = tmp_path / "model.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save_model(model, path, save_as_external_data=True, location="weights", size_threshold=0)
    x = torch.zeros(8, 8)
    (leaf,) = target.evaluator_runner(path, ("x",))(Call(args=(x,), kwargs={}))
    assert leaf.value is not None
    assert leaf.value.tolist() == np.ones((8, 8)).tolist()
    monkeypatch.setattr(target, "INLINE_LIMIT_BYTES", path.stat().st_size + 8)
    with pytest.raises(ValueError, match="MB"):
        target.evaluator_runner(path, ("x",))
