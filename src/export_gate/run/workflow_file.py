"""Turn the text of a workflow, or of an action of the repository's own, into its steps that run the gate."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from export_gate.config.document import read_document
from export_gate.config.nodes import Allowance, Node, Unreadable
from export_gate.config.problems import Problems
from export_gate.loosening.workflow import HERE, JOB, STEP, GateStep, Workflow

GATE = "export-gate"
COMMAND = re.compile(r"export[-_]gate\s+-*[a-z]")
VARIABLE = re.compile(r"EXPORT_GATE_\w+")
HARMLESS = re.compile(r"(FORCE_|NO_|CLI)?COLOR\w*|TERM|TZ", re.ASCII)
"""Variables that choose nothing. Any other may: an interpreter, what bash or pip load, git's repository, an input."""
DEPTH = 4
"""How many files of the repository may call each other before the gate runs; GitHub allows as many."""


def read_workflows(
    texts: Mapping[str, str], repository: str, scripts: Collection[str] = ()
) -> dict[str, Workflow | None]:
    """The files by their paths; None for one that cannot be read.

    A file that calls another one of the repository which runs the gate runs the gate as well: its inputs may choose
    what is checked.

    Args:
        texts: of all files that may run the gate or call one that does.
        repository: that the action comes from, by which it is known under any name.
        scripts: paths of other files that run the gate, which a step may run.
    """
    values = {name: read_value(text) for name, text in texts.items()}
    called: frozenset[str] = frozenset()
    found: dict[str, Workflow | None] = {}
    for _ in range(DEPTH):
        known = Known(repository=repository.lower(), called=called, scripts=tuple(scripts))
        found = {name: None if value is None else _workflow(value, known) for name, value in values.items()}
        running = frozenset(_reference(name) for name, workflow in found.items() if workflow and workflow.steps)
        if running == called:
            break
        called = running
    return found


def read_value(text: str) -> dict[str, Any] | None:
    """What the file says, as texts; None if it cannot be read."""
    try:
        value = _plain(read_document(text, Problems(), Allowance()))
    except Unreadable:
        return None
    return value if isinstance(value, dict) else {}


def read_script(text: str) -> Workflow:
    """The lines of another file that start the gate, or set its variables."""
    lines = tuple(line for line in _script({"run": text}) if COMMAND.search(line) or VARIABLE.search(line))
    starts = any(map(COMMAND.search, lines))
    return Workflow(steps=(GateStep(part="", commands=lines),) if starts else ())


def texts(value: Any) -> dict[str, str]:
    """A mapping's values as text."""
    return {str(key): as_text(item) for key, item in value.items()} if isinstance(value, dict) else {}


def as_text(value: Any) -> str:
    """A value as one line."""
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def _reference(name: str) -> str:
    """How the repository's own workflows call the file: an action by its folder."""
    folder, _, file = name.rpartition("/")
    return f"./{folder}" if file in ("action.yml", "action.yaml") else f"./{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What runs the gate."""

    repository: str
    """In lower case, since GitHub does not tell case apart."""
    called: frozenset[str]
    """Files of the repository, as `uses` names them."""
    scripts: tuple[str, ...] = ()
    """Other files of it, by their paths."""

    def runs(self, action: str) -> bool:
        """Whether what `uses` names, without its version, runs the gate."""
        # `owner/export-gate/post` is ours too, as is a fork under another name that this very run comes from.
        name = action.lower()
        is_ours = "/".join(name.split("/")[:2]) == self.repository or GATE in re.split(r"[/.]", name)
        return bool(name) and (is_ours or action.rstrip("/") in self.called)

    def is_command(self, line: str) -> bool:
        """Whether the line of a script runs the gate."""
        return bool(COMMAND.search(line)) or any(script in line for script in self.scripts)

    def commands(self, step: dict[str, Any]) -> tuple[str, ...]:
        """The step's lines that do."""
        return tuple(filter(self.is_command, _script(step)))

    def is_gate(self, step: dict[str, Any]) -> bool:
        """Whether the step runs the gate."""
        return self.runs(str(step.get("uses") or "").partition("@")[0]) or bool(self.commands(step))


def _workflow(value: dict[str, Any], known: Known) -> Workflow:
    jobs = value.get("jobs")
    if isinstance(jobs, dict):
        found = [step for name in jobs for step in _steps(_Job(name=name, jobs=jobs, workflow=value), known)]
        running = {step.part for step in found}
        checks = {f"job {name}": as_text(_name(job) or name) for name, job in jobs.items()}
        others = tuple(check for part, check in checks.items() if part not in running)
        names = tuple(checks.values())
        return Workflow(steps=tuple(found), triggers=_triggers(value.get("on")), checks=names, others=others)
    # An action has `runs` with the steps, where a workflow has jobs.
    inner = _Job(name="", jobs={"": value.get("runs")}, workflow={})
    return Workflow(steps=tuple(_steps(inner, known)), defaults=texts(value.get("inputs")))


def _name(job: Any) -> Any:
    return job.get("name") if isinstance(job, dict) else None


def _plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: _plain(child) for key, child in node.value.items()}
    if isinstance(node.value, tuple):
        return [_plain(child) for child in node.value]
    # As written: `on`, `1.10` and `0x1f` are texts to GitHub or mean other values than in a config.
    return node.text or node.value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    name: str
    jobs: dict[str, Any]
    workflow: dict[str, Any]

    @property
    def value(self) -> dict[str, Any]:
        value = self.jobs.get(self.name)
        return value if isinstance(value, dict) else {}

    @property
    def steps(self) -> list[dict[str, Any]]:
        """A job that calls another workflow is one step."""
        value = self.value
        steps = value.get("steps") if isinstance(value.get("steps"), list) else [value] if value.get("uses") else []
        return [each for each in steps or () if isinstance(each, dict)]

    def needed(self) -> dict[str, _Job]:
        """The jobs that must have passed before this one begins, also those that they need."""
        found: dict[str, _Job] = {}
        waiting = [self]
        while waiting:
            needs = waiting.pop().value.get("needs")
            for name in map(str, needs if isinstance(needs, list) else [needs] if needs else []):
                if name in self.jobs and name not in found:
                    found[name] = _Job(name=name, jobs=self.jobs, workflow=self.workflow)
                    waiting.append(found[name])
        return found

    def settings(self) -> dict[str, str]:
        """What is compared of the job, with `job ` before each key."""
        strategy = self.value.get("strategy")
        given = {
            "defaults": self.workflow.get("defaults"),
            **{key: self.value[key] for key in JOB if key != "uses" and key in self.value},
            "matrix": strategy.get("matrix") if isinstance(strategy, dict) else None,
            **{f"{name} if": job.value.get("if") for name, job in self.needed().items()},
        }
        return {f"job {key}": as_text(value) for key, value in given.items() if value is not None}


def _steps(job: _Job, known: Known) -> Iterator[GateStep]:
    """The job's steps that run the gate."""
    for step in filter(known.is_gate, job.steps):
        action, _, version = str(step.get("uses") or "").partition("@")
        is_ours, commands = known.runs(action), known.commands(step)
        given = {name.lower(): value for name, value in texts(step.get("with")).items()}
        # The innermost one counts, as GitHub merges them.
        everything = {**texts(job.workflow.get("env")), **texts(job.value.get("env")), **texts(step.get("env"))}
        own = () if step is job.value else STEP
        yield GateStep(
            part=f"job {job.name}" if job.name else "",
            action=action if is_ours else "",
            version=version if is_ours else "",
            is_call=action.startswith("./") or action.endswith((".yml", ".yaml")),
            commands=commands,
            inputs=given,
            settings={**job.settings(), **{key: as_text(step[key]) for key in own if step.get(key) is not None}},
            env={name: value for name, value in everything.items() if not HARMLESS.fullmatch(name)},
            around=tuple(dict.fromkeys(_around(job, known))),
        )


def _around(job: _Job, known: Known) -> Iterator[str]:
    """What the job runs, and what those jobs run whose outputs it uses."""
    asked = as_text(job.value)
    for name, needed in job.needed().items():
        if re.search(rf"needs\s*\.\s*{re.escape(name)}\b|needs\s*\[|toJSON\s*\(\s*needs", asked, re.IGNORECASE):
            yield from (f"{name}: {line}" for step in needed.steps for line in _lines(step))
    for step in job.steps:
        if known.runs(str(step.get("uses") or "").partition("@")[0]):
            yield HERE
        else:
            # Of a step that runs the gate, the other keys are settings.
            lines = _script(step) if known.is_gate(step) else _lines(step)
            yield from (HERE if known.is_command(line) else line for line in lines)


def _lines(step: dict[str, Any]) -> Iterator[str]:
    """A step as lines: the action with its inputs, or the commands, and the keys that say how it runs."""
    rest = {key: value for key, value in step.items() if key not in ("name", "id", "run", "uses", "with")}
    if rest:
        yield as_text(rest)
    if step.get("uses"):
        given = texts(step.get("with"))
        yield f"{step['uses']}{f' {as_text(given)}' if given else ''}"
    yield from _script(step)


def _script(step: dict[str, Any]) -> list[str]:
    # A command that goes on in the next line is one command.
    lines = str(step.get("run") or "").replace("\\\n", " ").splitlines()
    return [" ".join(line.split()) for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _triggers(on: Any) -> dict[str, str]:
    if isinstance(on, dict):
        return {str(event): "" if filters in (None, "") else as_text(filters) for event, filters in on.items()}
    return dict.fromkeys(map(str, on if isinstance(on, list) else [on]), "") if on else {}
