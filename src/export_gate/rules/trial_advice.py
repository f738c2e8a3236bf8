"""Advise what trial exports showed: another declaration of a dim that works, or the condition that none keeps true."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from export_gate.rules.branch_advice import dynamic_ways, is_written, without_remainder
from export_gate.rules.python_numbers import constant_advice
from export_gate.rules.size_operators import asking
from export_gate.rules.wording import at_source, capital, listing
from export_gate.wall.contract import ModelContract
from export_gate.wall.diagnosis import ExportGuard, ExportTrial
from export_gate.wall.observation import Failure

FIXED = re.compile(r"^\w+ == (\d+)$")
"""A guard that makes a dim a constant."""
FEW = 6
"""Sizes that are listed one by one."""


def is_branched(guard: ExportGuard) -> bool:
    """Whether other declared sizes take another way, and not only another value of a constant."""
    return bool(guard.broken) and not FIXED.match(guard.holds)


def trial_advice(
    contract: ModelContract, failure: Failure, trials: Sequence[ExportTrial], guard: ExportGuard | None
) -> str:
    """What the trial exports showed; empty where they showed nothing."""
    # Another example is not advised even if it works: the export would depend on which size was picked.
    worked = [trial for trial in trials if trial.answer == "exported" and "example" not in trial.declared]
    if worked:
        whole = [trial for trial in worked if trial.declared == {"mode": "auto"}]
        if whole:
            return (
                f"Declare {_declared(contract, whole[0])}: this was tried, and the program has the whole range and "
                f"gives eager's results{_unconverted(contract)}."
            )
        # What declares more of the same dim leaves out more sizes, and one step for it is enough.
        first = worked[0]
        own = {*first.declared} & {"multiple-of"} or {*first.declared}
        free = [each for each in worked[1:] if each.dim != first.dim or not own <= set(each.declared)]
        ways = list(dict.fromkeys(_declared(contract, trial) for trial in (first, *free)))
        others = f" {listing(ways[1:], limit=3)} would do as well." if ways[1:] else ""
        return (
            f"If callers send no other sizes, declare {ways[0]}, which leaves {_left(contract, first)}: this was "
            f"tried, and the program gives eager's results{_unconverted(contract)}.{others} "
            f"Otherwise {_without(failure, guard)}, or give other sizes exports of "
            f"their own (`models.{contract.name}.dims.{first.dim}.separate`)."
        )
    follows = [trial for trial in trials if trial.constant and trial.constant == trial.declared.get("example")]
    if not follows:
        is_branch = "generated guard" in failure.message or (guard is not None and is_branched(guard))
        return _branch_advice(contract, failure, trials, guard) if is_branch else ""
    dim, size = follows[0].dim, follows[0].constant
    key = f"models.{contract.name}"
    known = constant_advice(failure.source)
    why = (
        f"At line {failure.source.line}, {known}."
        if known and failure.source
        else f"Something in the model{_at(failure)} turns the size into a Python number (`int(...)`, a loop over it, a "
        "layer that is unrolled): take that out."
    )
    return (
        f"torch.export fixes '{dim}' to the size of its example input, whichever that is ({size} was tried as well). "
        f"{why} Or verify single sizes with `{key}.dims.{dim}.separate`, or declare one size with `mode: static`."
    )


def _left(contract: ModelContract, trial: ExportTrial) -> str:
    """`6, 9, 12 and 15 of the declared 5..17`."""
    dim = contract.dim(trial.dim)
    changes: dict[str, Any] = {name.replace("-", "_"): value for name, value in trial.declared.items()}
    left = replace(dim, **changes).sizes
    few = len(left) <= FEW
    shown = listing([str(size) for size in left], limit=FEW) if few else f"{len(left)} sizes ({left[0]} to {left[-1]})"
    return f"{shown} of the declared {dim.text}"


def _unconverted(contract: ModelContract) -> str:
    """What a trial export says nothing of."""
    names = [f"`{target.name}`" for target in contract.targets if target.kind not in ("exported-program", "pt2")]
    return f" ({listing(names)} was not converted: the next run shows whether it needs more)" if names else ""


def _without(failure: Failure, guard: ExportGuard | None, what: str = "a condition on the size") -> str:
    operator = asking(guard)
    if operator is None or guard is None or guard.source is None:
        return f"compute the same without {what}{_at(failure)}"
    if operator.lines:
        return (
            f"write line {guard.source.line} without {operator.called}: where each part is only reduced, as below "
            "(tried: these lines export with every size and convert to ONNX)"
        )
    return f"write line {guard.source.line} without {operator.called}"


def _branch_advice(
    contract: ModelContract, failure: Failure, trials: Sequence[ExportTrial], guard: ExportGuard | None
) -> str:
    """A condition on a size that no other declaration keeps true."""
    in_vain = _in_vain(trials)
    if not in_vain:
        return ""
    key = f"models.{contract.name}.dims.{trials[0].dim}"
    if guard and guard.broken and len(guard.dims) > 1:
        ways = ", or ".join(dynamic_ways(guard.broken))
        return f"torch.export follows one side of the condition{_at(failure)} only: {ways}."
    padding = without_remainder(guard.broken) if guard else ""
    is_users = guard is not None and guard.source is not None and is_written(guard.source)
    kept = " (if both sides give the same results, keep one of them for every size)" if is_users else ""
    same = f": {padding}" if padding else kept
    return (
        f"torch.export follows one side of a condition only. {capital(_without(failure, guard, 'it'))}{same}; or give "
        f"the sizes of the other side exports of their own with `{key}.separate`.{in_vain}"
    )


def _in_vain(trials: Sequence[ExportTrial]) -> str:
    """What was tried; an export with other results is the more dangerous outcome."""
    named = [(trial.answer == "differs", _written(trial)) for trial in trials if "example" not in trial.declared]
    wrong = list(dict.fromkeys(words for is_wrong, words in named if is_wrong))
    refused = list(dict.fromkeys(words for is_wrong, words in named if not is_wrong))
    tried = f" Tried and refused: {listing(refused, limit=5)}." if refused else ""
    exported = f" Exported, but with other results than eager's: {listing(wrong, limit=3)}." if wrong else ""
    return tried + exported


def _written(trial: ExportTrial) -> str:
    return f"`{', '.join(f'{name}: {value}' for name, value in trial.declared.items())}`"


def _declared(contract: ModelContract, trial: ExportTrial) -> str:
    key = f"models.{contract.name}.dims.{trial.dim}"
    if len(trial.declared) == 1:
        ((name, value),) = trial.declared.items()
        return f"`{key}.{name}: {value}`"
    return f"`{key}: {{{', '.join(f'{name}: {value}' for name, value in trial.declared.items())}}}`"


def _at(failure: Failure) -> str:
    return at_source(failure.source)
