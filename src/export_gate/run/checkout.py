"""Where the files of a run are in their repository, so that a finding can be shown at its line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from export_gate.config import Config
from export_gate.run.git import git_line
from export_gate.wall.repository import repository_root

ELSEWHERE = "..."
"""Replaces the folders of a path outside the repository in reports that other people read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The repository as it was on the machine of the run."""

    root: str = ""
    """Its folder there, with `/`; empty outside of git."""
    config: str = ""
    """The config, relative to the root."""
    folder: str = ""
    """The config's folder there, with `/`."""
    lines: dict[str, int] = field(default_factory=dict)
    """Model -> the line of the config that declares it."""
    keys: dict[str, dict[str, int]] = field(default_factory=dict)
    """Model -> its keys (`dims.batch`, `targets.onnx`) -> their lines."""

    def line(self, model: str | None, key: str = "") -> int:
        """The line of a model's key, or of the nearest key above it that the config has; 1 if there is none."""
        if model is None:
            return 1
        there = self.keys.get(model, {})
        # `inputs.x.shape[0]`, then `inputs.x.shape`, and so on: a default, say, has no line of its own.
        while key and key not in there:
            key = key[: max(key.rfind("."), key.rfind("["), 0)]
        return max(there.get(key) or self.lines.get(model, 1), 1)

    def relative(self, path: str) -> str | None:
        """`path` of that machine relative to the repository's root; None if it lies outside."""
        plain = path.replace("\\", "/")
        if self.root and plain.startswith(f"{self.root}/"):
            plain = plain.removeprefix(f"{self.root}/")
        # Not Path.is_absolute: results of a Windows machine may be reported on Linux.
        is_absolute = plain.startswith("/") or plain[1:2] == ":"
        return None if is_absolute or not plain or {"..", ELSEWHERE} & set(plain.split("/")) else plain


def find_checkout(config: Config, models: Iterable[str]) -> Checkout:
    """The repository that the config lies in, with the lines of these models."""
    path = config.path.resolve()
    root = _top_level(path.parent)
    if root is None or root not in path.parents:
        return Checkout(folder=path.parent.as_posix())
    places = {name: config.positions.get(f"models.{name}") for name in models}
    return Checkout(
        root=root.as_posix(),
        config=path.relative_to(root).as_posix(),
        folder=path.parent.as_posix(),
        lines={name: place.line for name, place in places.items() if place is not None},
        keys={name: _keys(config, name) for name in places},
    )


def _keys(config: Config, model: str) -> dict[str, int]:
    start = f"models.{model}."
    return {key.removeprefix(start): at.line for key, at in config.positions.items() if key.startswith(start)}


def head_revision(folder: Path) -> str | None:
    """The commit that is checked out, or None outside of git."""
    return git_line(repository_root(folder), "rev-parse", "HEAD")


def described_revision(folder: Path) -> str | None:
    """The commit that is checked out, followed by `-dirty` if tracked files differ from it."""
    # Without any tag to describe by (`--exclude=*`), `--always` prints the commit itself.
    return git_line(repository_root(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _top_level(folder: Path) -> Path | None:
    top = git_line(repository_root(folder), "rev-parse", "--show-toplevel")
    return Path(top).resolve() if top else None
