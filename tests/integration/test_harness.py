"""How the suite runs itself: in CI nothing is skipped silently, and a shared fixture is made once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PYTEST = (sys.executable, "-m", "pytest", "-p", "xdist", "-p", "no:cacheprovider")
STRICT = """
from harness.skips import StrictSkips

def pytest_configure(config):
    config.pluginmanager.register(StrictSkips())
"""
GROUPED = """
import pytest
from harness import groups

def pytest_collection_modifyitems(config, items):
    if hasattr(config, "workerinput"):
        groups.arrange(items)

def pytest_xdist_make_scheduler(config, log):
    return groups.ByFixture(config, log)
"""
SHARED = """
import os, pytest

@pytest.fixture(scope="module")
def made():
    with open(os.path.join(os.path.dirname(__file__), "made"), "a") as file:
        file.write("x")

@pytest.mark.parametrize("number", range(8))
def test_shared(made, number): pass

@pytest.mark.parametrize("number", range(8))
def test_alone(number): pass
"""


def run_pytest(folder: Path, *options: str) -> tuple[int, str]:
    """Exit status and output of pytest in a folder of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none but xdist is needed, in three processes each time
    done = subprocess.run(
        [*PYTEST, "--rootdir", folder, *options, folder],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "status", "shown"),
    [
        ("import pytest\ndef test_it(): pytest.skip('mounting is not allowed here')", 0, "1 skipped"),
        ("import pytest\ndef test_it(): pytest.skip('no idea')", 1, "test_it.py::test_it: no idea"),
        ("import pytest\n@pytest.mark.skipif(True, reason='not here')\ndef test_it(): pass", 1, "test_it: not here"),
        ("import pytest\npytest.importorskip('no_such_module')", 1, "could not import 'no_such_module'"),
        ("import pytest\n@pytest.mark.xfail\ndef test_it(): assert False", 0, "1 xfailed"),
    ],
)
def test_a_skip_that_is_not_listed_fails_the_run(tmp_path: Path, body: str, status: int, shown: str):
    """A skipped test or file fails the run, here with two processes, unless the skip is listed or expected."""
    (tmp_path / "conftest.py").write_text(STRICT)
    (tmp_path / "test_it.py").write_text(body)
    (tmp_path / "test_sound.py").write_text("def test_sound(): pass")
    ended, output = run_pytest(tmp_path, "-q", "-n", "2")
    assert (ended, shown in output) == (status, True), output


@pytest.mark.slow
def test_a_shared_fixture_is_made_once(tmp_path: Path):
    """The tests of one fixture run in one process; tests without a shared fixture are spread over both."""
    (tmp_path / "conftest.py").write_text(GROUPED)
    (tmp_path / "test_it.py").write_text(SHARED)
    ended, output = run_pytest(tmp_path, "-v", "-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder")
    assert ended == 0, output
    assert (tmp_path / "made").read_text() == "x"
    shared = {line.split("]")[0] for line in output.splitlines() if "PASSED" in line and "test_shared" in line}
    every = {line.split("]")[0] for line in output.splitlines() if "PASSED" in line}
    assert (len(shared), len(every)) == (1, 2)
