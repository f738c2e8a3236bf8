"""Compare the steps of workflows that run the gate: which config, models and interpreter they choose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from export_gate.loosening.check_names import names
from export_gate.loosening.compare import OTHER, Compare, Step, arrow, loosened_by_any, lost, restricted, shown, weaker
from export_gate.loosening.others import trusted
from export_gate.loosening.record import CONFIG, Alteration, Effect
from export_gate.loosening.steps import GateStep, Workflow

INPUTS: dict[str, Compare] = {
    **dict.fromkeys(
        ("config", "python", "working-directory", "template", "results", "github-token", "comment-id"), loosened_by_any
    ),
    **dict.fromkeys(("models", "targets", "shard"), restricted),
    "cache": trusted,
    "fail-on": weaker("warning", OTHER),
    "comment": weaker("always", "changes", OTHER),
    "allow-pull-request-target": weaker("false", OTHER),
}
"""The action's inputs that choose what is checked, which results are reported and who sees it.

`upload-artifacts` chooses nothing: without results, the report fails.
"""
ALWAYS = {
    "comment": "always",
    "comment-id": "export-gate",
    "fail-on": "violation",
    "allow-pull-request-target": "false",
    "working-directory": ".",
}
"""Defaults that a step may as well write."""
JOB = {
    "name": "branch protection knows a check by it, so another job can take it over",
    "needs": "a job that is skipped since another one failed counts as passed",
    "if": "so does one that is left out",
    "continue-on-error": "its failure does not show",
    "runs-on": "the machine, and with it the interpreter",
    "container": "the image, and with it the interpreter",
    "services": "other images, which can write to folders of the machine",
    "environment": "its variables may be the values of inputs",
    "defaults": "the shell and the folder of commands",
    "uses": "the workflow that it calls",
    "outputs": "another job may fail by them",
}
"""Keys of a job that are compared, and why.

Others loosen nothing. `permissions` and `secrets` are what the code may do, not what is checked; the code of a pull
request can change it anyway. `timeout-minutes` and `concurrency` end a job, which has not passed then, and so does
`strategy` apart from its matrix. `env` is compared by variable.
"""
COMMENTS = "pull-requests"
"""The permission without which the job cannot comment, so that nobody sees what it found."""
STEP = ("if", "continue-on-error", "shell", "working-directory")
"""Keys of a step that are compared; `timeout-minutes` ends it, which has failed then, and names choose nothing."""
WITH_BASE = frozenset(
    ("pull_request", "pull_request_target", "pull_request_review", "pull_request_review_comment", "merge_group")
)
"""Events that say which commit the change is compared with."""
LATER = ("schedule", "workflow_run", "workflow_call", "repository_dispatch", "issue_comment", "issues")
"""Events whose runs are about the newest commit of the default branch, or about that of the workflow that calls."""
USUAL_TYPES = '{"types": ["opened", "synchronize", "reopened"]}'
"""Of pull requests, if a workflow names none."""
_TYPES, _WORD = re.compile(r'\{"types": \["\w+"(, "\w+")*\]\}'), re.compile(r"\w+")
_EVEN_IF_FAILED = re.compile(r"(always|cancelled|failure)\s*\(", re.IGNORECASE)
_USUAL = re.compile(r'\{"branches": (\["(main|master)"\]|"(main|master)")\}')
"""Pushes to the branch that pull requests are merged into, as far as its name tells."""
_VERSION = re.compile(r"^((?:[\w./-]+: )?[\w-]+/[\w./-]+@)(\S+)")
_RELEASE = re.compile(r"(?:[\w-]+[-/@])?v?\d+(?:\.\d+)*(?:(?:[.+-]|a|b|rc)[\w.]+)?|[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
"""A tag or a commit. A branch is not, nor is `refs/pull/3/head`, by which anybody has a version of any action."""


def compare_workflows(before: Mapping[str, Workflow], after: Mapping[str, Workflow]) -> tuple[Alteration, ...]:
    """What the change does to the steps that run the gate, by their files."""
    return tuple(
        Alteration(effect=effect, model=CONFIG, what=f"{place}: {f'{key} ' if key else ''}{what}")
        for place, (effect, key, what) in _all(before, after)
    )


def _all(before: Mapping[str, Workflow], after: Mapping[str, Workflow]) -> Iterator[tuple[str, Step]]:
    for file, workflow in before.items():
        kept = [step for other in _taking_over(file, workflow, after) for step in other.steps]
        now = after.get(file, Workflow(steps=()))
        told: set[tuple[str, Step]] = set()  # two steps of a job share what their job says
        for step, other in _pairs(workflow.steps, now.steps):
            place = f"{file}, {step.part}" if step.part else file
            if other is not None:
                found = [(place, each) for each in _step(step, other)]
                yield from (each for each in found if each not in told)
                told.update(found)
            elif step not in kept:  # it did not just move to another file
                yield place, ("loosened", "", "no longer runs the gate")
        # Else the file is gone or no longer runs the gate, which was said above.
        if now.steps:
            yield from ((file, found) for found in _triggers(workflow.triggers, now.triggers))
            yield from ((file, found) for found in _without_base(workflow.triggers, now.triggers))
            yield from ((file, found) for found in _each("input", workflow.defaults, now.defaults))
    yield from names(before, after)
    yield from _saves(before, after)


def _saves(before: Mapping[str, Workflow], after: Mapping[str, Workflow]) -> Iterator[tuple[str, Step]]:
    """Caches that the change saves where the gate reuses verdicts: a later run of it may restore them."""
    known = {line for workflow in before.values() for line in workflow.saves}
    steps = (step for workflow in (*before.values(), *after.values()) for step in workflow.steps)
    if any(step.inputs.get("cache") for step in steps):
        for file, workflow in after.items():
            yield from (
                (file, ("loosened", "", f"also saves a cache, which may be taken for kept verdicts: {shown(line)}"))
                for line in workflow.saves
                if line not in known
            )


def _taking_over(file: str, workflow: Workflow, after: Mapping[str, Workflow]) -> Iterator[Workflow]:
    """Workflows that GitHub runs whenever it ran this one: steps may have moved there."""
    for other, now in after.items():
        is_same_kind = other.rpartition("/")[0] == file.rpartition("/")[0] or not (workflow.triggers or now.triggers)
        if is_same_kind and not any(
            effect == "loosened" for effect, _, _ in _triggers(workflow.triggers, now.triggers)
        ):
            yield now


def _pairs(before: Sequence[GateStep], after: Sequence[GateStep]) -> Iterator[tuple[GateStep, GateStep | None]]:
    """Steps of one job in their order."""
    for part in dict.fromkeys(step.part for step in before):
        old, new = ([step for step in steps if step.part == part] for steps in (before, after))
        # Each old step has a partner, None for one that is gone. Steps that were added loosen nothing.
        yield from zip(old, [*new, *[None] * len(old)], strict=False)


def _step(before: GateStep, after: GateStep) -> Iterator[Step]:
    for effect, _, what in loosened_by_any(before.action or None, after.action or None):
        yield effect, "action", what
    if before.action == after.action and before.version != after.version:
        yield _upgraded(after.version), "version", arrow(before.version, after.version)
    for effect, _, what in loosened_by_any(before.commands, after.commands):
        yield effect, "commands", what
    others = dict.fromkeys((*before.inputs, *after.inputs), loosened_by_any) if before.is_call else {}
    for name, compare in {**others, **INPUTS}.items():
        # An input that a step leaves out has its default.
        old, new = (step.inputs.get(name) or ALWAYS.get(name) for step in (before, after))
        yield from ((effect, f"input {name}", what) for effect, _, what in compare(old, new))
    yield from _settings(before.settings, after.settings)
    yield from _each("env", before.env, after.env)
    yield from _around(before.around, after.around)


def _settings(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Step]:
    for name in dict.fromkeys((*before, *after)):
        match name.split()[-1]:
            case "if" | "continue-on-error":
                found = _condition(before.get(name), after.get(name))
            case other:
                compare: Compare = lost if other == COMMENTS else loosened_by_any
                found = compare(before.get(name), after.get(name))
        yield from ((effect, name, what) for effect, _, what in found)


def _each(noun: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Step]:
    for name in dict.fromkeys((*before, *after)):
        found = loosened_by_any(before.get(name), after.get(name))
        yield from ((effect, f"{noun} {name}", what) for effect, _, what in found)


def _condition(before: object, after: object) -> Iterator[Step]:
    """One under which a step is left out, or its failure; without it, a step does not run after a failure."""
    for effect, key, what in loosened_by_any(before, after):
        yield "tightened" if after is None and not _EVEN_IF_FAILED.search(str(before)) else effect, key, what


def _upgraded(version: str) -> Effect:
    return "changed" if _RELEASE.fullmatch(version) else "loosened"


def _around(before: Sequence[str], after: Sequence[str]) -> Iterator[Step]:
    """What runs beside the gate can replace an interpreter, the files or the results."""
    gone = [line for line in before if line not in after]
    come = [line for line in after if line not in before]
    if gone and [_VERSION.sub(r"\1", line) for line in gone] == [_VERSION.sub(r"\1", line) for line in come]:
        versions = [found[2] for line in come if (found := _VERSION.match(line))]
        effects = map(_upgraded, versions)
        yield "loosened" if "loosened" in effects else "changed", "steps", arrow(tuple(gone), tuple(come))
    elif gone and len(gone) == len(come):
        yield from (("loosened", "steps", arrow(*pair)) for pair in zip(gone, come, strict=True))
    elif gone or come:
        yield from (("loosened", "steps", f"without {shown(line)}") for line in gone)
        yield from (("loosened", "steps", f"also {shown(line)}") for line in come)
    elif tuple(before) != tuple(after):
        yield "loosened", "steps", f"in another order or number: {arrow(tuple(before), tuple(after))}"


def _triggers(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Step]:
    for event in before:
        if event not in after:
            yield "loosened", f"on {event}", "removed"
        elif before[event] != after[event]:
            is_more = event == "pull_request" and _has_more_types(before[event], after[event])
            change = f"{before[event] or 'always'} -> {after[event] or 'always'}"
            yield "tightened" if is_more else "loosened", f"on {event}", change


def _has_more_types(before: str, after: str) -> bool:
    """Whether the filters are types alone, and none that starts the check is gone."""
    old, new = (_TYPES.fullmatch(filters) for filters in (before or USUAL_TYPES, after or USUAL_TYPES))
    return bool(old and new) and set(_WORD.findall(before or USUAL_TYPES)) <= set(_WORD.findall(after or USUAL_TYPES))


def _without_base(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Step]:
    """Events that come to those with a base: their runs have the same check at the same commit, and compare nothing."""
    for event in after if WITH_BASE.intersection(before) else ():
        if event not in {*before, *WITH_BASE, *LATER} and not _USUAL.fullmatch(after[event]):
            yield "loosened", f"on {event}", "added, whose runs have no base"
