"""Environment variables of a job: those that its contract sets or has passed on, and those that its code cannot see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from export_gate.run.environment import worker_environment
from export_gate.wall.contract import Job


def with_variables(job: Job, environment: Mapping[str, str]) -> Job:
    """The job with the values of its contract's `env`, and the names of what it does not get of the environment."""
    wanted = job.contract.env
    given = {name: environment.get(name) if value is None else value for name, value in wanted.items()}
    variables = {name: value for name, value in given.items() if value is not None}
    seen = {*worker_environment(environment), *variables}
    return replace(job, variables=variables, withheld=tuple(sorted({*environment, *wanted} - seen)))
