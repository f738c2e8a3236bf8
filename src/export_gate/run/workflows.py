"""Read the workflows of the base and of the change: which steps run the gate, and with what."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from export_gate.config.document import read_document
from export_gate.config.nodes import Allowance, Node, Unreadable
from export_gate.config.problems import Problems
from export_gate.loosening.record import CONFIG, Alteration
from export_gate.loosening.workflow import GateStep, Workflow, compare_workflows
from export_gate.run.base import UnreadableError, Wanted, file_at
from export_gate.run.git import git_line, git_output
from export_gate.wall.errors import UserError

FOLDER = ".github"
GATE = "export-gate"
MAX_BYTES = 512 * 1024
COMMAND = re.compile(r"export-gate\s+[a-z]")
INTERPRETER = re.compile(r"EXPORT_GATE_\w+|PATH|VIRTUAL_ENV|BASH_ENV|ENV|PYTHON\w*|LD_\w+")
"""Variables that choose an interpreter, or what it loads."""


def workflow_alterations(folder: Path, commit: str, environment: Mapping[str, str]) -> tuple[Alteration, ...]:
    """What the change does to the steps that run the gate.

    Args:
        folder: any of the repository.
        commit: the base.
        environment: for git, and to know the action by the repository that it comes from.
    """
    top = git_line(folder, "rev-parse", "--show-toplevel")
    if top is None:
        return ()
    root, ours = Path(top), (GATE, environment.get("GITHUB_ACTION_REPOSITORY") or GATE)
    before = {name: text for name, text in _past(root, commit, environment) if any(word in text for word in ours)}
    now = {name: text for name, text in _present(root) if any(word in text for word in ours)}
    old, new = ({name: _workflow(text, ours) for name, text in texts.items()} for texts in (before, now))
    # One that this change did not break says nothing about the change.
    unread = [name for name, workflow in new.items() if workflow is None and before.get(name) != now[name]]
    said = (Alteration(effect="loosened", model=CONFIG, what=f"{name}: cannot be read any more") for name in unread)
    read = [{name: workflow for name, workflow in each.items() if workflow and workflow.steps} for each in (old, new)]
    return (*said, *compare_workflows({n: w for n, w in read[0].items() if n not in unread}, read[1]))


def _past(root: Path, commit: str, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    listed = git_output(root, "ls-tree", "-r", "-z", "--name-only", commit, "--", f"{FOLDER}/", environment=environment)
    for name in os.fsdecode(listed or b"").split("\0"):
        # Also below `.github/actions`: an action of the repository's own may run the gate.
        if name.endswith((".yml", ".yaml")):
            try:
                content = file_at(
                    commit, Wanted(path=root / name, noun="workflow", largest_bytes=MAX_BYTES), environment
                )
            except (UserError, UnreadableError):
                continue
            yield name, (content or b"").decode("utf-8", "replace")


def _present(root: Path) -> Iterator[tuple[str, str]]:
    for path in sorted((root / FOLDER).rglob("*.y*ml")):
        try:
            if path.is_file() and path.stat().st_size <= MAX_BYTES:
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue


def _workflow(text: str, ours: tuple[str, str]) -> Workflow | None:
    """None if it cannot be read."""
    try:
        value = _plain(read_document(text, Problems(), Allowance()))
    except Unreadable:
        return None
    if not isinstance(value, dict):
        return Workflow(steps=())
    found = value.get("jobs")
    # An action has `runs` with the steps, where a workflow has jobs.
    jobs = found if isinstance(found, dict) else {"": value.get("runs")}
    steps = [step for name, job in jobs.items() for step in _steps(str(name), job, value, ours)]
    return Workflow(steps=tuple(steps), triggers=_triggers(value.get("on")))


def _plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: _plain(child) for key, child in node.value.items()}
    if isinstance(node.value, tuple):
        return [_plain(child) for child in node.value]
    # As written: `on`, `1.10` and `0x1f` are texts to GitHub or mean other values than in a config.
    return node.text or node.value


def _steps(name: str, job: Any, workflow: dict[str, Any], ours: tuple[str, str]) -> Iterator[GateStep]:
    steps = job.get("steps") if isinstance(job, dict) else None
    for step in steps if isinstance(steps, list) else ():
        if not isinstance(step, dict):
            continue
        action, _, version = str(step.get("uses") or "").partition("@")
        # A command that goes on in the next line is one command.
        script = str(step.get("run") or "").replace("\\\n", " ")
        commands = tuple(" ".join(line.split()) for line in script.splitlines() if COMMAND.search(line))
        # `owner/export-gate/post` is ours too, as is a fork under another name that this very run comes from.
        is_ours = "/".join(action.split("/")[:2]) == ours[1] or GATE in action.split("/")
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
                commands=commands,
                inputs=given,
                conditions={**_conditions(job, "job "), **_conditions(step, "")},
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
