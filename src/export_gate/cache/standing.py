"""The record of a run in which every model was verified: if all of it still holds, the same command has nothing to do.

A hook that finds so needs neither the config's grammar nor a report. Whatever differs, the run takes its usual way.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from export_gate.cache.committed import require_uncommitted
from export_gate.cache.compare import first_difference
from export_gate.cache.entry import LARGEST_BYTES, Entry, parse_entry
from export_gate.cache.files import read_own, sealed, unsealed
from export_gate.cache.folder import CacheFolder
from export_gate.cache.present import Present
from export_gate.cache.scene import Scene, make_scene
from export_gate.run.git import git_output, git_paths
from export_gate.run.interpreter import find_interpreter, with_environment
from export_gate.run.pushing import DIFF, SHELL_SCRIPTS, STARTERS, VERSIONS
from export_gate.wall.codec import decode, encode
from export_gate.wall.repository import repository_root

DEFAULTS = ("export-gate.yml", "export-gate.yaml")
"""Configs that are read without being named, the preferred one first."""
TEXTS = (":(exclude)*.md", ":(exclude)*.rst", ":(exclude)*.txt")
TELLING = ((TEXTS, "export[-_]gate"), (("*.yml", "*.yaml"), "factory"))
"""Files that may decide about the check if they have the word: scripts that start the gate, and other configs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What was verified by one command."""

    config: str
    """Absolute."""
    config_sha256: str
    lock: str
    """The state of the interface lock next to the config."""
    python_option: str | None
    python_configured: str | None
    python: str
    models: dict[str, str]
    """Model -> its entry, from the cache's folder."""
    inputs: tuple[str, ...] = ()
    """The places of control inputs, from the root of the checkout: with another content they try other inputs."""


def command_name(folder: str, arguments: Sequence[str]) -> str:
    """The name of the record of a command that was given in that folder."""
    return hashlib.sha256(json.dumps([folder, *arguments]).encode("utf-8", "surrogateescape")).hexdigest()


def write_standing(scene: Scene, name: str, standing: Standing) -> None:
    """Keep the record."""
    scene.folder.add_standing(name, sealed(json.dumps(encode(standing), sort_keys=True).encode()))


def standing_entries(
    folder: CacheFolder, name: str, environment: Mapping[str, str], today: str
) -> tuple[Path, dict[str, Entry]] | None:
    """The config and the entries of its models if everything that the command verified still holds; else None.

    Raises:
        UserError: the folder is part of what is verified, or the interpreter is gone.
        UnreadableError: git cannot tell.
        OSError: so is the config.
    """
    standing = _read(folder, name)
    if standing is None:
        return None
    config = Path(standing.config)
    scene = _scene(standing, config, folder, environment, today)
    if scene is None:
        return None
    entries: dict[str, Entry] = {}
    for model, place in standing.models.items():
        text = read_own(folder.path / place, LARGEST_BYTES)
        entry = None if text is None else parse_entry(text)
        if entry is None or (entry.repository, entry.config, entry.model) != (scene.repository, scene.config, model):
            return None
        # Contracts are not compared: they follow from the config, whose bytes are the same.
        if first_difference(entry, scene.now(entry.env)) is not None:
            return None
        entries[model] = entry
    # After the loop, since a record that does not hold must not keep its entries from being pruned.
    for place in standing.models.values():
        folder.used(folder.path / place)
    return config, entries


def is_preferred(config: Path) -> bool:
    """Whether the config is still the one that is read without being named."""
    before = DEFAULTS[: DEFAULTS.index(config.name)] if config.name in DEFAULTS else ()
    return not any(config.with_name(other).exists() for other in before)


def _read(folder: CacheFolder, name: str) -> Standing | None:
    body = unsealed(folder.standing(name) or b"")
    if body is None:
        return None
    try:
        standing = decode(Standing, json.loads(body))
    except (ValueError, RecursionError):
        return None
    return standing if standing.models else None


def _scene(
    standing: Standing, config: Path, folder: CacheFolder, environment: Mapping[str, str], today: str
) -> Scene | None:
    """The present, if config, lock, base and interpreter are those of the record."""
    require_uncommitted(folder.path, repository_root(config.parent), environment)
    content = config.read_bytes()
    state = Present(config.parent).file(config.with_suffix(".lock").name)
    if (
        hashlib.sha256(content).hexdigest() != standing.config_sha256
        or state != standing.lock
        or not is_preferred(config)
    ):
        return None
    python = find_interpreter(standing.python_option, standing.python_configured, config.parent, environment)
    if os.path.abspath(python.path) != standing.python:  # noqa: PTH100 - a venv's is a link
        return None
    base = environment.get("PRE_COMMIT_FROM_REF")
    if base and not _is_as_at(base, config, content, standing):
        return None
    return make_scene(folder, config, python.path, environment, today)


def _is_as_at(base: str, config: Path, content: bytes, standing: Standing) -> bool:
    """Whether all that decides about the check is as at the base: else the change may loosen it."""
    root = repository_root(config.parent)
    places = [*with_environment(Path(standing.python)), config.with_suffix(".lock")]
    named = [*(place.relative_to(root).as_posix() for place in places if root in place.parents), *standing.inputs]
    inside = [*STARTERS, *(f"*{name}" for name in VERSIONS), *(f":(top,literal){name}" for name in named)]
    past = git_output(config.parent, "cat-file", "blob", f"{base}:./{config.name}")
    changed = git_output(root, *DIFF, "--ignore-submodules=none", f"{base}^{{commit}}", "--", *inside)
    is_other = changed != b"" or any(_is_touched(base, root, *each) for each in TELLING) or _is_run(base, root)
    return past == content and not is_other


def _is_run(base: str, root: Path) -> bool:
    """Whether a workflow, a hook or a script names a file that is not as at the base: it may run it beside the gate."""
    changed = git_paths(root, *DIFF, "--no-renames", f"{base}^{{commit}}", "--")
    words = (part for name in sorted({each.rpartition("/")[2] for each in changed}) for part in ("-e", name))
    asked = ("grep", "-l", "-F", *words)
    return bool(changed) and any(
        git_paths(root, *asked, *where, "--", *STARTERS, *SHELL_SCRIPTS) for where in ((), (base,))
    )


def _is_touched(base: str, root: Path, places: tuple[str, ...], word: str) -> bool:
    """Whether a file that has the word, before or now, is not as at the base."""
    names = git_paths(root, *DIFF, "--no-renames", f"{base}^{{commit}}", "--", *places)
    changed = [f":(top,literal){name}" for name in names]
    # Not by git_output: so many files that no command takes their names would look like none with the word.
    return bool(names) and any(
        git_paths(root, "grep", "-l", "-i", "-e", word, *where, "--", *changed) for where in ((), (base,))
    )
