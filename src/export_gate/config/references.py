"""Check names that one part of a model uses and another declares: dims in shapes, inputs and outputs in files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from export_gate.config.containers import Values
from export_gate.config.dims import verify_step
from export_gate.config.elements import BOUNDS, is_whole
from export_gate.config.kinds import Scope
from export_gate.config.names import NAME
from export_gate.config.nodes import Node
from export_gate.config.tensor_checks import STRICT
from export_gate.wall.contract import Dim, Size
from export_gate.wall.sizes import MAX_SIZE, difference, highest, lowest, parse_expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """The dims that a model declares."""

    declared: Mapping[str, Node]
    lengths: Mapping[str, tuple[int, ...]]
    """Of those that are valid in themselves: both ends of the range, and the sizes with an export of their own."""


def verify_references(values: Values, node: Node, scope: Scope) -> None:
    """Check that the model declares every name that it uses, and uses every dim that it declares."""
    tensors = dict(tensor for name in _entries(node, "inputs") for tensor in _tensors(name, name.key))
    listed = node.child("dims")
    # With malformed dims, every use of one would be a further message about the same mistake.
    if listed is None or isinstance(listed.value, dict):
        shapes = [(spec.child("shape"), True) for spec in tensors.values()]
        shapes += [(output.child("shape"), False) for output in _entries(node, "outputs")]
        declared = {dim.key: dim for dim in _entries(node, "dims")}
        ranges: Mapping[str, Dim] = values.get("dims", {})
        dims = Dims(declared=declared, lengths={d.name: (d.min, d.max, *d.separate) for d in ranges.values()})
        for shape, _ in shapes:
            _verify_shape(shape, dims, scope)
        for tensor in tensors.values():
            _verify_range(tensor, dims, scope)
            _verify_distinct(tensor, dims, scope)
        _verify_use(declared, [shape for shape, is_input in shapes if is_input], scope)
        _verify_control_sizes(node, declared, ranges, scope)
    _verify_files(node, tensors, scope)
    _verify_sources(values, node, tensors, scope)
    _verify_artifact_names(tensors, scope)
    _verify_where(node, tensors, scope)


def _tensors(spec: Node, path: str) -> Iterator[tuple[str, Node]]:
    """Tensors of an input by path, as the control set names them: `x`, `pyramid.0`, `state.hidden`."""
    forms = [form for form in ("constant", "list", "tuple", "dict") if spec.child(form)]
    # A second form is a mistake, which the input's own check reports.
    for form in forms[:1]:
        child = spec.child(form)
        for number, item in enumerate(child.children if child and form != "constant" else ()):
            yield from _tensors(item, f"{path}.{item.key or number}")
    if not forms:
        yield path, spec


def _verify_use(declared: Mapping[str, Node], shapes: Collection[Node | None], scope: Scope) -> None:
    """Check that every dim is used; a shape that cannot be read may be the one that uses it."""
    if not all(shape and isinstance(shape.value, tuple) for shape in shapes) or not shapes:
        return
    # By words: a shape that its own check refuses, such as `seq*seq`, uses a dim all the same.
    words = {word for shape in shapes if shape for entry in shape.children for word in re.findall(r"\w+", entry.text)}
    for name, dim in declared.items():
        if name not in words and NAME.matches(name):
            then = "use it in a shape or remove it"
            scope.problems.expected_key(dim, "a dim that an input's shape names", then=then)


def _verify_shape(shape: Node | None, dims: Dims, scope: Scope) -> None:
    for entry in shape.children if shape else ():
        size = _expression(entry)
        is_growing = size is not None and min(size.factors.values()) > 0  # else its own check has refused it
        if size is None or not is_growing or not _are_declared(entry, size, dims, scope):
            continue
        least, most = lowest(size, dims.lengths), highest(size, dims.lengths)
        # One end is enough: a size that leaves the range at both has one mistake.
        for length, at in (found for found in (least, most) if not 0 <= found[0] <= MAX_SIZE):
            expected = f"a size from 0 to {MAX_SIZE} for every {' and '.join(size.factors)}"
            scope.problems.expected(entry, expected, got=f"{length}{_place(at)}")
            break


def _expression(entry: Node) -> Size | None:
    """The expression in dims; None if there is none, or if its own check has refused it."""
    if isinstance(entry.value, str) and re.search("[A-Za-z_]", entry.value):
        with suppress(ValueError):
            return parse_expression(entry.value)
    return None


def _are_declared(entry: Node, size: Size, dims: Dims, scope: Scope) -> bool:
    """Whether the ranges of all dims are known; a dim that is not declared is a mistake."""
    unknown = [name for name in size.factors if name not in dims.declared]
    for name in unknown:
        _unknown(entry, "dim", name, dims.declared, scope)
    return not unknown and size.factors.keys() <= dims.lengths.keys()


def _verify_range(tensor: Node, dims: Dims, scope: Scope) -> None:
    """Check that bounds that name dims are in order and that the dtype can hold them, at every size."""
    node, dtype = tensor.child("range"), tensor.child("dtype")
    ends = _range_ends(tensor)
    if node is None or ends is None or dtype is None or str(dtype.value) not in BOUNDS:
        return
    for entry, end in zip(node.children, ends, strict=True):
        if not _are_declared(entry, end, dims, scope):
            return
        least, most = BOUNDS[str(dtype.value)]
        for value, at in (lowest(end, dims.lengths), highest(end, dims.lengths)):
            if end.factors and not least <= value <= most:
                expected = f"a number that {dtype.value} can hold for every {' and '.join(end.factors)}"
                scope.problems.expected(entry, f"{expected}, {least} to {most}", got=f"{value}{_place(at)}")
                return
    gap = difference(ends[1], ends[0])
    width, at = lowest(gap, dims.lengths)
    if gap.factors and width < 0:
        low, high = (end.fixed(at) for end in ends)
        expected = f"the lower bound first for every {' and '.join(gap.factors)}"
        scope.problems.expected(node, expected, got=f"[{low}, {high}]{_place(at)}", then="raise the dim's min")


def _range_ends(tensor: Node) -> tuple[Size, Size] | None:
    """Both bounds as expressions; None if one is not a whole number, or if its own check has refused it."""
    node = tensor.child("range")
    entries = node.children if node else ()
    ends = [Size(offset=e.value) if type(e.value) is int else _expression(e) for e in entries]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:  # noqa: PLR2004 - lowest and highest
        return None
    return ends[0], ends[1]


def _verify_distinct(tensor: Node, dims: Dims, scope: Scope) -> None:
    """Check that a strict order has enough different values for the last axis, at every size."""
    order, shape, values = (tensor.child(key) for key in ("order", "shape", "values"))
    dtype, last = tensor.child("dtype"), shape.children[-1:] if shape else ()
    if order is None or order.value != STRICT or dtype is None or not last:
        return
    axis = Size(offset=last[0].value) if type(last[0].value) is int else _expression(last[0])
    ends = _range_ends(tensor) if is_whole(str(dtype.value)) else None
    if axis is None or not axis.factors.keys() <= dims.lengths.keys():
        return
    if values is not None:
        there = Size(offset=len(values.children))
    elif ends is not None and all(end.factors.keys() <= dims.lengths.keys() for end in ends):
        # high - low + 1 integers.
        there = difference(ends[1], difference(ends[0], Size(offset=1)))
    else:
        return
    spare, at = lowest(difference(there, axis), dims.lengths)
    if spare < 0:
        # A dim that cancels out is missing from `at`: with any of its sizes there are too few values.
        sizes = {**{dim: max(dims.lengths[dim]) for dim in axis.factors}, **at}
        length = axis.at(sizes)
        expected = f"at least {length} different values for {length} in strictly increasing order"
        scope.problems.expected(order, expected, got=f"{length + spare}{_place(sizes)}")


def _place(at: Mapping[str, int]) -> str:
    return " at " + ",".join(f"{name}={size}" for name, size in at.items()) if at else ""


def _verify_control_sizes(model: Node, declared: Mapping[str, Node], ranges: Mapping[str, Dim], scope: Scope) -> None:
    controls = model.child("controls")
    for entry in _entries(controls, "sizes"):
        if entry.key not in declared:
            _unknown(entry, "dim", entry.key, declared, scope, is_key=True)
        elif entry.key in ranges:
            dim = ranges[entry.key]
            for item in entry.children:
                if type(item.value) is int and not dim.min <= item.value <= dim.max:
                    scope.problems.expected(item, f"a size within {dim.name}'s min and max, {dim.min} to {dim.max}")
                verify_step(item, dim.multiple_of, scope)


def _verify_files(model: Node, inputs: Collection[str], scope: Scope) -> None:
    """Check that files name only inputs and outputs that the model declares."""
    controls = model.child("controls")
    outputs = [output.key for output in _entries(model, "outputs")]
    lists = [controls.child(key) for key in ("data", "golden")] if controls else []
    for source in (source for sources in lists if sources for source in sources.children):
        for what, declared in (("input", inputs), ("output", outputs)):
            for entry in _entries(source, f"{what}s") if declared else ():
                if entry.key not in declared:
                    _unknown(entry, what, entry.key, declared, scope, is_key=True)


def _verify_sources(values: Values, model: Node, tensors: Mapping[str, Node], scope: Scope) -> None:
    """Check that without the gate's own draws there are other control inputs."""
    controls = model.child("controls")
    generated = controls.child("generated") if controls else None
    own = [key for key in ("make", "data", "golden", "function") if controls and controls.child(key)]
    is_off = "controls" in values and not values["controls"].generated
    if generated and is_off and not own and not any(tensor.child("make") for tensor in tensors.values()):
        then = "add make, data, golden or function"
        scope.problems.expected(generated, "control inputs of your own beside it", got="none", then=then)


def _verify_artifact_names(tensors: Mapping[str, Node], scope: Scope) -> None:
    """Check that no two inputs have the same name in the artifact."""
    taken = {path: path for path, tensor in tensors.items() if not tensor.child("name")}
    for path, tensor in tensors.items():
        name = tensor.child("name")
        if name and isinstance(name.value, str) and taken.setdefault(name.value, path) != path:
            scope.problems.expected(name, f"a name that no other input has ({taken[name.value]} has it)")


def _verify_where(model: Node, tensors: Mapping[str, Node], scope: Scope) -> None:
    """Check that `where` names an input whose mask says what it keeps."""
    known = [path for path, spec in tensors.items() if (mask := spec.child("mask")) and mask.value in ("keep", "drop")]
    for output in _entries(model, "outputs"):
        where = output.child("where")
        if where is not None and isinstance(where.value, str) and where.value not in (*known, "all"):
            then = scope.problems.nearest(where.value, known) or "declare mask: keep or mask: drop on the input"
            scope.problems.expected(where, "an input with mask: keep or mask: drop, or all", then=then)


def _entries(node: Node | None, key: str) -> tuple[Node, ...]:
    """Values of the mapping under `key`, if there is one."""
    child = node.child(key) if node else None
    return child.children if child and isinstance(child.value, dict) else ()


def _unknown(node: Node, what: str, name: str, known: Collection[str], scope: Scope, *, is_key: bool = False) -> None:
    """Report a name that is not declared, with the nearest declared name or, if they are few, all of them."""
    article = "an" if what[0] in "io" else "a"
    listed = f" ({', '.join(known)})" if 0 < len(known) <= 8 else ""  # noqa: PLR2004 - more do not fit a line
    then = scope.problems.nearest(name, known) or f"declare it under {what}s"
    report = scope.problems.expected_key if is_key else scope.problems.expected
    report(node, f"{article} {what} that the model declares{listed}", then=then)
