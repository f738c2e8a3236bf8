"""Compare two records field by field, as `fields.py` says for each."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from export_gate.loosening.compare import Compare, Step, arrow, loosened_by_any, preferred, replaced, weaker
from export_gate.loosening.fields import FIELDS, STATIC_DIM, YAML_KEYS
from export_gate.loosening.together import by_name, dim, is_static, order, tensor
from export_gate.wall.contract import DataSource, Dim, GoldenSource, Output, Spec, Target, TensorSpec, Waiver
from export_gate.wall.targets import Words, kind_named


def records(before: Any, after: Any) -> Iterator[Step]:
    """The steps from one record to another of its kind."""
    name = type(before).__name__
    if isinstance(before, Dim) and is_static(before, after):
        name = STATIC_DIM
    directions = FIELDS.get(name, {})
    for field in dataclasses.fields(before):
        # Nobody has decided about such a field, so any change of it must be reviewed.
        direction = directions.get(field.name, loosened_by_any)
        old, new = getattr(before, field.name), getattr(after, field.name)
        match direction:
            case "record":
                steps = records(old, new)
            case "records":
                steps = _paired(old, new)
            case "specs":
                steps = _specs(_parts(old), _parts(new))
            case "waivers":
                steps = _waivers(old, new)
            case "options":
                yield from _options(before, after)
                continue
            case compare:
                steps = compare(old, new)
        yield from _below(_key(field.name), steps)
    match before:
        case Dim():
            yield from dim(before, after)
        case TensorSpec():
            yield from tensor(before, after)


def _key(field: str) -> str:
    return YAML_KEYS.get(field, field.replace("_", "-"))


def _below(key: str, steps: Iterator[Step]) -> Iterator[Step]:
    for effect, place, what in steps:
        is_index = place.startswith("[")
        yield effect, f"{key}{'' if is_index or not place else '.'}{place}", what


def _paired(before: Sequence[Any], after: Sequence[Any]) -> Iterator[Step]:
    """Records by their name, or by the path of their file."""
    old, new = by_name(before), by_name(after)
    for name in dict.fromkeys((*old, *new)):
        if name not in new:
            yield "loosened", name, "removed"
        elif name not in old:
            yield from _below(name, _gained(new[name]))
        else:
            yield from _below(name, records(old[name], new[name]))
    # Dims in another order are tried at other sizes, as with another seed.
    if any(isinstance(item, (Output, Dim)) for item in before):
        yield from order(tuple(old), tuple(new))
    elif any(isinstance(item, (DataSource, GoldenSource)) for item in before):
        # What comes first stays within controls.limit.
        yield from (("changed", key, what) for _, key, what in order(tuple(old), tuple(new)))


def _gained(item: Any) -> Iterator[Step]:
    """One that the base does not have: it checks more, unless it takes something out of what is checked anyway."""
    match item:
        case Output():
            as_before = Output(name=item.name, leaf="none" if item.leaf == "none" else "compare")
            looser = [step for step in records(as_before, item) if step[0] == "loosened"]
            yield from looser or [("tightened", "", "added")]
        case DataSource() | GoldenSource():
            yield "changed", "", "added"
        case _:
            yield "tightened", "", "added"


def _options(before: Target, after: Target) -> Iterator[Step]:
    """The options of one kind; another kind has other options."""
    for option in kind_named(before.kind).options if before.kind == after.kind else ():
        compare: Compare = replaced
        if option.strongest_first:
            compare = weaker(*option.strongest_first)
        elif isinstance(option.values, Words):
            compare = preferred
        yield from _below(_key(option.name), compare(before.options[option.name], after.options[option.name]))


def _parts(spec: Mapping[str, Spec] | Sequence[Spec]) -> dict[str, Spec]:
    return dict(spec) if isinstance(spec, Mapping) else {f"[{place}]": item for place, item in enumerate(spec)}


def _specs(before: Mapping[str, Spec], after: Mapping[str, Spec]) -> Iterator[Step]:
    """Inputs, or the parts of one; a part that is a list or a dict has parts itself."""
    for name in dict.fromkeys((*before, *after)):
        if name not in after:
            yield "loosened", name, "removed"
        elif name not in before:
            yield "loosened", name, "added, so that another call is verified"
        elif before[name].kind != after[name].kind:
            yield "loosened", name, arrow(before[name].kind, after[name].kind)
        else:
            yield from _below(name, records(before[name], after[name]))
    yield from order(tuple(before), tuple(after))


def _waivers(before: Sequence[Waiver], after: Sequence[Waiver]) -> Iterator[Step]:
    """Waivers by what they accept: a new one, or one that lasts longer, loosens. Of two alike the longer one counts."""
    old, new = (
        # In order of their ends, so that of two alike the later one stays.
        {_accepted(waiver): waiver for waiver in sorted(each, key=lambda waiver: waiver.until)}
        for each in (before, after)
    )
    for accepted in dict.fromkeys((*old, *new)):
        if accepted not in new:
            yield "tightened", "", f"{accepted} removed"
        elif accepted not in old:
            yield "loosened", "", f"{accepted} added, until {new[accepted].until}"
        elif new[accepted].until != old[accepted].until:
            is_longer = new[accepted].until > old[accepted].until
            what = f"{accepted} until {arrow(old[accepted].until, new[accepted].until)}"
            yield "loosened" if is_longer else "tightened", "", what


def _accepted(waiver: Waiver) -> str:
    parts = (
        waiver.target or "",
        "" if waiver.output == "*" else f"output {waiver.output}",
        "" if waiver.case == "*" else f"case {waiver.case}",
    )
    where = ", ".join(part for part in parts if part)
    return f"{waiver.rule}{f' ({where})' if where else ''}"
