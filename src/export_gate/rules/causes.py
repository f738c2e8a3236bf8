"""Why an output differs: the first sign that holds, measured ones before the pattern of failing inputs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from export_gate.rules.blame import kind_of
from export_gate.rules.branch_advice import condition_of, parting_line
from export_gate.rules.forms import program_answer
from export_gate.rules.measure import Measured, Measurement
from export_gate.rules.recipes import called
from export_gate.rules.size_pattern import members_of, size_words
from export_gate.rules.special_values import is_sign_of_zero
from export_gate.rules.wording import listing, source_place
from export_gate.wall.contract import TargetName
from export_gate.wall.diagnosis import Cause, Change, Inspection, Owner
from export_gate.wall.observation import HygieneObservation
from export_gate.wall.targets import LAYOUT_FAMILIES

GUARD = re.compile(r"Guard failed|Expected input at")
"""What a program raises at a size outside of its own conditions (torch 2.13, and before 2.9)."""
CHANGE_WORDS = {
    "no-negative-zeros": "-0.0 becomes 0.0",
    "no-zeros": "zeros become small numbers",
    "no-nonfinite": "NaN and infinities become 1",
}
TAKES_FIRST = ("aten.argmax.", "aten.argmin.")
"""Operators that take the first of equal values, in torch and, unless a file asks for the last, in ONNX."""
OPERATOR_OWNERS: tuple[Owner, ...] = ("decomposition", "converter", "runtime", "runtime-optimisation")


def cause_of(
    measured: Measured,
    target: TargetName,
    faults: Sequence[Measurement],
    inspection: Inspection | None,
    owner: Owner | None,
) -> tuple[Cause, tuple[str, ...]]:
    """The cause of one output's faults, and the evidence for it."""
    # The first that holds decides. What was measured comes first, what only fits the pattern of failing inputs last.
    told = _by_values(measured, target, faults, inspection)
    if told is not None:
        return told
    branch = _branch(measured, faults, inspection)
    if branch:
        return "size-guard", (branch,)
    single = dim_of_size_one(measured, target, faults) if owner == "torch.export" else ""
    line = parting_line(inspection)
    way = f"; there, eager goes the other way at {source_place(line)}" if line else ""
    if single:
        count_words = f"all {len(faults)} inputs with {single}=1 differ" if len(faults) > 1 else (
            f"the one input with {single}=1 differs"
        )  # fmt: skip
        return "size-guard", (f"{count_words} and no other does{way}",)
    by_size = size_words(measured, target, faults, inspection)
    if by_size:
        return "size-arithmetic", (f"{by_size}{way}",)
    hygiene = measured.observation.hygiene
    # Where no output of eager shows the state, it is not the reason why one form of the model differs from another.
    is_elsewhere = not hygiene.state_effects and owner in OPERATOR_OWNERS and inspection is not None
    state = "" if is_elsewhere else _state(hygiene, faults[0].output)
    if state:
        return "state", (state,)
    tie = _tie(inspection)
    if tie:
        return "tie", (tie,)
    special = _special(measured, faults, inspection)
    if special:
        return "special-value", (special,)
    return _by_owner(measured, target, faults, inspection, owner)


def _by_values(
    measured: Measured, target: TargetName, faults: Sequence[Measurement], inspection: Inspection | None
) -> tuple[Cause, tuple[str, ...]] | None:
    """What the values that differ say by themselves, or the inputs and places at which they do."""
    if faults[0].noise is not None:
        return "rounding", ("eager itself is as far from the float64 result",)
    if is_sign_of_zero(faults[0]):
        return "special-value", ("only the sign of infinities differs, which is that of a zero that is divided by",)
    if _is_layout(measured, target, faults):
        return "layout", ("only inputs in another memory layout differ; the same values in dense tensors agree",)
    if inspection is not None and inspection.masks:
        return "mask", (f"only what {listing(inspection.masks)} switches off differs, and nothing once it keeps all",)
    return None


def _state(hygiene: HygieneObservation, output: str) -> str:
    """Words if eager keeps state; what keeps it was perhaps not seen, which explains only the outputs that show it."""
    if hygiene.state_changed:
        return f"forward changes {listing(hygiene.state_changed, limit=2)}"
    shows = any(effect.output == output for effect in hygiene.state_effects)
    return "eager's own result depends on earlier calls" if shows else ""


def _by_owner(
    measured: Measured,
    target: TargetName,
    faults: Sequence[Measurement],
    inspection: Inspection | None,
    owner: Owner | None,
) -> tuple[Cause, tuple[str, ...]]:
    """What is left where only the form of the model that differs is known."""
    if owner in OPERATOR_OWNERS and inspection is not None:
        return "operator", ()
    node = _wrong_node(inspection) if owner == "artifact" else ""
    if node:
        return "operator", (node,)
    drawn = measured.observation.random_operators
    if owner == "torch.export" and drawn:
        return "randomness", (
            f"the exported program draws random numbers ({listing(drawn, limit=2)}), which eager seeds",
        )
    is_program = kind_of(measured.contract, target) == "exported-program"
    program = "differs" if is_program else program_answer(measured, faults[0], inspection)
    return ("export" if owner == "torch.export" and program == "differs" else "unknown"), ()


def _wrong_node(inspection: Inspection | None) -> str:
    """Words if one node of a file that was handed in is wrong even with the values that it should get."""
    trace = inspection.trace if inspection else None
    if trace is None or trace.guilty is None or trace.origin != "introduced" or not trace.guilty.file_nodes:
        return ""
    nodes = listing(trace.guilty.file_nodes, limit=2)
    # Where most of the program has no counterpart, names differ, and nothing follows from one more.
    absent = trace.guilty.absent if trace.unmapped < trace.mapped else ()
    lacks = (
        f"; it has no {listing([f'`{name}`' for name in absent])} before that, which the program has" if absent else ""
    )
    return f"given the exported program's values, it still computes others with {nodes}{lacks}"


def _is_layout(measured: Measured, target: TargetName, faults: Sequence[Measurement]) -> bool:
    members = members_of(measured)
    families = {members[fault.case].family if fault.case in members else "" for fault in faults}
    failing = {fault.case for fault in faults}
    passing = [leaf for leaf in measured.of(target) if leaf.output == faults[0].output and leaf.case not in failing]
    return families <= set(LAYOUT_FAMILIES) and bool(passing)


def _branch(measured: Measured, faults: Sequence[Measurement], inspection: Inspection | None) -> str:
    """Words if the model takes a branch that was not exported: the program refuses it, or only such inputs differ."""
    branches = measured.observation.branches
    other = {case for branch in branches for case in branch.cases}
    rungs = inspection.rungs if inspection else ()
    refused = [r for r in rungs if r.name == "exported-program" and r.answer == "failed" and GUARD.search(r.message)]
    met = next((branch for branch in branches if faults[0].case in branch.cases), None)
    words = f" where {condition_of(met).replace('`', '')}" if met else ""
    if refused:
        return f"the exported program refuses this size{words and f' ({words[1:]})'}, the file returns the wrong side"
    if other and all(fault.case in other for fault in faults):
        return f"the export follows the branch that the model takes elsewhere; only inputs{words} differ"
    return ""


def dim_of_size_one(measured: Measured, target: TargetName, faults: Sequence[Measurement]) -> str:
    """The dim of which all inputs of size 1 differ and no others do: torch takes a dynamic size to be 2 or more."""
    members = members_of(measured)
    failing = {fault.case for fault in faults}
    leaves = [leaf for leaf in measured.of(target) if leaf.output == faults[0].output and leaf.case in members]
    for dim in measured.contract.dims:
        single = {leaf.case for leaf in leaves if members[leaf.case].sizes.get(dim.name) == 1}
        is_dynamic = dim.mode != "static" and 1 not in dim.separate
        if is_dynamic and single == failing and len(leaves) > len(single):
            return dim.name
    return ""


def _tie(inspection: Inspection | None) -> str:
    trace = inspection.trace if inspection else None
    guilty = trace.guilty if trace else None
    if guilty is not None and guilty.is_tie:
        if guilty.operator.startswith(TAKES_FIRST):
            return ""
        return f"the values that {called(guilty)} chooses are equal, and ONNX does not say which comes first"
    if inspection is None or not inspection.selects or not inspection.outside:
        return ""
    # One failing element that eager is sure of is a real difference. Beside a step of the model, only if no node is
    # wrong: an operator that is computed otherwise differs there too.
    is_near = inspection.near >= inspection.outside and trace is not None and trace.origin == "gradual"
    if inspection.unsettled < inspection.outside and not is_near:
        return ""
    return (
        "eager's own choice at each failing element changes in float64 or when inputs move by one ulp "
        f"({listing(inspection.selects, limit=2)})"
    )


def _special(measured: Measured, faults: Sequence[Measurement], inspection: Inspection | None) -> str:
    cure = cure_of(measured, faults, inspection)
    if cure is None:
        return ""
    is_tried = inspection is not None and any(changed.agrees for changed in inspection.changed)
    return f"the same input agrees once {CHANGE_WORDS[cure]}" if is_tried else "only inputs with NaN or infinity differ"


def cure_of(measured: Measured, faults: Sequence[Measurement], inspection: Inspection | None) -> Change | None:
    """The change after which the input agrees, by experiment or because only inputs with NaN or infinity differ."""
    if is_sign_of_zero(faults[0]):
        return "no-negative-zeros"
    cures = [changed.change for changed in inspection.changed if changed.agrees] if inspection else []
    members = members_of(measured)
    families = {members[fault.case].family if fault.case in members else "" for fault in faults}
    # Where every input fails, it says nothing that all of them have NaN.
    only = families == {"nonfinite"} and len(members) > len(faults)
    return cures[0] if cures else "no-nonfinite" if only else None
