"""Build the view of findings: worst first, one view for several targets, with a command to reproduce each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from export_gate.report.grouping import grouped, instead
from export_gate.report.record import FindingView
from export_gate.report.results import Results
from export_gate.report.scope import Scopes, scope_words
from export_gate.rules.base import Finding, asks_nothing
from export_gate.rules.guilty import node_words
from export_gate.rules.smallest import smallest_words
from export_gate.rules.wording import listing, place
from export_gate.wall.diagnosis import Cause, Owner
from export_gate.wall.equivalence import ratio

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


SHOWN_INPUTS = 4
"""Inputs outside the contract that a note names."""
CAUSE_WORDS: dict[Cause, str] = {
    "export": "torch.export does not follow this code",
    "size-guard": "a condition on sizes decides what happens",
    "size-arithmetic": "a size is rounded",
    "conversion": "an operator or object cannot be converted",
    "operator": "an operator computes something else than in eager",
    "rounding": "rounding differs",
    "tie": "values that are equal up to rounding are chosen in another order",
    "special-value": "NaN, infinity or zeros are treated in another way",
    "randomness": "random numbers are drawn",
    "state": "state is kept between calls",
    "ambient": "the result depends on surroundings such as the clock or the environment",
    "mutation": "an input is changed in place",
    "train-mode": "a part is in train mode",
    "mask": "masked positions hold other values",
    "layout": "the memory layout of an input matters",
    "weights": "the weights differ",
    "interface": "names, order or structure of inputs or outputs differ",
    "eager": "eager refuses these inputs",
    "crash": "the process crashed",
    "resources": "time or memory ran out",
    "unknown": "not known",
}


def views(results: Results, scopes: Scopes) -> tuple[FindingView, ...]:
    """All findings, worst first: in the judge's order, but sorted by severity if results were merged."""
    calm = [finding for finding in results.findings if asks_nothing(finding)]
    asking = [finding for finding in results.findings if finding not in calm]
    groups = grouped(asking, {seen.model: seen for seen in results.run.models})
    seen = tuple(_view(group, results, scopes, hidden) for group, hidden in groups)
    models = dict.fromkeys(finding.model for finding in calm)
    return (*seen, *(_calm_view(model, calm, results) for model in models))


def _calm_view(model: str, notes: Sequence[Finding], results: Results) -> FindingView:
    """All notes of a model that ask for nothing, as one."""
    mine = [finding for finding in notes if finding.model == model]
    beyond = [finding for finding in mine if finding.rule == "guard-missing" and finding.target]
    texts = [f.message.removeprefix(f"{model}, ").removeprefix(f"{model}: ") for f in mine if f not in beyond]
    statement = "; ".join(dict.fromkeys([*_beyond(beyond), *texts]))
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
    command = results.command(whole)
    return FindingView(finding=whole, statement=statement, times_over=None, command=command, asks_nothing=True)


def _beyond(notes: Sequence[Finding]) -> list[str]:
    """`pt2 and onnx accept inputs outside the contract, without a wrong result: batch=0, x=float64`."""
    targets = list(dict.fromkeys(finding.target for finding in notes if finding.target))
    if not targets:
        return []
    # A detail is `below-min batch=0 (declared 1..8): gave eager's results`.
    tried = dict.fromkeys(line.partition(" ")[2].partition(" (declared")[0] for f in notes for line in f.details)
    verb = "accepts" if len(targets) == 1 else "accept"
    what = f"{listing(targets)} {verb} inputs outside the contract, without a wrong result"
    return [f"{what}: {listing(list(tried), limit=SHOWN_INPUTS)}"]


def _view(group: Sequence[Finding], results: Results, scopes: Scopes, hidden: Sequence[Finding] = ()) -> FindingView:
    worst, *others = group
    over = ratio(worst.measured, worst.allowed)
    source = worst.source
    is_quoted = source is not None and f"{source.path}:{source.line}" in worst.message
    return FindingView(
        finding=worst,
        statement=_statement(group),
        times_over=over if 1 < over < math.inf else None,
        command=results.command(worst),
        scope=scope_words(worst, scopes),
        cause=cause_words(worst),
        node=_node(worst),
        fails_at=smallest_words(worst.smallest, worst.target),
        source=source if source and source.text.strip() and not is_quoted else None,
        details=(*tried_line(worst), *worst.details),
        also=tuple(others),
        instead=instead(hidden),
        hidden=len(hidden),
    )


def _statement(group: Sequence[Finding]) -> str:
    """What is wrong, of several outputs with one cause that of the worst."""
    outputs = dict.fromkeys(finding.output for finding in group)
    words = _without_place(group[0])
    return f"{len(outputs)} outputs, same cause; in `{group[0].output}`, {words}" if len(outputs) > 1 else words


def _without_place(finding: Finding) -> str:
    """The message without the place that the heading and the line of the target name."""
    place_words = place(finding.model, finding.target, finding.output, finding.case)
    if finding.message.startswith(f"{place_words}: "):
        return finding.message.removeprefix(f"{place_words}: ")
    start, _, rest = finding.message.partition(f", case {finding.case}: ")
    apart = start.removeprefix(place(finding.model, finding.target)).removeprefix(", ")
    # Only the separate export is left: the heading does not name it.
    return f"in the {apart}: {rest}" if rest and apart.startswith("separate export") else finding.message


def cause_words(finding: Finding) -> str:
    """`ONNX Runtime is wrong at NaN or infinity: the exported program agrees with eager`, or cause and owner."""
    if finding.severity != "violation":
        return ""
    if finding.verdict:
        return finding.verdict
    owner = f" ({OWNER_PLACES[finding.owner]})" if finding.owner and finding.cause != "export" else ""
    first = f": {finding.evidence[0]}" if finding.evidence else ""
    return f"{CAUSE_WORDS[finding.cause]}{owner}{first}"


def _node(finding: Finding) -> str:
    """Where values begin to differ; not where a condition on sizes is to blame, which has a line of its own."""
    return "" if finding.cause == "size-guard" else node_words(finding.trace)


def tried_line(finding: Finding) -> tuple[str, ...]:
    """The experiments, for the details, as far as the cause's line does not say them."""
    cause = cause_words(finding)
    left = [line for line in finding.evidence if cause and line not in cause]
    return (f"tried: {'; '.join(left)}",) if left else ()


def located_lines(finding: Finding) -> tuple[str, ...]:
    """The smallest failing input and the guilty node, as far as they are known."""
    fails_at, node = smallest_words(finding.smallest, finding.target), _node(finding)
    return tuple(filter(None, (fails_at and f"smallest failing input: {fails_at}", node and f"node: {node}")))
