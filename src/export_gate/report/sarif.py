"""Write results as SARIF 2.1.0 for code scanning: one result per finding, at the user's source line or in the config.

Source: Static Analysis Results Interchange Format (SARIF) Version 2.1.0, OASIS Standard.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from export_gate.report.escape import one_line, visible
from export_gate.report.record import ProblemView, Report
from export_gate.report.results import Results
from export_gate.rules import CATALOGUE
from export_gate.rules.base import Finding, Named, Severity, next_step
from export_gate.rules.judge import EXIT_CODES
from export_gate.rules.keys import config_key
from export_gate.rules.smallest import smallest_words
from export_gate.wall.nodes import NodeTrace
from export_gate.wall.source import SourceLine

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS: dict[Severity, str] = {"violation": "error", "warning": "warning", "note": "note"}
FINGERPRINT = "exportGate/v1"
FINGERPRINT_DIGITS = 32


def sarif(results: Results, report: Report) -> str:
    """The JSON document."""
    rules = _rules(results.findings)
    index = {rule.name: number for number, rule in enumerate(rules)}
    unchanged = {row.model: row.unchanged for row in report.rows if row.unchanged}
    run = {
        "tool": {
            "driver": {
                "name": "export-gate",
                "version": results.tool_version,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        # GitHub's category is what comes before the last slash; an upload replaces earlier ones of its category.
        "automationDetails": {"id": f"export-gate/{_uri(results.config_path)}/"},
        "invocations": [_invocation(results, report)],
        "columnKind": "utf16CodeUnits",
        "results": list(_results(results, index)),
        "properties": {
            "verdict": report.verdict,
            "headline": visible(report.headline),
            "evidence": visible(report.evidence),
            "configSha256": results.config_sha256,
            **({"revision": results.head} if results.head else {}),
            **({"unchanged": unchanged} if unchanged else {}),
        },
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1, allow_nan=False) + "\n"


def _rules(findings: Sequence[Finding]) -> tuple[Named, ...]:
    """All rules, and rules in the results that this version does not have."""
    known = {rule.name for rule in CATALOGUE}
    others = {finding.rule: finding for finding in findings if finding.rule not in known}
    strange = [
        Named(name=name, severity=f.severity, summary=f"Reported as {name}.", stage=None, waivable=None)
        for name, f in sorted(others.items())
    ]
    return (*CATALOGUE, *strange)


def _rule(rule: Named) -> dict[str, Any]:
    text = (
        f"{rule.summary} See docs/rules.md, section {rule.name}, for what it means, how to fix it and how to accept it."
    )
    return {
        "id": rule.name,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.summary},
        "help": {"text": text, "markdown": text.replace(f"section {rule.name}", f"section `{rule.name}`")},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
    }


def _results(results: Results, index: dict[str, int]) -> Iterator[dict[str, Any]]:
    seen: dict[str, int] = {}
    for finding in results.findings:
        print_ = _fingerprint(finding)
        # Numbered, because a viewer takes results with equal fingerprints for one.
        seen[print_] = seen.get(print_, 0) + 1
        yield {
            "ruleId": finding.rule,
            "ruleIndex": index[finding.rule],
            "level": LEVELS[finding.severity],
            "message": {"text": _text(finding.message, next_step(finding))},
            "locations": [_location(results, finding.model, finding)],
            "partialFingerprints": {FINGERPRINT: f"{print_}:{seen[print_]}"},
            **_suppressions(finding),
            "properties": _properties(finding, results.command(finding)),
        }


def _text(message: str, step: str) -> str:
    """The text of a message, in which SARIF's viewers make a link of `[text](address)` (section 3.11.6)."""
    return f"{visible(message)}\nNext: {visible(step)}".replace("](", "] (")


def _fingerprint(finding: Finding) -> str:
    """A hash that stays equal between runs while the same promise is broken, whatever was measured and where."""
    parts = (finding.rule, finding.model, finding.target or "", finding.output or "")
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:FINGERPRINT_DIGITS]


def _suppressions(finding: Finding) -> dict[str, Any]:
    if finding.waiver is None:
        return {}
    words = f"waived until {finding.waiver.until}: {visible(finding.waiver.reason)}"
    return {"suppressions": [{"kind": "external", "status": "accepted", "justification": words}]}


def _properties(finding: Finding, command: str) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "case": None if finding.case is None else visible(finding.case),
        "owner": finding.owner,
        "cause": finding.cause,
        "evidence": [visible(line) for line in finding.evidence] or None,
        "node": _node(finding.trace),
        "failsAt": visible(smallest_words(finding.smallest, finding.target)) or None,
        "measured": _number(finding.measured),
        "allowed": _number(finding.allowed),
        "occurrences": finding.occurrences,
        "reproduce": visible(command),
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def _node(trace: NodeTrace | None) -> dict[str, Any] | None:
    """The guilty node as a viewer may sort by it; the sentence is in the texts."""
    if trace is None:
        return None
    facts: dict[str, Any] = {"compared": trace.mapped, "unmapped": trace.unmapped, "origin": trace.origin}
    guilty = trace.guilty
    if guilty is not None:
        facts |= {"name": visible(guilty.name), "operator": visible(guilty.operator), "module": visible(guilty.module)}
        facts |= {"fileNodes": [visible(node) for node in guilty.file_nodes], "error": _number(guilty.max_abs_diff)}
    return {name: fact for name, fact in facts.items() if fact is not None}


def _number(value: float | None) -> float | str | None:
    # JSON has no infinity and no NaN.
    return value if value is None or math.isfinite(value) else str(value)


def _location(results: Results, model: str | None, finding: Finding | None, source: SourceLine | None = None) -> Any:
    key = config_key(finding) if finding else ""
    physical = _physical(results, model, source or (finding.source if finding else None), key)
    logical = [] if model is None else [_logical(model, finding)]
    return {"physicalLocation": physical, "logicalLocations": logical}


def _logical(model: str, finding: Finding | None) -> dict[str, str]:
    parts = [model, finding.target, finding.output] if finding else [model]
    # A forged name may have nothing that can be seen, which SARIF does not take.
    named = [each for part in parts if part and (each := one_line(part))] or ["unnamed"]
    kind = "module" if len(named) == 1 else "member"
    return {"name": named[-1], "fullyQualifiedName": "/".join(named), "kind": kind}


def _physical(results: Results, model: str | None, source: SourceLine | None, key: str) -> dict[str, Any]:
    """The user's own line if it is in the repository, else the line of the model's key in the config."""
    checkout = results.checkout
    if source is not None and source.line > 0 and (path := checkout.relative(source.path)) is not None:
        region = {"startLine": source.line, "snippet": {"text": visible(source.text)}}
        # %SRCROOT% stands for the root of the repository, wherever it is checked out.
        return {"artifactLocation": {"uri": _uri(path), "uriBaseId": "%SRCROOT%"}, "region": region}
    line = checkout.line(model, key)
    config = checkout.relative(checkout.config or results.config_path) or PurePath(results.config_path).name
    return {"artifactLocation": {"uri": _uri(config), "uriBaseId": "%SRCROOT%"}, "region": {"startLine": line}}


def _uri(path: str) -> str:
    return quote(PurePath(path).as_posix().encode("utf-8", "surrogatepass"))


def _invocation(results: Results, report: Report) -> dict[str, Any]:
    return {
        "executionSuccessful": results.verdict in ("verified", "violations"),
        "exitCode": EXIT_CODES[results.verdict],
        "exitCodeDescription": results.verdict,
        "startTimeUtc": results.started,
        "toolExecutionNotifications": [_notification(problem, results) for problem in report.problems],
    }


def _notification(problem: ProblemView, results: Results) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": _text(problem.message, problem.hint)},
        "locations": [_location(results, problem.model, None, problem.source)],
    }
