"""The artifacts a program is exported to: one module for each of `KINDS`, called like it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from export_gate.wall.targets import KINDS
from export_gate.worker.targets.base import TargetModule

TARGETS: Mapping[str, TargetModule] = MappingProxyType(
    {kind.name: cast("TargetModule", import_module(f"{__name__}.{kind.name.replace('-', '_')}")) for kind in KINDS}
)
"""Kind -> its module."""
