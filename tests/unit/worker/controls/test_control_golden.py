from pathlib import Path
from typing import Any

import numpy as np
import pytest
from control_samples import BATCH, contract, tensor, with_golden

from export_gate.wall.contract import Controls, GoldenSource, ModelContract, Output
from export_gate.wall.errors import UserError
from export_gate.worker.controls.build import build_control_set

X = tensor("float32", "batch", 3)
PLACE = "models.m.controls.golden[0]: g.npz"


def golden(model: ModelContract, base: Path):
    """The golden cases of the model's control set."""
    return [case for case in build_control_set(model, base).cases if case.group == "golden"]


def saved(base: Path, **arrays: Any):
    """Write g.npz."""
    np.savez(base / "g.npz", **arrays)


def rows(count: int):
    """Distinct numbers."""
    return np.arange(3.0 * count, dtype=np.float32).reshape(count, 3)


def refusal(model: ModelContract, base: Path):
    """The message of the mistake."""
    with pytest.raises(UserError) as caught:
        build_control_set(model, base)
    return caught.value.text


def test_arrays_of_the_declared_shape_are_one_call(tmp_path: Path):
    """A file of one batch is one case with the outputs as they are."""
    saved(tmp_path, x=rows(4), output=rows(4) * 2)
    (case,) = golden(with_golden(BATCH, path="g.npz", inputs={"x": X}), tmp_path)
    assert (case.name, case.golden) == ("golden.g-1@batch=4", 0)
    assert case.make()["x"].numpy().tolist() == rows(4).tolist()
    (leaf,) = case.expected
    assert (leaf.name, leaf.dtype, leaf.value.tolist()) == ("output", "float32", (rows(4) * 2).tolist())


def test_more_rows_than_a_batch_are_cut_with_their_outputs(tmp_path: Path):
    """40 rows with batch up to 16 are batches, each with its own outputs."""
    saved(tmp_path, x=rows(40), output=rows(40) * 2)
    cases = golden(with_golden(BATCH, path="g.npz", inputs={"x": X}), tmp_path)
    assert len(cases) > 1
    for case in cases:
        assert np.array_equal(case.expected[0].value, case.make()["x"].numpy() * 2)


def test_an_axis_of_samples_is_one_call_each(tmp_path: Path):
    """With an axis before the declared shape, each sample has its own output."""
    saved(tmp_path, x=np.stack([rows(4), rows(4) + 1]), output=np.stack([np.float32(1), np.float32(2)]))
    cases = golden(with_golden(BATCH, path="g.npz", inputs={"x": X}), tmp_path)
    assert [float(case.expected[0].value) for case in cases] == [1, 2]
    assert [case.expected[0].value.shape for case in cases] == [(), ()]


def test_outputs_are_mapped_declared_or_all_other_keys(tmp_path: Path):
    """`outputs` maps names to keys; else declared outputs are read; else every key that is no input."""
    saved(tmp_path, x=rows(4), y=rows(4), z=rows(4))
    source = GoldenSource(path="g.npz", outputs={"logits": "y"})
    mapped = contract(BATCH, controls=Controls(golden=(source,)), x=X)
    declared = with_golden(BATCH, path="g.npz", inputs={"x": X}, outputs=(Output(name="z"),))
    plain = with_golden(BATCH, path="g.npz", inputs={"x": X})
    found = [[leaf.name for leaf in golden(model, tmp_path)[0].expected] for model in (mapped, declared, plain)]
    assert found == [["logits"], ["z"], ["y", "z"]]


def test_goldens_come_before_functions_and_data(tmp_path: Path):
    """The limit drops none of the project's own cases while generated cases are left."""
    saved(tmp_path, x=rows(4), output=rows(4))
    model = with_golden(BATCH, path="g.npz", inputs={"x": X})
    order = [case.group for case in build_control_set(model, tmp_path).cases]
    assert order.index("golden") < len(order) - 1 - order[::-1].index("generated")


def test_a_file_without_outputs_is_refused(tmp_path: Path):
    """A golden file with inputs alone checks nothing, so it is refused."""
    saved(tmp_path, x=rows(4))
    assert refusal(with_golden(BATCH, path="g.npz", inputs={"x": X}), tmp_path) == (
        f"{PLACE}: expected outputs beside the inputs, the file has only x\n"
        "Store each output under its name, or map it with `outputs`."
    )


def test_a_missing_output_key_lists_those_that_exist(tmp_path: Path):
    """A declared output must be in the file."""
    saved(tmp_path, x=rows(4), y=rows(4))
    model = with_golden(BATCH, path="g.npz", inputs={"x": X}, outputs=(Output(name="logits"),))
    assert refusal(model, tmp_path) == (
        f"{PLACE}: outputs: expected a key 'logits', the file has 'x', 'y'\nName one of those keys."
    )


def test_goldens_need_every_input(tmp_path: Path):
    """There is no expected output for drawn inputs."""
    saved(tmp_path, x=rows(4), output=rows(4))
    source = GoldenSource(path="g.npz", inputs={"x": "x"})
    model = contract(BATCH, controls=Controls(golden=(source,)), x=X, m=tensor("bool", "batch"))
    assert refusal(model, tmp_path) == (
        f"{PLACE}: expected every tensor input, 'm' is not in `inputs`\n"
        "Expected outputs only hold for whole inputs; add its key."
    )


def test_outputs_of_another_length_are_refused(tmp_path: Path):
    """Rows that make several calls need outputs for each row."""
    saved(tmp_path, x=rows(40), output=rows(39))
    assert refusal(with_golden(BATCH, path="g.npz", inputs={"x": X}), tmp_path) == (
        f"{PLACE}: output 'output': expected 40 samples along the first axis, got shape [39, 3]\n"
        "Inputs that make several calls need outputs for each."
    )


def test_outputs_that_are_no_numbers_are_refused(tmp_path: Path):
    """A column of names is not an output."""
    saved(tmp_path, x=rows(4), names=np.array(["a", "b", "c", "d"]))
    assert refusal(with_golden(BATCH, path="g.npz", inputs={"x": X}), tmp_path) == (
        f"{PLACE}: output 'names': expected numbers, got dtype <U1\n"
        "Map the outputs with `outputs: {name: key in the file}`."
    )
