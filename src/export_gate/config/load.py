"""The stages of reading a config, on one screen: bytes, text, tree, defaults, checks, record."""

from __future__ import annotations

import hashlib
import os.path
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from export_gate.config.defaults import merge_defaults
from export_gate.config.document import read_document
from export_gate.config.grammar import CONFIG
from export_gate.config.kinds import Scope
from export_gate.config.nodes import Allowance, Node, Unreadable
from export_gate.config.paths import default_pythonpath
from export_gate.config.record import Config, Position
from export_gate.config.source import decode_text, read_bytes
from export_gate.wall.errors import UserError
from export_gate.wall.repository import repository_root


def load_config(path: Path) -> Config:
    """Load a config file, and merge its defaults into each model.

    Raises:
        UserError: every mistake in the file, one per line in the order of their positions, each
            `export-gate.yml:LINE:COL: dotted.key: expected X, got Y`, perhaps with the next step.
    """
    return parse_config(read_bytes(path), path)


def parse_config(content: bytes, path: Path, *, shown: str = "", is_past: bool = False) -> Config:
    """Turn the bytes of a config into the record.

    Args:
        content: the file.
        path: where it is, which relative paths start from.
        shown: its name in messages; by default the path.
        is_past: whether it is the content at another commit, whose files need not exist here.

    Raises:
        UserError: as `load_config`.
    """
    name = shown or str(path)
    text = decode_text(content, name)
    folder = Path(os.path.abspath(path)).parent  # noqa: PTH100 - resolve() would leave a linked config's folder
    scope = Scope(folder=folder, root=repository_root(folder), is_past=is_past)
    allowance = Allowance()
    try:
        written = read_document(text, scope.problems, allowance)
        root = merge_defaults(written, allowance)
        values = CONFIG.check(root, scope)
    except Unreadable as error:
        scope.problems.add(error.at, error.path, error.message)
    # Always the case after Unreadable, so `values` is set below.
    if scope.problems:
        raise UserError(scope.problems.text(name))
    shared = values.get("env", {})
    models = tuple(
        # Not `root`, in which every model has the targets of `defaults`.
        replace(
            model,
            targets_listed=_listed_in(written, name),
            env={**shared, **model.env},
            cache=model.cache and values.get("cache", True),
        )
        for name, model in values["models"].items()
    )
    return _record(path, content, folder, root, {**values, "models": models})


def _record(path: Path, content: bytes, folder: Path, root: Node, values: dict[str, Any]) -> Config:
    listed: tuple[str, ...] | None = values.get("pythonpath")
    return Config(
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        pythonpath=default_pythonpath(folder)
        if listed is None
        else tuple(os.path.normpath(folder / entry) for entry in listed),
        models=values["models"],
        positions=_positions(root),
        **{key: values[key] for key in ("python", "relaxed", "fail_on", "waivers_max_days", "ignore") if key in values},
    )


def _listed_in(written: Node, model: str) -> Literal["model", "defaults", "nowhere"]:
    """Where the file lists the model's targets."""
    models, defaults = written.child("models"), written.child("defaults")
    own = models.child(model) if models else None
    if own and own.child("targets"):
        return "model"
    return "defaults" if defaults and defaults.child("targets") else "nowhere"


def _positions(root: Node) -> dict[str, Position]:
    """Position of every dotted key. Model names may contain dots: of two equal keys, the shallower one is kept."""
    positions: dict[str, Position] = {}
    waiting = deque(root.children)
    while waiting:
        node = waiting.popleft()
        positions.setdefault(node.path, node.key_at)
        waiting.extend(node.children)
    return positions
