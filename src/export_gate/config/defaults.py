"""Merge `defaults` into each model, before anything is checked."""

from __future__ import annotations

from dataclasses import replace

from export_gate.config.grammar import DEFAULTS
from export_gate.config.nodes import Allowance, Node, join, relocate

_DEEP = ("tolerance", "controls")
"""Keys whose mappings merge entry by entry; for other keys, the model's value replaces the whole default."""


def merge_defaults(root: Node, allowance: Allowance) -> Node:
    """Take each model's missing keys from `defaults`; they keep the positions at which they were written.

    Raises:
        Unreadable: the result would be too large.
    """
    defaults, models = root.child("defaults"), root.child("models")
    if not (defaults and models and isinstance(root.value, dict) and isinstance(models.value, dict)):
        return root
    merged = {name: _merge_model(model, defaults, allowance) for name, model in models.value.items()}
    return replace(root, value={**root.value, "models": replace(models, value=merged)})


def _merge_model(model: Node, defaults: Node, allowance: Allowance) -> Node:
    if not isinstance(model.value, dict):
        return model
    entries = dict(model.value)
    for default in defaults.children:
        key, own = default.key, model.child(default.key)
        # An unknown key is reported once, under `defaults`, instead of once in each model.
        if own is None and key in (field.key for field in DEFAULTS.fields):
            entries[key] = relocate(default, join(model.path, key), allowance)
        elif own is not None and key == "targets":
            entries[key] = _merge_targets(own, default, allowance)
        elif own is not None and key in _DEEP:
            entries[key] = _merge_deep(own, default, allowance)
    return replace(model, value=entries)


def _merge_targets(own: Node, default: Node, allowance: Allowance) -> Node:
    """The model's own targets only, each with the options that the default gives it."""
    if not isinstance(own.value, dict):
        return own
    merged = {}
    for name, target in own.value.items():
        options = default.child(name)
        empty = replace(target, value={}) if target.value is None else target
        merged[name] = _merge_deep(empty, options, allowance) if options else target
    return replace(own, value=merged)


def _merge_deep(own: Node, default: Node, allowance: Allowance) -> Node:
    if not (isinstance(own.value, dict) and isinstance(default.value, dict)):
        return own
    entries = dict(own.value)
    for key, item in default.value.items():
        if key in entries:
            entries[key] = _merge_deep(entries[key], item, allowance)
        else:
            entries[key] = relocate(item, join(own.path, key), allowance)
    return replace(own, value=entries)
