"""Configs to read: snippets from `messages/` in the config they belong to, and the documented ones."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from export_gate.config import Config, load_config
from export_gate.wall.errors import UserError

DOCS = Path(__file__).parents[3] / "docs" / "config.md"

MESSAGES = Path(__file__).parent / "messages"

_CONFIG = """\
version: 1
models:
  m:
    factory: pkg.mod:make
    dims: {dims}
    inputs:
      x: {x}
{more}
"""
_DIMS, _X = "{n: {min: 2, max: 8}}", "{dtype: float32, shape: [n, 3]}"


def config(*, dims: str = _DIMS, x: str = _X, more: str = "") -> str:
    """A small config that is right but for what is given; `more` starts on line 8."""
    return _CONFIG.replace("{dims}", dims).replace("{x}", x).replace("{more}", more)


TEMPLATES = {
    "document": str,
    "syntax": str,
    "top-level": lambda snippet: config(more=snippet),
    "models": lambda snippet: config(more=f"  {snippet}"),
    "model": lambda snippet: config(more=f"    {snippet}"),
    "dims": lambda snippet: config(dims=snippet),
    "input": lambda snippet: config(x=snippet),
}


def samples(name: str) -> list[tuple[str, str]]:
    """Each snippet of that file with the whole config it makes."""
    blocks = (MESSAGES / f"{name}.txt").read_text(encoding="utf-8").strip("\n").split("\n\n")
    snippets = ["\n".join(line for line in block.split("\n") if not line.startswith("=> ")) for block in blocks]
    return [(snippet, TEMPLATES[name](snippet)) for snippet in snippets]


def documented_configs() -> list[str]:
    """The small and the full example of docs/config.md."""
    return re.findall(r"```yaml\n(version:.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)


LINE = re.compile(r"export-gate\.yml:\d+:\d+: .*expected .+|export-gate\.yml: expected .+")
SECONDS = 3.0
"""The longest that any file may keep the gate busy, on this process's clock: a second, and what a busy machine adds."""


def read(content: bytes) -> Config | str:
    """The config or the messages; anything else is a fault, as is taking long."""
    Path("export-gate.yml").write_bytes(content)
    start = time.process_time()
    try:
        answer: Config | str = load_config(Path("export-gate.yml"))
    except UserError as error:
        answer = str(error)
        assert all(LINE.fullmatch(line) and line.isprintable() for line in answer.split("\n"))
    assert time.process_time() - start < SECONDS
    return answer


class Project:
    """The folder of a config."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, text: str | bytes) -> Config:
        """The config with this text."""
        path = self.folder / "export-gate.yml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load_config(Path("export-gate.yml"))

    def mistakes(self, text: str | bytes) -> list[str]:
        """The lines that the user sees for a config with this text."""
        with pytest.raises(UserError) as caught:
            self.load(text)
        return str(caught.value).splitlines()
