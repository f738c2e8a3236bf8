"""Format what a control set catches, as `export-gate strength` prints it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from export_gate.report.escape import terminal
from export_gate.rules.wording import listing, source_place
from export_gate.wall.codec import decode, encode
from export_gate.wall.errors import UserError
from export_gate.wall.observation import ModelObservation
from export_gate.wall.source import SourceLine
from export_gate.wall.strength import MUTATION_KINDS, Catch, Mutant, Outcome, Strength
from export_gate.wall.words import count

HEADERS = ("mutants", "caught", "refused", "survived", "equivalent")
OUTCOMES: tuple[Outcome, ...] = ("caught", "refused", "survived", "equivalent")


def require_answer(answers: Sequence[Any], observed: ModelObservation, target: str) -> Strength:
    """What the worker measured.

    Raises:
        UserError: there is no file, or it is red at every control input.
    """
    run = f"`export-gate run {observed.model}` says why"
    if not answers:
        failed = next((seen.failure for seen in observed.targets if seen.failure), None)
        why = f": {failed.type}: {failed.message}" if failed else ""
        raise UserError(f"{observed.model}, {target}: there is no file to plant faults in{why}", run)
    found = decode(Strength, answers[0])
    if not found.controls:
        raise UserError(f"{observed.model}, {target}: the file itself differs from eager at every control input", run)
    return found


def strength_json(found: Strength) -> str:
    """Every mutant, with the totals."""
    totals = {outcome: len(found.of(outcome)) for outcome in OUTCOMES}
    whole = {"share": found.share, "untried": found.untried, "totals": totals, **encode(found)}
    return json.dumps(whole, indent=2)


def strength_lines(found: Strength, folder: Path) -> list[str]:
    """A table by kind, the survivors, and what would have caught them; source files from the folder."""
    return [*_head(found), "", *_table(found), *_survivors(found, folder), *_families(found), *_limits(found)]


def _head(found: Strength) -> Iterator[str]:
    counted = found.of("caught", "refused", "survived")
    share = "none can be told apart" if found.share is None else f"{found.share:.1f}% caught"
    yield (
        f"{terminal(found.model)}, {terminal(found.target)}: {share}, of {count(len(counted), 'mutant')} "
        f"at {count(found.controls, 'control input')}"
    )


def _table(found: Strength) -> Iterator[str]:
    kinds = [kind for kind in MUTATION_KINDS if any(mutant.kind == kind for mutant in found.mutants)]
    rows: list[tuple[str, ...]] = [HEADERS]
    for kind in kinds:
        own = Counter(mutant.outcome for mutant in found.mutants if mutant.kind == kind)
        rows.append((kind, *(str(own[outcome]) for outcome in OUTCOMES)))
    rows.append(("all", *(str(len(found.of(outcome))) for outcome in OUTCOMES)))
    for first, *numbers in rows:
        yield f"{first:10}" + "".join(f"{number:>12}" for number in numbers)


def _survivors(found: Strength, folder: Path) -> Iterator[str]:
    survived = found.of("survived")
    if survived:
        yield from ("", f"Survived: {len(survived)}")
    for mutant in survived:
        node = f"{mutant.operator} {mutant.node}: " if mutant.node else ""
        yield f"  {mutant.kind}: {terminal(node + mutant.change)}"
        where = _where(mutant, folder)
        if where:
            yield f"      {terminal(where)}"
        yield f"      {terminal(listing([_catch(catch) for catch in mutant.would_catch]))}"


def _where(mutant: Mutant, folder: Path) -> str:
    module = f"in {mutant.module}" if mutant.module else ""
    source = _source(mutant.source, folder) if mutant.source else ""
    return ", ".join(filter(None, (module, source)))


def _source(source: SourceLine, folder: Path) -> str:
    path = Path(source.path)
    shown = path.relative_to(folder) if folder in path.parents else path
    return source_place(replace(source, path=shown.as_posix()))


def _catch(catch: Catch) -> str:
    return f"{catch.family} ({catch.caught} of {catch.tried}: {catch.case})"


def _families(found: Strength) -> Iterator[str]:
    """What to do about the survivors, by the family that catches each best."""
    best = Counter(mutant.would_catch[0].family for mutant in found.of("survived") if mutant.would_catch)
    if not best:
        return
    words = [f"{family} {number}" for family, number in best.most_common()]
    yield from ("", f"Families that would have caught them: {', '.join(words)}.")
    missing = [family for family in best if family not in found.families]
    if missing:
        yield (
            f"Not in the control set: {', '.join(missing)}. Allow them with `draws`, or return such inputs from "
            "`controls.function`."
        )
    if len(missing) < len(best):
        yield "For more draws of the others raise `controls.random`; for other sizes name them in `controls.sizes`."


def _limits(found: Strength) -> Iterator[str]:
    # An equivalent mutant may change outputs within their tolerance: to tell it apart, no input helps.
    within = [mutant for mutant in found.of("equivalent") if mutant.effect > 0]
    yield ""
    if found.of("equivalent"):
        yield (
            f"Equivalent: none of {found.searched} random inputs shows a difference that is not allowed"
            + (f"; {len(within)} of them change an output by less." if within else ".")
        )
    if found.of("refused"):
        yield "Refused mutants could not be loaded or run; they count as caught."
    if found.untried:
        yield f"Not tried: {found.untried} of {found.planned} mutants."
    if found.red:
        yield f"{count(found.red, 'control input')} cannot tell: the file itself differs from eager there."
