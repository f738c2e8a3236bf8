"""Shorten the paths of the machine that ran, in any text of a report, to paths that are useful to readers elsewhere.

A comment in a pull request has no use for `/home/runner/work/shop/shop/model.py`, and must not show strangers how a
private runner is laid out. A file of the repository gets its path there, one of an installed package its path in it,
any other its name.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import PurePath
from typing import Any, TypeVar

from export_gate.run.checkout import ELSEWHERE, Checkout

Record = TypeVar("Record")
USUAL = (
    "home", "root", "tmp", "var", "usr", "opt", "etc", "private", "Users", "Library", "mnt", "srv", "nix", "runner",
    "actions-runner", "github", "workspace", "workspaces", "builds", "__w", "__t", "__e", "proc", "dev",
)  # fmt: skip
"""First folders of paths on Linux and macOS and in containers; other texts with slashes, as names of nodes, stay."""
_PACKAGE = re.compile(r".*/(?:site-packages|dist-packages|lib/python3\.\d+)/(?=.)")


@dataclass(frozen=True, slots=True)
class Places:
    """What is known about the machine."""

    checkout: Checkout
    path: re.Pattern[str]

    def shown(self, text: str) -> str:
        """The text with its absolute paths shortened."""
        return self.path.sub(lambda found: self._shorter(found.group().removeprefix("file://")), text)

    def _shorter(self, path: str) -> str:
        plain = path.replace("\\", "/")
        inside = self.checkout.relative(plain)
        if inside is not None or plain.rstrip("/") == self.checkout.root:
            return inside or "."
        return _PACKAGE.sub("", plain) if _PACKAGE.match(plain) else f"{ELSEWHERE}/{PurePath(plain).name}"


def places(checkout: Checkout, known: Iterable[str]) -> Places:
    """Build the ways to shorten paths.

    Args:
        checkout: the repository as it was on the machine.
        known: absolute paths on it; a text that begins with their first folder is taken for a path.
    """
    paths = (checkout.root, tempfile.gettempdir(), *known)
    first = {path.split("/")[1] for path in paths if path.count("/") > 1 and path.startswith("/")}
    # Only known first folders: a slash alone does not make a path of `/layer1/conv/MatMul`.
    roots = "|".join(sorted(map(re.escape, first.union(USUAL)), key=len, reverse=True))
    start = rf"(?:file://)?(?:/(?:{roots})/|(?<!\w)[A-Za-z]:[\\/](?![\\/]))"
    # The lookbehind: not in the middle of a relative path, a word or a URL.
    return Places(checkout, re.compile(rf"(?<![\w./\\~-]){start}[^\s'\"`<>|:;,()\[\]{{}}*?]*"))


def near_the_config(record: Record, checkout: Checkout) -> Record:
    """The record with the project's own paths as its readers write them, and those of packages from the package on.

    Other paths stay: where a report is read on the machine of the run, they may be what it takes to understand it.
    """
    own = (checkout.root or checkout.folder).rstrip("/")
    # The options of commands in a hint are pasted elsewhere than the config's folder.
    inside = rf"(?<!--config )(?<!--python )(?<![\w./~-]){re.escape(own)}/(?=[\w.])|" if own else ""
    pattern = re.compile(rf"{inside}(?<![\w./~-])/[^\s'\"`<>|:;,()\[\]{{}}*?]*/(?:site-packages|dist-packages)/(?=\w)")
    return relocated(record, lambda text: pattern.sub("", text) if "/" in text else text)


def relocated(record: Record, shown: Callable[[str], str]) -> Record:
    """The same record with `shown` applied to every text."""
    changed: Record = _relocated(record, shown)
    return changed


def _relocated(value: Any, shown: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return shown(value)
    if is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in fields(value) if each.init]
        return replace(value, **{name: _relocated(getattr(value, name), shown) for name in names})
    if isinstance(value, tuple):
        return tuple(_relocated(item, shown) for item in value)
    if isinstance(value, dict):
        return {_relocated(key, shown): _relocated(item, shown) for key, item in value.items()}
    return value
