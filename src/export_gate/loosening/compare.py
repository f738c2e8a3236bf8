"""How two values of one field compare: each function here is a direction in which a check becomes weaker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from export_gate.loosening.record import Effect
from export_gate.wall.tolerance import is_inexact

Step = tuple[Effect, str, str]
"""Effect, key below the compared record, and what is said after the key."""
Compare = Callable[[Any, Any], Iterator[Step]]


LONGEST = 80
"""Characters of a value in one line of a report."""


def shown(value: object) -> str:
    """A value as the config writes it, short."""
    return _cut(whole(value))


def arrow(before: object, after: object) -> str:
    """`120 -> 1`; of long values, the part that differs."""
    texts = (whole(before), whole(after))
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
    start = max(same - LONGEST // 4, 0) if max(map(len, texts)) > LONGEST else 0
    return " -> ".join(_cut(f"{'...' if start else ''}{text[start:]}") for text in texts)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def whole(value: object) -> str:
    """A value as the config writes it."""
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(whole(item) for item in value)}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {whole(item)}' for key, item in value.items())}}}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def unimportant(_before: object, _after: object) -> Iterator[Step]:
    """For what has no effect on the verdict, or is compared elsewhere."""
    yield from ()


def replaced(before: object, after: object) -> Iterator[Step]:
    """For what is checked in another way, neither more nor less."""
    if written(before) != written(after):
        yield "changed", "", arrow(before, after)


def written(value: object) -> str:
    """A value with its type and order: 1, 1.0 and true are equal, and so are mappings; a model tells them apart."""
    return json.dumps(value, default=repr)


def loosened_by_any(before: object, after: object) -> Iterator[Step]:
    """For what must not change unnoticed, in either direction."""
    if before != after:
        yield "loosened", "", arrow(before, after)


def smaller(before: float, after: float) -> Iterator[Step]:
    """A smaller number checks less."""
    if before != after:
        yield "loosened" if after < before else "tightened", "", arrow(before, after)


def larger(before: float, after: float) -> Iterator[Step]:
    """A larger number checks less."""
    yield from ((effect, key, arrow(before, after)) for effect, key, _ in smaller(after, before))


def larger_limit(before: float | None, after: float | None) -> Iterator[Step]:
    """A larger limit checks less, and no limit checks least."""
    if before != after:
        is_looser = after is None or (before is not None and after > before)
        yield "loosened" if is_looser else "tightened", "", arrow(before, after)


def smaller_count(before: float | None, after: float | None) -> Iterator[Step]:
    """A smaller number checks less; no number means all."""
    if before != after:
        is_looser = before is None or (after is not None and after < before)
        yield "loosened" if is_looser else "tightened", "", arrow("all" if before is None else before, after or "all")


def weaker(*strongest_first: object) -> Compare:
    """A word later in the list checks less; a word that is not in it has the place of `OTHER`."""

    def compare(before: object, after: object) -> Iterator[Step]:
        if before == after:
            return
        places = [strongest_first.index(word if word in strongest_first else OTHER) for word in (before, after)]
        # Of two words with one place, such as two masks, nobody here knows which one checks more.
        yield "loosened" if places[1] >= places[0] else "tightened", "", arrow(before, after)

    return compare


OTHER = object()
"""In `weaker`: any other word."""
RARE = 10
"""How many times wider a range may become before the old one is a corner of it, with large values around."""


def restricted(before: object, after: object) -> Iterator[Step]:
    """A restriction checks fewer inputs; none checks all."""
    if before != after:
        yield "tightened" if not after else "loosened", "", arrow(before or "any", after or "any")


def fewer(before: Iterable[object], after: Iterable[object]) -> Iterator[Step]:
    """Without some of the entries, less is checked."""
    old, new = tuple(before), tuple(after)
    if gone := [item for item in old if item not in new]:
        yield "loosened", "", f"without {', '.join(map(shown, gone))}"
    if come := [item for item in new if item not in old]:
        yield "tightened", "", f"also {_cut(', '.join(map(shown, come)))}"


def fewer_values(before: tuple[float, ...], after: tuple[float, ...]) -> Iterator[Step]:
    """As `fewer_of_all`; among so many others that the old ones are rarely drawn, they are as good as gone."""
    for effect, key, what in fewer_of_all(before, after):
        is_rare = effect == "tightened" and len(after) > RARE * len(before)
        yield ("loosened", key, f"{what}, so that the old ones are rarely drawn") if is_rare else (effect, key, what)


def fewer_of_all(before: Iterable[object], after: Iterable[object]) -> Iterator[Step]:
    """As `fewer`, but no entries mean all."""
    old, new = tuple(before), tuple(after)
    if old and new:
        yield from fewer(old, new)
    elif old != new:
        yield "loosened" if new else "tightened", "", f"{shown(old or 'all')} -> {shown(new or 'all')}"


def lost(before: object, after: object) -> Iterator[Step]:
    """Without it, less is checked; another one checks something else."""
    if before != after:
        effect: Effect = "loosened" if after is None else "tightened" if before is None else "changed"
        yield effect, "", arrow(before, after)


def exact_before(before: str | None, after: str | None) -> Iterator[Step]:
    """As `lost` for a dtype; one that is compared within a tolerance checks less than one that is compared exactly."""
    for effect, key, what in lost(before, after):
        is_looser = before is not None and after is not None and is_inexact(after) and not is_inexact(before)
        yield "loosened" if is_looser else effect, key, what


def preferred(before: tuple[object, ...], after: tuple[object, ...]) -> Iterator[Step]:
    """An order of preference: what comes after the others takes what they leave."""
    # Added at the end: what was there keeps its precedence.
    if before == after[: len(before)]:
        yield from fewer(before, after)
    elif set(before) <= set(after):
        yield "loosened", "", arrow(before, after)
    else:
        yield from fewer(before, after)


def coarser(before: int, after: int) -> Iterator[Step]:
    """Steps that do not divide the old ones leave sizes out."""
    if before != after:
        yield "tightened" if before % after == 0 else "loosened", "", arrow(before, after)


def narrower_range(before: tuple[Any, Any] | None, after: tuple[Any, Any] | None) -> Iterator[Step]:
    """A range that leaves values out checks less, and so does none: only normal draws are tried then."""
    if before == after:
        return
    ends = (*(before or (None,)), *(after or (None,)))
    # What cannot be compared (a missing range, an end that names dims) counts as looser.
    is_wider = all(isinstance(end, (int, float)) for end in ends) and ends[2] <= ends[0] and ends[1] <= ends[3]
    change = arrow(before or "undeclared", after or "undeclared")
    unit = 0 if isinstance(ends[0], float) else 1  # the range [0, 9] has ten integers
    if is_wider and ends[3] - ends[2] + unit > RARE * (ends[1] - ends[0] + unit):
        yield "loosened", "", f"{change}, so that values of the old range are rarely drawn"
    else:
        yield "tightened" if is_wider else "loosened", "", change


def fixed_axes(before: tuple[Any, ...] | None, after: tuple[Any, ...] | None) -> Iterator[Step]:
    """A shape checks less with a number where a dim was; a dim where a number was checks other sizes."""
    if before == after:
        return
    if before is None or after is None:
        yield "loosened" if after is None else "tightened", "", arrow(before, after)
        return
    is_wider = len(before) == len(after) and all(
        old == new or (not old.factors and new.factors) for old, new in zip(before, after, strict=True)
    )
    yield "changed" if is_wider else "loosened", "", arrow(before, after)


def size_lists(before: Mapping[str, tuple[int, ...]], after: Mapping[str, tuple[int, ...]]) -> Iterator[Step]:
    """Sizes per dim. A list in place of the default sizes leaves some out; the default in its place tries others."""
    for dim in dict.fromkeys((*before, *after)):
        if dim not in before:
            yield "loosened", dim, f"default -> {shown(after[dim])}"
        elif dim not in after:
            yield "changed", dim, f"{shown(before[dim])} -> default"
        else:
            yield from ((effect, dim, what) for effect, _, what in fewer(before[dim], after[dim]))
