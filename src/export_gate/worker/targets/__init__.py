"""The artifacts a program is exported to, listed in `TARGETS`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from export_gate.wall.contract import TargetName
from export_gate.worker.targets import aoti, exported_program, onnx, pt2
from export_gate.worker.targets.base import TargetModule

TARGETS: Mapping[TargetName, TargetModule] = MappingProxyType(
    {
        "exported-program": exported_program,
        "pt2": pt2,
        "onnx": onnx,
        "aoti": aoti,
    }
)
"""Cheapest first: the order in which they are observed."""
