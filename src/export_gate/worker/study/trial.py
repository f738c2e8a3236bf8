"""Choose the control inputs that a run uses: filtered, within budget, hashed."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from export_gate.wall.contract import CASE_FILE, Job, ModelContract
from export_gate.wall.errors import UserError
from export_gate.wall.observation import ControlInput, ControlSetObservation
from export_gate.worker.controls.basis import affine_cases
from export_gate.worker.controls.build import build_control_set, digest, reference_sizes
from export_gate.worker.controls.case_file import file_case
from export_gate.worker.controls.generate import case_named
from export_gate.worker.controls.record import ControlCase, ControlSet
from export_gate.worker.controls.specs import total_elements
from export_gate.worker.controls.threshold_rows import FAMILY
from export_gate.worker.model.reference import Work, count_work
from export_gate.worker.process.stages import Desk
from export_gate.worker.study.subject import Subject, looks_affine

MINIMUM_CASES = 6
"""Control inputs that are kept regardless of the FLOP budget."""
NAMES_SHOWN = 8
COMPARISON_FLOPS = 1000.0
"""Comparing one element of an output takes 20 ns, in which a core does about as many operations of a convolution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The control inputs of one run, in order."""

    cases: tuple[ControlCase, ...]
    observation: ControlSetObservation
    has_basis: bool
    """Whether all of the affine basis points are among them."""


def choose_trial(job: Job, subject: Subject, desk: Desk, notes: tuple[str, ...] = ()) -> Trial:
    """The control set of the job, cut to its case patterns and to the FLOP budget.

    Counting FLOPs is forward's first run, and is announced as such: it can hang, crash or exit.

    Raises:
        UserError: data, goldens or a controls function are not what the contract says, or no case matches.
    """
    controls = build_control_set(job.contract, Path(job.base))
    if controls.cases:
        desk.channel.at("eager", case=controls.cases[0].name)
    basis = _affine_basis(job.contract, subject)
    every = (*controls.cases, *basis)
    cases = _selected((*every, *_named(job, every)), job.cases)
    if not cases:
        raise UserError(
            f"models.{job.contract.name}.controls: expected at least one control input, got none",
            "Return a case from `function`, or remove `generated: false`.",
        )
    kept, flops = within_budget(cases, subject)
    # Forward has returned; a file that cannot be read from here on is not eager's failure.
    desk.channel.at("controls")
    return Trial(
        cases=kept,
        observation=replace(
            _describe(replace(controls, notes=(*notes, *controls.notes)), kept, len(cases), flops),
            unselected=len({case.name for case in every} - {case.name for case in cases}),
        ),
        has_basis=bool(basis) and {case.name for case in basis} <= {case.name for case in kept},
    )


def _named(job: Job, cases: Sequence[ControlCase]) -> list[ControlCase]:
    """Inputs beyond the control set: in files, or spelled in full after an earlier run made them, see `further`."""
    known = {case.name for case in cases}
    made = [case_named(job.contract, name) for name in dict.fromkeys(job.cases) if name not in known]
    files = [file_case(job.contract, Path(job.base), name) for name in job.cases if name.endswith(CASE_FILE)]
    return [*files, *(case for case in made if case is not None)]


def _selected(cases: Sequence[ControlCase], patterns: Sequence[str]) -> tuple[ControlCase, ...]:
    """The matching cases; the first one where the patterns ask only for what is known after the export."""
    if cases and any(pattern.startswith(FAMILY) for pattern in patterns):
        return tuple(case for case in cases if is_named(case, patterns)) or (cases[0],)
    return matching(cases, patterns)


def is_named(case: ControlCase, patterns: Sequence[str]) -> bool:
    """Whether any pattern matches the case's name."""
    # A file's name may contain what fnmatch reads as a pattern, such as `[1]`.
    return any(case.name == pattern or fnmatch.fnmatchcase(case.name, pattern) for pattern in patterns)


def matching(cases: Sequence[ControlCase], patterns: Sequence[str]) -> tuple[ControlCase, ...]:
    """The cases whose names match any of the patterns; all if there are none.

    Raises:
        UserError: nothing matches.
    """
    if not patterns:
        return tuple(cases)
    found = tuple(case for case in cases if is_named(case, patterns))
    if not found:
        names = ", ".join([case.name for case in cases[:NAMES_SHOWN]] + ["..."] * (len(cases) > NAMES_SHOWN))
        raise UserError(
            f"no control input matches {', '.join(map(repr, patterns))}; there are {len(cases)}: {names}",
            "list them with `export-gate controls MODEL`",
        )
    return found


def within_budget(cases: Sequence[ControlCase], subject: Subject) -> tuple[tuple[ControlCase, ...], float | None]:
    """The cases whose summed work stays below the contract's budget, in order, and the first case's FLOPs.

    Elements of outputs count as well: a decoder of images returns more than it computes. Both are counted once and
    scaled with the number of input elements, so that the choice is the same on every machine. Cases that the user
    supplied and the affine basis points are always kept.
    """
    work = _first_case_work(cases, subject)
    if work is None:
        return tuple(cases), None
    first = work.flops + COMPARISON_FLOPS * work.outputs
    elements = [total_elements(subject.contract, case.sizes) for case in cases]
    kept: list[ControlCase] = []
    spent = 0.0
    for case, count in zip(cases, elements, strict=True):
        cost = first * count / max(elements[0], 1)
        # One that is too large is left out alone, because a later one may be smaller.
        is_kept = (
            case.group != "generated"
            or len(kept) < MINIMUM_CASES
            or spent + cost <= subject.contract.controls.budget_flops
        )
        if is_kept:
            kept.append(case)
            spent += cost
    return tuple(kept), work.flops


def _first_case_work(cases: Sequence[ControlCase], subject: Subject) -> Work | None:
    try:
        return count_work(subject.twin(), subject.call(cases[0]))
    except (Exception, SystemExit):  # noqa: BLE001 - without a count the budget does not apply; eager itself reports the cause
        return None
    finally:
        # What dynamo compiled meanwhile, as it does for `torch.cond`, fails in every later call (torch 2.13).
        if "torch._dynamo" in sys.modules:
            sys.modules["torch._dynamo"].reset()


def _affine_basis(contract: ModelContract, subject: Subject) -> tuple[ControlCase, ...]:
    wanted = contract.controls.affine_basis
    if wanted == "never":
        return ()
    basis = affine_cases(contract, reference_sizes(contract))
    return basis if basis and (wanted == "always" or looks_affine(subject)) else ()


def _describe(
    controls: ControlSet, kept: Sequence[ControlCase], matched: int, flops: float | None
) -> ControlSetObservation:
    over_budget = matched - len(kept)
    reasons = [controls.left_out_reason] if controls.left_out else []
    if over_budget:
        reasons.append(f"{over_budget} over the FLOP budget")
    return ControlSetObservation(
        sha256=digest(kept),
        inputs=tuple(
            ControlInput(
                name=case.name, family=case.family, sizes=dict(case.sizes), group=case.group, golden=case.golden
            )
            for case in kept
        ),
        left_out=controls.left_out + over_budget,
        left_out_reason="; ".join(reasons),
        case_flops=flops,
        undeclared_range=controls.undeclared_range,
        undeclared_integers=controls.undeclared_integers,
        notes=controls.notes,
    )
