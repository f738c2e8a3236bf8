"""Commands that messages print: pasted in the folder where the gate was started, they find the same config."""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass
from pathlib import PurePath

from export_gate.wall.contract import CASE_FILE

DEFAULT_CONFIG = "export-gate.yml"
# Only in a closed pair of backticks, and only if the command does not name a config yet.
_TAKES_CONFIG = re.compile(r"`export-gate (?:run|lock|controls|kit|plan|validate)\b(?![^`]*--config)(?=[^`\n]*`)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What the caller typed, and what every further command needs."""

    config: str = DEFAULT_CONFIG
    """Path of the config: relative to the folder where the gate was started, or absolute."""
    python: str = ""
    """The interpreter that `--python` named."""

    @property
    def words(self) -> list[str]:
        """The options, without those that have their default."""
        named = [] if self.python == "" else ["--python", self.python]
        return [*self._config_words, *named]

    @property
    def _config_words(self) -> list[str]:
        path = PurePath(self.config).as_posix()
        return [] if path == DEFAULT_CONFIG else ["--config", path]

    def located(self, text: str) -> str:
        """The text with the config in each command that takes one: `export-gate lock --config sub/gate.yml`."""
        words = shlex.join(self._config_words)
        return _TAKES_CONFIG.sub(lambda found: f"{found.group()} {words}", text) if words else text


def reproduce(caller: Caller, model: str | None = None, target: str | None = None, case: str | None = None) -> str:
    """`export-gate run glyph-head --target onnx --case 'halves-1@batch=2'`, from the caller's folder."""
    words = ["export-gate", "run", *caller.words]
    words += [] if model is None else [model]
    words += [] if target is None else ["--target", target]
    line = shlex.join(words)
    return line if case is None else f"{line} --case {_quoted(_named(case, caller))}"


def _quoted(word: str) -> str:
    """Quote a case always, so that the command looks the same for every case."""
    quoted = shlex.quote(word)
    return quoted if quoted.startswith("'") else f"'{word}'"


def _named(case: str, caller: Caller) -> str:
    """A name for `--case`, which takes glob patterns: brackets and stars must match literally.

    The name of a file starts at the config's folder, the command in the caller's.
    """
    if case.endswith(CASE_FILE):
        return posixpath.normpath(PurePath(caller.config).parent.joinpath(case).as_posix())
    return re.sub(r"([*?[])", r"[\1]", case)
