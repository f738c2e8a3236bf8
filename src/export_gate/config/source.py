"""Read the config file as text, or explain in one sentence why that is not possible."""

from __future__ import annotations

import re
from pathlib import Path

from export_gate.wall.errors import UserError

MAX_BYTES = 1 << 20
_BINARY = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that YAML 1.2.2 does not allow in a file (production 1, c-printable)."""


def read_bytes(path: Path) -> bytes:
    """Content of the file.

    Raises:
        UserError: the file does not exist, or it is too large to be a config.
    """
    try:
        if path.is_dir():
            raise UserError(f"{path}: expected a file, got a folder; name the export-gate.yml in it")
        # Before it is opened, which would wait for a pipe's writer.
        if path.exists() and not path.is_file():
            raise UserError(f"{path}: expected a file, got a device, pipe or socket; save the config as a file")
        with path.open("rb") as file:
            # One byte more than allowed shows that there is too much, without reading all of it.
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UserError(
            f"{path}: expected a config file, but it does not exist; create it or name another one"
        ) from None
    # ValueError: the name contains a NUL byte.
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{path}: expected a file that can be read, got: {reason}") from error
    if len(content) > MAX_BYTES:
        raise UserError(f"{path}: expected a config of at most 1 MiB, got more; keep data in separate files")
    return content


def decode_text(content: bytes, name: str) -> str:
    """The text of a UTF-8 file.

    Raises:
        UserError: a byte is not text; the message contains its position.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError(f"{name}:1:1: expected UTF-8 text, got UTF-16; save the file as UTF-8")
    if content.startswith(b"\xef\xbb\xbf"):
        raise UserError(f"{name}:1:1: expected UTF-8 text, got a byte order mark; save the file as UTF-8 without BOM")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        place = _place(content[: error.start].decode("utf-8"))
        found = f"byte 0x{content[error.start]:02x}"
        raise UserError(f"{name}:{place}: expected UTF-8 text, got {found}; save the file as UTF-8") from error
    if match := _BINARY.search(text):
        found = f"control character U+{ord(match.group()):04X}"
        raise UserError(f"{name}:{_place(text[: match.start()])}: expected text, got {found}; is this a binary file?")
    return text


def _place(before: str) -> str:
    line_start = before.rfind("\n") + 1
    return f"{before.count(chr(10)) + 1}:{len(before) - line_start + 1}"
