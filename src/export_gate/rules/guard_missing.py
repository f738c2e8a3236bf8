"""An artifact accepts input outside the contract and behaves differently from eager."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from export_gate.rules.base import NOTHING_TO_DO, Finding, Rule, Severity
from export_gate.rules.blame import SAVED, kind_of
from export_gate.rules.keys import axis_key
from export_gate.rules.measure import Measured
from export_gate.rules.wording import listing, targets_key
from export_gate.wall.contract import ModelContract, TargetName
from export_gate.wall.observation import Probe
from export_gate.wall.words import count

OUTSIDE = ("below-min", "above-max", "wrong-size", "wrong-dtype", "wrong-rank")
"""Kinds of probe that an artifact should refuse."""
SIZES = ("below-min", "above-max", "wrong-size")
LARGEST_UNENFORCED = 2
"""The largest lower bound, in steps, that a program does not enforce."""
ANSWERS = {
    "accepted-differs": "gave other results than eager",
    "accepted-eager-refuses": "accepted what eager refuses",
    "accepted-equal": "gave eager's results",
}


def check(measured: Measured) -> Iterator[Finding]:
    """Per target: harmful acceptance under the target's guard policy, harmless acceptance as a note."""
    contract = measured.contract
    for planned in contract.targets:
        if planned.guards == "ignore":
            continue
        probes = _accepted(measured, planned.name)
        # Outputs without an element cannot be wrong.
        harmful = [probe for probe in probes if probe.answer != "accepted-equal" and not probe.empty]
        harmless = [probe for probe in probes if probe not in harmful]
        if harmful:
            can_refuse = planned.guards == "require" and not all(_is_unenforced(contract, p) for p in harmful)
            severity: Severity = "violation" if can_refuse else "warning"
            yield _finding(contract, planned.name, severity, harmful, len(harmless))
        elif harmless:
            yield _finding(contract, planned.name, "note", harmless, 0)
        # Under `warn`, the warning itself counts the harmless ones.
        if harmful and harmless and planned.guards == "require":
            yield _finding(contract, planned.name, "note", harmless, 0)


def _is_unenforced(contract: ModelContract, probe: Probe) -> bool:
    """Whether the bound is one that torch.export cannot express: it takes 0 and 1 for constants (torch 2.13)."""
    steps = [dim.steps.start for dim in contract.dims if dim.name == probe.axis]
    return probe.kind == "below-min" and bool(steps) and steps[0] <= LARGEST_UNENFORCED


def _accepted(measured: Measured, target: TargetName) -> list[Probe]:
    """Probes outside the contract that the artifact took as shipped; a debugging mode's refusals protect nobody.

    Where eager itself answers by chance or by its history, or the artifact differs at declared sizes as well, other
    results than eager's say nothing of guards.
    """
    hygiene = measured.observation.hygiene
    has_own_cause = hygiene.state_effects or hygiene.nondeterministic
    differs_inside = any(leaf.faults for leaf in measured.of(target))
    told = ("accepted-equal", "accepted-eager-refuses") if has_own_cause or differs_inside else tuple(ANSWERS)
    return [
        probe
        for seen in measured.seen(target)
        for probe in seen.probes
        if probe.kind in OUTSIDE and probe.checks == "default" and probe.answer in told
    ]


def _finding(
    contract: ModelContract, target: TargetName, severity: Severity, probes: Sequence[Probe], harmless: int
) -> Finding:
    named = ", ".join(
        f"{probe.axis}={probe.tried} {ANSWERS[probe.answer]} (declared {probe.declared})" for probe in probes[:3]
    )
    rest = f" and {len(probes) - 3} more" if len(probes) > 3 else ""  # noqa: PLR2004 - three fit a sentence
    equal = f"; {harmless} more gave eager's results" if harmless and severity == "warning" else ""
    return RULE.finding(
        contract.name,
        f"accepts {count(len(probes), 'input')} outside the contract: {named}{rest}{equal}",
        hint=_hint(contract, target, severity, probes),
        severity=severity,
        target=target,
        occurrences=len(probes),
        key=axis_key(contract, probes[0].axis),
        owner="torch.export" if kind_of(contract, target) in SAVED else "runtime",
        cause="size-guard" if {probe.kind for probe in probes} <= set(SIZES) else "interface",
        details=tuple(
            f"{probe.kind} {probe.axis}={probe.tried} (declared {probe.declared}): {ANSWERS[probe.answer]}"
            + (f": {probe.message}" if probe.message else "")
            for probe in probes
        ),
    )


def _hint(contract: ModelContract, target: TargetName, severity: Severity, probes: Sequence[Probe]) -> str:
    key = f"models.{contract.name}"
    if severity == "note":
        return f"{NOTHING_TO_DO}; widen `{key}.dims` if such input is meant to be supported, so that it is verified."
    if severity == "warning":
        return (
            f"Check sizes and dtypes before calling the artifact: {_enforced(contract, target)}. Widen `{key}.dims` "
            f"over sizes that are meant to work, or set {targets_key(contract, target, 'guards')} to `ignore`."
        )
    kinds = {probe.kind for probe in probes}
    low = (
        " An exported program does not enforce a lower bound of 1 or 2: declare the smaller sizes in `dims` (with "
        "`separate` for a size that needs its own export) if the model supports them."
        if "below-min" in kinds
        else ""
    )
    return (
        f"Check {listing(_subjects(kinds))} before calling the artifact, or change the model so that it gives eager's "
        f"results there.{low} To accept this, set {targets_key(contract, target, 'guards')} to `warn`."
    )


def _enforced(contract: ModelContract, target: TargetName) -> str:
    if kind_of(contract, target) in SAVED:
        return "an exported program does not enforce a lower bound of 1 or 2"
    return f"{target} enforces no ranges"


def _subjects(kinds: Iterable[str]) -> list[str]:
    subjects = {"wrong-dtype": "dtypes", "wrong-rank": "ranks"}
    return sorted({subjects.get(kind, "sizes") for kind in kinds}, reverse=True)


RULE = Rule(
    name="guard-missing",
    severity="violation",
    summary="The artifact accepts input outside the contract and behaves differently from eager.",
    stage="guards",
    waivable=("target",),
    check=check,
)
