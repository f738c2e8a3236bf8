"""Read a line of the user's code as Python, and write parts of it anew in the user's own words."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from export_gate.wall.nodes import GuiltyNode
from export_gate.wall.source import SourceLine

MODULES = ("torch", "th", "F", "nn", "functional", "np", "numpy", "math")
"""Names of which a function is called rather than a method: `F.pad(x, ...)`, not `x.pad(...)`."""
PRIMARY = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
"""What needs no parentheses anywhere."""


@dataclass(frozen=True, slots=True)
class UserLine:
    """A statement of the user, or the head of one with a body."""

    text: str
    tree: ast.stmt

    def segment(self, node: ast.expr) -> str:
        """The user's own text of a part."""
        return ast.get_source_segment(self.text, node) or ast.unparse(node)

    def atom(self, node: ast.expr) -> str:
        """The same, in parentheses where what comes after it would bind to a part of it."""
        text = self.segment(node)
        return text if isinstance(node, PRIMARY) else f"({text})"

    def replaced(self, node: ast.expr, text: str) -> str:
        """The statement with other text for a part of it."""
        return self.edited([(node.col_offset, node.end_col_offset or 0, text)])

    def edited(self, edits: Sequence[tuple[int, int, str]]) -> str:
        """The statement with other text between these columns, which do not overlap."""
        # Python counts columns in bytes of UTF-8. From the right: a replacement moves what comes after it.
        whole = self.text.encode()
        for start, end, text in sorted(edits, reverse=True):
            whole = whole[:start] + text.encode() + whole[end:]
        return whole.decode()

    def calls(self, *names: str) -> list[ast.Call]:
        """The calls of functions and methods with one of these names, which may have dots; all without a name."""
        calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        return [call for call in calls if not names or _is_named(call, names)]


def user_line(source: SourceLine | None) -> UserLine | None:
    """The statement; None if the text is no whole one."""
    if source is None:
        return None
    text = source.text.strip()
    # A head has no body here, and `elif` begins nothing: its columns would not be those of the text.
    for attempt in (text, f"{text} pass"):
        try:
            body = ast.parse(attempt).body
        except (SyntaxError, ValueError):
            continue
        return UserLine(text, body[0]) if len(body) == 1 and text.isprintable() else None
    return None


def name_of(call: ast.Call) -> str:
    """`atan2` of `torch.atan2(y, x)` and of `y.atan2(x)`."""
    return ast.unparse(call.func).rpartition(".")[2]


def arguments_of(call: ast.Call) -> list[ast.expr] | None:
    """The positional arguments, with the object of a method first; None if a star hides some."""
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    is_method = isinstance(call.func, ast.Attribute) and _root(call.func) not in MODULES
    return [*([call.func.value] if is_method and isinstance(call.func, ast.Attribute) else []), *call.args]


def names_in(tree: ast.AST) -> set[str]:
    """All names that it reads or writes."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def is_plain(node: ast.expr) -> bool:
    """Whether it can stand several times in an expression: a name, an attribute, an item."""
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        index = node.slice if isinstance(node, ast.Subscript) else None
        return is_plain(node.value) and (index is None or isinstance(index, (ast.Constant, ast.Name)))
    return isinstance(node, ast.Name)


def path_to(tree: ast.AST, node: ast.AST) -> Iterator[ast.AST]:
    """What a node lies in, from the statement down to the node itself."""
    for child in ast.iter_child_nodes(tree):
        if child is node:
            yield from (tree, child)
            return
        below = list(path_to(child, node))
        if below:
            yield tree
            yield from below
            return


def with_names(text: str, names: dict[str, str]) -> str:
    """Lines of Python with other text for these names; comments stay."""
    tree, rows = ast.parse(text), [row.encode() for row in text.splitlines()]
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in names]
    # From the right: a replacement moves what comes after it.
    for node in sorted(found, key=lambda node: -node.col_offset):
        row = rows[node.lineno - 1]
        rows[node.lineno - 1] = row[: node.col_offset] + names[node.id].encode() + row[node.end_col_offset :]
    return "\n".join(row.decode() for row in rows)


def converted_call(node: GuiltyNode | None, inner: str, outer: str) -> str:
    """The user's statement with a call that computes in one dtype and returns another; empty if it is not known.

    Args:
        node: what is called.
        inner: the dtype to compute in.
        outer: the dtype that the call returns.
    """
    line = user_line(node.source) if node and node.foreign is None else None
    calls = line.calls(node.function.rpartition(".")[2]) if line and node and node.function else []
    given = arguments_of(calls[0]) if len(calls) == 1 else None
    # Of two tensors both would have to be converted, and names alone do not show which arguments are tensors.
    if line is None or not given or not all(_is_setting(argument) for argument in given[1:]):
        return ""
    (call,), first = calls, given[0]
    edits = [(first, f"{line.atom(first)}.to(torch.{inner})")]
    edits += [(each.value, f"torch.{inner}") for each in call.keywords if each.arg == "dtype"]
    if not all(_is_setting(each.value) or each.arg == "dtype" for each in call.keywords):
        return ""
    end = call.end_col_offset or 0
    return line.edited(
        [
            *((part.col_offset, part.end_col_offset or 0, text) for part, text in edits),
            (end, end, f".to(torch.{outer})"),
        ]
    )


def _is_setting(node: ast.expr) -> bool:
    """Whether an argument is a number or a word, and no tensor."""
    return isinstance(node, (ast.Constant, ast.UnaryOp))


def _is_named(call: ast.Call, names: Sequence[str]) -> bool:
    written = ast.unparse(call.func)
    return any(written == name or written.endswith(f".{name}") for name in names)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
