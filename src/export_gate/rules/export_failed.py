"""torch.export could not capture the model: why, at which line of the user's code, and what to change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from export_gate.rules.base import Finding, Rule
from export_gate.rules.branch_advice import READABLE, is_written, said_readably
from export_gate.rules.export_advice import export_advice, is_packed, unrolled_layers, value_words
from export_gate.rules.failures import failures_of, finding, without_suggestions
from export_gate.rules.measure import Measured
from export_gate.rules.python_numbers import constant_advice
from export_gate.rules.size_operators import Asking, asking
from export_gate.rules.trial_advice import FIXED
from export_gate.rules.value_sizes import value_size_words
from export_gate.rules.wording import at_source, first_line, listing, place, plain
from export_gate.wall.contract import ModelContract
from export_gate.wall.diagnosis import ExportGuard
from export_gate.wall.observation import Failure

ADVICE = re.compile(r": (?=write|compute)")
"""Where words about a line become advice."""


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for the model: its targets share one export."""
    contract = measured.contract
    for group in failures_of("export-failed", measured):
        failure = group[0].failure
        where = place(contract.name, case=failure.case, at=group[0].where)
        seen = measured.observation
        guard = seen.export_guard
        message = f"{where}: {_refused_sizes(contract, guard) if guard else _refused_model(failure)}"
        advice = export_advice(contract, failure, seen.recurrent, seen.export_trials, guard)
        unrolled = unrolled_layers(contract, failure, seen.recurrent)
        operator = None if unrolled else asking(guard)
        found = replace(
            finding(RULE.name, contract, group, message, advice),
            verdict=_unrolls(unrolled, is_packed=is_packed(failure))
            if unrolled
            else _stopped_at(failure, guard, operator),
            recipe=operator.lines if operator else "",
        )
        # Trials include what torch suggests. What came of them is in the hint, so that nothing contradicts it.
        is_tried = any(trial.answer != "not-tried" for trial in seen.export_trials)
        yield replace(found, details=without_suggestions(found.details)) if is_tried else found


def _stopped_at(failure: Failure, guard: ExportGuard | None, operator: Asking | None) -> str:
    """The cause in words where no recurrent layer is it; empty if nothing known is."""
    if operator is not None:
        return f"a condition on sizes in {operator.called}: {operator.what}"
    constant = constant_words(failure, guard)
    if constant:
        return f"a size becomes a constant of the program: {constant}"
    if guard is not None:
        return ""
    return ("" if failure.foreign else value_size_words(failure.source)) or value_words(failure)


def constant_words(failure: Failure, guard: ExportGuard | None) -> str:
    """What on the line makes a constant of a size, without the advice; empty if nothing known does."""
    is_fixed = "specialized it to be a constant" in failure.message or (guard and FIXED.match(guard.holds))
    return ADVICE.split(constant_advice(failure.source))[0] if is_fixed else ""


def _unrolls(layers: Sequence[str], *, is_packed: bool) -> str:
    """The cause in words where recurrent layers are it."""
    why = (
        "packed sequences, which torch.export cannot capture"
        if is_packed
        else "a recurrent layer that torch.export unrolls"
    )
    return f"{why}: {listing(layers)}" if layers else ""


def _refused_model(failure: Failure) -> str:
    return f"torch.export failed{at_source(failure.source)}: {failure.type}: {essence(failure)}"


def _refused_sizes(contract: ModelContract, guard: ExportGuard) -> str:
    """What torch says of its own symbols and helper dims, in the contract's words; the line is the finding's source."""
    declared = [contract.dim(name) for name in guard.dims]
    names = listing([f"`{dim.name}`" for dim in declared])
    ranges = ", ".join(f"{dim.name} {dim.text}" if len(declared) > 1 else dim.text for dim in declared)
    fixed = FIXED.match(guard.holds)
    if fixed and guard.broken:
        why = f"tracing fixed it at {fixed[1]}, its size in the example"
    elif guard.broken and (operator := asking(guard)):
        # A condition of torch's own says something only if it is a short one.
        where = f" (`{guard.broken}`)" if len(guard.broken) <= READABLE and "//" not in guard.broken else ""
        why = f"one program cannot have all sizes of {operator.called}{where}"
    elif guard.broken:
        needs = "the model takes another branch" if is_written(guard.source) else "it needs another program"
        # A condition of torch's own says nothing about the model, and its sizes do.
        most = READABLE if is_written(guard.source) else 0
        where = said_readably(guard.broken, guard.dims, guard.sizes, most)
        # torch notes further conditions, of which this is the first.
        some = "" if most or not guard.sizes else ", for example"
        why = f"{needs} where {where}{some}"
    else:
        left, _, right = guard.holds.partition(" == ")
        # torch asks for the smaller of two sizes, say, which is the first for every size.
        is_said = left != right
        condition = f"that `{guard.holds}` for every size" if is_said else "a condition that all declared sizes meet"
        why = f"it cannot prove {condition}"
    # The user's own line is the finding's source; this one it called.
    return f"torch.export cannot keep {names} dynamic (declared {ranges}): {why}{at_source(guard.foreign)}"


def essence(failure: Failure) -> str:
    """The line of torch's message that says what is wrong: below `Constraints violated` it is the first bullet."""
    bullets = [line for line in plain(failure.message).splitlines() if line.strip().startswith("- ")]
    if "Constraints violated" in failure.message and bullets:
        return first_line(bullets[0].strip().removeprefix("- "))
    return first_line(failure.message)


RULE = Rule(
    name="export-failed",
    severity="violation",
    summary="torch.export could not capture the model.",
    stage="export",
    waivable=None,
    owner="torch.export",
    cause="export",
    check=check,
)
