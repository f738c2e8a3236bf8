"""Compare the steps of workflows that run the gate: which config, models and interpreter they choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from export_gate.loosening.compare import OTHER, Compare, Step, loosened_by_any, restricted, weaker
from export_gate.loosening.record import CONFIG, Alteration


@dataclass(frozen=True, slots=True, kw_only=True)
class GateStep:
    """A step that runs the gate, with all that decides what it verifies and whether it can fail."""

    job: str
    """Empty in an action of the repository's own."""
    action: str = ""
    """`acme/export-gate`; empty if the step runs a command."""
    version: str = ""
    is_call: bool = False
    """Whether it calls a file of the repository, or a workflow of another one, whose inputs may mean anything."""
    commands: tuple[str, ...] = ()
    """The lines of a script that name the gate."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)
    """`if` and `continue-on-error` of the step and of its job, the job's with `job ` before them."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of workflow, job and step that choose an interpreter, or that the inputs name."""
    matrix: str = ""
    """The job's, if the inputs name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A file with such steps."""

    steps: tuple[GateStep, ...]
    triggers: Mapping[str, str] = field(default_factory=dict)
    """Event -> its filters."""


INPUTS: dict[str, Compare] = {
    **dict.fromkeys(("config", "python", "working-directory", "template"), loosened_by_any),
    **dict.fromkeys(("models", "targets", "shard"), restricted),
    "fail-on": weaker("warning", OTHER),
    "comment": weaker("always", "changes", OTHER),
    "allow-pull-request-target": weaker("false", OTHER),
}
"""The action's inputs that choose what is checked and who sees it; others, such as names, choose nothing."""
ALWAYS = {"comment": "always", "fail-on": "violation", "allow-pull-request-target": "false", "working-directory": "."}
"""Defaults that a step may as well write."""


def compare_workflows(before: Mapping[str, Workflow], after: Mapping[str, Workflow]) -> tuple[Alteration, ...]:
    """What the change does to the steps that run the gate, by their files."""
    return tuple(
        Alteration(effect=effect, model=CONFIG, what=f"{place}: {f'{key} ' if key else ''}{what}")
        for place, (effect, key, what) in _all(before, after)
    )


def _all(before: Mapping[str, Workflow], after: Mapping[str, Workflow]) -> Iterator[tuple[str, Step]]:
    kept = [step for workflow in after.values() for step in workflow.steps]
    for file, workflow in before.items():
        now = after.get(file, Workflow(steps=()))
        for step, other in _pairs(workflow.steps, now.steps):
            place = f"{file}, job {step.job}" if step.job else file
            if other is not None:
                yield from ((place, found) for found in _step(step, other))
            elif step not in kept:  # it did not just move to another file
                yield place, ("loosened", "", "no longer runs the gate")
        # Else the file is gone or no longer runs the gate, which was said above.
        if now.steps:
            yield from ((file, found) for found in _triggers(workflow.triggers, now.triggers))


def _pairs(before: Sequence[GateStep], after: Sequence[GateStep]) -> Iterator[tuple[GateStep, GateStep | None]]:
    """Steps of one job in their order."""
    for job in dict.fromkeys(step.job for step in before):
        old, new = ([step for step in steps if step.job == job] for steps in (before, after))
        # Each old step has a partner, None for one that is gone. Steps that were added loosen nothing.
        yield from zip(old, [*new, *[None] * len(old)], strict=False)


def _step(before: GateStep, after: GateStep) -> Iterator[Step]:
    for effect, _, what in loosened_by_any(before.action or None, after.action or None):
        yield effect, "action", what
    if before.action == after.action and before.version != after.version:
        yield "changed", "version", f"{before.version} -> {after.version}"
    for effect, _, what in loosened_by_any(before.commands, after.commands):
        yield effect, "commands", what
    others = dict.fromkeys((*before.inputs, *after.inputs), loosened_by_any) if before.is_call else {}
    for name, compare in {**others, **INPUTS}.items():
        # An input that a step leaves out has its default.
        old, new = (step.inputs.get(name) or ALWAYS.get(name) for step in (before, after))
        yield from ((effect, f"input {name}", what) for effect, _, what in compare(old, new))
    for name in dict.fromkeys((*before.conditions, *after.conditions)):
        yield from ((e, name, what) for e, _, what in _added(before.conditions.get(name), after.conditions.get(name)))
    for name in dict.fromkeys((*before.env, *after.env)):
        old, new = before.env.get(name), after.env.get(name)
        yield from ((effect, f"env {name}", what) for effect, _, what in loosened_by_any(old, new))
    yield from ((effect, "matrix", what) for effect, _, what in loosened_by_any(before.matrix, after.matrix))


def _added(before: str | None, after: str | None) -> Iterator[Step]:
    """A condition under which a step is left out, or its failure."""
    for effect, key, what in loosened_by_any(before, after):
        yield "tightened" if after is None else effect, key, what


def _triggers(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Step]:
    for event in before:
        if event not in after:
            yield "loosened", f"on {event}", "removed"
        elif before[event] != after[event]:
            yield "loosened", f"on {event}", f"{before[event] or 'always'} -> {after[event] or 'always'}"
