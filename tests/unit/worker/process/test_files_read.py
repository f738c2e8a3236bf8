"""Which files of a checkout a process read: tested in a separate process, because a hook stays until its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from export_gate.worker.process.files_read import MOST_FILES, files_read
from export_gate.worker.process.recording import Seen

USE = """
import json, os, sys
from pathlib import Path
from export_gate.worker.process.files_read import files_read
from export_gate.worker.process.recording import recorded
base = Path("nets").absolute()
os.chdir(base)
seen = recorded()
sys.path.insert(0, "")
import package.inner
open("../weights.bin").read()
open("out.txt", "w").write("x")
open("out.txt").read()
open("/etc/hostname").close()
try:
    open("missing.bin")
except FileNotFoundError:
    pass
(Path("../link.txt")).read_text()
os.chdir("/")
print(json.dumps(files_read(seen, base)))
"""


def read(folder: Path) -> list[str]:
    """What the process says."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    kept["PYTHONPATH"] = str(Path(__file__).parents[4] / "src")
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=folder, env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def test_imports_and_opened_files_are_remembered(tmp_path: Path):
    """Paths start at the root, with links as git names them; files written, missed or read elsewhere are left out."""
    for name in (".git", "nets/package"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("nets/package/__init__.py", "nets/package/inner.py", "weights.bin", "real.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "link.txt").symlink_to("real.txt")
    expected = ["link.txt", "nets/package/__init__.py", "nets/package/inner.py", "real.txt", "weights.bin"]

    assert read(tmp_path) == expected
    # The second time, Python opens the compiled files; the first one wrote them.
    assert list((tmp_path / "nets" / "package" / "__pycache__").iterdir())
    assert read(tmp_path) == expected


@pytest.mark.parametrize("named", [True, False])
def test_files_around_a_submodule_count(tmp_path: Path, named: bool):
    """The outer repository is pushed with it; a folder that merely has another checkout in it is not."""
    for name in (".git", "lib/.git", "lib/nets/package"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("lib/nets/package/__init__.py", "lib/nets/package/inner.py", "lib/weights.bin", "around.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "lib" / "link.txt").symlink_to("../around.txt")
    (tmp_path / ".gitmodules").write_text(f'[submodule "x"]\n\tpath = {"lib" if named else "other"}\n')
    inside = ["link.txt", "nets/package/__init__.py", "nets/package/inner.py", "weights.bin"]

    assert read(tmp_path / "lib") == [*inside, *(["../around.txt"] if named else [])]


@pytest.mark.slow
def test_code_is_not_hidden_behind_data(tmp_path: Path):
    """A loader may read more files than are kept."""
    (tmp_path / ".git").mkdir()
    names = [tmp_path / f"{number}.npy" for number in range(MOST_FILES)]
    for path in (*names, tmp_path / "z.py"):
        path.touch()
    seen = Seen(opened={str(path) for path in (*names, tmp_path / "z.py")})

    found = files_read(seen, tmp_path)
    assert len(found) == MOST_FILES
    assert "z.py" in found
