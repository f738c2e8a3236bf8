"""Compare the names of a file's inputs and outputs, and the dtypes of its inputs, with those of the contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

ABSENT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names on both sides, in order."""

    inputs: Sequence[str]
    outputs: Sequence[str]
    """Under the contract's names; those that are None are not among them."""
    graph_inputs: Sequence[str]
    graph_outputs: Sequence[str]


def require_names(names: Names) -> None:
    """Check that the graph's inputs are the contract's, and its outputs where they are as many.

    An input that the graph lacks is one that the model does not use; another number of outputs is another structure.

    Raises:
        ValueError: they are not; the first line says which, the others are a table of both sides.
    """
    foreign = [name for name in names.graph_inputs if name not in names.inputs]
    others = [name for name in names.graph_outputs if name not in names.outputs]
    said = [_said("input", foreign, names.inputs)] if foreign else []
    if others and len(names.graph_outputs) == len(names.outputs):
        said.append(_said("output", others, names.outputs))
    if said:
        raise ValueError("\n".join(("; ".join(said), *table(names))))


def require_dtypes(declared: Mapping[str, str], taken: Mapping[str, str]) -> None:
    """Check that the graph takes each input in the dtype in which callers send it.

    Args:
        declared: input -> dtype in the contract.
        taken: the same of the graph; inputs that it lacks, and types that are no dtype of torch, are not looked at.

    Raises:
        ValueError: it does not; the first line says which, the others are a table of both sides.
    """
    both = [name for name in declared if taken.get(name, declared[name]) != declared[name]]
    if both:
        said = ", ".join(f"{name!r} as {taken[name]} instead of {declared[name]}" for name in both)
        rows = [("", "contract", "artifact"), *((name, declared[name], taken.get(name, ABSENT)) for name in declared)]
        raise ValueError("\n".join((f"the graph takes {said}, the dtype in the contract", *_aligned(rows))))


def table(names: Names) -> Iterator[str]:
    """One line for each input and output, in aligned columns."""
    rows = [("", "contract", "artifact")]
    for what, ours, theirs in (
        ("input", names.inputs, names.graph_inputs),
        ("output", names.outputs, names.graph_outputs),
    ):
        pairs = zip_longest(ours, theirs, fillvalue=ABSENT)
        rows += [(f"{what} {number}", *pair) for number, pair in enumerate(pairs, 1)]
    return _aligned(rows)


def _aligned(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for row in rows:
        yield f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}"


def _said(noun: str, foreign: Sequence[str], known: Sequence[str]) -> str:
    return f"the graph has {_listing(noun, foreign)} that the contract lacks; the contract has {_listing(noun, known)}"


def _listing(noun: str, names: Sequence[str]) -> str:
    return f"{noun}{'' if len(names) == 1 else 's'} {', '.join(map(repr, names)) or 'none'}"
