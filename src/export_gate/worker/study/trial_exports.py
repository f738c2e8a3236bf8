"""Try other declarations of a dim after torch.export refused the declared one."""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch

from export_gate.wall.contract import Dim, ModelContract, Tolerance
from export_gate.wall.diagnosis import ExportAnswer, ExportTrial
from export_gate.wall.observation import UNWRITTEN_SIZES, DimFound, Failure
from export_gate.worker.controls.build import reference_call, reference_sizes
from export_gate.worker.controls.sizes import in_steps
from export_gate.worker.export.axes import found_dims
from export_gate.worker.export.branches import Guard
from export_gate.worker.export.program import export_program, torch_names
from export_gate.worker.leaves.compare import agree
from export_gate.worker.model.reference import module_runner
from export_gate.worker.process.collection import uncollected
from export_gate.worker.process.isolated import Isolated
from export_gate.worker.study.records import Study
from export_gate.worker.study.refused_guard import sizes_that_hold

SIZES = re.compile(
    r"Constraints violated|specialized it to be a constant|Not all values of|Suggested fixes"
    rf"|{UNWRITTEN_SIZES}"
)
"""What torch.export says where the sizes are the reason; the last if it fails to say so (torch 2.13)."""
DIVISORS = re.compile(r"(?://|%|Mod\([^,()]*,)\s*\(?(\d+)")
"""Numbers by which torch's guards divide a size: `// 3`, `% 16`, `Mod(s77, 4)`."""
BOUNDS = re.compile(r"(\w+) = Dim\(['\"]\w+['\"](?:, min=(\d+))?(?:, max=(\d+))?\)")
"""A range that torch suggests; it leaves out a minimum of 2."""
SPECIALIZED = re.compile(r"marked (\w+) as dynamic but your code specialized it to be a constant \((\d+)\)")
SUGGESTED_SIZE = re.compile(r"(?m)^\s*(\w+) = (\d+)$")
"""The same in a suggestion."""
STEPS = (2, 3, 4, 5, 8, 16, 32)
"""`multiple-of`, in the order of how usual they are."""
DIMS, STEPS_TRIED = 2, 5
"""Dims, and steps of each, that are tried: every trial is an export."""
AGREEING = 12
"""Sizes at which a trial is compared with eager."""
ROUGHLY = Tolerance(atol=1e-4, rtol=1e-3)
SMALLEST_SYMBOL = 2
"""Where the range of torch's own symbols begins at the latest: it takes 0 and 1 for constants."""
Answered = Literal["agrees", "differs", "refuses"]
"""What a program does at one size."""


def trial_exports(study: Study, failure: Failure, guard: Guard | None) -> tuple[ExportTrial, ...]:
    """Every declaration that was tried, those with the widest range first; none if sizes are not the reason.

    Each is exported in a forked copy of the process, within the allowance for experiments.

    Args:
        study: of the model.
        failure: of the export.
        guard: the condition that it stumbled over, if it is known.
    """
    if not is_about_sizes(failure) or not study.allowance.left_s:
        return ()
    text, contract = _text(failure), study.contract
    held = sizes_that_hold(guard, contract)
    trials = [trial for dim in _dims(contract, text, held) for trial in _trials(dim, contract, text, held)]
    with study.allowance.spending():
        deadline = time.monotonic() + study.allowance.left_s

        def call(trial: ExportTrial) -> ExportTrial:
            return trial if time.monotonic() > deadline else _tried(study, trial)

        isolated = Isolated(
            kind=ExportTrial,
            call=call,
            # It stays `not-tried`, and is left out below.
            died=lambda trial, _: trial,
            limit_s=max(deadline - time.monotonic(), 1.0),
        )
        return tuple(trial for trial in isolated.each(trials) if trial.answer != "not-tried")


def is_about_sizes(failure: Failure) -> bool:
    """Whether torch.export refused the sizes that are declared."""
    return SIZES.search(_text(failure)) is not None


def _text(failure: Failure) -> str:
    return "\n".join((failure.message, *failure.suggestions))


def with_trial(contract: ModelContract, trial: ExportTrial) -> ModelContract:
    """The contract with what a trial declares."""
    changes: dict[str, Any] = {name.replace("-", "_"): value for name, value in trial.declared.items()}
    return replace(
        contract,
        dims=tuple(replace(dim, **changes) if dim.name == trial.dim else dim for dim in contract.dims),
    )


def _dims(contract: ModelContract, text: str, held: tuple[str, range] | None) -> list[Dim]:
    """The dynamic dims that torch names, or else all; first the one of the condition that torch stumbled over."""
    names = torch_names(contract)
    free = [dim for dim in contract.dims if dim.mode == "strict" and len(dim.sizes) > 1]
    named = [dim for dim in free if re.search(rf"\b({re.escape(dim.name)}|{re.escape(names[dim.name])})\b", text)]
    return sorted(named or free, key=lambda dim: held is None or dim.name != held[0])[:DIMS]


def _trials(dim: Dim, contract: ModelContract, text: str, held: tuple[str, range] | None) -> Iterator[ExportTrial]:
    yield ExportTrial(dim=dim.name, declared={"mode": "auto"})
    # Time may be short, and a divisor that torch itself names is the likeliest to help.
    named = dict.fromkeys(int(number) for number in DIVISORS.findall(text))
    yield from _steps(dim, [step for step in named if step > 1])
    if held is not None and held[0] == dim.name:
        ends = {"min": (held[1][0], dim.sizes[0]), "max": (held[1][-1], dim.sizes[-1])}
        within: dict[str, int | str] = {key: size for key, (size, declared) in ends.items() if size != declared}
        yield ExportTrial(dim=dim.name, declared=within)
    for name, low, high in dict.fromkeys(BOUNDS.findall(text)):
        limits: dict[str, int | str] = {
            key: int(size) * dim.multiple_of for key, size in (("min", low), ("max", high)) if size
        }
        if name in (dim.name, torch_names(contract)[dim.name]) and limits:
            yield ExportTrial(dim=dim.name, declared=limits)
    yield from _beyond(dim, contract, text)
    yield from _steps(dim, [step for step in STEPS if step not in named])
    other = next((size for size in dim.sizes[::-1] if size not in (0, 1, reference_sizes(contract)[dim.name])), None)
    if other is not None:
        yield ExportTrial(dim=dim.name, declared={"example": other})


def _steps(dim: Dim, steps: Sequence[int]) -> Iterator[ExportTrial]:
    """`multiple-of` these, as far as several sizes are left."""
    declared = [in_steps(dim, step * dim.multiple_of) for step in steps]
    for limits in [limits for limits in declared if limits][:STEPS_TRIED]:
        yield ExportTrial(dim=dim.name, declared=limits)


def _beyond(dim: Dim, contract: ModelContract, text: str) -> Iterator[ExportTrial]:
    """The sizes beyond the one to which torch fixed the dim: its example may be the odd one, as where a part has 1."""
    fixed = _constant(text, dim.name, contract)
    above = dim.sizes[bisect_right(dim.sizes, fixed) :] if fixed else ()
    # torch's own symbol counts the steps of a dim that has them.
    if fixed and fixed > 1 and len(above) > 1 and dim.multiple_of == 1:
        yield ExportTrial(dim=dim.name, declared={"min": above[0]})


def _tried(study: Study, trial: ExportTrial) -> ExportTrial:
    contract = with_trial(study.contract, trial)
    if not contract.dim(trial.dim).sizes:
        return trial
    call = reference_call(contract, study.parameters)
    try:
        with uncollected():
            exported = export_program(study.factory(), call, contract, study.parameters, {})
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever torch.export makes of the project's code
        return replace(trial, answer="refused", constant=_constant(str(error), trial.dim, contract))
    found = [axis for axis in found_dims(exported.program, exported.axes, contract) if axis.dim == trial.dim]
    if not _is_whole(found, contract.dim(trial.dim)):
        return replace(trial, answer="narrowed")
    answers = _answers(study, contract, trial.dim, exported.program.module())
    shorter = _without_refused_ends(trial, contract.dim(trial.dim), answers)
    return replace(trial, answer=_answer(answers)) if shorter is None else _tried(study, shorter)


def _without_refused_ends(trial: ExportTrial, dim: Dim, answers: Mapping[int, Answered]) -> ExportTrial | None:
    """The trial without the ends of the range that its program refuses, as where a part of the smallest size is 1.

    None if there are none, if sizes between them are wrong too, or if one size is left.
    """
    # Ascending, as the sizes were asked.
    right = [size for size, answer in answers.items() if answer == "agrees"]
    wrong = [size for size, answer in answers.items() if answer != "agrees"]
    is_ends = right and wrong and not any(right[0] < size < right[-1] for size in wrong)
    if not is_ends or len(right) == 1 or "differs" in answers.values() or dim.mode != "strict":
        return None
    ends: dict[str, int | str] = {"min": right[0]} if wrong[0] < right[0] else {}
    ends |= {"max": right[-1]} if wrong[-1] > right[-1] else {}
    return replace(trial, declared={**trial.declared, **ends})


def _answer(answers: Mapping[int, Answered]) -> ExportAnswer:
    if "differs" in answers.values():
        return "differs"
    return "narrowed" if "refuses" in answers.values() else "exported"


def _answers(study: Study, contract: ModelContract, name: str, program: torch.nn.Module) -> dict[int, Answered]:
    """Size -> what the program does at it, for sizes from all over the range: an `auto` dim is not guarded."""
    eager, sizes = study.factory(), contract.dim(name).sizes
    some = dict.fromkeys(sizes[round(place * (len(sizes) - 1) / (AGREEING - 1))] for place in range(AGREEING))

    def answered(size: int) -> Answered:
        call = reference_call(contract, study.parameters, {name: size})
        try:
            expected, actual = module_runner(eager, {})(call), module_runner(program, {})(call)
        except (Exception, SystemExit):  # noqa: BLE001 - a size that the program refuses
            return "refuses"
        return "agrees" if agree(expected, actual, lambda _: ROUGHLY) else "differs"

    # Not at 0, where every answer is empty and would agree.
    return {size: answered(size) for size in some if size}


def _constant(text: str, dim: str, contract: ModelContract) -> int | None:
    """The size to which torch.export fixed the dim."""
    names = {dim, torch_names(contract)[dim]}
    told = SPECIALIZED.findall(text) + SUGGESTED_SIZE.findall(text)
    return next((int(size) for name, size in told if name in names), None)


def _is_whole(found: Sequence[DimFound], dim: Dim) -> bool:
    """Whether the program takes every declared size."""
    return all(
        axis.found[0] != axis.found[1]
        and axis.found[0] <= max(axis.declared[0], SMALLEST_SYMBOL * dim.multiple_of)
        # The declared maximum need not be a multiple, and then torch ends the range at the last one.
        and axis.found[1] >= axis.declared[1] - dim.multiple_of + 1
        for axis in found
    )
