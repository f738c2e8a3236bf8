"""Workflows as they are compared: their steps that run the gate, and what decides whether and when those run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HERE = "the gate"
"""In place of a step or line that runs the gate, among those around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateStep:
    """A step that runs the gate, with all that decides what it verifies and whether it can fail."""

    part: str
    """`job test` or `hook export-gate`; empty in an action of the repository's own."""
    action: str = ""
    """`acme/export-gate`; empty if the step runs a command."""
    version: str = ""
    is_call: bool = False
    """Whether it calls a file of the repository, or a workflow of another one, whose inputs may mean anything."""
    commands: tuple[str, ...] = ()
    """The lines of a script that name the gate."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """By their names in lower case, as GitHub does not tell case apart."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of the step, and those of `JOB` with `job ` before them."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of workflow, job and step, without those of `HARMLESS`."""
    around: tuple[str, ...] = ()
    """What else its job runs: each other step, or each line of its script; `HERE` stands for the gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A file with such steps."""

    steps: tuple[GateStep, ...]
    triggers: Mapping[str, str] = field(default_factory=dict)
    """Event -> its filters."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Of an action of the repository's own: its inputs, which the step may pass on."""
    checks: tuple[str, ...] = ()
    """Of its jobs, by the names that branch protection knows; see `check_names.ANYTHING`."""
    others: tuple[str, ...] = ()
    """Those of jobs that do not run the gate."""
    saves: tuple[str, ...] = ()
    """Steps of its jobs that save a cache."""
    grants: tuple[str, ...] = ()
    """Permissions of its jobs with which a token gives a commit checks of any name."""
