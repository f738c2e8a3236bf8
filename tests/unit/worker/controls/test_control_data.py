import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from control_samples import BATCH, contract, tensor, with_data

from export_gate.wall.contract import Controls, DataSource, Dim, ModelContract
from export_gate.wall.errors import UserError
from export_gate.worker.controls.build import build_control_set
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.sample import choose_samples
from export_gate.worker.controls.stream import Stream

IMAGE = tensor("float32", "batch", 1, 4, 4, range=(0, 1))
COUNT = 60


@pytest.fixture
def split(tmp_path: Path):
    """60 images of 30 scenes (two each) in 3 classes; image i holds i / 60 everywhere."""
    label = np.arange(COUNT) % 3
    scene = np.arange(COUNT) // 2
    image = np.broadcast_to((np.arange(COUNT) / COUNT).astype(np.float32)[:, None, None, None], (COUNT, 1, 4, 4))
    np.savez(tmp_path / "split.npz", images=image, x=image, label=label, scene=scene)
    return tmp_path


def data(model: ModelContract, base: Path):
    """The data cases of the model's control set."""
    return [case for case in build_control_set(model, base).cases if case.group == "data"]


def indices(cases: list[ControlCase]):
    """The samples of the split that the cases contain."""
    return [round(float(row.max()) * COUNT) for case in cases for row in case.make()["x"]]


def refusal(model: ModelContract, base: Path):
    """The message of the mistake."""
    with pytest.raises(UserError) as caught:
        build_control_set(model, base)
    return caught.value.text


def sampled(base: Path, **source: Any):
    """The cases of the split."""
    return data(with_data(BATCH, path="split.npz", inputs={"x": IMAGE}, **source), base)


def test_samples_are_stratified_and_grouped(split: Path):
    """Of 60 images in 30 scenes and 3 classes, 12 are taken: 4 of each class, no scene twice."""
    chosen = indices(sampled(split, count=12, stratify="label", group="scene"))
    assert len(set(chosen)) == 12
    assert [sum(i % 3 == label for i in chosen) for label in range(3)] == [4, 4, 4]
    assert len({i // 2 for i in chosen}) == 12


def test_every_scene_gives_one_before_any_gives_a_second(split: Path):
    """Of 60 images, 45 are taken: one of each of the 30 scenes, a second of 15, and 15 images of each class."""
    chosen = indices(sampled(split, count=45, stratify="label", group="scene"))
    scenes = [i // 2 for i in chosen]
    assert len(set(scenes)) == 30
    assert [sum(i % 3 == label for i in chosen) for label in range(3)] == [15, 15, 15]


def test_rare_scenes_are_left_for_the_class_that_needs_them():
    """Class a is in scene 1 alone, class b in scenes 1 and 2: one of each is two scenes, for every seed."""
    for seed in range(20):
        chosen = choose_samples(2, ["a", "b", "b"], [1, 1, 2], Stream(seed, "s"))
        assert chosen == (0, 2)


def test_a_small_class_leaves_its_places_to_others():
    """Where a class has fewer samples than its share, the others fill up."""
    chosen = choose_samples(6, ["a"] + ["b"] * 9, list(range(10)), Stream(3, "s"))
    assert len(chosen) == 6
    assert 0 in chosen


def test_the_seed_chooses(split: Path):
    """The same seed takes the same samples, and another seed takes others."""
    models = [
        contract(BATCH, controls=Controls(seed=seed, data=(DataSource(path="split.npz", count=12),)), x=IMAGE)
        for seed in (1, 1, 2)
    ]
    one, again, other = (indices(data(model, split)) for model in models)
    assert one == again != other


def test_samples_are_batched_evenly(split: Path):
    """12 samples with a reference batch of 9 are two batches of 6; names count from 1."""
    assert [case.name for case in sampled(split, count=12)] == ["data.split-1@batch=6", "data.split-2@batch=6"]


def test_a_last_batch_is_filled_from_the_first_samples(split: Path):
    """13 samples are 9 and 4, and the second batch is filled up."""
    cases = sampled(split, count=13)
    assert [case.sizes["batch"] for case in cases] == [9, 9]
    assert len(set(indices(cases))) == 13


def test_one_sample_fills_the_smallest_batch(split: Path):
    """A single sample is repeated where the batch must be 2."""
    cases = sampled(split, count=1)
    assert [case.sizes["batch"] for case in cases] == [2]
    assert len(set(indices(cases))) == 1


def test_all_samples_are_taken_without_a_count(split: Path):
    """Without `count` every sample is there once."""
    assert sorted(indices(sampled(split))) == list(range(COUNT))


def test_names_are_mapped_to_keys(tmp_path: Path):
    """`inputs: {x: images}` reads the key images."""
    np.savez(tmp_path / "d.npz", images=np.zeros((4, 1, 4, 4), np.float32))
    source = DataSource(path="d.npz", inputs={"x": "images"})
    assert len(data(contract(BATCH, controls=Controls(data=(source,)), x=IMAGE), tmp_path)) == 1


def test_a_shape_without_batch_takes_one_sample_each(tmp_path: Path):
    """An array with an axis before the declared shape is one sample per case."""
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    cases = data(with_data(path="x.npy", inputs={"x": tensor("float32", 2)}), tmp_path)
    assert [case.make()["x"].tolist() for case in cases] == [[0, 1], [2, 3], [4, 5]]
    assert cases[0].name == "data.x-1"


def test_other_dims_are_read_off_the_samples(tmp_path: Path):
    """Lengths of the samples decide the sizes of their dims."""
    np.savez(tmp_path / "d.npz", ids=np.zeros((4, 7), np.int64))
    dims = (Dim(name="batch", min=1, max=4), Dim(name="seq", min=1, max=9))
    ids = tensor("int64", "batch", "seq", range=(0, 9))
    cases = data(with_data(*dims, path="d.npz", inputs={"ids": ids}), tmp_path)
    assert {case.sizes["seq"] for case in cases} == {7}


def test_inputs_that_the_file_lacks_are_drawn(split: Path):
    """With `inputs`, tensors that are not mapped get their base draw, and a note says so."""
    model = contract(
        BATCH,
        controls=Controls(data=(DataSource(path="split.npz", count=4, inputs={"x": "images"}),)),
        x=IMAGE,
        m=tensor("bool", "batch"),
    )
    found = build_control_set(model, split)
    case = next(case for case in found.cases if case.group == "data")
    assert case.make()["m"].shape == (4,)
    assert found.notes == ("split.npz: not in the file, drawn instead: m",)


def test_each_call_is_fresh(split: Path):
    """A model that writes into a data input does not change the next call."""
    case = sampled(split, count=4)[0]
    case.make()["x"].zero_()
    assert case.make()["x"].max() > 0


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".pt", ".safetensors"])
def test_every_format_reads_alike(tmp_path: Path, suffix: str):
    """.npz, .npy, .pt and .safetensors hold the same samples."""
    x = torch.rand(4, 3)
    path = tmp_path / f"d{suffix}"
    if suffix == ".npz":
        np.savez(path, x=x.numpy())
    elif suffix == ".npy":
        np.save(path, x.numpy())
    elif suffix == ".pt":
        torch.save({"x": x}, path)
    else:
        pytest.importorskip("safetensors.torch").save_file({"x": x}, path)
    model = with_data(BATCH, path=path.name, inputs={"x": tensor("float32", "batch", 3)})
    assert torch.equal(data(model, tmp_path)[0].make()["x"], x)


def test_bfloat16_data_is_read_from_tensors(tmp_path: Path):
    """bfloat16 has no NumPy type, but .pt files can hold it."""
    torch.save({"x": torch.ones(4, 3, dtype=torch.bfloat16)}, tmp_path / "d.pt")
    model = with_data(BATCH, path="d.pt", inputs={"x": tensor("bfloat16", "batch", 3)})
    assert data(model, tmp_path)[0].make()["x"].dtype == torch.bfloat16


X = tensor("float32", "batch", 3, range=(0, 1))
PLACE = "models.m.controls.data[0]: d.npz"


def saved(base: Path, **arrays: Any):
    """Write d.npz, and refuse it."""
    np.savez(base / "d.npz", **arrays)
    return lambda **source: refusal(with_data(BATCH, path="d.npz", inputs={"x": X}, **source), base)


def rows(count: int = 4, value: float = 0.5, dtype: type = np.float32):
    """An array of equal values."""
    return np.full((count, 3), value, dtype)


def test_a_missing_file_is_named(tmp_path: Path):
    """The message says where the file was looked for."""
    assert refusal(with_data(BATCH, path="d.npz", inputs={"x": X}), tmp_path) == (
        f"{PLACE}: expected a file at {tmp_path / 'd.npz'}, there is none\nThe path starts at the config's folder."
    )


def test_another_kind_of_file_is_refused(tmp_path: Path):
    """The message lists the formats."""
    (tmp_path / "d.csv").write_text("1,2")
    assert refusal(with_data(BATCH, path="d.csv", inputs={"x": X}), tmp_path) == (
        "models.m.controls.data[0]: d.csv: expected .npz, .npy, .safetensors, .pt or a folder of images, got d.csv\n"
        "Convert the file."
    )


def test_a_git_lfs_pointer_is_named_as_such(tmp_path: Path):
    """A file that Git LFS has not fetched is not reported as a damaged archive."""
    (tmp_path / "d.npz").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n")
    assert refusal(with_data(BATCH, path="d.npz", inputs={"x": X}), tmp_path) == (
        f"{PLACE}: expected data in d.npz, got a Git LFS pointer\n"
        "Fetch it with `git lfs pull` (in a workflow: actions/checkout with `lfs: true`)."
    )


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".pt", ".safetensors"])
@pytest.mark.parametrize("kept", [0, 3, 0.5, 0.9])
def test_a_truncated_file_is_said_to_be_damaged(tmp_path: Path, suffix: str, kept: float):
    """A file that is cut anywhere gives a clear message, never a traceback."""
    if suffix == ".safetensors":
        pytest.importorskip("safetensors.torch")
    path = tmp_path / f"d{suffix}"
    {
        ".npz": lambda: np.savez(path, x=rows(99)),
        ".npy": lambda: np.save(path, rows(99)),
        ".pt": lambda: torch.save({"x": torch.ones(99, 3)}, path),
        ".safetensors": lambda: sys.modules["safetensors.torch"].save_file({"x": torch.ones(99, 3)}, path),
    }[suffix]()
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept) if kept < 1 else kept])
    message = refusal(with_data(BATCH, path=path.name, inputs={"x": X}), tmp_path)
    assert message.startswith(
        f"models.m.controls.data[0]: {path.name}: expected a readable {suffix} file, reading {path.name} failed: "
    )
    assert message.endswith("\nThe file is truncated, damaged, or holds pickled objects; write it again.")


def test_a_damaged_member_is_said_to_be_damaged(tmp_path: Path):
    """An archive whose directory is whole but whose array is not is refused as well."""
    np.savez_compressed(tmp_path / "d.npz", x=np.random.default_rng(0).random((40, 3), np.float32))
    content = bytearray((tmp_path / "d.npz").read_bytes())
    content[120:160] = bytes(40)
    (tmp_path / "d.npz").write_bytes(bytes(content))
    message = refusal(with_data(BATCH, path="d.npz", inputs={"x": X}), tmp_path)
    assert message.startswith(f"{PLACE}: expected a readable .npz file, reading d.npz failed: ")


def test_pickled_objects_are_refused(tmp_path: Path):
    """Neither NumPy objects nor anything else in a .pt is unpickled."""
    refuse = saved(tmp_path, x=np.array([{"a": 1}], dtype=object))
    assert refuse() == (
        f"{PLACE}: expected a readable .npz file, reading d.npz failed: ValueError: Object arrays cannot be loaded when"
        " allow_pickle=False\nThe file is truncated, damaged, or holds pickled objects; write it again."
    )
    torch.save({"x": Path("/tmp")}, tmp_path / "d.pt")
    message = refusal(with_data(BATCH, path="d.pt", inputs={"x": X}), tmp_path)
    assert "reading d.pt failed: UnpicklingError: " in message


def test_a_pt_file_must_be_a_dict_of_tensors(tmp_path: Path):
    """The message shows how to save it."""
    torch.save([torch.ones(2)], tmp_path / "d.pt")
    assert refusal(with_data(BATCH, path="d.pt", inputs={"x": X}), tmp_path) == (
        "models.m.controls.data[0]: d.pt: expected a dict of tensors in d.pt, got list\n"
        "Save it as torch.save({'x': x}, path)."
    )


def test_a_missing_key_lists_those_that_exist(tmp_path: Path):
    """The message lists the keys of the file."""
    assert saved(tmp_path, images=rows(), label=np.zeros(4))() == (
        f"{PLACE}: expected a key 'x', the file has 'images', 'label'\nName one of those keys."
    )


def test_a_missing_label_key_says_what_it_is_for(tmp_path: Path):
    """`stratify` and `group` name keys too."""
    assert saved(tmp_path, x=rows())(count=2, stratify="label") == (
        f"{PLACE}: stratify: expected a key 'label', the file has 'x'\nName one of those keys."
    )


def test_an_unknown_input_is_named(tmp_path: Path):
    """`inputs` may only name tensor inputs."""
    np.savez(tmp_path / "d.npz", x=rows())
    model = contract(BATCH, controls=Controls(data=(DataSource(path="d.npz", inputs={"y": "x"}),)), x=X)
    assert refusal(model, tmp_path) == (
        f"{PLACE}: inputs: expected names of tensor inputs (x), got 'y'\nWrite `inputs: {{input: key in the file}}`."
    )


def test_another_dtype_is_refused(tmp_path: Path):
    """float64 is not silently rounded to float32."""
    assert saved(tmp_path, x=rows(dtype=np.float64))() == (
        f"{PLACE}: input 'x': expected dtype float32, got float64\nStore it as float32, or declare `dtype: float64`."
    )


def test_another_rank_is_refused(tmp_path: Path):
    """The message says what the first axis means."""
    assert saved(tmp_path, x=np.zeros((4, 1, 1, 3), np.float32))() == (
        f"{PLACE}: input 'x': expected an array of shape [samples, batch, 3] or [samples, 3], got [4, 1, 1, 3]\n"
        "The first axis counts the samples."
    )


def test_another_axis_length_is_refused(tmp_path: Path):
    """The axis and both lengths are named."""
    assert saved(tmp_path, x=np.zeros((4, 5), np.float32))() == (
        f"{PLACE}: input 'x': axis 1: expected 3, got 5\nThe declared shape is [batch, 3], the given one [4, 5]."
    )


def test_a_size_outside_the_range_is_refused(tmp_path: Path):
    """Samples longer than the dim allows are the user's mistake."""
    np.savez(tmp_path / "d.npz", ids=np.zeros((4, 12), np.int64))
    model = with_data(
        BATCH, Dim(name="seq", min=1, max=9), path="d.npz", inputs={"ids": tensor("int64", "batch", "seq")}
    )
    assert refusal(model, tmp_path) == (
        f"{PLACE}: dim seq: expected 1..9, got 12\nWiden models.m.dims.seq, or leave this input out."
    )


def test_nan_is_refused_unless_admitted(tmp_path: Path):
    """A NaN in the data is a mistake unless `nonfinite` admits it."""
    assert saved(tmp_path, x=rows(value=np.nan))() == (
        f"{PLACE}: samples 0 to 3: input 'x': expected no NaN (`nonfinite` does not admit it)\n"
        "Correct the values, or declare what the model accepts."
    )
    admitted = tensor("float32", "batch", 3, range=(0, 1), nonfinite=("nan",))
    assert data(with_data(BATCH, path="d.npz", inputs={"x": admitted}), tmp_path)


def test_infinity_is_refused_unless_admitted(tmp_path: Path):
    """So is an infinity."""
    assert "expected no infinity (`nonfinite` does not admit it)" in saved(tmp_path, x=rows(value=-np.inf))()


def test_values_outside_the_range_are_refused(tmp_path: Path):
    """The message has the range and what was found."""
    assert saved(tmp_path, x=rows(value=255))() == (
        f"{PLACE}: samples 0 to 3: input 'x': expected values in [0, 1], got 255 to 255\n"
        "Correct the values, or declare what the model accepts."
    )


def test_values_at_a_rounded_bound_are_inside(tmp_path: Path):
    """float32(0.1) is inside [0, 0.1]."""
    np.savez(tmp_path / "d.npz", x=rows(value=0.1))
    model = with_data(BATCH, path="d.npz", inputs={"x": tensor("float32", "batch", 3, range=(0, 0.1))})
    assert data(model, tmp_path)


def test_values_beside_the_allowed_ones_are_refused(tmp_path: Path):
    """`values` lists all that is allowed."""
    np.savez(tmp_path / "d.npz", x=rows(value=2))
    model = with_data(BATCH, path="d.npz", inputs={"x": tensor("float32", "batch", 3, values=(0, 1))})
    assert refusal(model, tmp_path) == (
        f"{PLACE}: samples 0 to 3: input 'x': expected one of 0, 1, got 2\n"
        "Correct the values, or declare what the model accepts."
    )


def test_labels_of_another_length_are_refused(tmp_path: Path):
    """There must be one label for each sample."""
    assert saved(tmp_path, x=rows(), label=np.zeros(3))(count=2, stratify="label") == (
        f"{PLACE}: stratify: expected 'label' to have one value for each of the 4 samples, got shape [3]\n"
        "Write one value per sample."
    )


def test_a_count_beyond_the_split_is_refused(tmp_path: Path):
    """The message has the number of samples."""
    assert saved(tmp_path, x=rows())(count=5) == (
        f"{PLACE}: count: expected at most the 4 samples of the file, got 5\n"
        "Lower `count`, or leave it out to take all."
    )


def test_inputs_with_unequal_numbers_of_samples_are_refused(tmp_path: Path):
    """Every mapped input must have the same samples."""
    np.savez(tmp_path / "d.npz", x=rows(4), y=rows(5))
    assert refusal(with_data(BATCH, path="d.npz", inputs={"x": X, "y": X}), tmp_path) == (
        f"{PLACE}: expected the same number of samples for each input, got 'x' 4, 'y' 5\nWrite them alike."
    )


def test_a_sample_means_the_same_for_each_input(tmp_path: Path):
    """Rows for one input and whole inputs for another do not fit together."""
    np.savez(tmp_path / "d.npz", x=rows(4), y=np.zeros((4, 2, 3), np.float32))
    assert refusal(with_data(BATCH, path="d.npz", inputs={"x": X, "y": X}), tmp_path) == (
        f"{PLACE}: expected a sample to mean the same for each input, got 'x' one row, 'y' the whole input\n"
        "Give all arrays an axis of samples before the declared shape, or none of them."
    )


def test_an_empty_array_is_refused(tmp_path: Path):
    """Without samples there is no control input."""
    assert saved(tmp_path, x=rows(0))() == (
        f"{PLACE}: expected samples, got none\nThe first axis of every array is empty."
    )


def test_a_missing_safetensors_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The message has the install line."""
    (tmp_path / "d.safetensors").write_bytes(b"12345678")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    assert refusal(with_data(BATCH, path="d.safetensors", inputs={"x": X}), tmp_path) == (
        "models.m.controls.data[0]: d.safetensors: expected the package safetensors to read d.safetensors, it is not"
        " installed\nInstall it in the project's environment: pip install safetensors"
    )
