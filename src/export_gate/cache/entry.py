"""One verdict with everything that it depends on, as text that says by itself whether it is whole."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from export_gate.cache.files import sealed, unsealed
from export_gate.wall.codec import decode, encode

FORMAT = 1
"""Incremented whenever an older reader would misread a new entry."""
LARGEST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """States are those of `present.py`; paths start at the root of the checkout, or are absolute."""

    format: int = FORMAT
    repository: str
    config: str
    """From the root of the checkout."""
    model: str
    contract: str
    """A digest of the contract, with the targets that were selected."""
    circumstances: dict[str, str]
    files: dict[str, str]
    folders: dict[str, str]
    modules: tuple[str, ...]
    """Top-level modules that were imported or not found."""
    path: dict[str, str]
    """Folder of `sys.path` -> what it has under those names."""
    packages: dict[str, tuple[tuple[str, ...], str]]
    """Folder of a package -> submodules that were imported or not found, and what it has under those names."""
    sites: dict[str, str]
    env: dict[str, str | None]
    """The contract's."""
    variables: dict[str, str]
    """Variable that was asked for -> a digest of its value, or `missing`; `*` stands for all."""
    commit: str = ""
    """The commit at which it was verified, with `-dirty` if files were not as they are in it; empty outside of git."""
    day: str
    """ISO date (UTC) of the verification."""
    until: str = ""
    """The last day of the first waiver to end that the verdict needs; empty for none."""
    duration_s: float = 0.0
    observation: str
    """The sha256 of the object with what was observed."""
    artifacts: dict[str, str] = field(default_factory=dict)
    """File below the report folder -> the sha256 of the object with its bytes."""
    checkout: tuple[str, ...] = ()
    """Files of the checkout that the model read."""

    @property
    def objects(self) -> tuple[str, ...]:
        """Everything that it needs."""
        return (self.observation, *self.artifacts.values())


def entry_text(entry: Entry) -> bytes:
    """The entry with a digest of it in front."""
    return sealed(json.dumps(encode(entry), allow_nan=False, separators=(",", ":"), sort_keys=True).encode())


def parse_entry(text: bytes) -> Entry | None:
    """The entry; None if it is truncated, was edited, or is of another version."""
    body = unsealed(text)
    if body is None:
        return None
    try:
        entry = decode(Entry, json.loads(body))
    except (ValueError, RecursionError):
        return None
    return entry if entry.format == FORMAT else None
