"""Shape entries such as `2*seq+1`: text to `factor * dim + offset`."""

from __future__ import annotations

import re
from math import prod

from export_gate.wall.contract import Size

MAX_SIZE = 2**31 - 1
"""Largest axis and dim; more elements than any control input could hold."""
LINEAR = "a whole number, a dim, or a linear expression in one dim such as 2*seq+1"

_TERM = re.compile(r"\s*([-+]?)\s*((?:\w+\s*\*\s*)*\w+)\s*", re.ASCII)


def parse_size(text: str) -> Size:
    """The size that `text` says, e.g. `Size(dim="seq", factor=2, offset=1)` for `2*seq+1`.

    Raises:
        ValueError: the expression is not linear in one dim, or shrinks as the dim grows; the message says which.
    """
    dims: set[str] = set()
    factor = offset = 0
    for sign, term in _terms(text):
        factors = [part.strip() for part in term.split("*")]
        names = [part for part in factors if not part.isdigit()]
        number = sign * prod(int(part) for part in factors if part.isdigit())
        if len(names) > 1 or any(name[0].isdigit() for name in names):
            raise ValueError(LINEAR)
        dims.update(names)
        factor, offset = (factor + number, offset) if names else (factor, offset + number)
    if len(dims) > 1:
        raise ValueError(LINEAR)
    if dims and factor < 1:
        raise ValueError("a size that grows with its dim")
    if not dims and not 0 <= offset <= MAX_SIZE:
        raise ValueError(f"a size from 0 to {MAX_SIZE}")
    return Size(dim=dims.pop(), factor=factor, offset=offset) if dims else Size(offset=offset)


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
