"""What the end-to-end tests share: this checkout as a repository of its own, and the wheels that it needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness.repositories import commit, git, once

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that all test processes of this session see."""
    base = tmp_path_factory.getbasetemp()
    return base if worker_id == "master" else base.parent


@pytest.fixture(scope="session")
def checkout(shared: Path) -> Path:
    """The files of this checkout that git would keep, committed as version v1."""

    def make(folder: Path) -> None:
        listed = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
        for name in filter(None, listed):
            if (ROOT / name).is_file() and not name.startswith(("tests/", "benchmarks/")):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        git(folder, "init", "--quiet", "--initial-branch=main")
        commit(folder, "version 1")
        git(folder, "tag", "v1")

    return once(shared, "checkout", make)


@pytest.fixture(scope="session")
def wheels(shared: Path) -> Path:
    """Wheels of the gate's dependencies at the pinned hashes, and of what builds its own wheel."""

    def make(folder: Path) -> None:
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--dest", str(folder)]
        pinned = ["--no-deps", "--require-hashes", "--requirement", str(ROOT / "requirements" / "action.txt")]
        for arguments in (pinned, ["hatchling>=1.27"]):
            done = subprocess.run([*download, *arguments], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr

    return once(shared, "wheels", make)


@pytest.fixture(scope="session")
def clean_environment(wheels: Path) -> dict[str, str]:
    """A user's environment: no variables of this test run, pip answered by the wheels alone."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "OMP_NUM_THREADS": "1",
        "EXPORT_GATE_RUN_NO_CACHE": "1",  # the hooks' tests want to see their models run
    }
