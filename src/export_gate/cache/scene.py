"""One run as the cache sees it: whose verdicts are kept where, and what the present is."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from export_gate.cache.circumstances import circumstances
from export_gate.cache.compare import Now
from export_gate.cache.folder import CacheFolder
from export_gate.cache.present import Present
from export_gate.run.environment import worker_environment
from export_gate.wall.repository import config_folder, repository_root


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is the same for all models of a run."""

    folder: CacheFolder
    base: Path
    """The config's folder."""
    repository: str
    """Entries of another one are not used."""
    config: str
    """The config, from the root of the checkout."""
    python: Path
    environment: Mapping[str, str]
    passed: Mapping[str, str]
    """What of it every process of the project has."""
    circumstances: Mapping[str, str]
    present: Present
    today: str
    started_ns: int = 0
    """Before any code of the project began, by the clock of the report folder's file system; 0 if none does."""

    def key(self, model: str) -> str:
        """Where the model's entries are."""
        return entry_key(self.repository, self.config, model)

    def now(self, env: Mapping[str, str | None]) -> Now:
        """The present for a model whose contract has this `env`."""
        given = {name: self.environment.get(name) if value is None else value for name, value in env.items()}
        set_here = {name: value for name, value in given.items() if value is not None}
        return Now(
            present=self.present,
            circumstances=self.circumstances,
            # The worker enters the config's folder, wherever the caller is.
            variables={**self.passed, **set_here, "PWD": str(self.base)},
            today=self.today,
        )


def entry_key(repository: str, config: str, model: str) -> str:
    """The name of the folder of a model's entries."""
    return hashlib.sha256(json.dumps([repository, config, model]).encode()).hexdigest()[:32]


def owner(config: Path, environment: Mapping[str, str]) -> tuple[Path, str, str]:
    """Whose a config's verdicts are: the root of the checkout, the repository, and the config from the root."""
    base = config_folder(config)
    root = repository_root(base)
    return root, environment.get("GITHUB_REPOSITORY") or str(root), Present(root).named(str(base / config.name))


def make_scene(folder: CacheFolder, config: Path, python: Path, environment: Mapping[str, str], today: str) -> Scene:
    """The scene of a run with that config, interpreter and environment.

    Args:
        folder: where verdicts are kept.
        config: the config's path.
        python: the project's interpreter.
        environment: the caller's.
        today: ISO date (UTC).
    """
    root, repository, name = owner(config, environment)
    present = Present(root)
    return Scene(
        folder=folder,
        base=config_folder(config),
        repository=repository,
        config=name,
        python=python,
        environment=environment,
        passed=worker_environment(environment),
        circumstances=circumstances(present.named(os.path.abspath(python)), environment),  # noqa: PTH100 - a venv's is a link
        present=present,
        today=today,
    )
