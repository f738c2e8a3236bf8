"""Inputs and outputs: what forward takes and returns."""

# ruff: noqa: D102, ARG002 - Kind documents expected, check and schema

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import partial
from keyword import kwlist
from typing import Any, Literal

from export_gate.config.containers import Field, ListOf, Section, Table, Values
from export_gate.config.kinds import INVALID, Anything, Choice, Number, Schema, Scope, Text, is_number
from export_gate.config.nodes import Node, describe
from export_gate.config.paths import ATTRIBUTE, ONE_LINE
from export_gate.wall.contract import (
    BOOL_DRAWS,
    DTYPES,
    FLOAT_DRAWS,
    INTEGER_DRAWS,
    ConstantSpec,
    DictSpec,
    Output,
    SequenceSpec,
    Size,
    TensorSpec,
)
from export_gate.wall.sizes import LINEAR, MAX_SIZE, parse_expression, parse_size

NAME = Text(expected="a Python identifier", pattern="[A-Za-z_][A-Za-z0-9_]*", excluded=tuple(kwlist), max_length=100)

STRICT = "strictly-increasing"
_INTEGER_BITS = {"int64": 63, "int32": 31, "int16": 15, "int8": 7}
BOUNDS: dict[str, tuple[float, float]] = {
    **{dtype: (-(2**bits), 2**bits - 1) for dtype, bits in _INTEGER_BITS.items()},
    "uint8": (0, 255),
    **dict.fromkeys(("float64", "complex128"), (-sys.float_info.max, sys.float_info.max)),
    **dict.fromkeys(("float32", "complex64"), (-(2 - 2**-23) * 2.0**127, (2 - 2**-23) * 2.0**127)),
    "float16": (-65504.0, 65504.0),
    "bfloat16": (-(2 - 2**-7) * 2.0**127, (2 - 2**-7) * 2.0**127),
}
"""Smallest and largest finite value of each numeric dtype."""


def is_whole(dtype: str) -> bool:
    """Whether the dtype is an integer type."""
    return dtype.startswith(("int", "uint"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeEntry:
    """One entry of a shape."""

    expected: str = LINEAR

    def check(self, node: Node, scope: Scope) -> Any:
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_SIZE:
            return Size(offset=value)
        try:
            return parse_size(value if isinstance(value, str) else "")
        except ValueError as error:
            is_size = is_number(value) and isinstance(value, int)
            scope.problems.expected(node, f"a size from 0 to {MAX_SIZE}" if is_size else str(error))
            return INVALID

    def schema(self, defs: Schema) -> Schema:
        expression = {"type": "string", "pattern": r"^[A-Za-z0-9_+\-* ]+$", "maxLength": 100}
        return {"anyOf": [{"type": "integer", "minimum": 0, "maximum": MAX_SIZE}, expression]}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundEntry:
    """One end of a range: a number, or an expression in dims."""

    expected: str = "a number, or a sum of dims such as seq-1"

    def check(self, node: Node, scope: Scope) -> Any:
        if isinstance(node.value, str) and re.search(r"[A-Za-z_]", node.value):
            try:
                return parse_expression(node.value)
            except ValueError:
                scope.problems.expected(node, self.expected)
                return INVALID
        return Number().check(node, scope)

    def schema(self, defs: Schema) -> Schema:
        pattern = r"^[A-Za-z0-9_+\-* ]*[A-Za-z_][A-Za-z0-9_+\-* ]*$"
        return {"anyOf": [{"type": "number"}, {"type": "string", "pattern": pattern, "maxLength": 100}]}


def _verify_tensor(values: Values, node: Node, scope: Scope) -> None:
    if "dtype" not in values:
        return
    dtype: str = values["dtype"]
    for key in ("range", "values"):
        if key in values:
            _verify_numbers(node, key, dtype, scope)
    _verify_allowed(values, node, scope)
    _verify_bounds(values, node, scope)
    _verify_order(values, node, scope)
    child = node.child("nonfinite")
    if values.get("nonfinite") and child and not dtype.startswith(("float", "bfloat", "complex")):
        scope.problems.expected(child, "no nonfinite values", got=f"some for dtype {dtype}, which cannot hold them")
    _verify_draws(values, node, scope)
    _verify_mask(values, node, scope)


def _verify_mask(values: Values, node: Node, scope: Scope) -> None:
    mask = node.child("mask")
    if mask is None or "mask" not in values:
        return
    is_whole_mask = is_whole(values["dtype"]) and (_holds_zero_and_one(values) or not {"range", "values"} & set(values))
    if values["dtype"] != "bool" and not is_whole_mask:
        scope.problems.expected(
            mask, "mask on an input of 0 and 1 only", got=f"dtype {values['dtype']}", then="declare range: [0, 1]"
        )
    elif not values.get("shape"):
        scope.problems.expected(mask, "mask on an input with at least one axis", got="a scalar")


def _verify_numbers(node: Node, key: str, dtype: str, scope: Scope) -> None:
    """Check that the dtype can hold each number of `range` or `values`."""
    child = node.child(key)
    assert child is not None
    if dtype == "bool":
        scope.problems.expected(child, f"no {key} for dtype bool", then="use draws to choose bool inputs")
        return
    low, high = BOUNDS[dtype]
    what = "a whole number" if is_whole(dtype) else "a number"
    for item in _entries_of(child):
        number = item.value
        if isinstance(number, str):
            continue  # an expression: its values are known once the dims are
        if not is_number(number) or not low <= number <= high or (is_whole(dtype) and not isinstance(number, int)):
            scope.problems.expected(item, f"{what} that {dtype} can hold, {low} to {high}")


def _entries_of(node: Node) -> list[Node]:
    """The numbers of a list, or of the lists in it."""
    return [entry for item in node.children for entry in item.children or (item,)]


def _verify_allowed(values: Values, node: Node, scope: Scope) -> None:
    """Numbers once each; lists where the last axis has as many positions."""
    child = node.child("values")
    if "values" not in values or not child:
        return
    lists = [isinstance(item.value, tuple) for item in child.children]
    if any(lists) and not all(lists):
        scope.problems.expected(child, "numbers, or a list of numbers for each position", got="both")
    elif any(lists):
        last = values["shape"][-1] if values.get("shape") else Size(offset=len(lists))
        if last.factors or last.offset != len(lists):
            scope.problems.expected(
                child,
                f"a list for each position of the last axis, {last}",
                got=f"{len(lists)} list{'s' * (len(lists) > 1)}",
            )
        if "order" in values or values["dtype"] == "bool":
            scope.problems.expected(child, "one list of numbers with an order, and none for bool", got="lists")
    for entries in [item.children for item in child.children if item.children] or [child.children]:
        seen: set[Any] = set()
        for item in entries:
            if item.value in seen:
                scope.problems.expected(item, "each entry once", got=f"{describe(item)} again")
            seen.add(item.value)


def _verify_bounds(values: Values, node: Node, scope: Scope) -> None:
    bounds, allowed = node.child("range"), node.child("values")
    if "range" not in values or not bounds or any(isinstance(bound, Size) for bound in values["range"]):
        return
    low, high = values["range"]
    if low > high:
        scope.problems.expected(bounds, "the lower bound first", got=f"[{low}, {high}]")
    elif "values" in values and allowed:
        for item in _entries_of(allowed):
            if is_number(item.value) and not low <= item.value <= high:
                scope.problems.expected(item, f"a value within range, {low} to {high}")


def _verify_order(values: Values, node: Node, scope: Scope) -> None:
    """An order needs a last axis, and values that can be ordered; whether there are enough is known with the dims."""
    child = node.child("order")
    if "order" not in values or not child:
        return
    is_strict = values["order"] == STRICT
    if values["dtype"].startswith("complex"):
        scope.problems.expected(child, f"no order for dtype {values['dtype']}, whose numbers have none")
    elif values["dtype"] == "bool" and is_strict:
        scope.problems.expected(child, "increasing or decreasing for dtype bool, which has two values")
    elif values.get("shape") == ():
        scope.problems.expected(child, "a shape with an axis that the order runs along", got="[]")
    elif is_strict and is_whole(values["dtype"]) and not {"range", "values"} & values.keys():
        scope.problems.expected(child, "a range beside it, wide enough for values that all differ", got="none")
    refused = {"nan", "inf"} if is_strict else {"nan"}
    for name in (name for name in values.get("nonfinite", ()) if name in refused):
        scope.problems.expected(child, f"no {name} among values in order", got=f"nonfinite: {name}")


def _verify_draws(values: Values, node: Node, scope: Scope) -> None:
    draws = node.child("draws")
    if "draws" not in values or not draws:
        return
    dtype: str = values["dtype"]
    families: tuple[str, ...] = BOOL_DRAWS if dtype == "bool" else INTEGER_DRAWS if is_whole(dtype) else FLOAT_DRAWS
    if is_whole(dtype) and _holds_zero_and_one(values):
        families = tuple(dict.fromkeys((*INTEGER_DRAWS, *BOOL_DRAWS)))
    for item, family in zip(draws.children, values["draws"], strict=True):
        if family not in families:
            then = scope.problems.nearest(family, families)
            scope.problems.expected(item, f"a draw for {dtype}: one of {', '.join(families)}", then=then)
        elif family == "nonfinite" and not node.child("nonfinite"):
            then = "add nonfinite: [nan, inf]"
            scope.problems.expected(item, "a draw that the input admits", then=then)


def _holds_zero_and_one(values: Values) -> bool:
    if "values" in values:
        return not isinstance(values["values"][0], tuple) and set(values["values"]) == {0, 1}
    return list(values.get("range", ())) == [0, 1]


def _make_tensor(**values: Any) -> TensorSpec:
    number: type[float] = int if is_whole(values["dtype"]) else float
    if any(isinstance(allowed, tuple) for allowed in values.get("values", ())):
        lists = [allowed for allowed in values.pop("values") if isinstance(allowed, tuple)]
        values["positions"] = tuple(tuple(map(number, allowed)) for allowed in lists)
    for key in ("range", "values"):
        if key in values:
            values[key] = tuple(item if isinstance(item, Size) else number(item) for item in values[key])
    return TensorSpec(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedEntry:
    """One allowed value, or those of one position."""

    expected: str = "a number, or a list of numbers"

    def check(self, node: Node, scope: Scope) -> Any:
        return (_AT_POSITION if isinstance(node.value, tuple) else Number()).check(node, scope)

    def schema(self, defs: Schema) -> Schema:
        return {"anyOf": [Number().schema(defs), _AT_POSITION.schema(defs)]}


_AT_POSITION = ListOf(item=Number(), minimum=1, expected="a list of at least one number")


def _verify_constant(values: Values, node: Node, scope: Scope) -> None:
    """Lists are a tensor, with a dtype that holds their numbers and rows of one length."""
    value, dtype = node.child("constant"), values.get("dtype")
    if value is None or "constant" not in values:
        return
    if dtype is None:
        if isinstance(value.value, tuple):
            scope.problems.expected(
                value, "a dtype beside a list, which is a tensor", got="none", then="add dtype: float32"
            )
        return
    if _lengths(value) is None:
        scope.problems.expected(value, "rows of one length, as a tensor has them", got="rows of several")
    for item in _numbers_of(value):
        _verify_element(item, dtype, scope)


def _verify_element(item: Node, dtype: str, scope: Scope) -> None:
    number = item.value
    if dtype == "bool":
        if not isinstance(number, bool):
            scope.problems.expected(item, "true or false in a bool tensor")
        return
    low, high = BOUNDS[dtype]
    if not is_number(number) or not low <= number <= high or (is_whole(dtype) and not isinstance(number, int)):
        what = "a whole number" if is_whole(dtype) else "a number"
        scope.problems.expected(item, f"{what} that {dtype} can hold, {low} to {high}")


def _lengths(node: Node) -> tuple[int, ...] | None:
    """The shape of nested lists; None where rows differ."""
    if not isinstance(node.value, tuple):
        return ()
    inner = {_lengths(item) for item in node.value}
    only = next(iter(inner)) if len(inner) == 1 else None if inner else ()
    return None if only is None else (len(node.value), *only)


def _numbers_of(node: Node) -> list[Node]:
    if not isinstance(node.value, tuple):
        return [node]
    return [number for item in node.value for number in _numbers_of(item)]


def _make_constant(*, value: Any, dtype: str | None = None) -> ConstantSpec:
    return ConstantSpec(value=tuple(value) if isinstance(value, list) else value, dtype=dtype)


SHAPE = ListOf(item=SizeEntry(), expected="a list of sizes")
_DRAWS = tuple(dict.fromkeys((*FLOAT_DRAWS, *INTEGER_DRAWS, *BOOL_DRAWS)))

TENSOR = Section(
    title="tensor",
    expected="an input: a mapping with dtype and shape, or with constant, list, tuple or dict",
    make=_make_tensor,
    verify=_verify_tensor,
    fields=(
        Field("dtype", Choice(DTYPES), "Element type, as torch spells it.", required=True),
        Field(
            "shape", SHAPE, "Sizes: whole numbers, dims, or sums of them such as 2*seq+1 or past+cur.", required=True
        ),
        Field(
            "range",
            ListOf(item=BoundEntry(), minimum=2, maximum=2, expected="a list of two bounds, [lowest, highest]"),
            "Inclusive bounds of the finite values: numbers, or expressions in dims such as seq-1.",
        ),
        Field(
            "values",
            ListOf(item=AllowedEntry(), minimum=1, expected="a list of at least one number"),
            "The only values allowed; a list of lists has one for each position of the last axis.",
        ),
        Field("make", ATTRIBUTE, "Function (shape, rng) that draws the values: module:attribute or file.py:attribute."),
        Field("name", Text(expected="a name of one line", pattern=ONE_LINE), "The artifact's name for the input."),
        Field("order", Choice(("increasing", STRICT, "decreasing")), "Order of the values along the last axis."),
        Field(
            "nonfinite",
            ListOf(item=Choice(("nan", "inf")), unique=True, expected="a list of nan and inf"),
            "Non-finite values admitted as input; inf admits both signs.",
        ),
        Field(
            "draws",
            ListOf(item=Choice(_DRAWS), minimum=1, unique=True, expected="a list of at least one draw"),
            "Draw families to use; by default all that fit.",
        ),
        Field(
            "mask",
            Choice(("keep", "drop", "any")),
            "What 1 means: keep a position, or drop it as padding; any: rows without a position occur too.",
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantValue:
    """A scalar, or nested lists of numbers."""

    expected: str = "a number, a text, true, false, null or a list of numbers"

    def check(self, node: Node, scope: Scope) -> Any:
        if isinstance(node.value, dict):
            scope.problems.expected(node, self.expected)
            return INVALID
        value = Anything(expected=self.expected).check(node, scope)
        return INVALID if isinstance(value, list) and INVALID in _flat(value) else value

    def schema(self, defs: Schema) -> Schema:
        return {"type": ["boolean", "number", "string", "null", "array"]}


def _flat(value: Any) -> list[Any]:
    return [entry for item in value for entry in _flat(item)] if isinstance(value, list) else [value]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """A tensor, a constant, or a list, tuple or dict of inputs."""

    expected: str = TENSOR.expected

    def check(self, node: Node, scope: Scope) -> Any:
        keys = node.value if isinstance(node.value, dict) else {}
        return next((form for key, form in FORMS.items() if key in keys), TENSOR).check(node, scope)

    def schema(self, defs: Schema) -> Schema:
        if "input" not in defs:
            defs["input"] = {}
            defs["input"] = {"anyOf": [form.schema(defs) for form in (TENSOR, *FORMS.values())]}
        return {"$ref": "#/$defs/input"}


_ITEMS = ListOf(item=InputSpec(), minimum=1, expected="a list of at least one input")
_BUILD = Field("build", ATTRIBUTE, "What makes forward's argument from the tensors: module:attribute.")
_KEY = Text(expected="a text of one line", pattern=ONE_LINE)
_CONSTANT = ConstantValue()

FORMS = {
    "constant": Section(
        make=_make_constant,
        verify=_verify_constant,
        fields=(
            Field("constant", _CONSTANT, "A fixed argument, baked in at export.", required=True, to="value"),
            Field("dtype", Choice(DTYPES), "Makes a tensor of the number or the nested lists."),
        ),
    ),
    "list": Section(
        make=partial(SequenceSpec, kind="list"),
        fields=(Field("list", _ITEMS, "A list of inputs.", required=True, to="items"), _BUILD),
    ),
    "tuple": Section(
        make=partial(SequenceSpec, kind="tuple"),
        fields=(Field("tuple", _ITEMS, "A tuple of inputs.", required=True, to="items"), _BUILD),
    ),
    "dict": Section(
        make=DictSpec,
        fields=(
            Field(
                "dict",
                Table(key=_KEY, value=InputSpec(), minimum=1, expected="a mapping of at least one input"),
                "A dict of inputs, in this order.",
                required=True,
                to="items",
            ),
            _BUILD,
        ),
    ),
}

INPUTS = Table(key=NAME, value=InputSpec(), minimum=1, expected="a mapping of at least one input by name")

OUTPUT_NAME = Text(
    expected="an output name such as logits or boxes.0",
    pattern=r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*",
    max_length=100,
)

_OUTPUT = Section(
    title="output",
    make=Output,
    named=True,
    may_be_null=True,
    fields=(
        Field("dtype", Choice(DTYPES), "Element type that eager must return."),
        Field("shape", SHAPE, "Shape that eager must return."),
        Field("nonfinite", Choice(("match", "forbid", "allow")), "How to judge NaN and inf in the output."),
        Field(
            "where",
            Text(expected="a mask input's name, or all", pattern=ONE_LINE),
            "Compare only what this mask input keeps; all: also what masks switch off.",
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSpec:
    """A mapping of properties, or a word for a leaf that is not compared."""

    section: Section = _OUTPUT
    words: tuple[Literal["none", "ignore"], ...] = ("none", "ignore")

    @property
    def expected(self) -> str:
        """As for every kind."""
        return f"{self.section.expected}, or {' or '.join(self.words)}"

    def check(self, node: Node, scope: Scope) -> Any:
        if not isinstance(node.value, str):
            return self.section.check(node, scope)
        word = next((word for word in self.words if word == node.value), None)
        if word is None:
            scope.problems.expected(node, self.expected, then=scope.problems.nearest(node.value, self.words))
            return INVALID
        return Output(name=str(node.key), leaf=word)

    def schema(self, defs: Schema) -> Schema:
        return {"anyOf": [self.section.schema(defs), {"enum": list(self.words)}]}


OUTPUTS = Table(key=OUTPUT_NAME, expected="a mapping of outputs by name", value=OutputSpec())
