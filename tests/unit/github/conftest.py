"""A GitHub of our own for the tests below, and a session with it that does not sleep."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from github_server import TOKEN, GitHubServer

from export_gate.github.api import Api


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
def api(github: GitHubServer, waits: list[float]) -> Api:
    """A session with it."""
    return Api(github.url, TOKEN, sleep=waits.append)
