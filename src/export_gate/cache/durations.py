"""Say how long models took when they were verified last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from export_gate.cache.folder import CacheFolder
from export_gate.cache.scene import entry_key, owner


def durations(
    folder: CacheFolder, config: Path, models: Iterable[str], environment: Mapping[str, str]
) -> dict[str, float]:
    """The seconds of each model, where they are known."""
    _, repository, name = owner(config, environment)
    return folder.durations_s({model: entry_key(repository, name, model) for model in models})
