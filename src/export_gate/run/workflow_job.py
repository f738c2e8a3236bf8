"""One job of a workflow, or what an action of the repository runs: which steps run the gate, and beside what."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from export_gate.loosening.steps import HERE, GateStep
from export_gate.loosening.workflow import COMMENTS, JOB, STEP
from export_gate.run.scripts import lines_of, script_lines, templates_in

GATE = "export-gate"
COMMAND = re.compile(r"""export[-_]gate(?:\.exe)?(?:\[[\w,-]*\])?(?:(?:@|[=~<>!]=)[\w.*]+)?["']?[\s,]+["']?-*[a-z]""")
"""Also as a list of words, `session.run("export-gate", "run")`, and with a version, `uvx export-gate@0.1.0 run`."""
UPLOAD = re.compile(r"\bupload(?!-sarif)|(?<!download-)artifact", re.IGNORECASE)
VARIABLE = re.compile(r"EXPORT_GATE_\w+")
HARMLESS = re.compile(r"(FORCE_|NO_|CLI)?COLOR\w*|TERM|TZ", re.ASCII)
"""Variables that choose nothing. Any other may: an interpreter, what bash or pip load, git's repository, an input."""
CONTENT = "content of what it uses"
"""The key of a step that has it as lines; GitHub knows none of that name."""
ELSEWHERE = ("name", "needs", "if", "steps", "permissions", "concurrency", "timeout-minutes")
"""Keys of a job whose outputs are used that are compared otherwise, or that choose no output."""


def texts(value: Any) -> dict[str, str]:
    """A mapping's values as text."""
    return {str(key): as_text(item) for key, item in value.items()} if isinstance(value, dict) else {}


def as_text(value: Any) -> str:
    """A value as one line."""
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What runs the gate."""

    repository: str
    """In lower case, since GitHub does not tell case apart."""
    called: frozenset[str] = frozenset()
    """Files of the repository, as `uses` names them."""
    scripts: tuple[str, ...] = ()
    """Other files of it, by their paths."""
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Scripts of a shell that do not run it, with their lines."""
    is_elsewhere: bool = False
    """Whether what runs it is not in the file: then it is behind something of another repository."""

    def runs(self, action: str) -> bool:
        """Whether what `uses` names, without its version, runs the gate."""
        # `owner/export-gate/post` is ours too, as is a fork under another name that this very run comes from.
        name = action.lower()
        is_ours = "/".join(name.split("/")[:2]) == self.repository or GATE in re.split(r"[/.:]", name)
        is_outer = self.is_elsewhere and "/" in name and not name.startswith(("./", "actions/"))
        return bool(name) and (is_ours or is_outer or self._is_called(action))

    def _is_called(self, action: str) -> bool:
        # The workflow may have put the checkout into a folder of its own.
        path = f"/{posixpath.normpath(action)}"
        return action.startswith("./") and any(path.endswith(file.removeprefix(".")) for file in self.called)

    def is_command(self, line: str) -> bool:
        """Whether the line of a script runs the gate."""
        return bool(COMMAND.search(line)) or any(script in line for script in self.scripts)

    def commands(self, step: Mapping[str, Any]) -> tuple[str, ...]:
        """The step's lines that do."""
        return tuple(filter(self.is_command, script_lines(step.get("run"))))

    def is_gate(self, step: Mapping[str, Any]) -> bool:
        """Whether the step runs the gate."""
        return self.runs(_action(step)) or bool(self.commands(step))


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job, or what an action of the repository's own runs."""

    name: str
    jobs: Mapping[str, Any]
    workflow: Mapping[str, Any]
    file: str = ""
    """Where it is written, if that is known."""

    @property
    def value(self) -> dict[str, Any]:
        """Its keys."""
        value = self.jobs.get(self.name)
        return value if isinstance(value, dict) else {}

    @property
    def matrix(self) -> Any:
        """What it runs once for each of; None without one."""
        strategy = self.value.get("strategy")
        return strategy.get("matrix") if isinstance(strategy, dict) else None

    @property
    def steps(self) -> list[dict[str, Any]]:
        """A job that calls another workflow is one step."""
        value = self.value
        steps = value.get("steps") if isinstance(value.get("steps"), list) else [value] if value.get("uses") else []
        return [each for each in steps or () if isinstance(each, dict)]

    def needed(self) -> dict[str, Job]:
        """The jobs that must have passed before this one begins, also those that they need."""
        found: dict[str, Job] = {}
        waiting = [self]
        while waiting:
            needs = waiting.pop().value.get("needs")
            for name in map(str, needs if isinstance(needs, list) else [needs] if needs else []):
                if name in self.jobs and name not in found:
                    found[name] = replace(self, name=name)
                    waiting.append(found[name])
        return found

    def _may_comment(self) -> str | None:
        given = self.value.get("permissions", self.workflow.get("permissions"))
        if given is None:
            return "default"
        level = given.get(COMMENTS) if isinstance(given, dict) else given
        return "write" if level in ("write", "write-all") else None

    def settings(self) -> dict[str, str]:
        """What is compared of the job, with `job ` before each key."""
        given = {
            **{key: self.value[key] for key in JOB if key not in ("uses", "defaults") and key in self.value},
            "defaults": _merged(self.workflow.get("defaults"), self.value.get("defaults")),
            "matrix": self.matrix,
            COMMENTS: self._may_comment(),
            **{f"{name} if": job.value.get("if") for name, job in self.needed().items()},
        }
        return {f"job {key}": as_text(value) for key, value in given.items() if value is not None}


def gate_steps(job: Job, known: Known) -> Iterator[GateStep]:
    """The job's steps that run the gate."""
    for step in filter(known.is_gate, job.steps):
        action, _, version = str(step.get("uses") or "").partition("@")
        is_ours, commands = known.runs(action), known.commands(step)
        given = {name.lower(): value for name, value in texts(step.get("with")).items()}
        # The innermost one counts, as GitHub merges them.
        everything = {**texts(job.workflow.get("env")), **texts(job.value.get("env")), **texts(step.get("env"))}
        own = {} if step is job.value else {key: step.get(key) for key in STEP} | _id(step, job)
        yield GateStep(
            part=f"job {job.name}" if job.name else "",
            action=action if is_ours else "",
            version=version if is_ours else "",
            is_call=known.is_elsewhere or action.startswith("./") or action.endswith((".yml", ".yaml")),
            commands=commands,
            inputs=given,
            settings={**job.settings(), **{key: as_text(value) for key, value in own.items() if value is not None}},
            env={name: value for name, value in everything.items() if not HARMLESS.fullmatch(name)},
            around=_once(_around(job, known)),
        )


def _action(step: Mapping[str, Any]) -> str:
    return str(step.get("uses") or "").partition("@")[0].strip()


def _merged(outer: Any, inner: Any) -> Any:
    """Defaults of the workflow and of the job: GitHub takes each key from the innermost that has it."""
    if not (isinstance(outer, dict) and isinstance(inner, dict)):
        return outer if inner is None else inner
    return {key: _merged(outer.get(key), inner.get(key)) for key in {**outer, **inner}}


def _id(step: Mapping[str, Any], job: Job) -> dict[str, Any]:
    """The step's id, if the job asks for steps by theirs: whether this one failed, or what it gave."""
    name = str(step.get("id") or "")
    asked = as_text(job.value)
    return {"id": name} if name and (f"steps.{name}" in asked or "steps[" in asked) else {}


def _around(job: Job, known: Known) -> Iterator[str]:
    """What the job runs, what jobs run whose outputs it uses, and what may replace the results that it reports."""
    asked, told = f"{job.file} {as_text(job.value)} {as_text(job.workflow.get('defaults'))}", set[str]()
    for name, needed in job.needed().items():
        if re.search(rf"needs\s*\.\s*{re.escape(name)}\b|needs\s*\[|toJSON\s*\(\s*needs", asked, re.IGNORECASE):
            for line in _whole(needed):
                yield f"{name}: {line}"
                yield from lines_of(line, f"{job.file} {as_text(needed.value)} {line}", known.beside, told)
    if any(_action(step).endswith("/post") and known.runs(_action(step)) for step in job.steps):
        yield from _uploads(job)
    for step in job.steps:
        if known.runs(_action(step)):
            yield HERE
            # The comment may say anything by a template.
            named = [templates_in(as_text(step.get("with")))]
        else:
            # Of a step that runs the gate, the other keys are settings.
            lines = list(script_lines(step.get("run")) if known.is_gate(step) else step_lines(step, job))
            yield from (HERE if known.is_command(line) else line for line in lines)
            # A script that the job runs is a part of it.
            named = [templates_in(line) if known.is_command(line) else line for line in lines]
        # So is one that a shell loads before the step, or that is the shell.
        named.append(as_text({key: step.get(key) for key in ("env", "shell")}))
        text = "\n".join(named)
        yield from lines_of(text, f"{asked} {text}", known.beside, told)
    for value in (each.get(key) for each in (job.workflow, job.value) for key in ("env", "defaults")):
        yield from lines_of(as_text(value), asked, known.beside, told)


def _once(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines, with one place for the gate: another step of it loosens nothing, a `cd` that is repeated may."""
    found = list(lines)
    first = found.index(HERE) if HERE in found else len(found)
    return tuple(line for place, line in enumerate(found) if line != HERE or place == first)


def _whole(job: Job) -> Iterator[str]:
    """Everything that decides what the job gives to others."""
    if job.steps != [job.value]:  # else it calls a workflow, and its keys are those of the step
        yield from (f"{key} {as_text(value)}" for key, value in job.value.items() if key not in ELSEWHERE)
    yield from (line for step in job.steps for line in step_lines(step, job))


def _uploads(job: Job) -> Iterator[str]:
    """Files that other jobs of the workflow upload, which may be results of their own."""
    for name in job.jobs:
        other = replace(job, name=name)
        steps = (step for step in other.steps if name != job.name and _may_upload(step))
        yield from (f"{name}: {line}" for step in steps for line in step_lines(step, other))


def _may_upload(step: Mapping[str, Any]) -> bool:
    """Whether the step, or what it uses of the repository, uploads; of a workflow from elsewhere nobody knows."""
    names = (_action(step), *(step.get(CONTENT) or ()))
    is_foreign = _action(step).endswith((".yml", ".yaml")) and not _action(step).startswith("./")
    return is_foreign or any(UPLOAD.search(name) for name in names)


def step_lines(step: Mapping[str, Any], job: Job) -> Iterator[str]:
    """A step as lines: the action with its inputs, or the commands, and the keys that say how it runs."""
    rest = {key: value for key, value in step.items() if key not in ("name", "id", "run", "uses", "with", CONTENT)}
    if rest := rest | _id(step, job):
        yield as_text(rest)
    if step.get("uses"):
        given = texts(step.get("with"))
        yield f"{step['uses']}{f' {as_text(given)}' if given else ''}"
    yield from script_lines(step.get("run"))
    yield from step.get(CONTENT) or ()
