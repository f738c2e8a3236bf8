"""A target or a golden that was planned but never compared, which must not pass for agreement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from export_gate.rules.base import Finding, Rule
from export_gate.rules.cases import nonfinite_policy
from export_gate.rules.wording import count, place
from export_gate.wall.contract import ModelContract, TargetName
from export_gate.wall.equivalence import total
from export_gate.wall.observation import CaseResult, Comparison, ModelObservation


def check(contract: ModelContract, observation: ModelObservation) -> Iterator[Finding]:
    """Compare what was observed with what was planned; an absence that another finding explains is not repeated."""
    if observation.problem or observation.failure or observation.hygiene.scripted:
        return
    controls = observation.controls
    if not contract.targets:
        yield _finding(contract, None, "no target is planned", f"Declare `models.{contract.name}.targets`.")
    elif controls is None or not controls.inputs:
        yield _finding(contract, None, "the control set is empty", EMPTY_SET)
    else:
        names = _expected(observation, [member.name for member in controls.inputs])
        goldens = _expected(observation, [member.name for member in controls.inputs if member.group == "golden"])
        if not names:
            return  # contract-broken at every control input: there was nothing to export for
        for planned in contract.targets:
            yield from _check_target(contract, observation, planned.name, names)
        yield from _check_cases(contract, observation, None, observation.golden, goldens)


def _expected(observation: ModelObservation, names: Sequence[str]) -> list[str]:
    """Control inputs at which eager kept its promises: at others there is nothing to compare with."""
    broken = {promise.case for promise in observation.broken}
    return [name for name in names if name not in broken]


def _check_target(
    contract: ModelContract, observation: ModelObservation, target: TargetName, names: Sequence[str]
) -> Iterator[Finding]:
    seen = [found for found in observation.targets if found.target == target]
    if not seen:
        yield _finding(contract, target, "the target was planned but not observed", NOT_OBSERVED)
    elif not any(found.failure for found in seen):
        # A separate export has the cases of its own sizes and the main one the others: together they are complete.
        cases = [case for found in seen for case in found.cases]
        found = tuple(_check_cases(contract, observation, target, cases, names))
        yield from found or _check_finite(contract, observation, target, cases)


def _check_finite(
    contract: ModelContract, observation: ModelObservation, target: TargetName, cases: Sequence[CaseResult]
) -> Iterator[Finding]:
    """Outputs that may hold NaN and infinity, and whose finite elements never met a finite element."""
    leaves: dict[str, list[Comparison]] = {}
    for leaf in (leaf for case in cases for leaf in case.outputs):
        leaves.setdefault(leaf.output, []).append(leaf)
    for output, found in leaves.items():
        is_allowed = nonfinite_policy(contract, observation, output) == "allow"
        if is_allowed and any(map(_has_finite, found)) and not any(leaf.error_quantiles for leaf in found):
            yield replace(
                _finding(contract, target, f"output '{output}' has no finite element where eager has one", NO_FINITE),
                output=output,
            )


def _has_finite(leaf: Comparison) -> bool:
    """Whether eager has a finite element there."""
    return leaf.elements > total(leaf.expected_nonfinite)


def _check_cases(
    contract: ModelContract,
    observation: ModelObservation,
    target: TargetName | None,
    cases: Sequence[CaseResult],
    names: Sequence[str],
) -> Iterator[Finding]:
    what = "golden outputs" if target is None else "control inputs"
    present = {case.case for case in cases if case.outputs or case.structure or case.failure}
    missing = [name for name in names if name not in present]
    if missing:
        text = f"{len(missing)} of {count(len(names), what[:-1])} {'has' if len(missing) == 1 else 'have'} no result"
        yield _finding(contract, target, text, MISSING, missing)
    elif names and all(_is_empty(contract, observation, case) for case in cases):
        text = f"no element of any output was compared at {count(len(names), what[:-1])}"
        yield _finding(contract, target, text, NO_ELEMENTS)


def _is_empty(contract: ModelContract, observation: ModelObservation, case: CaseResult) -> bool:
    """Nothing was compared and nothing else is reported: no failure, no difference of structure, dtype or shape."""
    reported = (
        case.failure
        or case.structure
        or any(
            (leaf.expected_dtype, leaf.expected_shape) != (leaf.actual_dtype, leaf.actual_shape)
            for leaf in case.outputs
        )
    )
    return not reported and not any(
        leaf.elements and (leaf.error_quantiles or nonfinite_policy(contract, observation, leaf.output) != "allow")
        for leaf in case.outputs
    )


def _finding(
    contract: ModelContract, target: TargetName | None, text: str, hint: str, missing: Sequence[str] = ()
) -> Finding:
    case = missing[0] if missing else None
    return Finding(
        rule=RULE.name,
        severity="violation",
        model=contract.name,
        target=target,
        case=case,
        message=f"{place(contract.name, target, case=case)}: {text}",
        hint=hint,
        occurrences=max(1, len(missing)),
        details=tuple(f"no result: {name}" for name in missing[:10]),
    )


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
    check=check,
)
