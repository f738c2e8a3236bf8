"""Inputs, outputs and names to the pieces of YAML that a starter config is made of."""

from __future__ import annotations

import json
import re

from export_gate.config.scalars import resolve
from export_gate.report.escape import one_line
from export_gate.wall.contract import ConstantSpec, DictSpec, SequenceSpec, Spec, TensorSpec
from export_gate.wall.description import Found, LeftOut

COMMENT_CHARACTERS = 112
PLAIN = re.compile(r"[A-Za-z_](?:[\w./*+-]|:(?=[\w./]))*", re.ASCII)
"""Texts that YAML reads as themselves anywhere, unless they are words such as `null`."""


def spec_text(spec: Spec) -> str:
    """An input as YAML's flow style."""
    match spec:
        case TensorSpec():
            shape = ", ".join(flow(_axis(str(size))) for size in spec.shape)
            within = "" if spec.range is None else f", range: [{_number(spec.range[0])}, {_number(spec.range[1])}]"
            return f"{{dtype: {spec.dtype}, shape: [{shape}]{within}}}"
        case ConstantSpec():
            return f"{{constant: {flow(spec.value)}}}"
        case SequenceSpec():
            return f"{{{spec.kind}: [{', '.join(spec_text(item) for item in spec.items)}]}}"
        case DictSpec():
            items = ", ".join(f"{flow(key)}: {spec_text(item)}" for key, item in spec.items.items())
            return f"{{dict: {{{items}}}}}"


def found_text(found: Found) -> str:
    """An output as YAML's flow style."""
    shape = "" if found.shape is None else f", shape: [{', '.join(flow(_axis(str(size))) for size in found.shape)}]"
    return f"{{dtype: {found.dtype}{shape}}}"


def left_out_text(left: LeftOut) -> str:
    """A parameter that is not declared: the line that would do so, or what it means."""
    match left.kind:
        case "var_positional":
            return f"*{left.name}: further inputs can be declared here, in order, under names of your choice"
        case "var_keyword":
            return f"**{left.name}: further inputs can be declared here, by name"
    if left.spec is None:
        return comment(f"{left.name}: optional, {left.default} by default")
    return f"{flow(left.name)}: {spec_text(left.spec)}  # {comment(f'optional, {left.default} by default')}"


def flow(value: object) -> str:
    """A value as YAML reads it back, plain where that is safe and in double quotes elsewhere."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(flow(item) for item in value)}]"
    if not isinstance(value, str):
        return json.dumps(value)
    if PLAIN.fullmatch(value) and resolve(value) == value:
        return value
    return "".join(_quoted(character) for character in json.dumps(value, ensure_ascii=False))


def _quoted(character: str) -> str:
    """JSON's strings are YAML's, but for characters that a YAML file must not hold as they are."""
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def _axis(text: str) -> object:
    return int(text) if text.isdigit() else text


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def comment(text: object) -> str:
    """A text for a comment: one line, nothing unseen, not too long."""
    line = one_line(text)
    return line if len(line) <= COMMENT_CHARACTERS else f"{line[: COMMENT_CHARACTERS - 3]}..."
