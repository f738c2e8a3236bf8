"""Give each step that uses an action or workflow of the repository what that runs, which may be changed in its file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from export_gate.loosening.workflow import RELEASE
from export_gate.run.workflow_job import as_text

CONTENT = "content"
"""The key of a step that says it; GitHub knows none of that name."""
KEYS = ("runs", "jobs", "env", "defaults")
"""What of such a file decides what it runs."""
_USES = re.compile(r'("uses": "[\w./-]+@)([^"]+)"')
Values = Mapping[str, dict[str, Any] | None]


def with_contents(values: Values) -> dict[str, dict[str, Any] | None]:
    """The files by their paths, with what their steps use of each other."""
    found = {name: deepcopy(value) for name, value in values.items()}
    known: dict[str, str] = {}
    for step in (step for value in found.values() for step in _steps(value or {})):
        uses = _own(step)
        if uses and uses not in known:
            known[uses] = _content(uses, values)
        if known.get(uses):
            step[CONTENT] = known[uses]
    return found


def _own(step: Mapping[str, Any]) -> str:
    """What the step uses of the repository; empty if nothing."""
    uses = str(step.get("uses") or "")
    return uses.rstrip("/") if uses.startswith("./") else ""


def _content(uses: str, values: Values) -> str:
    """What an action or workflow of the repository runs, and those that it uses, as one text."""
    texts: dict[str, str] = {}
    waiting = [uses]
    while waiting:
        path = waiting.pop().removeprefix(".").removeprefix("/")
        places = (path, *(f"{path}/{name}".lstrip("/") for name in ("action.yml", "action.yaml")))
        place = next((place for place in places if place in values), None)
        if place is not None and place not in texts:
            value = values[place] or {}
            runs = as_text({key: value[key] for key in KEYS if key in value})
            # Another release of an action is no other content.
            texts[place] = _USES.sub(lambda use: use[1] + ("" if RELEASE.fullmatch(use[2]) else use[2]) + '"', runs)
            waiting += filter(None, map(_own, _steps(value)))
    return " ".join(texts.values())


def _steps(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The steps of a workflow or action, and its jobs, which may use a workflow."""
    jobs, runs = value.get("jobs"), value.get("runs")
    parts = [*(jobs.values() if isinstance(jobs, dict) else ()), runs]
    for part in (each for each in parts if isinstance(each, dict)):
        steps = part.get("steps")
        yield part
        yield from (step for step in (steps if isinstance(steps, list) else ()) if isinstance(step, dict))
