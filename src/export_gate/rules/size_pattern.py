"""Find out whether sizes alone decide which control inputs fail."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from export_gate.rules.blame import is_handed_in
from export_gate.rules.measure import Measured, Measurement
from export_gate.wall.contract import TargetName
from export_gate.wall.diagnosis import Inspection, SizeTrial
from export_gate.wall.observation import ControlInput

CHANCE = 1 / 800
"""Less than that is no chance; six differing draws of six, and none of six at another size, are 1 of 924."""


def members_of(measured: Measured) -> dict[str, ControlInput]:
    """The control inputs by name."""
    return {member.name: member for member in measured.observation.control_inputs}


def size_words(
    measured: Measured, target: TargetName, faults: Sequence[Measurement], inspection: Inspection | None
) -> str:
    """Words if the size alone decides; empty if it does not, or if nothing shows it."""
    fault = faults[0]
    noisy = [n for seen in measured.seen(target) for n in seen.size_noise if n.output == fault.output]
    told = next((n for n in noisy if n.exceeding == n.draws > 0), None)
    if told is not None:
        return f"every one of {told.draws} further inputs at {_sizes(told.sizes)} differs as well, not at other sizes"
    trial = inspection.size_trial if inspection else None
    trace = inspection.trace if inspection else None
    is_node = trace is not None and trace.origin == "introduced"
    # Where no program is beside a file, nothing else could say that an operator of it is wrong.
    is_untraced = trace is None and is_handed_in(measured.contract, target)
    is_open = trial is not None and ((is_node and _is_doubtful(trial)) or (is_untraced and _is_trivial(trial)))
    if trial is not None and _chance_of(trial) < CHANCE and not is_open:
        share = "all" if trial.exceeding == trial.draws else str(trial.exceeding)
        return (
            f"{share} of {trial.draws} further inputs at {_sizes(trial.sizes)} differ, none of {trial.other_draws} at "
            f"{_sizes(trial.other_sizes)}"
        )
    return _shape_words(measured, target, faults) if fault.fault == "shape" else ""


def _shape_words(measured: Measured, target: TargetName, faults: Sequence[Measurement]) -> str:
    """Words if the shape depends on the size alone."""
    members = members_of(measured)
    failing = {fault.case for fault in faults}
    leaves = [leaf for leaf in measured.of(target) if leaf.output == faults[0].output and leaf.case in members]
    return _decided([(members[leaf.case], leaf.case in failing) for leaf in leaves], "wrong")


def raising_sizes(measured: Measured, target: TargetName) -> str:
    """Words if the size alone decides whether a call raises."""
    members = members_of(measured)
    results = [result for seen in measured.seen(target) for result in seen.cases if result.case in members]
    return _decided([(members[result.case], result.failure is not None) for result in results], "raises")


def _decided(answers: Sequence[tuple[ControlInput, bool]], words: str) -> str:
    """Words if all inputs of a size agree about what is wrong, and sizes differ."""
    sizes: dict[tuple[tuple[str, int], ...], set[bool]] = {}
    for member, is_wrong in answers:
        sizes.setdefault(tuple(sorted(member.sizes.items())), set()).add(is_wrong)
    wrong = [size for size, found in sizes.items() if found == {True}]
    right = [size for size, found in sizes.items() if found == {False}]
    if not (wrong and right and len(wrong) + len(right) == len(sizes)):
        return ""
    return (
        f"{words} at {len(wrong)} of {len(sizes)} sizes, whatever the values: {_some(wrong)}; right at {_some(right)}"
    )


def _is_doubtful(trial: SizeTrial) -> bool:
    """Whether something else than the size may decide, so that a node that is wrong by itself says more.

    Some inputs of the size agree; or the size that agrees has one element where the other has more, as a softmax over
    one is 1.
    """
    return _is_trivial(trial) or trial.exceeding < trial.draws


def _is_trivial(trial: SizeTrial) -> bool:
    return any(size <= 1 < trial.sizes.get(name, 0) for name, size in trial.other_sizes.items())


def _some(sizes: Sequence[tuple[tuple[str, int], ...]]) -> str:
    shown = " and ".join(_sizes(dict(size)) for size in sizes[:2])
    return shown if len(sizes) <= 2 else f"{shown} and {len(sizes) - 2} more"  # noqa: PLR2004 - two fit a sentence


def _chance_of(trial: SizeTrial) -> float:
    """The chance that none of the other size's inputs differs, if the size did not matter (Fisher's exact test)."""
    if trial.other_exceeding:
        return 1.0
    return comb(trial.draws, trial.exceeding) / comb(trial.draws + trial.other_draws, trial.exceeding)


def _sizes(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items())
