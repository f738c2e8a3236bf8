"""Dims: named sizes with a range, and the checks that bounds and steps agree."""

from __future__ import annotations

from export_gate.config.containers import Field, ListOf, Section, Table, Values
from export_gate.config.kinds import Choice, Number, Scope
from export_gate.config.names import NAME
from export_gate.config.nodes import Node
from export_gate.wall.contract import Dim
from export_gate.wall.sizes import MAX_SIZE

_SIZE = Number(minimum=0, maximum=MAX_SIZE, whole=True)
_POSITIVE = Number(minimum=1, maximum=MAX_SIZE, whole=True)
SIZES = ListOf(item=_SIZE, minimum=1, unique=True, expected="a list of at least one size")


def _verify_dim(values: Values, node: Node, scope: Scope) -> None:
    step: int = values.get("multiple-of", 1)
    # sizes in `separate` get their own exports, so they may lie outside the range
    for key in ("min", "max", "example", "separate"):
        child = node.child(key)
        if key in values and child:
            for item in child.children or (child,):
                verify_step(item, step, scope)
    # A min that was refused has its own message; one that is not declared must fit all the same.
    declared_min = node.child("min")
    low, high = values.get("min", step), values.get("max", MAX_SIZE)
    if low > high and "max" in values and ("min" in values or not declared_min):
        then = "" if declared_min else "min is multiple-of by default"
        scope.problems.expected(declared_min or node, f"a min of at most max, {high}", got=str(low), then=then)
    elif (example := node.child("example")) and "example" in values and not low <= values["example"] <= high:
        scope.problems.expected(example, f"a size within min and max, {low} to {high}")


def verify_step(node: Node, step: int, scope: Scope) -> None:
    """A size of a dim with `multiple-of` is a multiple of it."""
    if type(node.value) is int and node.value % step:
        scope.problems.expected(node, f"a multiple of {step}, as multiple-of requires")


def _make_dim(*, min: int | None = None, multiple_of: int = 1, **values: object) -> Dim:  # noqa: A002 - the record's field
    low = multiple_of if min is None else min
    return Dim(min=low, multiple_of=multiple_of, **values)  # type: ignore[arg-type] # checked by the section


DIM = Section(
    title="dim",
    make=_make_dim,
    named=True,
    verify=_verify_dim,
    expected="a mapping with min and max",
    fields=(
        Field("min", _SIZE, "Smallest size; by default multiple-of (1)."),
        Field("max", _POSITIVE, "Largest size.", required=True),
        Field("multiple-of", _POSITIVE, "Every size is a multiple of this; by default 1."),
        Field("example", _SIZE, "Size of the reference input; by default the middle of the range."),
        Field("separate", SIZES, "Sizes that each get their own export, verified only at that size."),
        Field(
            "mode",
            Choice(("strict", "auto", "static")),
            "strict (default): a named Dim, specialization is an error; auto: Dim.AUTO, specialization is reported; "
            "static: one size.",
        ),
    ),
)

DIMS = Table(key=NAME, value=DIM, expected="a mapping of dims by name")
