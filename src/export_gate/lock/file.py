"""Read and write `export-gate.lock`: sorted, one value per line, equal for equal results."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path

from export_gate.rules.lock.record import LOCK_VERSION, Lock
from export_gate.wall.codec import decode, encode
from export_gate.wall.contract import NAME_OF_TARGET
from export_gate.wall.errors import UserError
from export_gate.wall.strict_json import parse_strictly
from export_gate.wall.targets import KIND_NAMES
from export_gate.wall.words import printable

LARGEST_BYTES = 8 * 1024 * 1024
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
HINT = "Use `export-gate lock` to write the file; do not edit it by hand."


def lock_path(config: Path) -> Path:
    """`export-gate.lock` next to `export-gate.yml`; a config with another name has a lock with that name."""
    return config.with_suffix(".lock")


def lock_text(lock: Lock) -> str:
    """The file's text; it does not depend on the machine, the date or the order of a dict."""
    value = encode(lock)
    for target in (target for model in value["models"].values() for target in model["targets"].values()):
        # Not written if it is the default, so that locks from before targets had names stay the same text.
        if not target["kind"]:
            del target["kind"]
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n"


def write_lock(lock: Lock, path: Path) -> None:
    """Write the file atomically: a reader sees the old one or the whole new one.

    Raises:
        UserError: it cannot be written.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(lock_text(lock), encoding="utf-8", newline="\n")
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from error


def read_lock(path: Path, root: Path) -> Lock | None:
    """Read the lock in the working tree; None if there is no lock.

    Raises:
        UserError: it is outside `root` (through a link), cannot be read, or is not a lock.
    """
    # lexists: a broken link is a mistake to report, not a missing lock.
    if not os.path.lexists(path):
        return None
    if not path.resolve().is_relative_to(root.resolve()):
        raise UserError(f"{path}: expected a lock inside the repository, got a link that leads out of it", HINT)
    try:
        if not path.is_file():
            raise UserError(f"{path}: expected a file, got a folder, device or pipe, or a broken link", HINT)
        with path.open("rb") as file:
            # One byte more than allowed shows that there is too much, without reading all of it.
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
    return parse_lock(content, str(path))


def parse_lock(content: bytes, name: str) -> Lock:
    """Parse the bytes of a lock.

    Args:
        content: of the file.
        name: the file's name in messages.

    Raises:
        UserError: not a lock; the message says where.
    """
    if len(content) > LARGEST_BYTES:
        raise UserError(f"{name}: expected a lock of at most {LARGEST_BYTES} bytes, got more", HINT)
    try:
        value = parse_strictly(content.decode("utf-8"))
        if not isinstance(value, dict) or value.get("version") != LOCK_VERSION:
            found = value.get("version") if isinstance(value, dict) else value
            raise UserError(f"{name}: expected a lock of version {LOCK_VERSION}, got {found!r:.40}", HINT)
        lock = decode(Lock, value)
        _verify(lock)
    except json.JSONDecodeError as error:
        raise UserError(f"{name}:{error.lineno}:{error.colno}: not JSON: {error.msg}", HINT) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}: not a lock: {printable(str(error)[:400])}", HINT) from error
    return lock


def _verify(lock: Lock) -> None:
    for name, model in lock.models.items():
        if not _MODEL_NAME.fullmatch(name):
            raise ValueError(f"Lock.models: {name!r:.80} is not a model name")
        for target, locked in model.targets.items():
            if not re.fullmatch(NAME_OF_TARGET, target):
                raise ValueError(f"Lock.models.{name}.targets: {target!r:.80} is not the name of a target")
            if (locked.kind or target) not in KIND_NAMES:
                expected = f"expected the kind {', '.join(KIND_NAMES)}, got {locked.kind or target!r:.80}"
                raise ValueError(f"Lock.models.{name}.targets.{target}: {expected}")
        for dim, sizes in model.dims.items():
            if sizes.multiple_of < 1 or sizes.min > sizes.max:
                raise ValueError(f"Lock.models.{name}.dims.{dim!r:.80}: not a range of sizes")
