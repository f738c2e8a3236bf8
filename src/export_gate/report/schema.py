"""Turn records into the JSON Schema of `results.json`: the types that `wall.codec` reads, in a schema's words.

Computed from the same type hints that the codec decodes by, so the schema cannot go stale and needs no library.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from export_gate.config.kinds import Schema
from export_gate.report.results import SCHEMA_VERSION, Results
from export_gate.wall.codec import encode

DRAFT = "https://json-schema.org/draft/2020-12/schema"
SCALARS: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    # As the codec reads them: whatever int64 or uint64 holds.
    int: {"type": "integer", "minimum": -(2**63), "maximum": 2**64 - 1},
    float: {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]},
    type(None): {"type": "null"},
    Any: {},
    object: {},
}


def results_schema() -> Schema:
    """JSON Schema of `results.json`, as strict as `read_results`."""
    defs: dict[str, Schema] = {}
    schema = _record(Results, defs)
    schema["properties"]["schema_version"] = {"const": SCHEMA_VERSION}
    schema["required"] = ["schema_version", *schema["required"]]
    return {"$schema": DRAFT, "title": "export-gate results.json", **schema, "$defs": dict(sorted(defs.items()))}


def _record(record: type, defs: dict[str, Schema]) -> Schema:
    """One object schema; a field without a default is required."""
    hints = get_type_hints(record, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(record)}
    described = {"description": inspect.getdoc(record)}
    properties = {name: _kind(hints[name], defs) | _default(field) for name, field in fields.items()}
    required = [name for name, field in fields.items() if not _has_default(field)]
    return {
        **described,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _kind(kind: Any, defs: dict[str, Schema]) -> Schema:
    """The schema of one type hint; records go to `defs`, under their names."""
    origin, arguments = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _reference(kind, defs)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_kind(argument, defs) for argument in arguments]}
    if origin is Annotated:
        return _kind(arguments[0], defs) | {"pattern": f"^(?:{arguments[1].text})$"}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple and arguments[1:] == (...,):
        return {"type": "array", "items": _kind(arguments[0], defs)}
    if origin is tuple:
        items = [_kind(argument, defs) for argument in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _kind(arguments[1], defs)}
    return dict(SCALARS[kind])


def _reference(record: Any, defs: dict[str, Schema]) -> Schema:
    name = record.__name__
    if name not in defs:
        defs[name] = {}  # a record may hold itself
        defs[name] = _record(record, defs)
    return {"$ref": f"#/$defs/{name}"}


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> Schema:
    """What the reader puts in the place of a missing field, if that is a plain value."""
    if field.default is dataclasses.MISSING or dataclasses.is_dataclass(field.default):
        return {}
    return {"default": encode(field.default)}
