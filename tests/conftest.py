"""How the suite runs: workers are forked from a preloaded process, tests grouped by fixture, and CI skips nothing."""

from __future__ import annotations

import os
import sys

import pytest
from harness import groups, preloaded, skips

preloaded.install()


def pytest_configure(config: pytest.Config) -> None:
    """In CI, fail on a skip that is not listed."""
    in_ci = sys.platform == "linux" and os.environ.get("CI") == "true"  # the whole suite runs on Linux
    if in_ci and not hasattr(config, "workerinput"):
        config.pluginmanager.register(skips.StrictSkips(), "strict-skips")


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Group and order the tests where several processes share them."""
    if hasattr(config, "workerinput"):
        groups.arrange(items)
