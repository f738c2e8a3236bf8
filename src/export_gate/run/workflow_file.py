"""Turn the text of a workflow, or of an action of the repository's own, into its steps that run the gate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from export_gate.config.document import read_document
from export_gate.config.nodes import Allowance, Node, Unreadable
from export_gate.config.problems import Problems
from export_gate.loosening.check_names import ANYTHING
from export_gate.loosening.steps import HERE, GateStep, Workflow
from export_gate.run.pushing import BUILD_FILES
from export_gate.run.scripts import script_lines
from export_gate.run.workflow_contents import with_contents
from export_gate.run.workflow_job import COMMAND, CONTENT, VARIABLE, Job, Known, as_text, gate_steps, texts

DEPTH = 4
"""How many files of the repository may call each other before the gate runs; GitHub allows as many."""
GIVE_CHECKS = ("checks", "statuses")
_SAVES = re.compile(r"(?:^|\s)actions/cache(?:/save)?(?![\w/-])", re.IGNORECASE)
_AT = re.compile(r"(?<=[\w-])@[\w./-]+")
"""The version of an action."""
_USED = re.compile(r"(?:\$[({]?|\{\{\s*\.?)(\w+)")
_ASSIGNED = re.compile(r"(?:export\s+|define\s+)?(\w+)\s*(?:[:?+!]{0,2}=|:\s)")
_RULES = re.compile(
    r"^(?:SHELL|\.SHELLFLAGS|MAKEFLAGS|\.IGNORE|\.ONESHELL)\b|^-?s?include\s+[^=\s]|^\"(?:pre|post)\w+\"\s*:"
    r"|ignore[_-]?(?:outcome|error\b)|allow(?:ed)?[_-]?(?:to[_-])?fail|continue[_-]?on[_-]?error|soft[_-]?fail|when:\s*manual",
    re.IGNORECASE,
)
"""What decides about commands in make, what npm runs around a script, and words by which a failure is none."""
_EXPRESSION = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)


def read_workflows(texts: Mapping[str, str], known: Known, origin: str = "") -> dict[str, Workflow | None]:
    """The files by their paths; None for one that cannot be read.

    A file that calls another one of the repository which runs the gate runs the gate as well: its inputs may choose
    what is checked.

    Args:
        texts: of all files that may run the gate or call one that does.
        known: what runs the gate but these files.
        origin: the file that the runner says this very run comes from, even if nothing in it is known to run the gate.
    """
    values = with_contents({name: read_value(text) for name, text in texts.items()})
    called: frozenset[str] = frozenset()
    found: dict[str, Workflow | None] = {}
    for _ in range(DEPTH):
        known = replace(known, called=called)
        found = {name: None if value is None else _workflow(name, value, known) for name, value in values.items()}
        running = frozenset(_reference(name) for name, workflow in found.items() if workflow and workflow.steps)
        if running == called:
            break
        called = running
    behind, value = found.get(origin), values.get(origin)
    if behind is not None and value is not None and not behind.steps:
        found[origin] = _workflow(origin, value, replace(known, is_elsewhere=True))
    return found


def read_value(text: str) -> dict[str, Any] | None:
    """What the file says, as texts; None if it cannot be read."""
    try:
        value = _plain(read_document(text, Problems(), Allowance()))
    except Unreadable:
        return None
    return value if isinstance(value, dict) else {}


def read_script(name: str, text: str) -> Workflow:
    """The lines of another file that start the gate, or set its variables; of a script also what is around."""
    commands = script_lines(text)
    if not COMMAND.search("\n".join(commands)):
        return Workflow(steps=())
    lines = tuple(line for line in commands if COMMAND.search(line) or VARIABLE.search(line))
    # Files of build tools have rules of their own, and much that is about other things.
    has_others = any(fnmatchcase(name, pattern) for pattern in BUILD_FILES)
    lines = tuple(_with_rules(commands, lines)) if has_others else lines
    around = () if has_others else tuple(HERE if line in lines else line for line in commands)
    return (
        Workflow(steps=(GateStep(part="", commands=lines, around=around),)) if lines or around else Workflow(steps=())
    )


def _with_rules(commands: Sequence[str], lines: Sequence[str]) -> Iterator[str]:
    """The lines, with those that set variables of theirs, or that say how a tool runs them and takes their failures."""
    used = {name for line in lines for name in _USED.findall(line)}
    for line in commands:
        assigned = _ASSIGNED.match(line)
        if line in lines or _RULES.search(line) or (assigned and assigned[1] in used):
            yield line


def _reference(name: str) -> str:
    """How the repository's own workflows call the file: an action by its folder."""
    folder, _, file = name.rpartition("/")
    return f"./{folder}" if file in ("action.yml", "action.yaml") else f"./{name}"


def _workflow(file: str, value: dict[str, Any], known: Known) -> Workflow:
    jobs = value.get("jobs")
    if isinstance(jobs, dict):
        all_jobs = [Job(name=name, jobs=jobs, workflow=value, file=file) for name in jobs]
        found = [step for job in all_jobs for step in gate_steps(job, known)]
        running = {step.part for step in found}
        checks = {f"job {job.name}": _check(job) for job in all_jobs}
        others = tuple(check for part, check in checks.items() if part not in running)
        names = tuple(checks.values())
        return Workflow(
            steps=tuple(found),
            triggers=_triggers(value.get("on")),
            checks=names,
            others=others,
            saves=tuple(line for job in all_jobs for line in _saves(job)),
            grants=tuple(_grants([value.get("permissions"), *(job.value.get("permissions") for job in all_jobs)])),
        )
    # An action has `runs` with the steps, where a workflow has jobs.
    runs = value.get("runs")
    inner = {**runs, "outputs": value.get("outputs")} if isinstance(runs, dict) else None
    steps = gate_steps(Job(name="", jobs={"": inner}, workflow={}, file=file), known)
    return Workflow(steps=tuple(steps), defaults=texts(value.get("inputs")))


def _saves(job: Job) -> Iterator[str]:
    """The steps of the job that save a cache, themselves or by an action of the repository."""
    condition = job.value.get("if")
    for step in job.steps:
        lines = [line for line in step.get(CONTENT) or () if _SAVES.search(line)]
        if _SAVES.search(str(step.get("uses") or "").partition("@")[0].strip()):
            lines.append(as_text({key: value for key, value in step.items() if key != CONTENT}))
        # Without versions, of which another one saves the same.
        yield from (f"{job.name}{f' if {condition}' if condition else ''}: {_AT.sub('', line)}" for line in lines)


def _grants(permissions: Sequence[Any]) -> Iterator[str]:
    for name in GIVE_CHECKS:
        levels = (each.get(name) if isinstance(each, dict) else each for each in permissions)
        yield from [name] if any(level in ("write", "write-all") for level in levels) else []


def _check(job: Job) -> str:
    """The name of the job's check, as a pattern: GitHub adds the leg of a matrix, and the job of a called workflow."""
    name = " ".join(_EXPRESSION.sub(ANYTHING, as_text(job.value.get("name") or job.name)).split())
    if job.matrix is not None and ANYTHING not in name:
        name = f"{name} ({ANYTHING})"
    return f"{name} / {ANYTHING}" if job.value.get("uses") else name


def _plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: _plain(child) for key, child in node.value.items()}
    if isinstance(node.value, tuple):
        return [_plain(child) for child in node.value]
    # As written: `on`, `1.10` and `0x1f` are texts to GitHub or mean other values than in a config.
    return node.text or node.value


def _triggers(on: Any) -> dict[str, str]:
    if isinstance(on, dict):
        return {str(event): "" if filters in (None, "") else as_text(filters) for event, filters in on.items()}
    return dict.fromkeys(map(str, on if isinstance(on, list) else [on]), "") if on else {}
