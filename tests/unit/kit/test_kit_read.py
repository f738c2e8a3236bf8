"""Messages about folders that are not kits, or that were changed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit_samples import edit, write_kit

from export_gate.kit.read import AGAIN, is_inside, read_kit
from export_gate.wall.conformance import MANIFEST
from export_gate.wall.errors import UserError

FIRST = "test_data_set_0/input_0.pb"


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """A right kit."""
    return write_kit(tmp_path / "kit")


def mistake(folder: Path) -> str:
    """What is said of the folder, with `KIT` for its path."""
    with pytest.raises(UserError) as caught:
        read_kit(folder)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(folder), "KIT")


def test_a_whole_kit_is_read(kit: Path):
    """If every file is as it was written, the manifest is returned."""
    read = read_kit(kit)
    assert (read.model, read.cases, len(read.files)) == ("doubling", 3, 7)


def changed_bytes(folder: Path) -> None:
    """The last byte of a file is another."""
    content = bytearray((folder / FIRST).read_bytes())
    content[-1] ^= 1
    (folder / FIRST).write_bytes(content)


def cut_short(folder: Path) -> None:
    """A file lacks its last bytes."""
    (folder / FIRST).write_bytes((folder / FIRST).read_bytes()[:-3])


def linked_file(folder: Path) -> None:
    """A file is a link."""
    (folder / FIRST).rename(folder.parent / "elsewhere")
    (folder / FIRST).symlink_to(folder.parent / "elsewhere")


def linked_folder(folder: Path) -> None:
    """A folder is a link."""
    (folder / "test_data_set_1").rename(folder.parent / "elsewhere")
    (folder / "test_data_set_1").symlink_to(folder.parent / "elsewhere")


def linked_manifest(folder: Path) -> None:
    """kit.json is a link."""
    (folder / MANIFEST).rename(folder.parent / "elsewhere")
    (folder / MANIFEST).symlink_to(folder.parent / "elsewhere")


def listed(name: str) -> Callable[[Path], None]:
    """The manifest lists that file too."""

    def change(folder: Path) -> None:
        edit(folder, lambda value: value["files"].update({name: {"sha256": "0" * 64, "size_bytes": 1}}))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            changed_bytes,
            "KIT/test_data_set_0/input_0.pb: sha256 DIGEST..., expected DIGEST...: the file was changed",
        ),
        (
            cut_short,
            "KIT/test_data_set_0/input_0.pb: 14 bytes, expected 17: the file was changed or cut short",
        ),
        (lambda kit: (kit / FIRST).unlink(), f"KIT/{FIRST}: missing, although kit.json lists it"),
        (
            lambda kit: (kit / "notes\n.txt").touch(),
            r"KIT: has a file 'notes\n.txt' that kit.json does not list",
        ),
        (linked_file, f"KIT/{FIRST}: a symbolic link; a kit may contain only files"),
        (linked_folder, "KIT/test_data_set_1: a symbolic link; a kit may contain only files"),
        (linked_manifest, "KIT/kit.json: a symbolic link; a kit may contain only files"),
        (
            lambda kit: (kit / "a\x1b[2Jb").symlink_to("/"),
            r"KIT: 'a\x1b[2Jb': a symbolic link; a kit may contain only files",
        ),
        (lambda kit: os.mkfifo(kit / "pipe"), "KIT/pipe: not a regular file; a kit may contain only files"),
        (listed("../../secret"), "KIT/kit.json: '../../secret' is not a path inside the kit"),
        (listed("/etc/passwd"), "KIT/kit.json: '/etc/passwd' is not a path inside the kit"),
        (listed("C:\\x"), r"KIT/kit.json: 'C:\\x' is not a path inside the kit"),
        (listed("a\nb"), r"KIT/kit.json: 'a\nb' is not a path inside the kit"),
        (
            lambda kit: (kit / MANIFEST).unlink(),
            "KIT/kit.json: file not found, so KIT is not a kit; `export-gate kit MODEL` writes one",
        ),
        (
            lambda kit: (kit / MANIFEST).write_text("{"),
            "KIT/kit.json:1:2: not JSON: Expecting property name enclosed in double quotes",
        ),
        (
            lambda kit: (kit / MANIFEST).write_text("[]"),
            "KIT/kit.json: expected the manifest of a kit, got different JSON",
        ),
        (
            lambda kit: (kit / MANIFEST).write_bytes(b"\xff"),
            "KIT/kit.json: not JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
        (
            lambda kit: (kit / MANIFEST).write_text("[" * 200_000),
            "KIT/kit.json: not JSON: maximum recursion depth exceeded...",
        ),
        (
            lambda kit: (kit / MANIFEST).write_text('{"model": "a", "model": "b"}'),
            "KIT/kit.json: not JSON: key 'model' occurs twice",
        ),
        (lambda kit: (kit / MANIFEST).write_text('{"a": NaN}'), "KIT/kit.json: not JSON: NaN is not a JSON number"),
        (lambda kit: os.truncate(kit / MANIFEST, 1 << 30), "KIT/kit.json: 1073741824 bytes, expected at most 16777216"),
    ],
)
def test_changed_folders_are_refused(kit: Path, change: Callable[[Path], Any], message: str):
    """One line says which file differs from kit.json, or why kit.json is not valid; nothing is parsed before that."""
    change(kit)
    found = mistake(kit)
    if message.endswith("..."):  # the rest differs between releases of Python
        found = found[: len(message) - 3] + "..."
    assert re.sub(r"(?<=sha256 )[0-9a-f]{12}|(?<=expected )[0-9a-f]{12}", "DIGEST", found) == message


def set_field(name: str, value: Any) -> Callable[[Any], None]:
    """A field of the manifest set."""
    return lambda manifest: manifest.update({name: value})


def export(**fields: Any) -> Callable[[Any], None]:
    """Fields of the manifest's export set."""
    return lambda manifest: manifest["exports"][0].update(fields)


def again(manifest: Any) -> None:
    """Its export occurs twice."""
    manifest["exports"] *= 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_field("schema_version", 2), "schema version 2, but this export-gate reads version 1"),
        (set_field("schema_version", True), "schema version True, but this export-gate reads version 1"),
        (set_field("exports", []), "no data sets with outputs: there is nothing to compare"),
        (export(data_sets=[]), "no data sets with outputs: there is nothing to compare"),
        (set_field("outputs", []), "no data sets with outputs: there is nothing to compare"),
        (export(inputs=["x", "z"]), "'test_data_set_0/input_1.pb' is not listed under `files`"),
        (export(inputs=["x", "x"]), "two inputs of 'model.onnx' have the same name"),
        (export(folder="../up"), "'../up/model.onnx' is not listed under `files`"),
        (again, "two exports are of the same sizes"),
        (set_field("extra\n", 1), r"not a valid kit: Kit: expected only ["),
        (
            lambda m: m["outputs"][0]["tolerance"].update(atol=10**400),
            "not a valid kit: Kit.outputs[0].tolerance.atol: expected a number that float64 can hold, got 1000",
        ),
        (set_field("verified", "yes"), "not a valid kit: Kit.verified: expected bool, got 'yes'"),
        (
            lambda m: m["files"].update({"a\nb": 1}),
            r"not a valid kit: Kit.files.a\nb: expected an object, got 1",
        ),
    ],
)
def test_contradictory_manifests_are_refused(kit: Path, change: Callable[[Any], None], message: str):
    """A contradictory manifest is refused before any file is opened, even if its digests are right."""
    edit(kit, change)
    assert mistake(kit).startswith(f"KIT/kit.json: {message}")


def test_what_to_do_next(kit: Path):
    """A changed kit must be fetched again; for another version, the message names the version that replays it."""
    changed_bytes(kit)
    with pytest.raises(UserError) as caught:
        read_kit(kit)
    assert caught.value.hint == AGAIN == "fetch the kit again, or write it again with `export-gate kit`"
    edit(kit, set_field("schema_version", 7))
    with pytest.raises(UserError) as caught:
        read_kit(kit)
    assert caught.value.hint == "replay it with the version of export-gate that wrote it ('9.9')"


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("model.onnx", True), ("batch=1/model.onnx", True), ("a b/ä.pb", True), ("..x", True),
        ("", False), (".", False), ("..", False), ("a/../b", False), ("a//b", False), ("/a", False), ("a/", False),
        ("a\\b", False), ("C:a", False), ("a\x00b", False), ("a\u202eb", False),
    ],
)  # fmt: skip
def test_paths_stay_inside(name: str, inside: bool):
    """A manifest's paths are plain: none leaves the kit, has a drive, or contains what a terminal does not show."""
    assert is_inside(name) is inside
