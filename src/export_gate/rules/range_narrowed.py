"""Input inside the contract that an artifact refuses, or a range that export made smaller."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from export_gate.rules.base import Finding, Rule, Severity
from export_gate.rules.blame import SAVED, is_handed_in, kind_of
from export_gate.rules.branch_advice import branch_advice, branch_words
from export_gate.rules.cases import branch_at, other_cases
from export_gate.rules.dim_specialized import is_specialized, sums
from export_gate.rules.failures import SHAPE_REFUSAL, failure_details, failures_of, inputs_run
from export_gate.rules.keys import axis_key
from export_gate.rules.measure import Failed, Measured
from export_gate.rules.wording import first_line
from export_gate.wall.contract import Dim, ModelContract, TargetName
from export_gate.wall.diagnosis import Owner
from export_gate.wall.observation import Branch, DimFound, Probe
from export_gate.wall.sizes import parse_size
from export_gate.wall.targets import GuardPolicy

SMALLEST_SYMBOL = 2
"""torch.export's range analysis treats 0 and 1 separately: a minimum of 2 does not contradict a declared 0 or 1."""

MULTIPLE_GUARD = re.compile(r"(?P<step>\d+) ?\* ?\((?P<size>\S+) ?// ?(?P=step)\) == (?P=size)")
"""torch's guard of a size that must be a multiple, e.g. `4 * (x.size()[2] // 4) == x.size()[2]`."""


def check(measured: Measured) -> Iterator[Finding]:
    """Refusals for each target, then dims whose found range is smaller than declared."""
    contract, observation = measured.contract, measured.observation
    refused = {group[0].target: group for group in failures_of("range-narrowed", measured)}
    for planned in contract.targets:
        probes = _refused_probes(measured, planned.name)
        group = refused.get(planned.name, ())
        if group:
            branch, tried = branch_at(observation, group[0].failure.case), inputs_run(measured, group)
            yield _refused_case(contract, group, probes, branch, tried)
        elif probes and (severity := _severity(planned.guards, probes[0])):
            yield _refused_probe(contract, planned.name, severity, probes)
    # `dim-specialized` reports those.
    specialized = {found.dim for found in observation.dims if is_specialized(found)}
    for dim in contract.dims:
        narrowed = [f for f in observation.dims if f.dim == dim.name and is_narrowed(f, dim)]
        if narrowed and dim.mode != "static" and dim.name not in specialized:
            yield _narrowed_dim(contract, dim, narrowed)
    for name, dims in sums(contract, observation).items():
        narrowed = [f for f in observation.dims if f.dim == name and is_sum_narrowed(f, dims)]
        if narrowed and name not in specialized:
            yield _narrowed_sum(contract, name, dims, narrowed)


def is_narrowed(found: DimFound, dim: Dim) -> bool:
    """Whether the exported program's range of an axis leaves out declared sizes."""
    low, high = found.declared
    # An axis such as 2*seq+1 grows by more than 1 with its dim.
    factor = (high - low) // max(1, dim.max - dim.min)
    # torch's symbol counts steps, and it may begin at 2 although the contract begins at 0 or 1.
    first, last = max(SMALLEST_SYMBOL * dim.multiple_of, dim.sizes.start), dim.sizes[-1]
    lowest, highest = low + factor * (first - dim.min), low + factor * (last - dim.min)
    return found.found[0] > lowest or found.found[1] < highest


def is_sum_narrowed(found: DimFound, dims: Sequence[Dim]) -> bool:
    """Whether the program's range of an axis that is a sum leaves out declared sizes; each dim may begin at 2 in it."""
    size = parse_size(found.dim)
    low = size.at({dim.name: max(dim.min, SMALLEST_SYMBOL * dim.multiple_of) for dim in dims})
    return found.found[0] > low or found.found[1] < found.declared[1]


def _refused_probes(measured: Measured, target: TargetName) -> list[Probe]:
    """Refusals at the range's ends; if control inputs fail for another reason, only those that mention sizes."""
    calls = [failed for failed in measured.failed if failed.target == target and not failed.is_end]
    has_other_cause = any(not SHAPE_REFUSAL.search(call.failure.message) for call in calls)
    probes = [
        probe
        for found in measured.seen(target)
        for probe in found.probes
        if probe.kind in ("at-min", "at-max")
        and probe.answer == "refused"
        and not probe.eager_refuses
        and (not has_other_cause or SHAPE_REFUSAL.search(probe.message))
    ]
    # Refusals as shipped first: the first one decides the severity.
    return sorted(probes, key=lambda probe: probe.checks != "default")


def _refused_case(
    contract: ModelContract, group: tuple[Failed, ...], probes: list[Probe], branch: Branch | None, tried: int
) -> Finding:
    first, is_separate = group[0], bool(group[0].export)
    why = branch_words(branch) if branch else first_line(first.failure.message)
    return RULE.finding(
        contract.name,
        f"refuses a control input that is inside the declared ranges: {why}",
        hint=_multiple_hint(contract, first.failure.message)
        or (
            branch_advice(contract, branch, is_separate=is_separate)
            if branch
            else _hint(contract, is_separate=is_separate)
        ),
        target=first.target,
        case=first.failure.case,
        at=first.where,
        owner=_owner(contract, first.target),
        cause="size-guard",
        source=branch.source if branch else None,
        # Probes are calls at the ends of the range, which the details list.
        occurrences=len(group),
        tried=tried,
        details=(
            *failure_details(first.failure),
            *map(_probe_line, probes),
            *other_cases([failed.case or "" for failed in group]),
        ),
    )


def _owner(contract: ModelContract, target: TargetName | None) -> Owner:
    """Whose check refuses the size."""
    if is_handed_in(contract, target):
        return "artifact"
    return "torch.export" if kind_of(contract, target) in SAVED else "converter"


def _severity(policy: GuardPolicy, first: Probe) -> Severity | None:
    """Return the severity: an artifact that refuses declared input as shipped breaks its promise.

    One that refuses it only in a debugging mode was compiled for a smaller range, so the guard policy decides.
    """
    if first.checks == "default":
        return "violation"
    severities: dict[GuardPolicy, Severity | None] = {"require": "violation", "warn": "warning", "ignore": None}
    return severities[policy]


def _refused_probe(contract: ModelContract, target: TargetName, severity: Severity, probes: list[Probe]) -> Finding:
    first = probes[0]
    mode = "" if first.checks == "default" else " with AOTI_RUNTIME_CHECK_INPUTS=1"
    reason = f": {first_line(first.message)}" if first.message else ""
    return RULE.finding(
        contract.name,
        f"refuses {first.axis}={first.tried}{mode}, which is inside the declared {first.declared}{reason}",
        hint=_hint(contract, is_separate=False),
        severity=severity,
        target=target,
        owner=_owner(contract, target),
        cause="size-guard",
        occurrences=len(probes),
        key=axis_key(contract, first.axis),
        details=tuple(map(_probe_line, probes)),
    )


def _narrowed_sum(contract: ModelContract, name: str, dims: Sequence[Dim], narrowed: list[DimFound]) -> Finding:
    listed = " and ".join(f"`{dim.name}`" for dim in dims)
    hint = (
        f"Narrow the ranges of {listed} in `models.{contract.name}.dims` to what the model's code supports, or remove "
        "the size check in the model that splits the range."
    )
    return _narrowed(contract, f"size '{name}'", any(dim.mode == "auto" for dim in dims), narrowed, hint)


def _narrowed_dim(contract: ModelContract, dim: Dim, narrowed: list[DimFound]) -> Finding:
    worst = _worst(narrowed)
    (low, high), (found_low, found_high) = worst.declared, worst.found
    hint = (
        f"Declare in `models.{contract.name}.dims.{dim.name}` the range that the model's code supports (axis "
        f"{worst.axis}: {max(low, found_low)}..{min(high, found_high)}), or remove the size check in the model "
        "that splits the range."
    )
    return _narrowed(contract, f"dim '{dim.name}'", dim.mode == "auto", narrowed, hint)


def _worst(narrowed: Sequence[DimFound]) -> DimFound:
    return min(narrowed, key=lambda found: found.found[1] - found.found[0])


def _narrowed(contract: ModelContract, what: str, is_auto: bool, narrowed: Sequence[DimFound], hint: str) -> Finding:
    worst = _worst(narrowed)
    (low, high), (found_low, found_high) = worst.declared, worst.found
    return RULE.finding(
        contract.name,
        f"the exported program covers {found_low}..{found_high} of the declared {low}..{high}",
        hint=hint,
        severity="warning" if is_auto else "violation",
        at=f"{what}, axis {worst.axis}",
        occurrences=len(narrowed),
        key=axis_key(contract, worst.dim) or axis_key(contract, worst.axis),
        details=tuple(
            f"{f.axis}: declared {f.declared[0]}..{f.declared[1]}, found {f.found[0]}..{f.found[1]}" for f in narrowed
        ),
    )


def _hint(contract: ModelContract, *, is_separate: bool) -> str:
    apart = "" if is_separate else "give that size its own export with `separate`, "
    return (
        f"Narrow `models.{contract.name}.dims` to the sizes that the artifact takes, {apart}or find what in the model "
        "fixes or bounds the size (a hard-coded number, a size check, a convolution that narrows the range while "
        "compiling)."
    )


def _multiple_hint(contract: ModelContract, message: str) -> str | None:
    multiple = MULTIPLE_GUARD.search(message)
    if multiple is None:
        return None
    return (
        f"The artifact accepts {multiple['size']} only in multiples of {multiple['step']}: set `multiple-of` of that "
        f"dim in `models.{contract.name}.dims` to {multiple['step']}, or pad the size in the model."
    )


def _probe_line(probe: Probe) -> str:
    mode = "" if probe.checks == "default" else " with AOTI_RUNTIME_CHECK_INPUTS=1"
    return (
        f"{probe.kind} {probe.axis}={probe.tried} (declared {probe.declared}){mode}: refused: "
        f"{first_line(probe.message)}"
    )


RULE = Rule(
    name="range-narrowed",
    severity="violation",
    summary="The artifact refuses input that is inside the declared ranges.",
    stage="guards",
    waivable=("target",),
    owner="torch.export",
    cause="size-guard",
    check=check,
)
