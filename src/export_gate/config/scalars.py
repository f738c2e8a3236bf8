"""Resolve plain scalars by the core schema of YAML 1.2.2 (section 10.3.2): `on` is text and `1e-5` is a number."""

from __future__ import annotations

import re

from export_gate.wall.contract import Scalar

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **{sign + word: float(f"{sign}inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}
_BASES = ((re.compile(r"0o[0-7]+"), 8), (re.compile(r"0x[0-9a-fA-F]+"), 16), (re.compile(r"[-+]?[0-9]+"), 10))
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
MAX_DIGITS = 100
"""Longer numbers are refused: Python's int() is quadratic in their length."""


def resolve(text: str) -> Scalar:
    """Return the value of an unquoted scalar.

    Raises:
        ValueError: a number of more than `MAX_DIGITS` characters.
    """
    if text in _WORDS:
        return _WORDS[text]
    # Most scalars are words. Of the numbers, only 0o17 and 0x1f are not written like a float, and both start with 0.
    if not _FLOAT.fullmatch(text) and not text.startswith("0"):
        return text
    for pattern, base in _BASES:
        if pattern.fullmatch(text):
            return int(_short(text), base)
    return float(_short(text)) if _FLOAT.fullmatch(text) else text


def _short(text: str) -> str:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number of {len(text)} characters")
    return text
