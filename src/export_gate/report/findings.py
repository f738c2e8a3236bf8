"""Findings -> what is shown of them: worst first, the same one of several targets told once, with a command to reproduce it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath

from export_gate.contract import TARGET_NAMES, TargetName
from export_gate.observation import STAGES
from export_gate.report.ladder import ENDINGS, STAGE_OF_RULE
from export_gate.report.record import FindingView
from export_gate.report.results import Results
from export_gate.rules.base import SEVERITIES, Finding
from export_gate.rules.equivalence import ratio

DEFAULT_CONFIG = "export-gate.yml"


def views(results: Results) -> tuple[FindingView, ...]:
    """All findings, worst first."""
    order = [contract.name for contract in results.contracts]
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in sorted(results.findings, key=lambda finding: _badness(finding, order)):
        groups.setdefault(_sameness(finding), []).append(finding)
    return tuple(_view(group, results.config_path) for group in groups.values())


def _badness(finding: Finding, order: Sequence[str]) -> tuple[object, ...]:
    """By severity, then by stage (what comes later may follow from it), then by how far it is over its bound."""
    return (
        SEVERITIES.index(finding.severity),
        -1 if finding.rule in ENDINGS else STAGES.index(STAGE_OF_RULE.get(finding.rule, "eager")),
        -ratio(finding.measured, finding.allowed),
        order.index(finding.model) if finding.model in order else len(order),
        -1 if finding.target is None else TARGET_NAMES.index(finding.target),
        finding.rule,
        finding.output or "",
        finding.case or "",
        finding.message,
    )


def _sameness(finding: Finding) -> tuple[str, ...]:
    """Equal for findings that differ in their target alone: by the output, or else by their words."""
    about = finding.output or finding.message.replace(finding.target or "", "")
    own = "" if finding.target and finding.rule not in ENDINGS else str(finding.target)
    return (finding.severity, finding.model, finding.rule, about, own)


def _view(group: Sequence[Finding], config_path: str) -> FindingView:
    worst, *others = group
    measured = worst.measured is not None and worst.allowed is not None
    return FindingView(
        finding=worst,
        ratio=ratio(worst.measured, worst.allowed) if measured else None,
        command=reproduce(config_path, worst.model, worst.target, worst.case),
        also=tuple(others),
    )


def reproduce(
    config_path: str, model: str | None = None, target: TargetName | None = None, case: str | None = None
) -> str:
    """`export-gate run glyph-head --target onnx --case 'halves-1@batch=2'`, from the project's folder."""
    words = ["export-gate", "run"]
    if config := _config_option(config_path):
        words += ["--config", config]
    words += [] if model is None else [model]
    words += [] if target is None else ["--target", target]
    line = shlex.join(words)
    return line if case is None else f"{line} --case {_quoted(_literal_pattern(case))}"


def _config_option(config_path: str) -> str:
    """The path as written; of an absolute one the name alone, since the folder is that of another machine."""
    path = PurePath(config_path)
    shown = path.name if path.is_absolute() else path.as_posix()
    return "" if shown == DEFAULT_CONFIG else shown


def _quoted(word: str) -> str:
    """A case always in quotes, so that the command looks alike for every case."""
    quoted = shlex.quote(word)
    return quoted if quoted.startswith("'") else f"'{word}'"


def _literal_pattern(case: str) -> str:
    """`--case` takes glob patterns; a name is itself only with its brackets and stars quoted."""
    return re.sub(r"([*?[])", r"[\1]", case)
