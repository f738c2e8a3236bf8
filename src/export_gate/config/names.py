"""Names that a config gives to dims, inputs and outputs."""

from __future__ import annotations

from keyword import kwlist

from export_gate.config.kinds import Text

NAME = Text(expected="a Python identifier", pattern="[A-Za-z_][A-Za-z0-9_]*", excluded=tuple(kwlist), max_length=100)

OUTPUT_NAME = Text(
    expected="an output name such as logits or boxes.0",
    pattern=r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*",
    max_length=100,
)
