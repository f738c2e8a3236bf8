"""TorchScript files that `init` is given."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from export_gate.starter.scripted import as_reference, is_torchscript
from export_gate.starter.write import Wish
from export_gate.wall.errors import UserError


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["tagger/constants.pkl", "tagger/code/__torch__.py", "tagger/data.pkl"], True),
        (["weights/data.pkl", "weights/data/0"], False),
        (["model/archive_format", "model/models/model.json"], False),
    ],
)
def test_torchscript_is_told_by_its_parts(tmp_path: Path, names: list[str], expected: bool):
    """An archive of `torch.save` or of an exported program has no code in it."""
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        for name in names:
            archive.writestr(name, "")
    assert is_torchscript(tmp_path / "model.pt") is expected


def test_other_files_are_no_torchscript(tmp_path: Path):
    """An ONNX file is not an archive."""
    (tmp_path / "model.onnx").write_bytes(b"\x08\x0a")
    assert not is_torchscript(tmp_path / "model.onnx")


def test_torchscript_file_becomes_the_reference(tmp_path: Path):
    """The loader makes the model, from the config's folder; further arguments are the loader's."""
    wish = Wish(factories=(), kwargs={"map_location": "cpu"}, artifact=str(tmp_path / "dist" / "fine_tagger.pt"))
    found = as_reference(wish, wish.artifact or "", tmp_path / "export-gate.yml")
    assert found == Wish(
        factories=("torch.jit:load",), kwargs={"f": "dist/fine_tagger.pt", "map_location": "cpu"}, name="fine-tagger"
    )


def test_torchscript_is_no_target(tmp_path: Path):
    """With another reference the file would be the target, which the gate does not verify."""
    with pytest.raises(UserError) as refused:
        as_reference(Wish(factories=("a:b",)), "tagger.pt", tmp_path / "export-gate.yml")
    assert str(refused.value) == "--artifact tagger.pt: expected an ONNX file, got TorchScript, which is no target"
