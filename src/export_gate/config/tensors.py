"""A tensor among the inputs."""

from __future__ import annotations

from typing import Any

from export_gate.config.containers import Field, ListOf, Section
from export_gate.config.elements import is_whole
from export_gate.config.entries import SHAPE, AllowedEntry, BoundEntry
from export_gate.config.kinds import Choice, Text
from export_gate.config.paths import ATTRIBUTE, ONE_LINE
from export_gate.config.tensor_checks import STRICT, verify_tensor
from export_gate.wall.contract import BOOL_DRAWS, DTYPES, FLOAT_DRAWS, INTEGER_DRAWS, Size, TensorSpec

_DRAWS = tuple(dict.fromkeys((*FLOAT_DRAWS, *INTEGER_DRAWS, *BOOL_DRAWS)))


def _make_tensor(**values: Any) -> TensorSpec:
    # Integers stay exact above 2**53, and `[0, 1]` of a float tensor becomes floats.
    number: type[float] = int if is_whole(values["dtype"]) else float
    if any(isinstance(allowed, tuple) for allowed in values.get("values", ())):
        lists = [allowed for allowed in values.pop("values") if isinstance(allowed, tuple)]
        values["positions"] = tuple(tuple(map(number, allowed)) for allowed in lists)
    for key in ("range", "values"):
        if key in values:
            values[key] = tuple(item if isinstance(item, Size) else number(item) for item in values[key])
    return TensorSpec(**values)


TENSOR = Section(
    title="tensor",
    expected="an input: a mapping with dtype and shape, or with constant, list, tuple or dict",
    make=_make_tensor,
    verify=verify_tensor,
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
