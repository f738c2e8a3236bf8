"""Parse JSON text that others wrote, and refuse what two readers may understand in two ways."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NoReturn


def parse_strictly(text: str) -> Any:
    """The value of a JSON document.

    Raises:
        JSONDecodeError: it is not JSON; the error has line and column.
        ValueError: NaN or an infinity, which JSON does not have, or an object with a key twice.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object and refuse duplicate keys, because readers differ in which value they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"key {twice!r:.80} occurs twice")
    return found
