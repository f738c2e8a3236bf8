"""How the suite runs: workers are forked from a preloaded process, tests grouped by fixture, and CI skips nothing."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator
from typing import Any

import pytest
from harness import preloaded, skips
from hypothesis import settings

preloaded.install()
os.environ["EXPORT_GATE_RUN_NO_CACHE"] = "1"  # each test sees its models run; those of the cache ask for one
settings.register_profile("suite", deadline=None)  # a busy machine is no fault of the code
settings.register_profile("check", deadline=None, max_examples=10)  # `make check`: before each commit
settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    """In CI, fail on a skip that is not listed."""
    in_ci = sys.platform == "linux" and os.environ.get("CI") == "true"  # the whole suite runs on Linux
    if in_ci and not hasattr(config, "workerinput"):
        config.pluginmanager.register(skips.StrictSkips(), "strict-skips")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Group and order the tests where several processes share them."""
    if hasattr(config, "workerinput"):
        from harness import groups

        groups.arrange(items)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Convert as quickly in this process as workers do."""
    if "torch.onnx._internal.exporter._registration" in sys.modules:
        from export_gate.worker.export.operators import list_operators
        from export_gate.worker.targets.onnx_signatures import keep_signatures

        keep_signatures()
        list_operators()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Do not search for garbage while packages are imported, nor later among what they hold, as workers do not.

    A search takes as long as the export of a small model.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out the tests by these groups."""
    if config.getoption("dist") != "loadgroup":
        return None
    from harness import groups

    return groups.ByFixture(config, log)
