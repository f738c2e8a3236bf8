"""An artifact returns different leaves than eager: another number, other names or another order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.blame import SAVED, is_handed_in, kind_of
from export_gate.rules.cases import other_cases
from export_gate.rules.measure import Measured
from export_gate.rules.wording import listing
from export_gate.wall.contract import TargetName
from export_gate.wall.diagnosis import Owner
from export_gate.wall.observation import Structure
from export_gate.wall.words import count


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each target, at the case where most leaves differ."""
    name = measured.contract.name
    for planned in measured.contract.targets:
        found = [unpaired for unpaired in measured.unpaired if unpaired.target == planned.name]
        if found:
            found.sort(key=lambda each: -len(set(each.structure.expected) ^ set(each.structure.actual)))
            case, structure = found[0].case, found[0].structure
            yield RULE.finding(
                name,
                f"{describe_structure(structure)}",
                hint=_hint(structure),
                target=planned.name,
                case=case,
                occurrences=len(found),
                owner=_owner(measured, planned.name, case),
                cause="interface",
                details=(
                    *_table(structure),
                    *other_cases([each.case for each in found]),
                ),
            )


def _owner(measured: Measured, target: TargetName, case: str) -> Owner:
    """Who returns other leaves first: the program, or what is made from it."""
    if is_handed_in(measured.contract, target):
        return "artifact"
    odd = {(each.target, each.case) for each in measured.unpaired}
    programs = [planned.name for planned in measured.contract.targets if planned.kind == "exported-program"]
    is_right = any(leaf.case == case for name in programs for leaf in measured.of(name))
    is_right = is_right and not any((name, case) in odd for name in programs)
    is_converted = kind_of(measured.contract, target) not in SAVED and is_right
    return "converter" if is_converted else "torch.export"


def describe_structure(structure: Structure) -> str:
    """What differs: the order alone, or which leaves."""
    if sorted(structure.expected) == sorted(structure.actual):
        return (
            f"the outputs are in another order: expected {listing(structure.expected)}, got {listing(structure.actual)}"
        )
    missing = [name for name in structure.expected if name not in structure.actual]
    extra = [name for name in structure.actual if name not in structure.expected]
    differences = [f"missing {listing(missing)}" if missing else "", f"unexpected {listing(extra)}" if extra else ""]
    words = "; ".join(part for part in differences if part) or "a name occurs a different number of times"
    return f"expected {count(len(structure.expected), 'output')}, got {len(structure.actual)} ({words})"


def _table(structure: Structure) -> tuple[str, ...]:
    """Both sides position by position."""
    pairs = itertools.zip_longest(structure.expected, structure.actual, fillvalue="(none)")
    width = max(map(len, ("expected", *structure.expected)))
    lines = [f"{number:2}  {left:{width}}  {right}" for number, (left, right) in enumerate(pairs)]
    return (f"{'':2}  {'expected':{width}}  actual", *lines)


def _hint(structure: Structure) -> str:
    if sorted(structure.expected) == sorted(structure.actual):
        return (
            "A dict's keys are usually sorted during export: return them in sorted order, or return a tuple, so that "
            "callers who take outputs by position get the right ones."
        )
    # The marks of leaves that are not tensors, as `Structure` has them.
    if any(name.endswith(":None") for name in structure.expected):
        return "Return tensors only: an artifact cannot return None, and the outputs after it move up."
    if any(":" in name for name in (*structure.expected, *structure.actual)):
        return (
            "Return tensors only: a Python number among the outputs is frozen at export or dropped; "
            "make it a tensor with `torch.as_tensor`, or leave it out."
        )
    return (
        "Return the same leaves at every input. The usual causes are a tensor that is returned twice, an output that "
        "depends on a flag, and an unused output. List `outputs` in the contract to fix their number and names."
    )


RULE = Rule(
    name="structure-mismatch",
    severity="violation",
    summary="The artifact returns other output leaves than eager.",
    stage="compare",
    waivable=("target", "case"),
    check=check,
)
