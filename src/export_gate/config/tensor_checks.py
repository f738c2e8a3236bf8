"""Check what the keys of a tensor say together: dtype, shape, values, order, draws and mask must fit."""

from __future__ import annotations

from export_gate.config.containers import Values
from export_gate.config.elements import is_whole, verify_element
from export_gate.config.kinds import Scope, is_number
from export_gate.config.nodes import Node
from export_gate.wall.contract import BOOL_DRAWS, FLOAT_DRAWS, INTEGER_DRAWS, Size

STRICT = "strictly-increasing"


def verify_tensor(values: Values, node: Node, scope: Scope) -> None:
    """Check all keys of one tensor."""
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
    for item in _entries_of(child):
        if not isinstance(item.value, str):  # an expression: its values are known once the dims are
            verify_element(item, dtype, scope)


def _entries_of(node: Node) -> list[Node]:
    """The numbers of a list, or of the lists in it."""
    return [entry for item in node.children for entry in item.children or (item,)]


def _verify_allowed(values: Values, node: Node, scope: Scope) -> None:
    """Check that numbers occur once each, and that there is a list for each position of the last axis."""
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
        scope.problems.each_once(entries)


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
    """Check that an order has a last axis and values with an order; whether there are enough depends on the dims."""
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
    # NaN compares with nothing; an infinity may be first or last, but not twice.
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
        # An integer tensor of 0 and 1 is a mask as well.
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
