"""The hidden first line of our comment: its comment-id, the run that wrote it, its verdict and digest."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from export_gate.report.record import Report
from export_gate.rules.judge import EXIT_CODES, Verdict
from export_gate.wall.errors import UserError

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_LINE = re.compile(
    rf"<!-- export-gate: comment=({_NAME}) run=([0-9]{{1,19}})\.([0-9]{{1,9}}) "
    rf"verdict=({'|'.join(EXIT_CODES)}) digest=([0-9a-f]{{16}}) -->",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Run:
    """A workflow run; a later one compares greater."""

    id: int = 0
    """0 if unknown."""
    attempt: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """The data in the marker."""

    comment: str
    """The comment-id; there is one comment per comment-id."""
    run: Run
    verdict: Verdict
    digest: str
    """Hash of the verdict and the findings, without their numbers."""

    def __str__(self) -> str:
        return (
            f"<!-- export-gate: comment={self.comment} run={self.run.id}.{self.run.attempt} "
            f"verdict={self.verdict} digest={self.digest} -->"
        )


def parse_marker(body: str) -> Marker | None:
    """The marker at the start of `body`; a marker elsewhere is a quotation."""
    # GitHub may return line ends as \r\n.
    found = _LINE.fullmatch(body.split("\n", 1)[0].rstrip("\r"))
    if found is None:
        return None
    verdict = next(verdict for verdict in EXIT_CODES if verdict == found[4])
    run = Run(id=int(found[2]), attempt=int(found[3]))
    return Marker(comment=found[1], run=run, verdict=verdict, digest=found[5])


def check_comment_id(text: str) -> str:
    """Return `text` if it is a valid comment-id.

    Raises:
        UserError: it contains other characters or is too long.
    """
    if re.fullmatch(_NAME, text, re.ASCII) is None:
        raise UserError(f"--comment-id: expected up to 64 of letters, digits, '.', '_' and '-', got {text!r:.80}")
    return text


def digest(report: Report) -> str:
    """16 hex digits that change with the verdict, a state, a finding or the change of the config, not with time."""
    findings = [
        (f.rule, f.severity, f.model, f.target, f.output)
        for view in report.findings
        for f in (view.finding, *view.also)
        if f.severity != "note"
    ]
    said: dict[str, object] = {
        "verdict": report.verdict,
        "models": [(row.model, row.state, row.reason) for row in report.rows],
        # By text, because a target or output may be None, which has no order.
        "findings": sorted(findings, key=str),
        "problems": [(problem.model, problem.message) for problem in report.problems],
    }
    if report.change is not None:
        said["change"] = [*report.change.loosened, *report.change.otherwise]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]
