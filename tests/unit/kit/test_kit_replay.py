"""Kits of one small graph, replayed in ONNX Runtime: what conforms, what does not, and what is refused."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from kit_samples import DOUBLED, list_again, model, write_kit, write_tensor
from onnx import TensorProto, helper, numpy_helper

from export_gate.kit.replay import Replay, replay, report
from export_gate.wall.conformance import DataSet, KitExport, KitOutput
from export_gate.wall.contract import Tolerance
from export_gate.wall.errors import UserError
from export_gate.worker.leaves.values import Leaf
from export_gate.worker.onnx_file.tensors import tensor_bytes

LOOSE = Tolerance(atol=1e-5, rtol=1e-5)


def replayed(folder: Path, **environment: str) -> Replay:
    """The kit in ONNX Runtime of this interpreter."""
    return replay(folder, ("CPUExecutionProvider",), sys.executable, {**os.environ, **environment})


def messages(found: Replay) -> list[tuple[str, int]]:
    """What does not conform, and how often."""
    return [(difference.message, difference.occurrences) for difference in found.differences]


def refusal(folder: Path) -> str:
    """What is said of a kit that cannot be replayed."""
    with pytest.raises(UserError) as caught:
        replayed(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(str(folder), "KIT")


@pytest.mark.slow
def test_a_right_kit_conforms(tmp_path: Path):
    """Exit code 0, every data set counted, the verdict last."""
    found = replayed(write_kit(tmp_path / "kit"))
    lines = report(found)
    import onnxruntime

    assert (found.exit_code, found.conforming, messages(found)) == (0, 3, [])
    assert (
        lines[-1]
        == f"doubling conforms: 3 of 3 data sets in onnxruntime {onnxruntime.__version__} (CPUExecutionProvider)"
    )
    assert lines[-2] == (
        f"kit of export-gate 9.9, torch 2.13.0: config {'c' * 12}, control set {'d' * 12}, kit.json {found.sha256[:12]}"
    )


@pytest.mark.slow
def test_an_unverified_kit_says_so(tmp_path: Path):
    """A forced kit is replayed like any other, and every replay says that it is not verified."""
    lines = report(replayed(write_kit(tmp_path / "kit", verified=False)))
    assert lines[-2] == "the model was NOT verified when the kit was written"
    assert lines[-1].startswith("doubling conforms: 3 of 3 data sets")


@pytest.mark.slow
def test_another_value_is_found(tmp_path: Path):
    """The worst data set is named with the same inequality as in `run`; exit code 1."""
    graph = model(
        helper.make_node("Constant", [], ["two"], value=numpy_helper.from_array(np.float32(2.01), "two")),
        helper.make_node("Mul", ["x", "two"], ["y"]),
    )
    found = replayed(write_kit(tmp_path / "kit", graph))
    wanted = "doubling, onnx, output 'y', case normal-0@n=2: max |P-M| 0.01 > 1.0e-05 + 1.0e-05 * 2 = 3.0e-05"
    assert (found.exit_code, found.conforming, messages(found)) == (1, 0, [(wanted, 3)])
    lines = report(found)
    assert lines[0] == f"{wanted} (and 2 more data sets)"
    assert lines[1] == "closest to its tolerance: output 'y', case normal-0@n=2: max |P-M| 0.01 of 3.0e-05"
    assert lines[-1].startswith("doubling does NOT conform: 0 of 3 data sets in onnxruntime ")


@pytest.mark.slow
def test_order_of_checks(tmp_path: Path):
    """Dtype before shape before non-finite elements before values, one difference for each output and kind."""
    kit = write_kit(tmp_path / "kit")
    write_tensor(kit / "test_data_set_0" / "output_0.pb", np.array([7.0, 7.0], dtype=np.float64), "y")
    write_tensor(kit / "test_data_set_1" / "output_0.pb", np.array([[7.0, 7.0, 7.0]], dtype=np.float32), "y")
    write_tensor(kit / "test_data_set_2" / "output_0.pb", np.array([np.nan, 7, 7, 7], dtype=np.float32), "y")
    masks = "NaN or inf at other positions: 1 of 4 elements, first at [0] (expected 1 NaN, got none)"
    assert messages(replayed(list_again(kit))) == [
        ("doubling, onnx, output 'y', case normal-0@n=2: expected dtype float64, got float32", 1),
        ("doubling, onnx, output 'y', case normal-1@n=3: expected shape (1, 3), got (3,)", 1),
        (f"doubling, onnx, output 'y', case normal-2@n=4: {masks}", 1),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "code"), [("match", 0), ("forbid", 1), ("allow", 0)])
def test_nonfinite_policy(tmp_path: Path, policy: str, code: int):
    """The contract's policy is part of the kit."""
    output = KitOutput(name="y", graph_name="y", dtype="float32", tolerance=LOOSE, nonfinite=policy)  # type: ignore[arg-type]
    kit = write_kit(tmp_path / "kit")
    for name, scale in (("input_0.pb", 1), ("output_0.pb", 2)):
        values = np.array([np.inf, scale], dtype=np.float32)
        write_tensor(kit / "test_data_set_0" / name, values, name[0].replace("i", "x").replace("o", "y"))
    assert replayed(list_again(kit, outputs=(output,))).exit_code == code


@pytest.mark.slow
def test_output_names_of_contract_and_graph(tmp_path: Path):
    """Messages use the contract's names, files the graph's; a leaf that is not a number makes another structure."""
    outputs = (
        KitOutput(name="scores", graph_name="y", dtype="float32", tolerance=LOOSE),
        KitOutput(name="extra", graph_name="extra", dtype="object", tolerance=Tolerance(atol=0, rtol=0)),
    )
    found = replayed(write_kit(tmp_path / "kit", outputs=outputs))
    assert [message.partition(": ")[0] for message, _ in messages(found)] == ["doubling, onnx, case normal-0@n=2"]
    assert messages(found)[0][1] == 3
    assert found.exit_code == 1
    assert replayed(list_again(tmp_path / "kit", outputs=outputs[:1])).exit_code == 0


@pytest.mark.slow
def test_outputs_that_are_not_compared_may_be_anything(tmp_path: Path):
    """An ignored output differs from its file, and one that is None has no place in the graph."""
    ignored = KitOutput(name="aux", graph_name="y", dtype="float32", tolerance=LOOSE, is_compared=False)
    graph = model(DOUBLED, helper.make_node("Identity", ["x"], ["kept"]))
    graph.graph.output.append(helper.make_tensor_value_info("kept", TensorProto.FLOAT, ["n"]))
    outputs = (
        ignored,
        KitOutput(name="loss", graph_name="loss", dtype="None", tolerance=LOOSE),
        KitOutput(name="kept", graph_name="kept", dtype="float32", tolerance=LOOSE),
    )
    kit = write_kit(
        tmp_path / "kit", graph, outputs=(KitOutput(name="y", graph_name="y", dtype="float32", tolerance=LOOSE),)
    )
    for number in range(3):
        folder = kit / f"test_data_set_{number}"
        write_tensor(folder / "output_0.pb", np.full(2 + number, 7, np.float32), "y")
        write_tensor(folder / "output_1.pb", np.linspace(-1, 1, 2 + number, dtype=np.float32), "kept")
    assert replayed(list_again(kit, outputs=outputs)).exit_code == 0
    write_tensor(kit / "test_data_set_2" / "output_1.pb", np.full(4, 7, np.float32), "kept")
    assert [count for _, count in messages(replayed(list_again(kit, outputs=outputs)))] == [1]


@pytest.mark.slow
def test_only_what_a_mask_keeps_is_compared(tmp_path: Path):
    """A difference where the mask is false is none; one where it is true still is."""
    kit = write_kit(tmp_path / "kit")
    write_tensor(kit / "test_data_set_0" / "output_0.pb", np.array([-2, 7], np.float32), "y")
    for kept, code in (([True, False], 0), ([False, True], 1)):
        write_tensor(kit / "test_data_set_0" / "compared_0.pb", np.array(kept), "y")
        assert replayed(list_again(kit)).exit_code == code
    write_tensor(kit / "test_data_set_0" / "compared_0.pb", np.array([True]), "y")
    assert "compared_0.pb: expected a bool for each element of the output" in refusal(list_again(kit))


@pytest.mark.slow
def test_a_python_float_may_be_float32(tmp_path: Path):
    """Eager's Python float counts as the float32 that an artifact returns, as in `run`."""
    node = helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)
    output = KitOutput(name="y", graph_name="y", dtype="float64", python=True, tolerance=LOOSE)
    kit = write_kit(tmp_path / "kit", model(node))
    for number in range(3):
        write_tensor(kit / f"test_data_set_{number}" / "output_0.pb", np.float64(0), "y")
    assert replayed(list_again(kit, outputs=(output,))).exit_code == 0


@pytest.mark.slow
def test_bfloat16_in_and_out(tmp_path: Path):
    """bfloat16, which NumPy does not have, can be input and output, and is compared."""
    graph = model(helper.make_node("Identity", ["x"], ["y"]), element=TensorProto.BFLOAT16)
    kit = write_kit(tmp_path / "kit", graph)
    for number in range(3):
        for name, tensor in (("input_0.pb", "x"), ("output_0.pb", "y")):
            leaf = Leaf(name=tensor, dtype="bfloat16", value=np.array([1.5, np.inf], dtype=np.float32))
            (kit / f"test_data_set_{number}" / name).write_bytes(tensor_bytes(leaf, tensor))
    output = KitOutput(name="y", graph_name="y", dtype="bfloat16", tolerance=LOOSE)
    assert replayed(list_again(kit, outputs=(output,))).exit_code == 0
    wrong = Leaf(name="y", dtype="bfloat16", value=np.array([1.0, np.inf], dtype=np.float32))
    (kit / "test_data_set_1" / "output_0.pb").write_bytes(tensor_bytes(wrong, "y"))
    assert [m for m, _ in messages(replayed(list_again(kit, outputs=(output,))))] == [
        "doubling, onnx, output 'y', case normal-1@n=3: max |P-M| 0.5 > 1.0e-05 + 1.0e-05 * 1 = 2.0e-05"
    ]


@pytest.mark.slow
def test_a_run_that_fails(tmp_path: Path):
    """An exception of ONNX Runtime is a difference of the artifact: its remaining data sets have no result."""
    found = replayed(
        write_kit(tmp_path / "kit", model(helper.make_node("Add", ["x", "x"], ["y"]), element=TensorProto.DOUBLE))
    )
    ((message, _),) = messages(found)
    assert message.startswith("doubling, onnx, case normal-0@n=2: run failed: InvalidArgument: Unexpected input")
    assert (found.exit_code, found.conforming) == (1, 0)


@pytest.mark.slow
def test_a_graph_that_onnx_runtime_does_not_load(tmp_path: Path):
    """If an older ONNX Runtime does not load the graph, the exit code is 1: the artifact does not run there."""
    found = replayed(write_kit(tmp_path / "kit", model(helper.make_node("NoSuchOperator", ["x"], ["y"]))))
    ((message, _),) = messages(found)
    assert message.startswith("doubling, onnx: load failed: ")
    assert found.exit_code == 1


@pytest.mark.slow
def test_a_weight_of_a_claimed_size(tmp_path: Path):
    """A graph that claims a weight of 4 TB is not loaded, and the claim uses no memory."""
    weight = TensorProto(name="w", data_type=1, dims=[2**40], raw_data=b"1234")
    graph = model(helper.make_node("Add", ["x", "w"], ["y"]))
    graph.graph.initializer.append(weight)
    found = replayed(write_kit(tmp_path / "kit", graph))
    ((message, _),) = messages(found)
    assert message.startswith("doubling, onnx: load failed: ")
    assert found.exit_code == 1


@pytest.mark.slow
def test_a_death_is_a_difference(tmp_path: Path):
    """If the process dies in the model, that is the artifact's failure, with the data set at which it died."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import os, sys\n"
        "class Session:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'onnxruntime' and not sys.modules.get('patched'):\n"
        "            sys.modules['patched'] = sys\n"
        "            import onnxruntime\n"
        "            onnxruntime.InferenceSession.run = lambda *a: os.abort()\n"
        "sys.meta_path.insert(0, Session())\n"
    )
    found = replayed(write_kit(tmp_path / "kit"), PYTHONPATH=str(tmp_path / "site"))
    wanted = "doubling, onnx, case normal-0@n=2: run failed: SIGABRT: the process was killed"
    assert (found.exit_code, messages(found)) == (1, [(wanted, 1)])


@pytest.mark.slow
def test_separate_exports(tmp_path: Path):
    """Each export has its own file and data sets; all of them must conform."""
    kit = write_kit(tmp_path / "kit")
    (kit / "n=2").mkdir()
    (kit / "test_data_set_0").rename(kit / "n=2" / "test_data_set_0")
    onnx.save(model(helper.make_node("Neg", ["x"], ["y"])), kit / "n=2" / "model.onnx")
    main, alone = (
        tuple(DataSet(folder=f"test_data_set_{n}", case=f"normal-{n}@n={n + 2}") for n in numbers)
        for numbers in ((1, 2), (0,))
    )
    exports = (
        KitExport(inputs=("x",), data_sets=main),
        KitExport(folder="n=2", separate={"n": 2}, inputs=("x",), data_sets=alone),
    )
    found = replayed(list_again(kit, exports=exports))
    assert (found.conforming, found.exit_code) == (2, 1)
    assert [message.partition(": ")[0] for message, _ in messages(found)] == [
        "doubling, onnx, output 'y', case normal-0@n=2"
    ]


def truncated(kit: Path) -> None:
    """A tensor lacks its last bytes."""
    place = kit / "test_data_set_0" / "input_0.pb"
    place.write_bytes(place.read_bytes()[:-3])


def huge(kit: Path) -> None:
    """A tensor claims a shape that its bytes do not fill."""
    claim = onnx.TensorProto(name="x", data_type=1, dims=[2**40], raw_data=b"1234")
    (kit / "test_data_set_0" / "input_0.pb").write_bytes(claim.SerializeToString())


def other_name(kit: Path) -> None:
    """A tensor has another name."""
    write_tensor(kit / "test_data_set_0" / "input_0.pb", np.float32([1, 2]), "z\n")


def pickled(kit: Path) -> None:
    """A pickle instead of a tensor."""
    import pickle

    (kit / "test_data_set_0" / "input_0.pb").write_bytes(pickle.dumps(np.float32([1, 2])))


def no_model(kit: Path) -> None:
    """Bytes instead of a model."""
    (kit / "model.onnx").write_bytes(b"\xff" * 100)


def other_input(kit: Path) -> None:
    """The model calls its input otherwise."""
    node = helper.make_node("Add", ["x\n", "x\n"], ["y"])
    value = helper.make_tensor_value_info("x\n", 1, ["n"])
    graph = helper.make_graph([node], "g", [value], [helper.make_tensor_value_info("y", 1, ["n"])])
    onnx.save(helper.make_model(graph), kit / "model.onnx")


def weights_at(location: str) -> Callable[[Path], None]:
    """The model's weights are in that file, in a subgraph of it."""

    def change(kit: Path) -> None:
        weight = onnx.TensorProto(name="w", data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
        weight.external_data.add(key="location", value=location)
        inner = helper.make_graph(
            [helper.make_node("Add", ["x", "w"], ["z"])],
            "inner",
            [],
            [helper.make_tensor_value_info("z", 1, None)],
            [weight],
        )
        yes = helper.make_node("Constant", [], ["yes"], value=numpy_helper.from_array(np.array(True), "yes"))
        branch = helper.make_node("If", ["yes"], ["y"], then_branch=inner, else_branch=inner)
        onnx.save(model(yes, branch), kit / "model.onnx")

    return change


FIRST = "KIT/test_data_set_0/input_0.pb"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (truncated, f"{FIRST}: not a TensorProto"),
        (huge, f"{FIRST}: shape [1099511627776] of float32 does not fit its 4 bytes of values"),
        (other_name, rf"{FIRST}: contains the tensor 'z\n', expected 'x'"),
        (pickled, f"{FIRST}: not a TensorProto"),
        (no_model, "KIT/model.onnx: not an ONNX model: DecodeError"),
        (other_input, r"KIT/model.onnx: its inputs are 'x\n'; kit.json has 'x'"),
        (
            weights_at("/etc/passwd"),
            "KIT/model.onnx: its weights are in '/etc/passwd', a file that kit.json does not list",
        ),
        (weights_at("../../w"), "KIT/model.onnx: its weights are in '../../w', a file that kit.json does not list"),
    ],
)
def test_hostile_files_with_right_digests(tmp_path: Path, change: Callable[[Path], None], message: str):
    """An attacker can list files too: one line says what is wrong, and nothing outside the kit is read."""
    kit = write_kit(tmp_path / "kit")
    change(kit)
    assert refusal(list_again(kit)) == message


@pytest.mark.slow
def test_weights_beside_the_graph(tmp_path: Path):
    """External data that the manifest lists is used, also in a folder of its own."""
    kit = write_kit(tmp_path / "kit")
    weights_at("./more/weights.bin")(kit)
    (kit / "more").mkdir()
    (kit / "more" / "weights.bin").write_bytes(np.float32(1).tobytes())
    for number in range(3):
        x = np.linspace(-1, 1, 2 + number, dtype=np.float32)
        write_tensor(kit / f"test_data_set_{number}" / "output_0.pb", x + 1, "y")
    assert messages(replayed(list_again(kit))) == []


@pytest.mark.slow
def test_no_data_sets_left_out(tmp_path: Path):
    """A data set without a result never counts as one that conforms."""
    kit = write_kit(tmp_path / "kit", model(DOUBLED))
    write_tensor(kit / "test_data_set_1" / "input_0.pb", np.zeros((2, 2), dtype=np.float64), "x")
    found = replayed(list_again(kit))
    assert (found.conforming, found.exit_code, len(found.differences)) == (1, 1, 1)
