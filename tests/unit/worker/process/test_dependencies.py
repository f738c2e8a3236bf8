"""What a verdict depends on, as found in a process of its own: hooks stay until its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

USE = """
import json, os, sys
from export_gate.wall.codec import encode
from export_gate.wall.contract import Job
from export_gate.worker.process.dependencies import find_dependencies
from export_gate.worker.process.looking import looks_noted
from export_gate.worker.process.recording import recorded
from export_gate.worker.process.variables import look_ups_noted
from functools import partial
from types import SimpleNamespace
base = os.getcwd()
contract = SimpleNamespace(name="m", paths=PATHS)
job = Job(contract=contract, base=base, pythonpath=(), artifacts=base + "/.export-gate/artifacts/m")
sys.path.insert(0, base)
seen = recorded()
with looks_noted(seen), look_ups_noted((), (), "", partial(seen.note, "asked")):
    import project
print(json.dumps(encode(find_dependencies(seen, job))))
"""


def found(folder: Path, code: str, *, paths: tuple[str, ...] = (), before: str = "", **files: str) -> dict[str, Any]:
    """What the project's code depends on; `before` runs unwatched, `files` are further ones, with `_` for `.`."""
    (folder / "project.py").write_text(code)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    kept["PYTHONPATH"] = str(Path(__file__).parents[4] / "src")
    use = before + USE.replace("PATHS", repr(paths))
    done = subprocess.run(
        [sys.executable, "-c", use], cwd=folder, env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def own(answer: dict[str, Any], folder: Path) -> list[str]:
    """Its files in the project's folder."""
    return [os.path.relpath(name, folder) for name in answer["files"] if name.startswith(f"{folder}/")]


def test_files_are_found_that_python_opens_looks_for_or_maps(tmp_path: Path):
    """Opened or missing, seen with `exists`, mapped by whatever; in this process and in its forks."""
    answer = found(
        tmp_path,
        "import os, mmap, pathlib\n"
        "open('a.txt').read()\n"
        "pathlib.Path('missing.txt').exists(), os.path.isfile('seen.txt')\n"
        "os.path.islink('plain.txt'), pathlib.Path('link.txt').is_symlink(), os.path.lexists('nothing.txt')\n"
        "file = os.open('mapped.txt', os.O_RDONLY)\n"
        "kept = mmap.mmap(file, 1, prot=mmap.PROT_READ)\n"
        "if os.fork() == 0:\n"
        "    open('forked.txt').read()\n"
        "    os._exit(0)\n"
        "os.wait()\n",
        **dict.fromkeys(("a_txt", "seen_txt", "mapped_txt", "forked_txt"), "x"),
    )
    names = {"a.txt", "missing.txt", "seen.txt", "mapped.txt", "forked.txt", "project.py"}
    assert names | {"plain.txt", "link.txt", "nothing.txt"} <= set(own(answer, tmp_path))
    missing = {os.path.relpath(name, tmp_path) for name in answer["missing"] if name.startswith(str(tmp_path))}
    assert missing == {"missing.txt", "link.txt", "nothing.txt", "plain.txt"}
    assert answer["unknown"] == []


HERE = "import os, sqlite3\nhere = os.open('data', os.O_RDONLY)\n"
ROUNDABOUT = {
    "an open folder": "os.open('w' '.bin', os.O_RDONLY, dir_fd=here)",
    "an opener": "open('w' '.bin', opener=lambda name, flags: os.open(name, flags, dir_fd=here))",
    "a size in an open folder": "os.stat('w' '.bin', dir_fd=here)",
    "a link of the system": "open('/proc/self/cwd/data/w' '.bin')",
    "an open folder's link": "open(f'/proc/self/fd/{here}/w' '.bin')",
    "a URI": "sqlite3.connect('file:da' 'ta/w%2ebin?mode=ro', uri=True)",
    "a place of other files": "os.makedirs('data/__pycache__'), open('da' 'ta/__pycache__/w' '.bin', 'w'), "
    "open('da' 'ta/__pycache__/w' '.bin')",
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell what a number of a folder stands for")
@pytest.mark.parametrize("way", ROUNDABOUT)
def test_files_are_found_whatever_leads_to_them(tmp_path: Path, way: str):
    """Python reports the words of the call alone."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w.bin").touch()

    answer = found(tmp_path, f"{HERE}{ROUNDABOUT[way]}\n")

    assert any(name in ("data/w.bin", "data/__pycache__/w.bin") for name in own(answer, tmp_path))
    assert answer["unknown"] == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell what a number of a folder stands for")
def test_an_open_folder_that_is_listed_counts(tmp_path: Path):
    """As `os.fwalk` lists it."""
    (tmp_path / "data").mkdir()
    assert found(tmp_path, f"{HERE}os.listdir(here)\n")["folders"] == [str(tmp_path / "data")]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such file")
def test_all_variables_count_where_the_system_is_asked(tmp_path: Path):
    """The file has every one of them."""
    assert "*" in found(tmp_path, "open('/proc/self/environ').read()\n")["variables"]


def test_names_of_files_in_the_sources_count(tmp_path: Path):
    """Native code may open what a source names: from the source's folder, too."""
    answer = found(tmp_path, "NAME, OTHER = 'weights.bin', 'nothing.bin'\n", weights_bin="x")
    assert own(answer, tmp_path) == ["project.py", "weights.bin"]


def test_written_files_are_told_apart(tmp_path: Path):
    """What the process wrote and read again is a dependency that it may change; what it only wrote is none."""
    code = "open('log.1', 'w').close()\nopen('kept.txt', 'w').write('x')\nopen('kept.txt').read()\n"
    answer = found(tmp_path, code)
    assert own(answer, tmp_path) == ["kept.txt", "project.py"]
    assert answer["written"] == [str(tmp_path / name) for name in ("kept.txt", "log.1")]


def test_the_report_folder_is_none(tmp_path: Path):
    """It may be missing where somebody asks what has changed; a file that a project keeps in it is one all the same."""
    code = "import os\nos.stat('.export-gate'), os.stat('.export-gate/artifacts'), open('.export-gate/w.bin')\n"
    (tmp_path / ".export-gate" / "artifacts").mkdir(parents=True)
    (tmp_path / ".export-gate" / "w.bin").touch()

    assert own(found(tmp_path, code), tmp_path) == [".export-gate/w.bin", "project.py"]


def test_temporary_files_that_are_gone_are_none(tmp_path: Path):
    """Their names are another one each time."""
    answer = found(tmp_path, "import tempfile, os\nwith tempfile.TemporaryDirectory() as f:\n    os.stat(f)\n")
    assert [name for name in answer["files"] if name.startswith("/tmp/tmp")] == []


@pytest.mark.slow
def test_modules_that_are_not_found_and_folders_that_are_listed_count(tmp_path: Path):
    """A module or a file that appears there may change what is computed."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("try:\n    from package import fast\nexcept ImportError: pass\n")
    code = "import os, package\ntry:\n    import speedups\nexcept ImportError: pass\nos.listdir('package')\n"
    answer = found(tmp_path, code)
    assert {"speedups", "os", "package"} <= set(answer["modules"])
    assert str(tmp_path) in answer["path"]
    assert answer["packages"] == {str(tmp_path / "package"): ["fast"]}
    assert answer["folders"] == [str(tmp_path / "package")]
    assert found(tmp_path, "from importlib.metadata import version\nversion('pytest')\n")["folders"] == []


@pytest.mark.slow
def test_modules_that_are_only_looked_for_count(tmp_path: Path):
    """`importlib.util.find_spec` imports nothing, and what it finds may decide."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text(
        "import importlib.util\nimportlib.util.find_spec('.near', __name__)"
    )
    looks = "importlib.util.find_spec('flash' 'ing'), importlib.util.find_spec('package.inner')"
    code = f"import importlib.util, package\n{looks}\n"
    answer = found(tmp_path, code)
    assert "flashing" in answer["modules"]
    assert set(answer["packages"][str(tmp_path / "package")]) >= {"inner", "near"}


def test_variables_count_whether_they_are_set_or_not(tmp_path: Path):
    """`*` stands for all of them."""
    answer = found(tmp_path, "import os\nos.environ.get('UNSET_ONE'), os.environ['HOME']\n")
    assert {"UNSET_ONE", "HOME"} <= set(answer["variables"])
    assert "*" in found(tmp_path, "import os\ndict(os.environ)\n")["variables"]


def test_installed_packages_are_folders_with_entries(tmp_path: Path):
    """Their files are not listed one by one."""
    answer = found(tmp_path, "import yaml\n")
    (site,) = [site for site, entries in answer["sites"].items() if "yaml" in entries]
    assert not any(name.startswith(site) for name in answer["files"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import time\nnow = time.time()\n", "it reads the clock ({project}:2)"),
        ("import time\ntext = time.strftime('%Y')\n", "it reads the clock ({project}:2)"),
        ("import time\nnow = time.localtime(None)\n", "it reads the clock ({project}:2)"),
        ("from datetime import datetime as dt\ndef f():\n    return dt.now()\n", "it reads the clock ({project}:2)"),
        ("import time\nnow = time.clock_gettime(time.CLOCK_REALTIME)\n", "it reads the clock ({project}:2)"),
        ("import os\nsalt = os.urandom(4)\n", "it draws from the system's randomness ({project}:2)"),
        ("import secrets\nsalt = secrets.randbelow(4)\n", "it draws from the system's randomness ({project}:2)"),
        ("import uuid\nsalt = uuid.uuid4()\n", "it draws from the system's randomness ({project}:2)"),
        ("import random\nrng = random.Random()\n", "it draws from the system's randomness ({project}:2)"),
        ("import random\nrandom.seed()\n", "it draws from the system's randomness ({project}:2)"),
        ("import numpy\nrng = numpy.random.default_rng()\n", "it draws from the system's randomness ({project}:2)"),
        ("import subprocess\nsubprocess.run(['true'])\n", "it starts another program ({project}:2)"),
        ("import socket\nsocket.getaddrinfo('127.0.0.1', 9)\n", "it uses the network"),
        (
            "def load():\n    from h5py import File\n    return File\n",
            "h5py reads files that Python does not see ({project}); list them in `paths`",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_known_is_said(tmp_path: Path, code: str, why: str):
    """The clock, the network, other programs, readers in native code: such a verdict is never reused."""
    assert found(tmp_path, code)["unknown"] == [why.format(project=tmp_path / "project.py")]


@pytest.mark.slow
def test_torch_is_there_before_the_projects_code(tmp_path: Path):
    """Its generator without a seed, too, takes one from the system."""
    why = f"it draws from the system's randomness ({tmp_path / 'project.py'}:2)"
    assert why in found(tmp_path, "import torch\ntorch.seed()\n", before="import torch\n")["unknown"]


@pytest.mark.parametrize(
    "code",
    [
        "import time\ntime.perf_counter(), time.localtime(0), time.strftime('%Y', time.gmtime(0))\n",
        "import datetime\ndatetime.datetime(2026, 1, 1)\n",
        "import h5pylike\n",
        "import random, tempfile\nrandom.seed(1), random.Random(1)\ntempfile.mkdtemp()\n",
        "import numpy\nnumpy.random.default_rng(0)\n",
    ],
)
def test_what_is_known_is_not(tmp_path: Path, code: str):
    """Durations, fixed times and other packages are harmless."""
    assert found(tmp_path, code, h5pylike_py="def File(): pass\n" if "like" in code else "")["unknown"] == []


@pytest.mark.slow
def test_a_reader_in_native_code_whose_files_are_known(tmp_path: Path):
    """Its file is named in the source, or the config lists `paths`."""
    code = "NAME = 'weights.h5'\ndef load():\n    from h5py import File\n    return File(NAME)\n"
    assert found(tmp_path, code, weights_h5="x")["unknown"] == []
    assert found(tmp_path, code.replace("weights.h5", "others.h5"), paths=("data",))["unknown"] == []
