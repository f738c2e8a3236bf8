"""One run as a file, `results.json`: contracts, observations and findings, as strict JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from export_gate.config.waivers import is_day
from export_gate.loosening.crowding import with_crowding
from export_gate.loosening.record import CONFIG, ConfigChange, FailOn
from export_gate.report.commands import Caller, reproduce
from export_gate.report.escape import one_line
from export_gate.report.ranges import impossible_numbers
from export_gate.rules.base import Finding
from export_gate.rules.judge import Terms, Verdict
from export_gate.rules.lock.record import LockUsed
from export_gate.run.checkout import Checkout
from export_gate.wall.codec import decode, encode
from export_gate.wall.contract import ModelContract
from export_gate.wall.errors import GateError, UserError
from export_gate.wall.observation import RunObservation
from export_gate.wall.strict_json import parse_strictly

SCHEMA_VERSION = 2
"""Incremented whenever an older reader would misread a new `results.json`."""
LARGEST_FILE_BYTES = 256 * 1024 * 1024
"""Results may come from untrusted pull requests; this limits what they can make us load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything that a report, a second judgement or a merge of shards needs."""

    schema_version: int = SCHEMA_VERSION
    tool_version: str
    config_path: str
    """Path as the user would type it, relative to the folder in which the gate ran."""
    python_option: str = ""
    """The interpreter as `--python` named it; empty if it did not."""
    config_sha256: str
    started: str
    """ISO 8601 in UTC."""
    duration_s: float
    contracts: tuple[ModelContract, ...]
    run: RunObservation
    findings: tuple[Finding, ...]
    verdict: Verdict
    head: str | None = None
    """Revision that was checked; None outside git."""
    checkout: Checkout = field(default_factory=Checkout)
    planned: tuple[ModelContract, ...] = ()
    """If this is one shard of a run: the contracts of all shards, in order."""
    judged_on: str = ""
    """ISO date (UTC) used for waivers; empty means the day of `started`."""
    narrowed: bool = False
    """Whether the command line excluded targets or control inputs."""
    unselected_models: int = 0
    """Models of the config that the command line left out."""
    unselected_targets: int = 0
    """Targets that it left out of the other models."""
    lock: LockUsed | None = None
    """The interface lock that the run was compared with, if the project has one."""

    change: ConfigChange | None = None
    """What the config does to the check, compared with the base of the change; None without a base."""

    fail_on: FailOn = "violation"
    """The lowest severity that fails the check, as the config or the base of the change says."""

    unpushed: dict[str, str] = field(default_factory=dict)
    """Before a push: files that it does not contain as they were verified, from the root of the checkout -> why."""

    @property
    def caller(self) -> Caller:
        """What the commands that a report prints need."""
        return Caller(config=self.config_path, python=self.python_option)

    def command(self, finding: Finding) -> str:
        """The command that reproduces a finding."""
        # A finding may be about the config, or a model or target that only the lock has: `run` cannot name those.
        contract = next((contract for contract in self.contracts if contract.name == finding.model), None)
        target = finding.target if contract and contract.target(finding.target or "") else None
        model = contract.name if contract else None
        return reproduce(self.caller, model, target, finding.saved_case or finding.case)

    @property
    def whole_change(self) -> ConfigChange | None:
        """The change, with the inputs that others crowd out."""
        # Not kept in the file: one shard of a run sees only its own models, and shards must agree on the change.
        return with_crowding(self.change, self.run.models) if self.change else None

    @property
    def terms(self) -> Terms:
        """The terms of the verdict, so that the results can be judged again."""
        return Terms(
            today=self.judged_on or self.started[:10],
            is_whole=not self.narrowed,
            lock=self.lock,
            change=self.whole_change,
            config=self.checkout.config,
            unpushed=self.unpushed,
        )


def write_results(results: Results, path: Path) -> None:
    """Write `results` atomically: a reader sees the old file or the whole new one.

    Raises:
        GateError: the file cannot be written.
    """
    # On one line: only then does Python write JSON in C, five times as fast. `report --format json` indents it.
    text = json.dumps(encode(results), allow_nan=False, separators=(",", ":")) + "\n"
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_durably(text, partial)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise GateError(f"{path}: the results could not be written: {error.strerror or error}") from error


def _write_durably(text: str, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        # Before the rename: after a crash, the new name could otherwise have an empty file.
        os.fsync(file.fileno())


def read_results(path: Path) -> Results:
    """Read the results in `path`, and check their shape and consistency.

    Raises:
        UserError: the file is missing, is not JSON, or has another schema version or shape; the message says where.
    """
    value = _read_json(path)
    if not isinstance(value, dict) or "schema_version" not in value:
        raise UserError(f"{path}: expected results of export-gate, got JSON without 'schema_version'")
    if value["schema_version"] != SCHEMA_VERSION:
        raise UserError(
            f"{path}: schema version {value['schema_version']!r:.20}, but this export-gate reads version "
            f"{SCHEMA_VERSION}; use the version of export-gate that wrote the file"
            f" ({one_line(value.get('tool_version', 'unknown')):.40})"
        )
    try:
        results = decode(Results, value)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid results: {one_line(error)}") from error
    for contradiction in _contradictions(results):
        raise UserError(f"{path}: {one_line(contradiction)}")
    return results


def _read_json(path: Path) -> Any:
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE_BYTES:
            raise UserError(f"{path}: {size} bytes, but results have at most {LARGEST_FILE_BYTES} bytes")
        return parse_strictly(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{path}: file not found; `export-gate run` writes it") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON: {one_line(error)}") from error


def _contradictions(results: Results) -> Iterator[str]:
    if not (results.contracts or results.planned):
        yield "no models, and not a shard of a run with models: nothing was compared, which is never a pass"
    yield from impossible_numbers(results, "Results")
    yield from _foreign_options(results)
    promised = [contract.name for contract in results.contracts]
    observed = [model.model for model in results.run.models]
    # Findings may also be about the config, and about models that only the lock or the base has.
    gone = {CONFIG, *(results.lock.gone if results.lock else ())}
    gone |= {alteration.model for alteration in results.change.alterations} if results.change else set()
    for name in (*observed, *(finding.model for finding in results.findings if finding.model not in gone)):
        if name not in promised:
            yield f"model {name!r:.80} was observed, but has no contract in the file"
    for names in (promised, observed):
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"model {name!r:.80} occurs {names.count(name)} times, expected once"
    days = [results.judged_on or results.started[:10]]
    days += [waiver.until for contract in results.contracts for waiver in contract.waivers]
    # Days matter only to waivers, which compare them as text.
    for day in days if any(contract.waivers for contract in results.contracts) else ():
        if not is_day(day):
            yield f"{day!r:.40} is not a date; expected one such as 2027-01-31 for waivers"
    if results.verdict == "verified" and any(finding.severity == "violation" for finding in results.findings):
        yield "the verdict is 'verified', but there are violations"


def _foreign_options(results: Results) -> Iterator[str]:
    for contract in (*results.contracts, *results.planned):
        for target in contract.targets:
            if problem := target.option_problem():
                yield f"model {contract.name!r:.80}, target {target.name}: {problem}"
