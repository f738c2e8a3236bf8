"""How two values of one field compare where another one means that something else is verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from export_gate.loosening.compare import Compare, Step, arrow, shown, whole, written


def another(noun: str) -> Compare:
    """For what says which model, file or call is verified: what passes now is not what passed at the base."""

    def compare(before: object, after: object) -> Iterator[Step]:
        if written(before) != written(after):
            is_shown = whole(before) != whole(after)  # else they differ in type alone
            change = arrow(before, after) if is_shown else arrow(written(before), written(after))
            yield "loosened", "", f"{change}, so that another {noun} is verified"

    return compare


def another_file(before: str | None, after: str | None) -> Iterator[Step]:
    """As `another` for a file that is handed in; without it, what ships is not verified any more."""
    if after is None and before is not None:
        yield "loosened", "", arrow(before, after)
    else:
        yield from another("file")(before, after)


def variables(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[Step]:
    """Environment variables by name: another value may make another model, and one that is passed on may be needed."""
    for name in dict.fromkeys((*before, *after)):
        if name not in after:
            yield "loosened", name, "removed"
        elif name not in before:
            is_passed_on = after[name] is None
            added = "added" if is_passed_on else f"added, {shown(after[name])}"
            yield "changed" if is_passed_on else "loosened", name, added
        elif before[name] != after[name]:
            texts = ("the caller's" if each is None else shown(each) for each in (before[name], after[name]))
            yield "loosened", name, " -> ".join(texts)


def lost_or_other(before: object, after: object) -> Iterator[Step]:
    """Without it, less is checked, and nobody sees whether another one checks as much."""
    if before != after:
        yield "tightened" if before is None else "loosened", "", arrow(before, after)


def trusted(before: object, after: object) -> Iterator[Step]:
    """With it, or with another one, nobody sees what it gives: values that are drawn, or verdicts that were kept."""
    if before != after:
        yield "tightened" if after is None else "loosened", "", arrow(before, after)
