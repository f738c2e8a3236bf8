"""Build the view of findings: worst first, one view for several targets, with a command to reproduce each."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from export_gate.report.record import FindingView
from export_gate.report.results import Results
from export_gate.rules import NAMED
from export_gate.rules.base import SEVERITIES, Finding, asks_nothing
from export_gate.rules.wording import place
from export_gate.wall.contract import TargetName
from export_gate.wall.diagnosis import Owner
from export_gate.wall.equivalence import ratio

DEFAULT_CONFIG = "export-gate.yml"
OWNER_PLACES: dict[Owner, str] = {
    "model": "in the model",
    "contract": "in the contract",
    "torch.export": "in torch.export",
    "decomposition": "in a decomposition of torch's",
    "converter": "in the converter",
    "runtime-optimisation": "in an optimisation of the runtime",
    "runtime": "in the runtime",
    "artifact": "in the artifact",
    "gate": "in export-gate",
}


def views(results: Results) -> tuple[FindingView, ...]:
    """All findings, worst first: in the judge's order, but sorted by severity if results were merged."""
    calm = [finding for finding in results.findings if asks_nothing(finding)]
    groups: dict[tuple[str, ...], list[Finding]] = {}
    asking = [finding for finding in results.findings if finding not in calm]
    for finding in sorted(asking, key=lambda finding: SEVERITIES.index(finding.severity)):
        groups.setdefault(_sameness(finding), []).append(finding)
    known = {contract.name: {target.name for target in contract.targets} for contract in results.contracts}
    seen = tuple(_view(group, results.config_path, known) for group in groups.values())
    models = dict.fromkeys(finding.model for finding in calm)
    return (*seen, *(_calm_view(model, calm, results.config_path) for model in models))


def _calm_view(model: str, notes: Sequence[Finding], config_path: str) -> FindingView:
    """All notes of a model that ask for nothing, as one."""
    mine = [finding for finding in notes if finding.model == model]
    texts = [finding.message.removeprefix(f"{model}, ").removeprefix(f"{model}: ") for finding in mine]
    statement = "; ".join(dict.fromkeys(texts))
    whole = replace(
        mine[0],
        message=f"{model}: {statement}",
        target=None,
        output=None,
        case=None,
        measured=None,
        allowed=None,
        details=(),
    )
    command = reproduce(config_path, model)
    return FindingView(finding=whole, statement=statement, times_over=None, command=command, asks_nothing=True)


def _sameness(finding: Finding) -> tuple[str, ...]:
    """A key that is equal for findings that differ only in their target: by output, or else by text."""
    about = finding.output or finding.message.replace(finding.target or "", "")
    rule = NAMED.get(finding.rule)
    is_ending = rule is not None and rule.stage is None
    own = "" if finding.target and not is_ending else str(finding.target)
    waiver = f"{finding.waiver.until} {finding.waiver.reason}" if finding.waiver else ""
    return (finding.severity, waiver, finding.model, finding.rule, finding.cause, about, own)


def _view(group: Sequence[Finding], config_path: str, known: Mapping[str, Collection[str]]) -> FindingView:
    worst, *others = group
    over = ratio(worst.measured, worst.allowed)
    source = worst.source
    model = worst.model if worst.model in known else None
    target = worst.target if worst.target in known.get(worst.model, ()) else None
    return FindingView(
        finding=worst,
        statement=worst.message.removeprefix(f"{place(worst.model, worst.target, worst.output, worst.case)}: "),
        times_over=over if 1 < over < math.inf else None,
        command=reproduce(config_path, model, target, worst.case),
        cause=cause_words(worst),
        source=None if source and f"{source.path}:{source.line}" in worst.message else source,
        also=tuple(others),
    )


def cause_words(finding: Finding) -> str:
    """`special-value, in the converter: the same input agrees once ...; the exported program agrees with eager`."""
    if finding.severity != "violation":
        return ""
    cause = "not known" if finding.cause == "unknown" else finding.cause
    owner = f", {OWNER_PLACES[finding.owner]}" if finding.owner else ""
    return f"{cause}{owner}{': ' if finding.evidence else ''}{'; '.join(finding.evidence)}"


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
    """The path as written; only the name of an absolute path, whose folder is on another machine."""
    path = PurePath(config_path)
    shown = path.name if path.is_absolute() else path.as_posix()
    return "" if shown == DEFAULT_CONFIG else shown


def _quoted(word: str) -> str:
    """Quote a case always, so that the command looks the same for every case."""
    quoted = shlex.quote(word)
    return quoted if quoted.startswith("'") else f"'{word}'"


def _literal_pattern(case: str) -> str:
    """Escape a name for `--case`, which takes glob patterns: brackets and stars must match literally."""
    return re.sub(r"([*?[])", r"[\1]", case)
