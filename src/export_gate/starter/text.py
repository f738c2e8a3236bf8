"""Format inputs, outputs and names as the YAML parts of a starter config."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from export_gate.config.scalars import resolve
from export_gate.report.escape import one_line
from export_gate.wall.contract import DTYPES, Bound, ConstantSpec, DictSpec, SequenceSpec, Size, Spec, TensorSpec
from export_gate.wall.description import Found, LeftOut

COMMENT_CHARACTERS = 112
NONE = "None"
"""The dtype of an output that is None."""
# A colon only before a character of the word: `a: b` would be a mapping.
PLAIN = re.compile(r"[A-Za-z_](?:[\w./*+-]|:(?=[\w./]))*", re.ASCII)
"""Text that is safe in YAML without quotes, except for words such as `null`."""


def spec_text(spec: Spec) -> str:
    """An input as YAML's flow style."""
    match spec:
        case TensorSpec():
            shape = ", ".join(flow(_axis(str(size))) for size in spec.shape)
            within = "" if spec.range is None else f", range: [{_bound(spec.range[0])}, {_bound(spec.range[1])}]"
            positions = f", values: {_values(spec.positions)}" if spec.positions else ""
            order = f", order: {spec.order}" if spec.order else ""
            name = f", name: {flow(spec.name)}" if spec.name else ""
            return f"{{dtype: {spec.dtype}, shape: [{shape}]{within}{positions}{order}{name}}}"
        case ConstantSpec():
            return f"{{constant: {flow(spec.value)}}}"
        case SequenceSpec():
            return f"{{{spec.kind}: [{', '.join(spec_text(item) for item in spec.items)}]}}"
        case DictSpec():
            items = ", ".join(f"{flow(key)}: {spec_text(item)}" for key, item in spec.items.items())
            return f"{{dict: {{{items}}}}}"


def found_text(found: Found) -> str:
    """An output as YAML's flow style: `none` for one that was None, `{}` for one that has no dtype."""
    if found.dtype == NONE:
        return "none"
    if found.dtype not in DTYPES:
        return "{}"
    shape = "" if found.shape is None else f", shape: [{', '.join(flow(_axis(str(size))) for size in found.shape)}]"
    return f"{{dtype: {found.dtype}{shape}}}"


def left_out_text(left: LeftOut) -> str:
    """A parameter that is not declared: the line that would declare it, or its meaning."""
    match left.kind:
        case "var_positional":
            return f"*{left.name}: further inputs can be declared here, in order, under names of your choice"
        case "var_keyword":
            return f"**{left.name}: further inputs can be declared here, by name"
    if left.spec is None:
        return comment(f"{left.name}: optional, {left.default} by default")
    return f"{flow(left.name)}: {spec_text(left.spec)}  # {comment(f'optional, {left.default} by default')}"


def flow(value: object) -> str:
    """A value that YAML reads back unchanged: plain if that is safe, else in double quotes."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(flow(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{flow(key)}: {flow(item)}' for key, item in value.items())}}}"
    # JSON's numbers, true, false and null are YAML's.
    if not isinstance(value, str):
        return json.dumps(value)
    if PLAIN.fullmatch(value) and resolve(value) == value:
        return value
    return "".join(_quoted(character) for character in json.dumps(value, ensure_ascii=False))


def _quoted(character: str) -> str:
    """Escape characters that YAML files must not contain; otherwise JSON strings are YAML strings."""
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def _axis(text: str) -> object:
    return int(text) if text.isdigit() else text


def _bound(bound: Bound) -> str:
    return flow(str(bound)) if isinstance(bound, Size) else _number(bound)


def _values(positions: Sequence[Sequence[float]]) -> str:
    """The values that are allowed at each position of the last axis."""
    lists = (f"[{', '.join(map(_number, values))}]" for values in positions)
    return f"[{', '.join(lists)}]"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def comment(text: object) -> str:
    """Text for a comment: one line, no invisible characters, not too long."""
    line = one_line(text)
    return line if len(line) <= COMMENT_CHARACTERS else f"{line[: COMMENT_CHARACTERS - 3]}..."
