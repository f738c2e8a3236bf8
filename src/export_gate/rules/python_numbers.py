"""Say how a line makes a Python number of a size, which torch.export then takes for a constant, and what to write."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from export_gate.wall.source import SourceLine

ROOTS = ("math.sqrt", "np.sqrt", "numpy.sqrt")
PLAIN = ("int", "float")
SAME_IN_TORCH = ("arange", "linspace", "logspace", "zeros", "ones", "eye", "full")
"""NumPy's functions that torch has under the same name, with the same arguments in the same order."""


def constant_advice(source: SourceLine | None) -> str:
    """What on the line makes a constant of a size, with what to write instead; empty if nothing known does."""
    tree = None if source is None else _parsed(source.text)
    if tree is None:
        return ""
    found = (words for node in ast.walk(tree) for make in WAYS for words in make(node))
    return next(found, "")


def counted(text: str, name: str = "int") -> str:
    """`k.max()` of `n = int(k.max())`; empty if the line makes no such number of anything."""
    tree = _parsed(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree else []
    whole = (ast.unparse(call.args[0]) for call in calls if ast.unparse(call.func) == name and len(call.args) == 1)
    return next(whole, "")


def _parsed(text: str) -> ast.AST | None:
    """The statement, of which a line may hold the head alone (`for t in range(n):`)."""
    line = text.strip()
    # A head has no body here, and `elif` begins nothing.
    for attempt in (line, f"{line} pass", f"{line.removeprefix('el')} pass", line.rstrip("(, ")):
        try:
            return ast.parse(attempt)
        except SyntaxError:
            continue
    return None


def _loops(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.For, ast.comprehension)):
        over = ast.unparse(node.iter)
        yield (
            f"the loop over `{over}` is unrolled, as often as the example is long: compute all steps at once with "
            "operators on the whole axis, or, where a step needs the one before, with "
            "`torch._higher_order_ops.scan(step, state, x, dim=...)`, whose `step` is written in plain operators"
        )


def _casts(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return
    name, inner = ast.unparse(node.func), ast.unparse(node.args[0])
    whole = f"`{name}({inner})` makes a Python number of a size"
    if name in PLAIN and isinstance(node.args[0], (ast.Name, ast.Subscript, ast.Attribute, ast.Call)):
        use = ", dtype=torch.float32)` for a range of floats" if name == "float" else ""
        more = f" (`torch.arange({inner}{use})" if use else ""
        yield f"{whole}: write `{inner}`, which computes with tensors and other sizes as it is{more}"
    elif name == "int":
        yield f"{whole}: compute it in integers (`//`), without `int(...)`"
    elif name in ROOTS:
        yield f"{whole}: write `({inner}) ** 0.5`"
    elif name.startswith("math.") and name.partition(".")[2] not in ("ceil", "floor", "prod"):
        function = name.partition(".")[2]
        yield f"{whole}: write `torch.{function}(torch.scalar_tensor({inner}))`"


def _numpy(node: ast.AST) -> Iterator[str]:
    """NumPy computes outside of torch, with the sizes of the example."""
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).startswith(("np.", "numpy.")):
        return
    written, function = ast.unparse(node), ast.unparse(node.func).partition(".")[2]
    if "shape" not in written and "size(" not in written and "len(" not in written:
        return
    if function in SAME_IN_TORCH:
        given = [ast.unparse(argument) for argument in node.args]
        yield (
            f"`{written}` is computed by NumPy from the example's size: write "
            f"`torch.{function}({', '.join(given)})`, without `torch.from_numpy` around it"
        )
    elif function not in ("prod", "ceil", "floor"):
        size = ast.unparse(node.args[0]) if len(node.args) == 1 else ""
        other = f"`torch.{function}(torch.scalar_tensor({size}))`" if size else "the same with operators of torch"
        yield f"`{written}` is computed by NumPy from the example's size: write {other}"


def _lists(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return
    if any(isinstance(side, (ast.List, ast.Tuple)) for side in (node.left, node.right)):
        written = ast.unparse(node)
        yield f"`{written}` makes a list as long as the example: write `torch.full((n,), value)`"


WAYS: tuple[Callable[[ast.AST], Iterator[str]], ...] = (_casts, _numpy, _lists, _loops)
