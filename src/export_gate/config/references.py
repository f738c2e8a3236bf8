"""Names that one part of a model uses and another declares: dims in shapes, inputs and outputs in files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from export_gate.config.containers import Values
from export_gate.config.dims import verify_step
from export_gate.config.kinds import Scope
from export_gate.config.nodes import Node
from export_gate.config.sizes import MAX_SIZE, parse_size
from export_gate.contract import Dim, Size


def verify_references(values: Values, node: Node, scope: Scope) -> None:
    """Every name that a model uses is one that it declares, and every dim that it declares is used."""
    dims = node.child("dims")
    declared = dims.value if dims and isinstance(dims.value, dict) else {}
    ranges: Mapping[str, Dim] = values.get("dims", {})
    used = {size.dim for _, size in _sizes(node.child("inputs"))}
    for key in ("inputs", "outputs"):
        for entry, size in _sizes(node.child(key)):
            _verify_size(entry, size, declared, ranges, scope)
    if node.child("inputs"):
        for name, dim in declared.items():
            if name not in used:
                then = "use it in a shape or remove it"
                scope.problems.expected_key(dim, "a dim that an input's shape names", then=then)
    controls = node.child("controls")
    if controls:
        _verify_control_sizes(controls.child("sizes"), declared, ranges, scope)
        _verify_files(controls, node, scope)


def _sizes(node: Node | None) -> Iterator[tuple[Node, Size]]:
    """Entries of every `shape` beneath an inputs or outputs table, as far as they can be read."""
    if node is None:
        return
    shape = node.child("shape")
    for entry in shape.children if shape else ():
        if isinstance(entry.value, str):
            try:
                yield entry, parse_size(entry.value)
            except ValueError:
                continue
    for child in node.children:
        if child is not shape and child.key != "constant":
            yield from _sizes(child)


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


def _verify_control_sizes(
    sizes: Node | None, declared: Mapping[str, Node], ranges: Mapping[str, Dim], scope: Scope
) -> None:
    for entry in sizes.children if sizes else ():
        if entry.key not in declared:
            _unknown(entry, "dim", entry.key, declared, scope, is_key=True)
        elif entry.key in ranges:
            dim = ranges[entry.key]
            for item in entry.children:
                if type(item.value) is int and not dim.min <= item.value <= dim.max:
                    scope.problems.expected(item, f"a size within {dim.name}'s min and max, {dim.min} to {dim.max}")
                verify_step(item, dim.multiple_of, scope)


def _verify_files(controls: Node, model: Node, scope: Scope) -> None:
    """Files feed inputs that the model has, and golden files expect outputs that it declares."""
    inputs = dict.fromkeys(path for name in _children(model, "inputs") for path in _leaf_paths(name, name.key))
    outputs = dict.fromkeys(output.key for output in _children(model, "outputs"))
    for source in (*_children(controls, "data"), *_children(controls, "golden")):
        for what, declared in (("input", inputs), ("output", outputs)):
            for entry in _children(source, f"{what}s") if declared else ():
                if entry.key not in declared:
                    _unknown(entry, what, entry.key, declared, scope, is_key=True)


def _leaf_paths(spec: Node, path: str) -> Iterator[str]:
    """Paths of the tensors in an input, as the control set names them: `x`, `pyramid.0`, `state.hidden`."""
    for form in ("list", "tuple", "dict"):
        for number, item in enumerate(_children(spec, form)):
            yield from _leaf_paths(item, f"{path}.{item.key or number}")
    if not any(spec.child(form) for form in ("constant", "list", "tuple", "dict")):
        yield path


def _children(node: Node, key: str) -> tuple[Node, ...]:
    child = node.child(key)
    return child.children if child else ()


def _unknown(node: Node, what: str, name: str, known: Collection[str], scope: Scope, *, is_key: bool = False) -> None:
    """`what` of that name is not declared; the nearest that is, or all of a few, or that there is none."""
    article = "an" if what[0] in "io" else "a"
    listed = f" ({', '.join(known)})" if 0 < len(known) <= 8 else ""  # noqa: PLR2004 - more do not fit a line
    then = scope.problems.nearest(name, known) or f"declare it under {what}s"
    report = scope.problems.expected_key if is_key else scope.problems.expected
    report(node, f"{article} {what} that the model declares{listed}", then=then)
