"""Where the files of a run are in their repository, so that what is said of a line can be shown beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from export_gate.config import Config
from export_gate.run.git import git_line

ELSEWHERE = "..."
"""In place of the folders of a path outside of the repository, where a report goes to other people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The repository as it was on the machine of the run."""

    root: str = ""
    """Its folder there, with `/`; empty outside of git."""
    config: str = ""
    """The config, relative to the root."""
    lines: dict[str, int] = field(default_factory=dict)
    """Model -> the line of the config that declares it."""
    keys: dict[str, dict[str, int]] = field(default_factory=dict)
    """Model -> its keys (`dims.batch`, `targets.onnx`) -> their lines."""

    def line(self, model: str | None, key: str = "") -> int:
        """The line of a model's key, or of the nearest above it that the config has; 1 where there is none."""
        if model is None:
            return 1
        there = self.keys.get(model, {})
        while key and key not in there:
            key = key[: max(key.rfind("."), key.rfind("["), 0)]
        return max(there.get(key) or self.lines.get(model, 1), 1)

    def relative(self, path: str) -> str | None:
        """`path` of that machine from the repository's root; None where it lies outside."""
        plain = path.replace("\\", "/")
        if self.root and plain.startswith(f"{self.root}/"):
            plain = plain.removeprefix(f"{self.root}/")
        is_absolute = plain.startswith("/") or plain[1:2] == ":"
        return None if is_absolute or not plain or {"..", ELSEWHERE} & set(plain.split("/")) else plain


def find_checkout(config: Config, models: Iterable[str]) -> Checkout:
    """The repository that the config lies in, with the lines of these models."""
    path = config.path.resolve()
    root = _top_level(path.parent)
    if root is None or root not in path.parents:
        return Checkout()
    places = {name: config.positions.get(f"models.{name}") for name in models}
    return Checkout(
        root=root.as_posix(),
        config=path.relative_to(root).as_posix(),
        lines={name: place.line for name, place in places.items() if place is not None},
        keys={name: _keys(config, name) for name in places},
    )


def _keys(config: Config, model: str) -> dict[str, int]:
    start = f"models.{model}."
    return {key.removeprefix(start): at.line for key, at in config.positions.items() if key.startswith(start)}


def head_revision(folder: Path) -> str | None:
    """The commit that is checked out, or None outside of git."""
    return git_line(folder, "rev-parse", "HEAD")


def described_revision(folder: Path) -> str | None:
    """The commit that is checked out, with `-dirty` after it where tracked files are not as they are in it."""
    return git_line(folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _top_level(folder: Path) -> Path | None:
    top = git_line(folder, "rev-parse", "--show-toplevel")
    return Path(top).resolve() if top else None
