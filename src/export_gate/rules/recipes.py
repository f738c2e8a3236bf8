"""Find the recipe for a node that does not convert, with the node's own arguments in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace

from export_gate.rules.placing import placed
from export_gate.rules.recipe_table import OF_TWO, POSITIVE, RECIPES, Recipe
from export_gate.wall.nodes import GuiltyNode

LIST = re.compile(r"\[-?\d+(?:, -?\d+)*\]")
NO_BIAS = re.compile(r"(?:\nout = out)? \+ bias\[[^\]]*\]")
"""What a recipe says of a bias, for a layer that has none."""
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def recipe_of(node: GuiltyNode | None, error: str = "") -> Recipe | None:
    """The recipe for a node, with the node's own arguments in it; None if there is none.

    Args:
        node: that does not convert, or is wrong.
        error: what a runtime says of it.
    """
    if node is None:
        return None
    called_by = {node.operator, node.operator.rpartition(".")[0], node.function}
    mine = [recipe for recipe in RECIPES if called_by.intersection(recipe.names)]
    arguments = dict(node.arguments)
    found = next((recipe for recipe in mine if recipe.error in error and _fits(recipe, arguments)), None)
    if found is None:
        return None
    given = _Given(_with_ends(arguments))
    lines = found.lines.format_map(given)
    lines = lines if arguments.get("bias") != "None" else NO_BIAS.sub("", lines)
    return placed(replace(found, call=found.call.format_map(given), lines=lines), node)


def called(node: GuiltyNode) -> str:
    """What the user calls, as code."""
    return f"`{node.function or node.operator}`"


def _fits(recipe: Recipe, arguments: Mapping[str, str]) -> bool:
    # A guilty part of a function does not have the function's arguments, which are then not known.
    return all(_is_met(arguments.get(name), value) for name, value in recipe.when.items())


def _is_met(argument: str | None, wanted: str) -> bool:
    if wanted == POSITIVE:
        return _has_positive(argument or "")
    if wanted == OF_TWO:
        return (argument or "").count(",") == 1
    return argument is None or argument == wanted


def _has_positive(text: str) -> bool:
    """Whether it is a positive number, or a list with one."""
    parts = text.strip("[]").split(", ")
    return any(NUMBER.fullmatch(part) is not None and float(part) > 0 for part in parts)


def _with_ends(arguments: Mapping[str, str]) -> dict[str, str]:
    """The arguments, and of lists of numbers the ends, as `output_size_first` and `output_size_last`."""
    lists = {name: ast.literal_eval(text) for name, text in arguments.items() if LIST.fullmatch(text)}
    ends = {
        f"{name}_{end}": repr(items[at]) for name, items in lists.items() for end, at in (("first", 0), ("last", -1))
    }
    return {**arguments, **ends}


class _Given(dict[str, str]):
    """Arguments by name; one that is not known is written as a variable of its name."""

    def __missing__(self, name: str) -> str:
        return name.removesuffix("_last").removesuffix("_first")
