"""Names that one part of a model uses and another declares: dims in shapes, inputs and outputs in files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from export_gate.config.containers import Values
from export_gate.config.dims import verify_step
from export_gate.config.kinds import Scope
from export_gate.config.nodes import Node
from export_gate.config.tensors import NAME
from export_gate.wall.contract import Dim, Size
from export_gate.wall.sizes import MAX_SIZE, parse_size


def verify_references(values: Values, node: Node, scope: Scope) -> None:
    """Check that the model declares every name that it uses, and uses every dim that it declares."""
    tensors = dict(tensor for name in _entries(node, "inputs") for tensor in _tensors(name, name.key))
    dims = node.child("dims")
    if dims is None or isinstance(dims.value, dict):
        shapes = [(spec.child("shape"), True) for spec in tensors.values()]
        shapes += [(output.child("shape"), False) for output in _entries(node, "outputs")]
        declared = {dim.key: dim for dim in _entries(node, "dims")}
        ranges: Mapping[str, Dim] = values.get("dims", {})
        for shape, _ in shapes:
            _verify_shape(shape, declared, ranges, scope)
        _verify_use(declared, [shape for shape, is_input in shapes if is_input], scope)
        _verify_control_sizes(node, declared, ranges, scope)
    _verify_files(node, tensors, scope)


def _tensors(spec: Node, path: str) -> Iterator[tuple[str, Node]]:
    """Tensors of an input by path, as the control set names them: `x`, `pyramid.0`, `state.hidden`."""
    forms = [form for form in ("constant", "list", "tuple", "dict") if spec.child(form)]
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
    words = {word for shape in shapes if shape for entry in shape.children for word in re.findall(r"\w+", entry.text)}
    for name, dim in declared.items():
        if name not in words and NAME.matches(name):
            then = "use it in a shape or remove it"
            scope.problems.expected_key(dim, "a dim that an input's shape names", then=then)


def _verify_shape(shape: Node | None, declared: Mapping[str, Node], ranges: Mapping[str, Dim], scope: Scope) -> None:
    for entry in shape.children if shape else ():
        try:
            size = parse_size(entry.value if isinstance(entry.value, str) else "0")
        except ValueError:  # the entry's own check has reported it
            continue
        _verify_size(entry, size, declared, ranges, scope)


def _verify_size(
    entry: Node, size: Size, declared: Mapping[str, Node], ranges: Mapping[str, Dim], scope: Scope
) -> None:
    if size.dim is None:
        return
    if size.dim not in declared:
        _unknown(entry, "dim", size.dim, declared, scope)
    elif size.dim in ranges:
        dim = ranges[size.dim]
        lengths = {at: size.at({dim.name: at}) for at in (dim.min, dim.max, *dim.separate)}
        for at in (at for at, length in lengths.items() if not 0 <= length <= MAX_SIZE):
            found = f"{lengths[at]} at {dim.name}={at}"
            scope.problems.expected(entry, f"a size from 0 to {MAX_SIZE} for every {dim.name}", got=found)
            return


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
