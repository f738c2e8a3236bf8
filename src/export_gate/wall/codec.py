"""Records to JSON values and back, with the standard library alone (the worker has nothing else).

Non-finite floats become the strings "nan", "inf" and "-inf": JSON has no other way to say them.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


@dataclasses.dataclass(frozen=True, slots=True)
class Pattern:
    """Annotates a text that must match wholly."""

    text: str


def encode(value: Any) -> Any:
    """JSON value of a record, or of a container of records."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # Field by field: dataclasses.asdict would copy every container, and not write out lone surrogates.
        return {name: encode(getattr(value, name)) for name in _hints(type(value))}
    if isinstance(value, dict):
        return {_text(str(key)): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return _text(value) if isinstance(value, str) else value


def decode(kind: type[Record], value: Any) -> Record:
    """The record of class `kind` that `encode` turned into `value`.

    Raises:
        ValueError: `value` does not have that shape; the message says where.
    """
    decoded: Record = _decode(kind, value, kind.__name__)
    return decoded


def _text(text: str) -> str:
    """The text with lone surrogates (undecodable bytes of file names) written out: no file or pipe takes them."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


@cache
def _hints(record: Any) -> dict[str, Any]:
    return get_type_hints(record, include_extras=True)


@cache
def _shape(kind: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """What a kind is made of; asked for every value, and slow to find."""
    return get_origin(kind), get_args(kind), isinstance(kind, type) and dataclasses.is_dataclass(kind)


def _decode(kind: Any, value: Any, place: str) -> Any:
    origin, arguments, is_record = _shape(kind)
    if kind is Any or kind is object:
        return value
    if is_record:
        return _decode_record(kind, value, place)
    if origin in (Union, types.UnionType):
        return _decode_union(arguments, value, place)
    if origin is Annotated:
        text, pattern = _decode(arguments[0], value, place), arguments[1].text
        return _require(re.fullmatch(pattern, text), text, text, place, f"a text like {pattern}")
    if origin is Literal:
        return value if value in arguments else _require(False, value, value, place, f"one of {arguments}")
    if origin is tuple:
        items = _require(isinstance(value, list), value, value, place, "a list")
        kinds = [arguments[0]] * len(items) if arguments[1:] == (...,) else list(arguments)
        _require(len(kinds) == len(items), value, value, place, f"{len(kinds)} items")
        return tuple(_decode(k, item, f"{place}[{i}]") for i, (k, item) in enumerate(zip(kinds, items, strict=True)))
    if origin is dict:
        pairs = _require(isinstance(value, dict), value, value, place, "an object")
        return {key: _decode(arguments[1], item, f"{place}.{key}") for key, item in pairs.items()}
    return _decode_scalar(kind, value, place)


def _decode_record(kind: Any, value: Any, place: str) -> Any:
    _require(isinstance(value, dict), value, value, place, "an object")
    hints = _hints(kind)
    if not value.keys() <= hints.keys():
        _require(False, value, sorted(value.keys() - hints.keys()), place, f"only {sorted(hints)}")
    fields = {name: _decode(hints[name], item, f"{place}.{name}") for name, item in value.items()}
    try:
        return kind(**fields)
    except TypeError as error:
        # A required field is missing; those with a default may be, which is how results of older versions are read.
        raise ValueError(f"{place}: {error}") from error


def _decode_union(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    if type(value) is int and {int, float} <= set(kinds):
        return value  # a constant of the model's, as large as Python's are
    problems: list[str] = []
    # The exact type first, so that a constant "inf" stays a text: only where no text is allowed is it a float.
    for kind in sorted(kinds, key=lambda kind: kind is not type(value)):
        try:
            return _decode(kind, value, place)
        except ValueError as error:
            problems.append(str(error))
    raise ValueError("; ".join(problems))


def _decode_scalar(kind: Any, value: Any, place: str) -> Any:
    if kind is type(None):
        return _require(value is None, None, value, place, "null")
    if kind is float:
        return _decode_float(value, place)
    # isinstance(True, int) holds, but `true` in a count is a mistake.
    matches = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    _require(matches, value, value, place, kind.__name__)
    return _require(kind is not int or _has_64_bits(value), value, value, place, "an int of 64 bits")


def _decode_float(value: Any, place: str) -> float:
    number = float(value) if value in ("nan", "inf", "-inf") else value
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    _require(is_number, number, value, place, "a number")
    if isinstance(number, int) and _has_64_bits(number):
        return number  # exact, as the bounds of int64 tensors are
    try:
        return float(number)
    except OverflowError:
        raise ValueError(f"{place}: expected a number that float64 can hold, got {value!r:.80}") from None


def _has_64_bits(number: int) -> bool:
    """Whether int64 or uint64 can hold it."""
    return -(2**63) <= number < 2**64


def _require(condition: object, result: Any, found: Any, place: str, expected: str) -> Any:
    if not condition:
        raise ValueError(f"{place}: expected {expected}, got {found!r:.80}")
    return result
