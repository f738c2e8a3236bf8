"""Parse JSON text that others wrote, and refuse what two readers may understand in two ways."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, NoReturn

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""How JSON spells a surrogate; two that make a pair are one character."""


def parse_strictly(text: str) -> Any:
    """The value of a JSON document.

    Raises:
        JSONDecodeError: it is not JSON; the error has line and column.
        ValueError: NaN or an infinity, which JSON does not have, an object with a key twice, or a lone surrogate.
        RecursionError: it is nested too deeply.
    """
    value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    if _SURROGATE.search(text):
        _require_characters(value)
    return value


def _require_characters(value: Any) -> None:
    """Refuse half of a pair of surrogates: no output takes it, and no text has one."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"{error.object[error.start]!a} is half of a character") from error


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object and refuse duplicate keys, because readers differ in which value they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"key {twice!r:.80} occurs twice")
    return found
