"""Report folders that lead somewhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from export_gate.outcome.folder import prepare_folder
from export_gate.outcome.links import refuse_links
from export_gate.wall.contract import Job, ModelContract, make_target
from export_gate.wall.errors import UserError


def job(folder: Path) -> Job:
    """A job whose artifacts go below the folder."""
    contract = ModelContract(name="m", factory="m:f", inputs={}, targets=(make_target("exported-program"),))
    return Job(contract=contract, base=".", pythonpath=(), artifacts=str(folder / "artifacts" / "m"))


@pytest.mark.parametrize("name", ["", "artifacts", "artifacts/m", "logs", "logs/m.log", ".gitignore", "results.json"])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_is_refused(tmp_path: Path, name: str, is_there: bool):
    """A link where the gate would remove or write is refused, and nothing behind it changes."""
    folder, elsewhere = tmp_path / ".export-gate", tmp_path / "precious"
    if is_there:
        elsewhere.mkdir()
        (elsewhere / "kept").write_text("kept")
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(elsewhere)
    with pytest.raises(UserError) as raised:
        prepare_folder(folder, (job(folder),))
    assert str(raised.value) == (
        f"{place}: expected the gate's own folder or file, got a symbolic link to {elsewhere}: "
        "the files there would be removed or overwritten"
    )
    assert raised.value.hint == "remove the link, or name another folder with --report-dir"
    assert [path.name for path in elsewhere.iterdir()] == ["kept"] if is_there else not elsewhere.exists()


def test_a_folder_below_a_link_is_fine(tmp_path: Path):
    """The user decides how the disk is arranged above the report folder."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    folder = tmp_path / "link" / ".export-gate"
    refuse_links(folder, (job(folder),))
    prepare_folder(folder, (job(folder),))
    assert (tmp_path / "real" / ".export-gate" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("name", [".gitignore", "results.json", "report.html", "artifacts/m/weights.bin"])
def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path, name: str):
    """A run does not remove or overwrite what no run has written: `--report-dir .` does no harm."""
    theirs = tmp_path / name
    theirs.parent.mkdir(parents=True, exist_ok=True)
    theirs.write_text("precious")
    with pytest.raises(UserError) as raised:
        prepare_folder(tmp_path, (job(tmp_path),))
    place = tmp_path / "artifacts" / "m" if name.startswith("artifacts") else theirs
    assert str(raised.value) == (
        f"{place}: already exists, is not from an earlier run, and would be removed or overwritten"
    )
    assert raised.value.hint == "name another folder with --report-dir, preferably a new one"
    assert theirs.read_text() == "precious"


def test_a_folder_of_an_earlier_run_is_used_again(tmp_path: Path):
    """A run may remove what an earlier run wrote."""
    folder = tmp_path / "out"
    prepare_folder(folder, (job(folder),))
    (folder / "results.json").write_text("{}")
    prepare_folder(folder, (job(folder),))
    assert [path.name for path in folder.iterdir()] == [".gitignore"]
