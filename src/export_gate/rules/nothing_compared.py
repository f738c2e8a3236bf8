"""A target or a golden that was planned but never compared, which must not pass for agreement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Failed, Measured, Measurement, Unpaired
from export_gate.rules.tolerances import has_contrast, spread_cases, tells
from export_gate.rules.undecided import undecided
from export_gate.wall.contract import ModelContract, TargetName
from export_gate.wall.equivalence import total
from export_gate.wall.observation import CaseResult, Comparison, ControlInput, ModelObservation
from export_gate.wall.words import count

Other = Failed | Unpaired | CaseResult
"""A result without leaves."""


def check(measured: Measured) -> Iterator[Finding]:
    """Compare what was measured with what was planned; an absence that another finding explains is not repeated."""
    contract, observation = measured.contract, measured.observation
    if observation.problem or observation.failure or observation.hygiene.scripted:
        return
    controls = observation.controls
    if not contract.targets:
        yield _finding(contract, None, "no target is planned", f"Declare `models.{contract.name}.targets`.")
    elif controls is None or not controls.inputs:
        yield _finding(contract, None, "the control set is empty", EMPTY_SET)
    elif _are_ignored(contract, observation):
        hint = f"Compare at least one of them: take its `ignore` out of `models.{contract.name}.outputs`."
        text = "every output is left out of the comparison: `outputs` says `ignore` of all that eager returns"
        yield replace(_finding(contract, None, text, hint), owner="contract", verdict=ALL_IGNORED)
    else:
        names = _expected(observation, controls.inputs)
        goldens = _expected(observation, [member for member in controls.inputs if member.group == "golden"])
        if not names:
            return  # contract-broken at every control input: there was nothing to export for
        for planned in contract.targets:
            own = _expected(observation, controls.run_on(planned.kind))
            yield from _check_target(measured, planned.name, own or names)
        yield from _check_leaves(contract, None, measured.goldens, measured.odd_goldens, goldens)


def _are_ignored(contract: ModelContract, observation: ModelObservation) -> bool:
    ignored = {output.name for output in contract.outputs if output.leaf == "ignore"}
    return bool(observation.outputs) and all(leaf.name in ignored for leaf in observation.outputs)


def _expected(observation: ModelObservation, members: Sequence[ControlInput]) -> list[str]:
    """Control inputs at which eager kept its promises: at others there is nothing to compare with."""
    broken = {promise.case for promise in observation.broken}
    return [member.name for member in members if member.name not in broken]


def _check_target(measured: Measured, target: TargetName, names: Sequence[str]) -> Iterator[Finding]:
    failed = [failed for failed in measured.failed if failed.target == target]
    if not measured.seen(target):
        yield _finding(measured.contract, target, "the target was planned but not observed", NOT_OBSERVED)
    elif not any(each.is_end for each in failed):
        # A separate export has the cases of its own sizes and the main one the others: together they are complete.
        others: list[Other] = [*failed, *(each for each in measured.unpaired if each.target == target)]
        found = tuple(_check_leaves(measured.contract, target, measured.of(target), others, names))
        yield from found or _check_finite(measured.contract, target, measured.of(target))
        yield from _check_noise(measured, target)


def _check_noise(measured: Measured, target: TargetName) -> Iterator[Finding]:
    """Outputs whose rounding noise is so large that too few inputs can tell a right output from a wrong one."""
    leaves = [leaf for leaf in measured.of(target) if not leaf.is_exact and leaf.norm is not None]
    spread = spread_cases(measured)
    for output in dict.fromkeys(leaf.output for leaf in leaves if leaf.excused == "noise"):
        own = [leaf for leaf in leaves if leaf.output == output]
        asked = [leaf for leaf in own if leaf.case in spread and leaf.norm and leaf.norm.scale > 0]
        telling = sum(map(tells, asked))
        # At least half of the inputs must be able to fail.
        if 2 * telling < len(asked) or not has_contrast(measured, own):
            yield undecided(measured, target, [leaf for leaf in own if leaf.excused == "noise"])


def _check_finite(contract: ModelContract, target: TargetName, leaves: Sequence[Measurement]) -> Iterator[Finding]:
    """Outputs that may hold NaN and infinity, and whose finite elements never met a finite element."""
    for output in dict.fromkeys(leaf.output for leaf in leaves if leaf.nonfinite == "allow"):
        found = [leaf.comparison for leaf in leaves if leaf.output == output]
        # Quantiles are recorded only if some entry is finite on both sides.
        if any(map(_has_finite, found)) and not any(leaf.error_quantiles for leaf in found):
            yield _finding(contract, target, "no finite element where eager has one", NO_FINITE, output=output)


def _has_finite(leaf: Comparison) -> bool:
    """Whether eager has a finite element there."""
    return leaf.elements > total(leaf.expected_nonfinite)


def _check_leaves(
    contract: ModelContract,
    target: TargetName | None,
    leaves: Sequence[Measurement],
    others: Sequence[Other],
    names: Sequence[str],
) -> Iterator[Finding]:
    """Every control input has a result, and some element of some leaf was compared, or something else is reported."""
    what = "golden outputs" if target is None else "control inputs"
    present = {leaf.case for leaf in leaves} | {other.case for other in others}
    missing = [name for name in names if name not in present]
    if missing:
        text = f"{len(missing)} of {count(len(names), what[:-1])} {'has' if len(missing) == 1 else 'have'} no result"
        yield _finding(contract, target, text, MISSING, missing)
    elif names and not others and all(map(_is_empty, leaves)):
        text = f"no element of any output was compared at {count(len(names), what[:-1])}"
        yield _finding(contract, target, text, NO_ELEMENTS)


def _is_empty(leaf: Measurement) -> bool:
    """Nothing was compared, and neither dtype nor shape differs."""
    is_compared = leaf.comparison.elements and (leaf.comparison.error_quantiles or leaf.nonfinite != "allow")
    return leaf.norm is not None and not is_compared


def _finding(
    contract: ModelContract,
    target: TargetName | None,
    text: str,
    hint: str,
    missing: Sequence[str] = (),
    *,
    output: str | None = None,
) -> Finding:
    case = missing[0] if missing else None
    return RULE.finding(
        contract.name,
        text,
        hint=hint,
        target=target,
        output=output,
        case=case,
        occurrences=max(1, len(missing)),
        details=tuple(f"no result: {name}" for name in missing[:10]),
    )


ALL_IGNORED = "the config ignores every output"
EMPTY_SET = "Raise `controls.limit` and `controls.budget`, and check that `--case` matches a control input."
NOT_OBSERVED = "Run the gate again; if the target is still missing, report a bug in export-gate with `results.json`."
MISSING = (
    "Run the gate again; if inputs still have no result, report it with `results.json`: nothing was skipped on purpose."
)
NO_ELEMENTS = (
    "Return at least one tensor that has elements at these sizes: outputs that are always empty, None or strings "
    "cannot be compared."
)
NO_FINITE = (
    "Its `nonfinite: allow` excludes every element: find what becomes NaN or infinity there, or set it to `match`."
)

RULE = Rule(
    name="nothing-compared",
    severity="violation",
    summary="A planned target, control input or golden was not compared.",
    stage="compare",
    waivable=None,
    check=check,
)
