"""Records to JSON values and back, with the standard library alone (the worker has nothing else).

Non-finite floats become the strings "nan", "inf" and "-inf": JSON has no other way to say them. How a class is written
and read is worked out once, since a run has tens of thousands of records.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
from collections.abc import Callable
from functools import cache
from itertools import repeat
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

Record = TypeVar("Record")
Reader = Callable[[Any], Any]
"""Takes a JSON value; raises `_Refused`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pattern:
    """Annotates a text that must match wholly."""

    text: str


def encode(value: Any) -> Any:
    """JSON value of a record, or of a container of records."""
    return _writer(_type(value))(value)


def decode(kind: type[Record], value: Any) -> Record:
    """The record of class `kind` that `encode` turned into `value`.

    Raises:
        ValueError: `value` does not have that shape; the message says where.
    """
    wanted: Any = kind
    try:
        decoded: Record = _reader(wanted)(value)
    except _Refused as refused:
        # Not chained: the way down through the value is in the message.
        raise ValueError("; ".join(f"{kind.__name__}{place}: {why}" for place, why in refused.problems)) from None
    return decoded


# For mypy, which does not take a `type[Any]` for hashable, as `cache` asks.
_type: Callable[[Any], Any] = type


@cache
def _writer(kind: Any) -> Callable[[Any], Any]:
    # None calls `encode`, whose frame would take from the depth that a value may have.
    if _is_record(kind):
        names = tuple(_hints(kind))
        # Field by field: dataclasses.asdict would copy every container, and not write out lone surrogates.
        return lambda value: {name: _writer(_type(item := getattr(value, name)))(item) for name in names}
    if issubclass(kind, dict):
        return lambda value: {_text(str(key)): _writer(_type(item))(item) for key, item in value.items()}
    if issubclass(kind, (list, tuple)):
        return lambda value: [_writer(_type(item))(item) for item in value]
    if issubclass(kind, float):
        return _number
    return _text if issubclass(kind, str) else lambda value: value


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")


def _text(text: str) -> str:
    """The text with lone surrogates (undecodable bytes of file names) written out: no file or pipe takes them."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


@cache
def _hints(record: Any) -> dict[str, Any]:
    return get_type_hints(record, include_extras=True)


class _Refused(Exception):  # noqa: N818 - not an error yet: another kind of a union may take the value
    """A value that is not of a kind: places inside of it, and what is wrong there."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        self.problems = problems

    def inside(self, part: str) -> _Refused:
        """The same, seen from the container."""
        return _Refused(*((part + place, why) for place, why in self.problems))


def _refuse(expected: str, found: Any) -> NoReturn:
    raise _Refused(("", f"expected {expected}, got {found!r:.80}"))


@cache
def _reader(kind: Any) -> Reader:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any or kind is object:
        return lambda value: value
    if _is_record(kind):
        return _record_reader(kind)
    if origin in (Union, types.UnionType):
        return _union_reader(arguments)
    if origin is Annotated:
        return _pattern_reader(_reader(arguments[0]), arguments[1].text)
    if origin is Literal:
        return lambda value: value if value in arguments else _refuse(f"one of {arguments}", value)
    if origin is tuple:
        return _tuple_reader(arguments)
    if origin is dict:
        return _dict_reader(arguments[1])
    return _SCALARS.get(kind) or _scalar_reader(kind)


@cache
def _fields(kind: Any) -> dict[str, Reader]:
    return {name: _reader(hint) for name, hint in _hints(kind).items()}


def _record_reader(kind: Any) -> Reader:
    def read(value: Any) -> Any:
        # Not outside of `read`, since a record may contain others of its own kind.
        readers = _fields(kind)
        if not isinstance(value, dict):
            _refuse("an object", value)
        if not value.keys() <= readers.keys():
            _refuse(f"only {sorted(readers)}", sorted(value.keys() - readers.keys()))
        fields = {}
        for name, item in value.items():
            try:
                fields[name] = readers[name](item)
            except _Refused as refused:
                raise refused.inside(f".{name}") from None
        try:
            return kind(**fields)
        except TypeError as error:
            # A required field is missing; those with a default may be, which is how results of older versions are read.
            raise _Refused(("", str(error))) from error

    return read


def _union_reader(kinds: tuple[Any, ...]) -> Reader:
    readers = [(kind, _reader(kind)) for kind in kinds]
    has_numbers = {int, float} <= set(kinds)

    def read(value: Any) -> Any:
        own = type(value)
        if own is int and has_numbers:
            return value  # a constant of the model's, as large as Python's are
        problems: list[tuple[str, str]] = []
        # The exact type first, so that a constant "inf" stays a text: only where no text is allowed is it a float.
        for _, reader in sorted(readers, key=lambda each: each[0] is not own):
            try:
                return reader(value)
            except _Refused as refused:
                problems += refused.problems
        raise _Refused(*problems)

    return read


def _pattern_reader(inner: Reader, pattern: str) -> Reader:
    matches = re.compile(pattern).fullmatch

    def read(value: Any) -> Any:
        text = inner(value)
        return text if matches(text) else _refuse(f"a text like {pattern}", text)

    return read


def _tuple_reader(kinds: tuple[Any, ...]) -> Reader:
    is_open = kinds[1:] == (...,)
    readers = [_reader(kind) for kind in (kinds[:1] if is_open else kinds)]

    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            _refuse("a list", value)
        if not is_open and len(value) != len(readers):
            _refuse(f"{len(readers)} items", value)
        items: list[Any] = []
        try:
            for reader, item in zip(repeat(readers[0]) if is_open else readers, value):  # noqa: B905 - one has no end
                items.append(reader(item))
        except _Refused as refused:
            raise refused.inside(f"[{len(items)}]") from None
        return tuple(items)

    return read


def _dict_reader(kind: Any) -> Reader:
    reader = _reader(kind)

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            _refuse("an object", value)
        items = {}
        for key, item in value.items():
            try:
                items[key] = reader(item)
            except _Refused as refused:
                raise refused.inside(f".{key}") from None
        return items

    return read


def _scalar_reader(kind: type) -> Reader:
    return lambda value: value if isinstance(value, kind) else _refuse(kind.__name__, value)


def _read_null(value: Any) -> None:
    return None if value is None else _refuse("null", value)


def _read_integer(value: Any) -> int:
    # isinstance(True, int) holds, but `true` in a count is a mistake.
    if not isinstance(value, int) or isinstance(value, bool):
        _refuse("int", value)
    return value if _has_64_bits(value) else _refuse("an int of 64 bits", value)


def _read_float(value: Any) -> float:
    number = float(value) if value in ("nan", "inf", "-inf") else value
    if not isinstance(number, (int, float)) or isinstance(number, bool):
        _refuse("a number", value)
    if isinstance(number, int) and _has_64_bits(number):
        return number  # exact, as the bounds of int64 tensors are
    try:
        return float(number)
    except OverflowError:
        _refuse("a number that float64 can hold", value)


_SCALARS: dict[Any, Reader] = {type(None): _read_null, int: _read_integer, float: _read_float}


def _has_64_bits(number: int) -> bool:
    """Whether int64 or uint64 can hold it."""
    return -(2**63) <= number < 2**64
