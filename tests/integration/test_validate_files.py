"""`export-gate validate` with several files, as pre-commit calls it."""

from __future__ import annotations

from pathlib import Path

from harness.gate import gate

GOOD = "version: 1\nmodels: {head: {factory: 'model:make', inputs: {x: {dtype: float32, shape: [2]}}}}\n"


def validate(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors."""
    done = gate(folder, "validate", *arguments)
    return done.returncode, done.stdout, done.stderr


def test_every_file_is_checked(tmp_path: Path):
    """A mistake in one file does not prevent the check of the others; all are shown, and the exit code is 2."""
    (tmp_path / "good.yml").write_text(GOOD)
    (tmp_path / "also.yml").write_text(GOOD.replace("head", "tail"))
    (tmp_path / "one.yml").write_text(GOOD.replace("1", "2"))
    (tmp_path / "two.yml").write_text(GOOD.replace("[2]", "[n]"))
    code, output, errors = validate(tmp_path, "one.yml", "good.yml", "two.yml", "also.yml", "gone.yml")
    assert code == 2
    assert output == "good.yml: valid, 1 model\nalso.yml: valid, 1 model\n"
    assert [line.split(": ")[0] for line in errors.splitlines()] == ["one.yml:1:10", "two.yml:2:77", "gone.yml"]


def test_files_and_option_and_default(tmp_path: Path):
    """Files are checked in addition to --config; without either, the folder's config is checked."""
    for name in ("export-gate.yml", "a.yml", "b.yml"):
        (tmp_path / name).write_text(GOOD)
    assert validate(tmp_path) == (0, "export-gate.yml: valid, 1 model\n", "")
    assert validate(tmp_path, "a.yml") == (0, "a.yml: valid, 1 model\n", "")
    assert validate(tmp_path, "--config", "b.yml") == (0, "b.yml: valid, 1 model\n", "")
    assert validate(tmp_path, "a.yml", "-c", "b.yml") == (0, "a.yml: valid, 1 model\nb.yml: valid, 1 model\n", "")
