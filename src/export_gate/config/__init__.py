"""Read `export-gate.yml` into a `Config`, and report every error at once, each as file:line:col."""

from __future__ import annotations

from export_gate.config.grammar import json_schema
from export_gate.config.load import load_config
from export_gate.config.record import Config, Position

__all__ = ["Config", "Position", "json_schema", "load_config"]
