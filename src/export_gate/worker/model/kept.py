"""Say what holds the state that forward changes, and find the line that makes it."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from export_gate.wall.observation import StateHome
from export_gate.wall.source import SourceLine
from export_gate.worker.model.writing import NAME
from export_gate.worker.process.failures import quoted_line

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def home_of(change: str, writing: SourceLine | None, module: torch.nn.Module) -> StateHome | None:
    """Where one thing lives that forward changed; None if that is not known.

    Args:
        change: as `name: before -> after`.
        writing: the project's line that changes it.
        module: the model.
    """
    found = NAME.match(change)
    name = found[0].rstrip(".") if found else ""
    owner, _, last = name.rpartition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        holder = _submodule(module, owner)
        if holder is not None and name and (last in holder._buffers or last in vars(holder)):  # noqa: SLF001 - torch has no other way to ask for one name
            is_buffer = last in holder._buffers  # noqa: SLF001 - as above
            return StateHome(
                name=name, kind="buffer" if is_buffer else "attribute", source=_line_of_attribute(type(holder), last)
            )
        return None if writing is None else _outside(name, writing)


def _submodule(module: torch.nn.Module, path: str) -> torch.nn.Module | None:
    try:
        return module.get_submodule(path)
    except AttributeError:
        return None


def _line_of_attribute(kind: type, name: str) -> SourceLine | None:
    """The line of a class, or of one that it inherits from, that makes an attribute."""
    makes = re.compile(
        rf"self\.{re.escape(name)}(?:\s*:[^=]+)?\s*=(?!=)|register_buffer\(\s*['\"]{re.escape(name)}['\"]"
    )
    for each in kind.__mro__:
        if each.__module__.partition(".")[0] in ("torch", "builtins"):
            continue
        try:
            rows, first = inspect.getsourcelines(each)
            path = inspect.getsourcefile(each) or ""
        except (OSError, TypeError):
            continue
        for number, row in enumerate(rows, start=first):
            if makes.search(row):
                return quoted_line(path, number)
    return None


def _outside(name: str, writing: SourceLine) -> StateHome | None:
    """A variable of the file, of an outer function or of a class, or a default argument."""
    try:
        tree = ast.parse("".join(linecache.getlines(writing.path)))
    except (SyntaxError, ValueError):
        return None
    owner, _, last = name.rpartition(".")
    if owner:
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == owner]
        line = next((line for node in classes for line in _assigned(node, last)), None)
        return StateHome(name=name, kind="class", source=quoted_line(writing.path, line) if line else None)
    scopes = list(_scopes(tree, writing.line))
    for depth, scope in enumerate(reversed(scopes)):
        if isinstance(scope, ast.ClassDef):
            continue
        if depth == 0 and not isinstance(scope, ast.Module) and any(each.arg == last for each in scope.args.args):
            return StateHome(name=name, kind="default", source=quoted_line(writing.path, scope.lineno))
        line = next(iter(_assigned(scope, last)), None)
        if line is not None and (depth or isinstance(scope, ast.Module)):
            kind: Any = "global" if isinstance(scope, ast.Module) else "closure"
            return StateHome(name=name, kind=kind, source=quoted_line(writing.path, line))
    return None


def _scopes(tree: Scope, line: int) -> Iterator[Scope]:
    """The scopes around a line, the outermost first."""
    yield tree
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or node is tree:
            continue
        if node.lineno <= line <= (node.end_lineno or 0):
            # The walk is by depth, so that the first is the outermost.
            yield from _scopes(node, line)
            return


def _assigned(scope: Scope, name: str) -> Iterator[int]:
    """Lines of a scope itself, and not of functions in it, that assign the name."""
    stack: list[ast.AST] = list(scope.body)
    while stack:
        node = stack.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(each, ast.Name) and each.id == name for target in targets for each in ast.walk(target)):
            yield getattr(node, "lineno", 0)
        stack += ast.iter_child_nodes(node)
