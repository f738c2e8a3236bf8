"""Snippets of configs from `messages/`, put into the config they belong to."""

from __future__ import annotations

from pathlib import Path

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
