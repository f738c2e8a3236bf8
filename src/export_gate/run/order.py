"""What a caller wants to check, and the request to the worker for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from export_gate.run.plan import Selection
from export_gate.run.shards import Shard
from export_gate.run.variables import with_variables
from export_gate.wall.contract import Job
from export_gate.wall.request import Request, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePlace:
    """Where verdicts of unchanged models are kept."""

    folder: Path
    keeps: bool = True
    """Whether new verdicts are written to it."""
    limit_bytes: int = 2_000_000_000
    standing: str = ""
    """Names the record of a run in which all is verified, for the same command; empty keeps none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a caller wants to check."""

    config: Path
    selection: Selection = field(default_factory=Selection)
    python: str | None = None
    """The interpreter that the caller names; None leaves it to the search order."""
    parallel: int = 1
    folder: Path = Path(".export-gate")
    """Receives results.json, report.md, report.html and artifacts."""
    environment: Mapping[str, str] = field(default_factory=dict)
    shard: Shard | None = None
    """The part of the selection that this machine checks; None means all of it."""
    unpushed: Mapping[str, str] = field(default_factory=dict)
    """Before a push: files that it does not contain as they are here, from the root of the checkout -> why."""
    save_case: Path | None = None
    """An .npz that receives the smallest failing input of the worst finding that has one."""
    diagnosis: bool = True
    """Run experiments after a failure that find its cause."""
    base: str | None = None
    """The commit whose interface lock applies, and whose config shows what a change loosens; None means the working
    tree's lock, and no comparison of configs except before a push.
    """
    cache: CachePlace | None = None
    """None verifies every model, and keeps no verdict."""


def default_parallel() -> int:
    """One model per core, as each uses one thread."""
    # The affinity honours `taskset` and a container's cpuset, which cpu_count does not.
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def worker_request(order: Order, jobs: tuple[Job, ...], task: Task) -> Request:
    """Ask the worker for that task on each of the jobs."""
    jobs = tuple(with_variables(job, order.environment) for job in jobs)
    return Request(jobs=jobs, parallel=order.parallel, log_folder=str(order.folder.resolve() / "logs"), task=task)
