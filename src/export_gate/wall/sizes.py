"""Parse linear expressions in dims such as `2*seq+1` or `past + cur`, and find their ends over the dims' sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import prod

from export_gate.wall.contract import Size

MAX_SIZE = 2**31 - 1
"""Largest axis and dim; more elements than any control input could hold."""
LINEAR = "a whole number, a dim, or a sum of dims with whole factors such as 2*seq+1 or past+cur"

# ASCII, because `str.isdigit` accepts characters such as ² that `int` refuses.
_TERM = re.compile(r"\s*([-+]?)\s*((?:\w+\s*\*\s*)*\w+)\s*", re.ASCII)


def parse_size(text: str) -> Size:
    """The size that `text` says, e.g. `Size(factors={"seq": 2}, offset=1)` for `2*seq+1`.

    Raises:
        ValueError: the expression is not linear, or shrinks as one of its dims grows; the message says which.
    """
    size = parse_expression(text)
    if any(factor < 1 for factor in size.factors.values()):
        raise ValueError("a size that grows with its dims")
    if not size.factors and not 0 <= size.offset <= MAX_SIZE:
        raise ValueError(f"a size from 0 to {MAX_SIZE}")
    return size


def parse_expression(text: str) -> Size:
    """The linear expression that `text` says, with factors of either sign.

    Raises:
        ValueError: it is not linear.
    """
    factors: dict[str, int] = {}
    offset = 0
    for sign, term in _terms(text):
        parts = [part.strip() for part in term.split("*")]
        names = [part for part in parts if not part.isdigit()]
        number = sign * prod(int(part) for part in parts if part.isdigit())
        if len(names) > 1 or any(name[0].isdigit() for name in names):
            raise ValueError(LINEAR)
        for name in names:
            factors[name] = factors.get(name, 0) + number
        offset += 0 if names else number
    return Size(factors=factors, offset=offset)


def lowest(size: Size, dims: Mapping[str, Iterable[int]]) -> tuple[int, dict[str, int]]:
    """The least value over all sizes that the dims may have, and the sizes that give it.

    A linear expression is least where each dim is at one of its ends.
    """
    at = {dim: (min if factor > 0 else max)(dims[dim]) for dim, factor in size.factors.items()}
    return size.at(at), at


def highest(size: Size, dims: Mapping[str, Iterable[int]]) -> tuple[int, dict[str, int]]:
    """The greatest value over all sizes that the dims may have, and the sizes that give it."""
    # The greatest value is the least one with the other sign.
    value, at = lowest(difference(Size(), size), dims)
    return -value, at


def difference(one: Size, other: Size) -> Size:
    """`one - other`."""
    names = dict.fromkeys((*one.factors, *other.factors))
    factors = {name: one.factors.get(name, 0) - other.factors.get(name, 0) for name in names}
    # Dims that cancel out must go, or a constant would not look like one.
    return Size(factors={name: factor for name, factor in factors.items() if factor}, offset=one.offset - other.offset)


def _terms(text: str) -> list[tuple[int, str]]:
    """Signed products of the sum; every term but the first needs its sign."""
    terms: list[tuple[int, str]] = []
    end = 0
    while end < len(text) <= 100:  # noqa: PLR2004 - longer is a mistake, and numbers stay small
        match = _TERM.match(text, end)
        if not match or (terms and not match[1]):
            break
        terms.append((-1 if match[1] == "-" else 1, match[2]))
        end = match.end()
    if not terms or end != len(text):
        raise ValueError(LINEAR)
    return terms
