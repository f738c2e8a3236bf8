"""A GitHub of our own for the tests below, and a session with it that does not sleep."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from github_server import TOKEN, GitHubServer

from export_gate.github.api import Api
from export_gate.github.patience import Patience


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    """A repository with a pull request, #7."""
    with GitHubServer() as server:
        yield server


@pytest.fixture
def waits() -> list[float]:
    """The seconds that were to be slept."""
    return []


@pytest.fixture
def patience(waits: list[float]) -> Patience:
    """As much as a real process has; what it waits is noted instead of slept, and counts as time."""
    return Patience(now=lambda: time.monotonic() + sum(waits), sleep=waits.append)


@pytest.fixture
def api(github: GitHubServer, patience: Patience) -> Api:
    """A session with it."""
    return Api(github.url, TOKEN, patience)
