"""Turn the text of a workflow, or of an action of the repository's own, into its steps that run the gate."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from export_gate.config.document import read_document
from export_gate.config.nodes import Allowance, Node, Unreadable
from export_gate.config.problems import Problems
from export_gate.loosening.workflow import GateStep, Workflow

GATE = "export-gate"
COMMAND = re.compile(r"export-gate\s+[a-z]")
INTERPRETER = re.compile(r"EXPORT_GATE_\w+|PATH|VIRTUAL_ENV|BASH_ENV|ENV|PYTHON\w*|LD_\w+")
"""Variables that choose an interpreter, or what it loads."""
DEPTH = 4
"""How many files of the repository may call each other before the gate runs; GitHub allows as many."""


def read_workflows(texts: Mapping[str, str], repository: str) -> dict[str, Workflow | None]:
    """The files by their paths; None for one that cannot be read.

    A file that calls another one of the repository which runs the gate runs the gate as well: its inputs may choose
    what is checked.

    Args:
        texts: of all files that may run the gate or call one that does.
        repository: that the action comes from, by which it is known under any name.
    """
    values = {name: _value(text) for name, text in texts.items()}
    called: frozenset[str] = frozenset()
    found: dict[str, Workflow | None] = {}
    for _ in range(DEPTH):
        known = Known(repository=repository, called=called)
        found = {name: None if value is None else _workflow(value, known) for name, value in values.items()}
        running = frozenset(_reference(name) for name, workflow in found.items() if workflow and workflow.steps)
        if running == called:
            break
        called = running
    return found


def _reference(name: str) -> str:
    """How the repository's own workflows call the file: an action by its folder."""
    folder, _, file = name.rpartition("/")
    return f"./{folder}" if file in ("action.yml", "action.yaml") else f"./{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What runs the gate."""

    repository: str
    called: frozenset[str]
    """Files of the repository, as `uses` names them."""

    def runs(self, action: str) -> bool:
        """Whether what `uses` names, without its version, runs the gate."""
        # `owner/export-gate/post` is ours too, as is a fork under another name that this very run comes from.
        parts = re.split(r"[/.]", action)
        is_ours = "/".join(action.split("/")[:2]) == self.repository or GATE in parts
        return bool(action) and (is_ours or action.rstrip("/") in self.called)


def _value(text: str) -> dict[str, Any] | None:
    try:
        value = _plain(read_document(text, Problems(), Allowance()))
    except Unreadable:
        return None
    return value if isinstance(value, dict) else {}


def _workflow(value: dict[str, Any], known: Known) -> Workflow:
    jobs = value.get("jobs")
    # An action has `runs` with the steps, where a workflow has jobs.
    parts = jobs.items() if isinstance(jobs, dict) else [("", value.get("runs"))]
    found = [step for name, job in parts if isinstance(job, dict) for step in _steps(str(name), job, value, known)]
    return Workflow(steps=tuple(found), triggers=_triggers(value.get("on")))


def _plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: _plain(child) for key, child in node.value.items()}
    if isinstance(node.value, tuple):
        return [_plain(child) for child in node.value]
    # As written: `on`, `1.10` and `0x1f` are texts to GitHub or mean other values than in a config.
    return node.text or node.value


def _steps(name: str, job: dict[str, Any], workflow: dict[str, Any], known: Known) -> Iterator[GateStep]:
    """The job's steps that run the gate; a job that calls another workflow is one step."""
    steps = job.get("steps") if isinstance(job.get("steps"), list) else [job] if job.get("uses") else []
    for step in (each for each in steps or () if isinstance(each, dict)):
        action, _, version = str(step.get("uses") or "").partition("@")
        # A command that goes on in the next line is one command.
        script = str(step.get("run") or "").replace("\\\n", " ")
        commands = tuple(" ".join(line.split()) for line in script.splitlines() if COMMAND.search(line))
        is_ours = known.runs(action)
        if is_ours or commands:
            given = _mapping(step.get("with"))
            # The innermost one counts, as GitHub merges them.
            everything = {**_mapping(workflow.get("env")), **_mapping(job.get("env")), **_mapping(step.get("env"))}
            asked = " ".join((*given.values(), *commands))
            words = set(re.findall(r"\w+", asked))
            yield GateStep(
                job=name,
                action=action if is_ours else "",
                version=version if is_ours else "",
                is_call=action.startswith("./") or action.endswith((".yml", ".yaml")),
                commands=commands,
                inputs=given,
                conditions={**_conditions(job, "job "), **({} if step is job else _conditions(step, ""))},
                env={n: v for n, v in everything.items() if INTERPRETER.fullmatch(n) or n in words},
                matrix=_text(job.get("strategy")) if "matrix." in asked else "",
            )


def _conditions(part: dict[str, Any], prefix: str) -> dict[str, str]:
    return {f"{prefix}{key}": _text(part[key]) for key in ("if", "continue-on-error") if part.get(key) is not None}


def _mapping(value: Any) -> dict[str, str]:
    return {str(key): _text(item) for key, item in value.items()} if isinstance(value, dict) else {}


def _triggers(on: Any) -> dict[str, str]:
    if isinstance(on, dict):
        return {str(event): "" if filters in (None, "") else _text(filters) for event, filters in on.items()}
    return dict.fromkeys(map(str, on if isinstance(on, list) else [on]), "") if on else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
