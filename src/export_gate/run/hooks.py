"""Turn the text of `.pre-commit-config.yaml` into its hooks that run the gate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from export_gate.loosening.steps import GateStep, Workflow
from export_gate.run.workflow_file import read_value
from export_gate.run.workflow_job import GATE, Known, as_text, texts

HOOKS = ".pre-commit-config.yaml"
_NAMES = ("id", "name", "alias", "description", "verbose", "log_file")
"""Keys of a hook that choose nothing."""
_SHARED = ("files", "exclude", "default_stages", "default_install_hook_types", "default_language_version", "ci")
"""Keys at the top level that choose which hooks run, when, and with what."""


def read_hooks(text: str, known: Known) -> Workflow | None:
    """The hooks as steps; None if the file cannot be read."""
    value = read_value(text)
    return None if value is None else Workflow(steps=tuple(_hooks(value, known)))


def _hooks(value: dict[str, Any], known: Known) -> Iterator[GateStep]:
    shared = {key: as_text(value[key]) for key in _SHARED if key in value}
    for repo in _mappings(value.get("repos")):
        source = str(repo.get("repo") or "")
        for hook in _mappings(repo.get("hooks")):
            name = str(hook.get("id"))
            if name.startswith(GATE) or GATE in re.split(r"[/.]", source) or known.is_command(as_text(hook)):
                yield GateStep(
                    part=f"hook {name}",
                    action=source,
                    version=str(repo.get("rev") or ""),
                    is_call=True,
                    inputs=texts({key: item for key, item in hook.items() if key not in _NAMES}),
                    settings=shared,
                )


def _mappings(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
