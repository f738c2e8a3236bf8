"""`export-gate.lock` as a file: readable, equal for equal results, and hostile ones are refused with a place."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from export_gate.lock.file import LARGEST_BYTES, lock_path, lock_text, parse_lock, read_lock, write_lock
from export_gate.rules.lock.record import Lock, LockedDim, LockedModel, LockedTarget, LockedTensor, Margin
from export_gate.wall.errors import UserError
from export_gate.wall.targets import KIND_NAMES

LOCK = Lock(
    models={
        "m": LockedModel(
            inputs=(LockedTensor(name="x", dtype="float32", shape=("batch", "3"), range=(0.0, 1.0)),),
            outputs=(),
            dims={"batch": LockedDim(min=2, max=16)},
            targets={
                "onnx": LockedTarget(
                    opsets={"ai.onnx": 20}, sizes={"main": 999}, margins={"y": Margin(measured=1e-7, allowed=3.4e-5)}
                )
            },
            parameters=30,
            weights_bytes=120,
        )
    }
)
TEXT = """\
{
 "models": {
  "m": {
   "dims": {
    "batch": {
     "max": 16,
     "min": 2,
     "multiple_of": 1,
     "separate": []
    }
   },
   "inputs": [
    {
     "dtype": "float32",
     "name": "x",
     "range": [
      0.0,
      1.0
     ],
     "shape": [
      "batch",
      "3"
     ]
    }
   ],
   "outputs": [],
   "parameters": 30,
   "targets": {
    "onnx": {
     "margins": {
      "y": {
       "allowed": 3.4e-05,
       "measured": 1e-07
      }
     },
     "opsets": {
      "ai.onnx": 20
     },
     "sizes": {
      "main": 999
     }
    }
   },
   "weights_bytes": 120
  }
 },
 "version": 1
}
"""


def refusal(content: bytes) -> str:
    """What is said of a file with this content."""
    with pytest.raises(UserError) as caught:
        parse_lock(content, "export-gate.lock")
    assert caught.value.hint == "Use `export-gate lock` to write the file; do not edit it by hand."
    return str(caught.value)


def test_the_file_is_sorted_and_has_a_value_a_line():
    """A diff of the file names what changed."""
    assert lock_text(LOCK) == TEXT
    assert parse_lock(TEXT.encode(), "export-gate.lock") == LOCK


def test_each_config_has_a_lock_of_its_name():
    """Two configs in one folder do not share a lock."""
    assert lock_path(Path("ml/export-gate.yml")) == Path("ml/export-gate.lock")
    assert lock_path(Path("ml/other.yaml")) == Path("ml/other.lock")


MODEL = json.loads(TEXT)["models"]["m"]


def document(**models: object) -> bytes:
    """A lock with these models."""
    return json.dumps({"version": 1, "models": models}).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ":1:1: not JSON: Expecting value"),
        (b"{\n oops\n}", ":2:2: not JSON: Expecting property name enclosed in double quotes"),
        (b"\xff", ": not a lock: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (b"[]", ": expected a lock of version 1, got []"),
        (b'{"version": 2}', ": expected a lock of version 1, got 2"),
        (b'{"version": 1, "version": 1}', ": not a lock: key 'version' occurs twice"),
        (b'{"version": NaN}', ": not a lock: NaN is not a JSON number"),
        (b'{"version": 1, "models": []}', ": not a lock: Lock.models: expected an object, got []"),
        (
            document(m={**MODEL, "parameters": "many"}),
            ": not a lock: Lock.models.m.parameters: expected int, got 'many'",
        ),
        (document(**{"../x": MODEL}), ": not a lock: Lock.models: '../x' is not a model name"),
        (
            document(m={**MODEL, "targets": {"tflite": {}}}),
            f": not a lock: Lock.models.m.targets.tflite: expected the kind {', '.join(KIND_NAMES)}, got 'tflite'",
        ),
        (
            document(m={**MODEL, "targets": {"half": {"kind": "tflite"}}}),
            f": not a lock: Lock.models.m.targets.half: expected the kind {', '.join(KIND_NAMES)}, got 'tflite'",
        ),
        (
            document(m={**MODEL, "targets": {"../half": {"kind": "onnx"}}}),
            ": not a lock: Lock.models.m.targets: '../half' is not the name of a target",
        ),
        (
            document(m={**MODEL, "dims": {"n": {"min": 2, "max": 1}}}),
            ": not a lock: Lock.models.m.dims.'n': not a range of sizes",
        ),
        (
            document(m={**MODEL, "dims": {"n": {"min": 1, "max": 2, "multiple_of": 0}}}),
            ": not a lock: Lock.models.m.dims.'n': not a range of sizes",
        ),
        (
            document(**{"\x1b[31m": 3}),
            ": not a lock: Lock.models.\\x1b[31m: expected an object, got 3",
        ),
        (
            b" " * (LARGEST_BYTES + 1),
            f": expected a lock of at most {LARGEST_BYTES} bytes, got more",
        ),
    ],
    ids=range(17),
)
def test_what_is_no_lock_is_refused_with_its_place(content: bytes, message: str):
    """The message is one sentence without traceback and control characters."""
    assert refusal(content) == f"export-gate.lock{message}"


def test_deep_nesting_and_long_numbers_are_refused():
    """Such files are refused with a sentence, before they reach the interpreter's limits."""
    assert refusal(b"[" * 200_000).startswith("export-gate.lock: not a lock: maximum recursion depth exceeded")
    assert refusal(b'{"version": ' + b"9" * 6000 + b"}").startswith("export-gate.lock: ")


@given(content=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
@settings(max_examples=300)
def test_any_bytes_are_a_lock_or_a_sentence(content: bytes):
    """Reading a lock raises nothing but a UserError."""
    said = ""
    try:
        parse_lock(content, "x")
    except UserError as error:
        said = str(error)
    assert said.isprintable()


def test_a_written_lock_can_be_read(tmp_path: Path):
    """Writing leaves nothing else in the folder."""
    write_lock(LOCK, tmp_path / "export-gate.lock")

    assert read_lock(tmp_path / "export-gate.lock", tmp_path) == LOCK
    assert [entry.name for entry in tmp_path.iterdir()] == ["export-gate.lock"]
    assert read_lock(tmp_path / "other.lock", tmp_path) is None


def test_writing_through_a_link_replaces_the_link(tmp_path: Path):
    """The file that a link points to is not touched."""
    (tmp_path / "precious").write_text("keep")
    (tmp_path / "export-gate.lock").symlink_to("precious")

    write_lock(LOCK, tmp_path / "export-gate.lock")

    assert (tmp_path / "precious").read_text() == "keep"
    assert not (tmp_path / "export-gate.lock").is_symlink()


def test_a_lock_outside_of_the_repository_is_refused(tmp_path: Path):
    """A link must not lead out of the repository."""
    (tmp_path / "outside.lock").write_text(TEXT)
    (tmp_path / "repository").mkdir()
    path = tmp_path / "repository" / "export-gate.lock"
    path.symlink_to("../outside.lock")

    with pytest.raises(UserError) as caught:
        read_lock(path, tmp_path / "repository")

    assert str(caught.value) == f"{path}: expected a lock inside the repository, got a link that leads out of it"


@pytest.mark.parametrize("kind", ["folder", "pipe", "dangling"])
def test_a_lock_that_is_no_file_is_refused(kind: str, tmp_path: Path):
    """Reading does not wait for a pipe."""
    path = tmp_path / "export-gate.lock"
    make = {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path), "dangling": lambda: path.symlink_to("nowhere")}
    make[kind]()

    with pytest.raises(UserError) as caught:
        read_lock(path, tmp_path)

    assert str(caught.value) == f"{path}: expected a file, got a folder, device or pipe, or a broken link"


def test_a_lock_that_cannot_be_written_is_the_users_matter(tmp_path: Path):
    """The error has exit code 2 and the reason."""
    with pytest.raises(UserError) as caught:
        write_lock(LOCK, tmp_path / "missing" / "export-gate.lock")

    assert str(caught.value) == f"{tmp_path}/missing/export-gate.lock: cannot be written: No such file or directory"
