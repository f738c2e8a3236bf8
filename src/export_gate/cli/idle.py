"""What a hook does when nothing has changed since the last run of the same command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from export_gate.cache.entry import Entry
from export_gate.cache.folder import CacheFolder
from export_gate.cache.place import choose_folder
from export_gate.cache.standing import command_name, standing_entries
from export_gate.cli.terminal import complain, say
from export_gate.run.pushing import find_push
from export_gate.wall.words import count, unchanged_words

OPTIONS = "EXPORT_GATE_RUN_"
"""How variables begin that stand for options of the command."""


def is_nothing_changed(arguments: Sequence[str]) -> bool:
    """Whether all that the command would verify is unchanged, which it then says."""
    try:
        found = _unchanged(arguments, os.environ)
    except Exception:  # noqa: BLE001 - whatever is in the way, the usual way reports it
        return False
    if found is None:
        return False
    entries, notes = found
    for line in notes:
        complain(f"note: {line}")
    say(f"export-gate: nothing to verify: {count(len(entries), 'model')} unchanged")
    for model, entry in entries.items():
        say(f"{model}: {unchanged_words(entry.commit, entry.day)}")
    return True


def _unchanged(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> tuple[dict[str, Entry], tuple[str, ...]] | None:
    """The entries of all models, and what the hook says about the push; None if there may be something to do."""
    # click reads options from them, which the record's name does not have.
    has_options = any(name.startswith(OPTIONS) for name in environment)
    if has_options or any(argument.startswith(("--cache", "--no-cache")) for argument in arguments):
        return None
    place = choose_folder(None, environment)
    if place is None:
        return None
    today = datetime.now(timezone.utc).date().isoformat()
    name = command_name(str(Path.cwd()), arguments)
    found = standing_entries(CacheFolder(path=place), name, environment, today)
    if found is None:
        return None
    config, entries = found
    # The config may be in a submodule, from whose root the names of the files start.
    push = find_push(environment, config.parent)
    read = {path for entry in entries.values() for path in (entry.config, *entry.checkout)}
    # Then the usual run has a finding (`unpushed-file`).
    is_read = any(name in (path, ".") or path.startswith(f"{name}/") for name in push.unpushed for path in read)
    return None if is_read else (entries, push.notes)
