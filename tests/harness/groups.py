"""Which tests run one after another in the same process, and which come first, for `pytest --dist loadgroup`.

xdist 3.8 finds no groups under pytest 9.2, which no longer reads the node id that xdist writes. So each process writes
down the groups of its tests, which are the same in all, and the scheduler reads them before it hands out work.

Tests that share a fixture of their module form a group, so that the fixture is made once. Other quick tests of
`tests/unit` are grouped by file, since each takes milliseconds; all others stand alone. The longest groups come first,
so that no process is left with a long one while the others have nothing to do.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

TESTS = Path(__file__).parents[1]
TYPICAL_S, QUICK_S = 2.0, 0.01
"""How long a test is taken to last, with and without the mark `slow`; `slow(seconds=30)` says it of a long one."""


def arrange(items: list[pytest.Item]) -> None:
    """Write down the group of each test and put the longest groups first, in place."""
    groups = _groups(items)
    names = {item.nodeid: name for name, members in groups.items() for item in members}
    written = _record(os.getppid()).with_suffix(f".{os.getpid()}")
    written.write_text(json.dumps(names), encoding="utf-8")
    written.replace(_record(os.getppid()))  # at once: the scheduler never reads half of it
    longest_first = sorted(groups.values(), key=lambda members: -_seconds(members))
    items[:] = [item for members in longest_first for item in members]


class ByFixture(LoadScopeScheduling):
    """Hands out whole groups, in order."""

    groups: dict[str, str]

    def schedule(self) -> None:
        """Read the groups once all tests are collected, and hand out work."""
        if self.collection is None:
            record = _record(os.getpid())
            self.groups = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
            record.unlink(missing_ok=True)
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self.groups.get(nodeid, nodeid)


def _record(controller: int) -> Path:
    """Where the groups are written for the process that hands out the work."""
    return Path(tempfile.gettempdir()) / f"export-gate-groups-{controller}.json"


def _groups(items: Sequence[pytest.Item]) -> dict[str, list[pytest.Item]]:
    """Group name -> its tests, in order; a test that stands alone is its own group."""
    groups: dict[str, list[pytest.Item]] = {}
    names: dict[str, str] = {}
    for item in items:
        shared = sorted(_shared(item))
        known = next((names[fixture] for fixture in shared if fixture in names), None)
        name = known or (shared[0] if shared else _alone(item))
        names |= dict.fromkeys(shared, name)
        groups.setdefault(name, []).append(item)
    return groups


def _shared(item: pytest.Item) -> Iterator[str]:
    """The fixtures of its module that the test shares with others, each with its parameter.

    Fixtures of a folder are not among them: those are shared between processes, by locks.
    """
    definitions = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    for name, found in definitions.items():
        definition = found[-1]
        if definition.scope != "function" and definition.baseid.endswith(".py"):
            yield f"{definition.baseid}:{name}:{parameters.get(name, '')}"


def _alone(item: pytest.Item) -> str:
    is_quick = item.path.is_relative_to(TESTS / "unit") and item.get_closest_marker("slow") is None
    return item.nodeid.partition("::")[0] if is_quick else item.nodeid


def _seconds(members: Sequence[pytest.Item]) -> float:
    """How long the group is expected to last: what its marks say, or else by the number of its tests."""
    marks = [item.get_closest_marker("slow") for item in members]
    stated = [mark.kwargs["seconds"] for mark in marks if mark is not None and "seconds" in mark.kwargs]
    is_slow = [mark is not None for mark in marks]
    return max(stated) if stated else TYPICAL_S * any(is_slow) + QUICK_S * len(members)
