"""Write a recipe into the user's own line: with the arguments that stand there, so that it can be pasted."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from export_gate.rules.recipe_table import Recipe
from export_gate.rules.user_lines import (
    MODULES,
    PRIMARY,
    UserLine,
    arguments_of,
    is_plain,
    name_of,
    names_in,
    path_to,
    user_line,
    with_names,
)
from export_gate.wall.nodes import GuiltyNode

RESULT = "out"
"""What recipes call their result."""
OPERATORS: dict[str, type[ast.operator]] = {
    "remainder": ast.Mod, "floor_divide": ast.FloorDiv, "__lshift__": ast.LShift, "__rshift__": ast.RShift,
}  # fmt: skip
OWN_SCOPE = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.IfExp, ast.BoolOp)
"""Parts of a statement in which a line before it has other variables, or runs where the part would not."""


def placed(recipe: Recipe, node: GuiltyNode) -> Recipe:
    """The recipe in the user's statement; as it is where the line does not surely say what becomes of what."""
    line = None if node.foreign is not None else user_line(node.source)
    if line is None or node.source is None:
        return recipe
    pattern = _Pattern.of(recipe)
    found = [match for part in ast.walk(line.tree) if (match := pattern.match(part, recipe, node))]
    # Of two such calls in one line either may be the one.
    if len(found) != 1:
        return replace(recipe, again=f"line {node.source.line}" if found else "")
    lines = _written(recipe, line, *found[0])
    return recipe if lines is None else replace(recipe, lines=lines, place=f"line {node.source.line}")


@dataclass(frozen=True, slots=True)
class _Pattern:
    """What a recipe replaces: a call or an operator, perhaps of the result a part."""

    root: ast.expr
    part: str
    """`values` of `x.kthvalue(2).values`."""
    arguments: tuple[ast.expr, ...]

    @classmethod
    def of(cls, recipe: Recipe) -> _Pattern:
        whole = ast.parse(recipe.call, mode="eval").body
        root, part = (whole.value, whole.attr) if isinstance(whole, ast.Attribute) else (whole, "")
        if isinstance(root, ast.BinOp):
            return cls(root, part, (root.left, root.right))
        return cls(root, part, tuple(arguments_of(root) or ()) if isinstance(root, ast.Call) else ())

    @property
    def is_open(self) -> bool:
        """Whether it leaves some arguments out: `F.conv_transpose2d(x, weight, bias, ...)`."""
        return any(isinstance(node, ast.Constant) and node.value is ... for node in self.arguments)

    @property
    def variables(self) -> dict[str, int]:
        """Names that stand for the user's arguments -> their places."""
        return {node.id: at for at, node in enumerate(self.arguments) if isinstance(node, ast.Name)}

    def match(self, node: ast.AST, recipe: Recipe, guilty: GuiltyNode) -> tuple[ast.expr, dict[str, ast.expr]] | None:
        """The user's expression that it is, with its arguments by the recipe's names; None if it is another."""
        whole = node
        if self.part:
            if not isinstance(node, (ast.Attribute, ast.Subscript)) or not _is_part(node, self.part):
                return None
            node = node.value
        elif isinstance(node, ast.Call) and _layer(node, guilty):
            return self._of_layer(node)
        given = _arguments(node, _names(recipe))
        if given is None or not isinstance(whole, ast.expr) or max(self.variables.values(), default=-1) >= len(given):
            return None
        # Further ones are settings that the node's own arguments say; a tensor among them would be another matter.
        if not all(isinstance(other, ast.Constant) for other in given[len(self.arguments) :]) and not self.is_open:
            return None
        return whole, {name: given[at] for name, at in self.variables.items()}

    def _of_layer(self, call: ast.Call) -> tuple[ast.expr, dict[str, ast.expr]] | None:
        """The call of a layer: `self.up(x)`, whose weights are its attributes."""
        if len(call.args) != 1 or call.keywords or not set(self.variables) <= {"x", "weight", "bias"}:
            return None
        own = {name: ast.Attribute(call.func, name) for name in self.variables if name != "x"}
        return call, {**own, "x": call.args[0]}


def _written(recipe: Recipe, line: UserLine, part: ast.expr, given: Mapping[str, ast.expr]) -> str | None:
    tree = ast.parse(recipe.lines)
    stored = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    # An argument that the recipe writes to, or that is computed and stands in it twice, gets a name of its own.
    bound = [name for name in given if name in stored or not (is_plain(given[name]) or _times(tree, name) < 2)]  # noqa: PLR2004
    is_short = recipe.lines.count("\n") == 0 and not bound
    if not is_short and not _takes_lines_before(line, part):
        return None
    texts = {name: line.atom(node) for name, node in given.items()}
    if is_short:
        assert isinstance(tree.body[0], ast.Assign)
        value = with_names(ast.unparse(tree.body[0].value), texts)
        return _in_place(line, part, value, is_primary=isinstance(tree.body[0].value, PRIMARY))
    target = _target(line, part, given)
    kept = isinstance(line.tree, ast.Return)
    fresh = {name: _fresh(name, line, given, is_last=kept) for name in dict.fromkeys([*bound, *stored])}
    fresh[RESULT] = target or fresh[RESULT]
    before = "".join(f"{fresh[name]} = {line.segment(given[name])}\n" for name in bound)
    body = before + with_names(recipe.lines, {**texts, **fresh})
    return body if target else f"{body}\n{line.replaced(part, fresh[RESULT])}"


def _in_place(line: UserLine, part: ast.expr, value: str, *, is_primary: bool) -> str:
    is_whole = getattr(line.tree, "value", None) is part
    return line.replaced(part, value if is_primary or is_whole else f"({value})")


def _target(line: UserLine, part: ast.expr, given: Mapping[str, ast.expr]) -> str:
    """The user's own variable that gets the result, if it gets it whole and is no argument."""
    match line.tree:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is part:
            return "" if any(name in names_in(node) for node in given.values()) else name
    return ""


def _fresh(name: str, line: UserLine, given: Mapping[str, ast.expr], *, is_last: bool) -> str:
    """A name that the user does not seem to have; nothing runs after a `return`, so that there any other will do."""
    taken = names_in(line.tree) | set(given)
    return name if is_last and name not in taken else f"{name}_"


def _takes_lines_before(line: UserLine, part: ast.expr) -> bool:
    """Whether lines before the statement can compute a part of it."""
    return not isinstance(line.tree, (ast.While, ast.For)) and not any(
        isinstance(outer, OWN_SCOPE) for outer in path_to(line.tree, part)
    )


def _times(tree: ast.AST, name: str) -> int:
    return sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


def _names(recipe: Recipe) -> Iterator[str]:
    """What the user may have called: `adaptive_avg_pool2d` of `aten._adaptive_avg_pool2d`."""
    for name in recipe.names:
        parts = name.split(".")
        yield (parts[1] if parts[0] == "aten" else parts[-1]).lstrip("_").removesuffix("_forward")
        yield parts[1] if parts[0] == "aten" else parts[-1]


def _arguments(node: ast.AST, names: Iterator[str]) -> list[ast.expr] | None:
    """The arguments if the node is a call or an operator of one of these names."""
    known = set(names)
    if isinstance(node, ast.BinOp):
        is_it = any(isinstance(node.op, kind) for name, kind in OPERATORS.items() if name in known)
        return [node.left, node.right] if is_it else None
    if not isinstance(node, ast.Call) or name_of(node) not in known:
        return None
    return arguments_of(node)


def _is_part(node: ast.Attribute | ast.Subscript, part: str) -> bool:
    """`.values`, or `[0]` for it, as torch returns values before indices."""
    if isinstance(node, ast.Attribute):
        return node.attr == part
    return isinstance(node.slice, ast.Constant) and node.slice.value == {"values": 0, "indices": 1}.get(part)


def _layer(call: ast.Call, guilty: GuiltyNode) -> bool:
    """Whether the call is that of the guilty layer: `self.up(x)` of `decoder.up`."""
    written = ast.unparse(call.func)
    return bool(guilty.module) and written == f"self.{guilty.module.rpartition('.')[2]}" and MODULES[0] not in written
