import sys
from pathlib import Path
from typing import Any

import pytest
from control_samples import BATCH, tensor, with_data

from export_gate.wall.contract import Dim, TensorSpec
from export_gate.wall.errors import UserError
from export_gate.worker.controls.build import build_control_set

PLACE = "models.m.controls.data[0]: images"
GRAY = tensor("float32", "batch", 1, 4, 6, range=(0, 1))


@pytest.fixture
def folder(tmp_path: Path):
    """Four 6x4 images in two folders: pixel (x, y) of image i is (10i, x, y)."""
    image = pytest.importorskip("PIL.Image")
    for index in range(4):
        path = tmp_path / "images" / "ab"[index % 2] / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        made = image.new("RGB", (6, 4))
        made.putdata([(10 * index, x, y) for y in range(4) for x in range(6)])
        made.save(path)
    return tmp_path


def cases(base: Path, spec: TensorSpec, *dims: Any, **source: Any):
    """The image cases."""
    model = with_data(*(dims or (BATCH,)), path="images", inputs={"x": spec}, **source)
    return [case for case in build_control_set(model, base).cases if case.group == "data"]


def refusal(base: Path, spec: TensorSpec, **source: Any):
    """The message of the mistake."""
    with pytest.raises(UserError) as caught:
        cases(base, spec, **source)
    return caught.value.text


def test_uint8_images_are_kept(folder: Path):
    """Colour images become uint8[batch, 3, height, width]."""
    (case,) = cases(folder, tensor("uint8", "batch", 3, 4, 6))
    x = case.make()["x"]
    assert x.shape == (4, 3, 4, 6)
    assert sorted(x[:, 0, 0, 0].tolist()) == [0, 10, 20, 30]
    assert x[0, 1, 0].tolist() == list(range(6))
    assert x[0, 2, :, 0].tolist() == list(range(4))


def test_float_images_are_scaled_to_the_range(folder: Path):
    """[0, 1] divides by 255, [0, 255] does not."""
    unit = cases(folder, tensor("float32", "batch", 3, 4, 6, range=(0, 1)))[0].make()["x"]
    whole = cases(folder, tensor("float32", "batch", 3, 4, 6, range=(0, 255)))[0].make()["x"]
    assert (unit * 255 - whole).abs().max() < 1e-5
    assert whole.max().item() == 30


def test_one_channel_is_gray(folder: Path):
    """A shape with one channel takes luminance."""
    assert cases(folder, GRAY)[0].make()["x"].shape == (4, 1, 4, 6)


def test_a_shape_without_batch_takes_one_image(folder: Path):
    """[C, H, W] is one case per image."""
    assert len(cases(folder, tensor("uint8", 3, 4, 6))) == 4


def test_folders_are_labels(folder: Path):
    """Images can be stratified by the name of their folder."""
    (case,) = cases(folder, tensor("uint8", "batch", 3, 4, 6), count=2, stratify="label")
    reds = case.make()["x"][:, 0, 0, 0].tolist()
    assert {red // 10 % 2 for red in reds} == {0, 1}


def test_images_of_another_size_are_refused(folder: Path):
    """Images are never resized silently."""
    assert refusal(folder, tensor("uint8", "batch", 3, 8, 6)) == (
        f"{PLACE}: input 'x': axis 2: expected 8, got 4\n"
        "The declared shape is [batch, 3, 8, 6], the given one [4, 3, 4, 6]."
    )


def test_images_of_several_sizes_are_batched_apart(folder: Path):
    """If height and width may vary, images of the same size are batched together."""
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (9, 9)).save(folder / "images" / "z.png")
    dims = (Dim(name="batch", min=1, max=8), Dim(name="h", min=1, max=9), Dim(name="w", min=1, max=9))
    found = cases(folder, tensor("uint8", "batch", 3, "h", "w"), *dims)
    assert [(case.sizes["h"], case.sizes["w"]) for case in found] == [(4, 6), (9, 9)]


def test_a_float_range_must_say_the_scale(folder: Path):
    """Without [0, 1] or [0, 255] the scale is not known."""
    assert refusal(folder, tensor("float32", "batch", 3, 4, 6, range=(-1, 1))) == (
        f"{PLACE}: input 'x': expected a range of [0, 1] or [0, 255] for images, got [-1, 1]\n"
        "Declare one of them, or store normalised arrays in .npz."
    )


def test_images_need_a_channel_axis(folder: Path):
    """The last three axes are channels, height and width."""
    assert refusal(folder, tensor("uint8", "batch", 2, 4, 6)) == (
        f"{PLACE}: input 'x': expected a shape that ends in [1, 3 or 4 channels, height, width] for images, got"
        " [batch, 2, 4, 6]\nStore the arrays in .npz instead."
    )


def test_images_are_uint8_or_floating(folder: Path):
    """Other integers have no common scale."""
    assert refusal(folder, tensor("int64", "batch", 3, 4, 6)) == (
        f"{PLACE}: input 'x': expected uint8 or a floating dtype for images, got int64\n"
        "Store the arrays in .npz instead."
    )


def test_a_damaged_image_is_named(folder: Path):
    """The message has the file's name."""
    path = folder / "images" / "a" / "0.png"
    path.write_bytes(path.read_bytes()[:40])
    message = refusal(folder, tensor("uint8", "batch", 3, 4, 6))
    assert message.startswith(f"{PLACE}: expected a readable image, reading 0.png failed: ")
    assert message.endswith("\nWrite the file again.")


def test_deep_images_are_refused(folder: Path):
    """16 bits per channel would be reduced to 8, so they are refused."""
    image = pytest.importorskip("PIL.Image")
    image.new("I;16", (6, 4)).save(folder / "images" / "a" / "0.png")
    assert refusal(folder, GRAY) == (
        f"{PLACE}: expected 8 bits per channel in 0.png, got mode I;16\nStore the arrays in .npz instead."
    )


def test_a_folder_without_images_is_refused(tmp_path: Path):
    """The message says what was looked for."""
    (tmp_path / "images").mkdir()
    assert refusal(tmp_path, GRAY) == (
        f"{PLACE}: expected PNG or JPEG images in {tmp_path / 'images'}, found none\nAdd some, or name a data file."
    )


def test_a_git_lfs_pointer_among_the_images_is_named(tmp_path: Path):
    """An image that Git LFS has not fetched is not reported as damaged."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n")
    assert refusal(tmp_path, GRAY) == (
        f"{PLACE}: expected data in a.png, got a Git LFS pointer\n"
        "Fetch it with `git lfs pull` (in a workflow: actions/checkout with `lfs: true`)."
    )


def test_a_missing_pillow_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The message has the install line."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert refusal(tmp_path, GRAY) == (
        f"{PLACE}: expected the package Pillow to read a.png, it is not installed\n"
        "Install it in the project's environment: pip install pillow"
    )
