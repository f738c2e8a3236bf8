"""Read a kit: check the shape of `kit.json`, then every file against it. No other file is parsed before that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from export_gate.kit.files import describe_file, list_files, shown
from export_gate.wall.codec import decode
from export_gate.wall.conformance import KIT_SCHEMA, MANIFEST, ONNX_FILE, Kit, KitExport
from export_gate.wall.errors import UserError
from export_gate.wall.strict_json import parse_strictly
from export_gate.wall.words import printable

LARGEST_MANIFEST_BYTES = 16 * 1024 * 1024
"""A few hundred bytes per control input are usual; this limits what an untrusted file can make us load."""
AGAIN = "fetch the kit again, or write it again with `export-gate kit`"


def read_kit(folder: Path) -> Kit:
    """Read the kit in the folder: its files must be those that `kit.json` lists, byte for byte.

    Raises:
        UserError: it is not a kit, has another schema version, or was changed; the message says where.
    """
    kit = read_manifest(folder)
    # First: only names that it accepts may be joined with the folder.
    for mistake in _contradictions(kit):
        raise UserError(f"{folder / MANIFEST}: {mistake}", AGAIN)
    for mistake in _differences(kit, folder):
        raise UserError(mistake, AGAIN)
    return kit


def read_manifest(folder: Path) -> Kit:
    """Read `kit.json`, and check only its shape.

    Raises:
        UserError: it is missing, is not JSON, or has another schema version or shape.
    """
    path = folder / MANIFEST
    value = _read_json(path)
    if not isinstance(value, dict) or "schema_version" not in value or "exports" not in value:
        raise UserError(f"{path}: expected the manifest of a kit, got different JSON")
    version = value["schema_version"]
    # True == 1 in Python.
    if version != KIT_SCHEMA or isinstance(version, bool):
        tool = shown(str(value.get("tool_version", "unknown")))
        raise UserError(
            f"{path}: schema version {version!r:.20}, but this export-gate reads version {KIT_SCHEMA}",
            f"replay it with the version of export-gate that wrote it ({tool})",
        )
    try:
        return decode(Kit, value)
    except (ValueError, RecursionError, OverflowError) as error:
        raise UserError(f"{path}: not a valid kit: {_line(error)}") from error


def _read_json(path: Path) -> Any:
    try:
        if path.is_symlink():
            raise UserError(f"{path}: a symbolic link; a kit may contain only files")
        if not path.is_file():
            raise UserError(
                f"{path}: file not found, so {path.parent} is not a kit; `export-gate kit MODEL` writes one"
            )
        if path.stat().st_size > LARGEST_MANIFEST_BYTES:
            raise UserError(f"{path}: {path.stat().st_size} bytes, expected at most {LARGEST_MANIFEST_BYTES}")
        return parse_strictly(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON: {_line(error)}") from error


def _line(error: BaseException) -> str:
    text = printable(str(error))
    return text if len(text) <= 300 else f"{text[:300]}..."  # noqa: PLR2004 - a few terminal lines


def _contradictions(kit: Kit) -> Iterator[str]:
    """Contradictions within the manifest, regardless of the files."""
    for name in kit.files:
        if not is_inside(name):
            yield f"{shown(name)} is not a path inside the kit"
    if not kit.cases or not any(output.is_compared for output in kit.numbers):
        yield "no data sets with outputs: there is nothing to compare"
    for export in kit.exports:
        yield from _export_contradictions(kit, export)
    folders = [export.path(each.folder) for export in kit.exports for each in export.data_sets]
    for what, names in (
        ("outputs have the same name", [output.name for output in kit.outputs]),
        ("outputs have the same name in the graph", [output.graph_name for output in kit.outputs]),
        ("exports are of the same sizes", [export.key for export in kit.exports]),
        ("exports have the same folder", [export.folder for export in kit.exports]),
        ("data sets have the same folder", folders),
    ):
        if len(set(names)) < len(names):
            yield f"two {what}"


def _export_contradictions(kit: Kit, export: KitExport) -> Iterator[str]:
    if not export.data_sets:
        yield f"the export {shown(export.path(ONNX_FILE))} has no data sets: there is nothing to compare"
    if len(set(export.inputs)) < len(export.inputs):
        yield f"two inputs of {shown(export.path(ONNX_FILE))} have the same name"
    needed = [export.path(ONNX_FILE)]
    for each in export.data_sets:
        needed += [export.path(each.folder, f"input_{number}.pb") for number in range(len(export.inputs))]
        needed += [export.path(each.folder, f"output_{number}.pb") for number in range(len(kit.numbers))]
    for name in needed:
        if name not in kit.files:
            yield f"{shown(name)} is not listed under `files`"


def is_inside(name: str) -> bool:
    """Whether a path is plain: relative, without `..`, Windows drives, backslashes or unusual characters."""
    parts = name.split("/")
    return name.isprintable() and not set(name) & set("\\:") and not any(part in ("", ".", "..") for part in parts)


def _differences(kit: Kit, folder: Path) -> Iterator[str]:
    """Differences between the files and the manifest."""
    there = set(list_files(folder)) - {MANIFEST}
    for name in sorted(kit.files.keys() - there):
        yield f"{folder}/{name}: missing, although kit.json lists it"
    for name in sorted(there - kit.files.keys()):
        yield f"{folder}: has a file {shown(name)} that kit.json does not list"
    for name, listed in kit.files.items():
        # The caller stops at the first difference, so by now every listed file exists.
        size = (folder / name).stat().st_size
        if size != listed.size_bytes:
            yield f"{folder}/{name}: {size} bytes, expected {listed.size_bytes}: the file was changed or cut short"
        found = describe_file(folder / name)
        if found.sha256 != listed.sha256:
            yield (
                f"{folder}/{name}: sha256 {found.sha256[:12]}..., expected {shown(listed.sha256[:12])[1:-1]}...: "
                "the file was changed"
            )
