"""Give each step that uses an action or workflow of the repository what that runs, which may be changed in its file."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from export_gate.run.workflow_job import CONTENT, Job, as_text, step_lines

KEYS = ("env", "defaults")
"""Keys of a workflow that decide about all of its steps."""
Values = Mapping[str, dict[str, Any] | None]


def with_contents(values: Values) -> dict[str, dict[str, Any] | None]:
    """The files by their paths, with what their steps use of each other."""
    found = {name: deepcopy(value) for name, value in values.items()}
    known: dict[str, list[str]] = {}
    for step in (step for value in found.values() for step in _steps(value or {})):
        uses = _own(step)
        if uses and uses not in known:
            known[uses] = list(_content(uses, values))
        if known.get(uses):
            step[CONTENT] = known[uses]
    return found


def _own(step: Mapping[str, Any]) -> str:
    """What the step uses of the repository; empty if nothing."""
    uses = str(step.get("uses") or "")
    return uses.rstrip("/") if uses.startswith("./") else ""


def _content(uses: str, values: Values) -> Iterator[str]:
    """What an action or workflow of the repository runs, and those that it uses, line by line."""
    told: set[str] = set()
    waiting = [uses]
    while waiting:
        parts = posixpath.normpath(waiting.pop()).split("/")
        # The workflow may have put the checkout into a folder of its own.
        paths = ("/".join(parts[start:]) for start in range(len(parts)))
        ends = ("", "/action.yml", "/action.yaml")
        places = (f"{path}{end}".removeprefix("./") for path in paths for end in ends)
        place = next((place for place in places if place in values), None)
        if place is not None and place not in told:
            told.add(place)
            value = values[place] or {}
            yield from (f"{place}: {key} {as_text(item)}" for key, item in _given(value).items() if item)
            for step in _steps(value):
                plain = {key: item for key, item in step.items() if key != "steps"}
                yield from (f"{place}: {line}" for line in step_lines(plain, Job(name="", jobs={}, workflow={})))
                waiting += filter(None, [_own(step)])


def _given(value: Mapping[str, Any]) -> dict[str, Any]:
    """What decides about the steps beside themselves, and what they give: of inputs, their defaults."""
    on = value.get("on")
    called = on.get("workflow_call") if isinstance(on, dict) else None
    owner = called if isinstance(called, dict) else value
    return {
        **{key: value.get(key) for key in KEYS},
        "inputs": _of_each(owner.get("inputs"), "default"),
        "outputs": _of_each(owner.get("outputs"), "value"),
    }


def _of_each(parts: Any, key: str) -> dict[str, Any]:
    found = parts.items() if isinstance(parts, dict) else ()
    return {name: part[key] for name, part in found if isinstance(part, dict) and key in part}


def _steps(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The steps of a workflow or action, and its jobs, which may use a workflow."""
    jobs, runs = value.get("jobs"), value.get("runs")
    parts = [*(jobs.values() if isinstance(jobs, dict) else ()), runs]
    for part in (each for each in parts if isinstance(each, dict)):
        steps = part.get("steps")
        yield part
        yield from (step for step in (steps if isinstance(steps, list) else ()) if isinstance(step, dict))
