"""The shape guards of an exported program, in the contract's dims: which declared sizes take another branch.

`torch.export` records every condition on sizes that held for the reference input and that it could not prove of the
declared range. A size that breaks one is refused by the program, or was never seen by it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from torch.export import ExportedProgram
from torch.utils._pytree import tree_leaves

from export_gate.wall.contract import ModelContract
from export_gate.worker.controls.specs import build_values
from export_gate.worker.export.guard_lines import GuardLine
from export_gate.worker.export.program import Exported, named_arguments
from export_gate.worker.model.factory import Parameter, bind

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A condition on sizes under which the program was traced."""

    words: str
    """Where it does not hold, e.g. `dst == src + 1`."""
    holds: str
    """The condition itself."""
    dims: tuple[str, ...]
    """Declared dims that it reads."""
    code: CodeType
    """The condition over `dims`, for integers and for arrays of them."""
    line: GuardLine | None = None
    """Where torch came to need it, if it was noted."""

    def is_broken(self, sizes: Mapping[str, Any], count: int = 1) -> Bools:
        """At which of `count` size tuples (integers, or an array for each dim) it does not hold; none if unknown."""
        try:
            with np.errstate(all="ignore"):
                holds = eval(self.code, {"__builtins__": {}, **FUNCTIONS, **sizes})  # noqa: S307 - torch's own guard
        except Exception:  # noqa: BLE001 - a guard that cannot be computed chooses no sizes
            return np.zeros(count, dtype=np.bool_)
        return np.broadcast_to(~np.asarray(holds, dtype=np.bool_), (count,))


def shape_guards(program: ExportedProgram) -> tuple[str, ...]:
    """The program's guards as torch writes them, over `L['x'].size()[i]`.

    The attribute is private (torch 2.13). Without it there are none, and only executed sizes show a branch.
    """
    found = getattr(program, "_guards_code", None)
    is_known = isinstance(found, (list, tuple)) and all(isinstance(line, str) for line in found)
    return tuple(found) if found and is_known else ()


def guards_in_dims(exported: Exported, contract: ModelContract, parameters: Sequence[Parameter]) -> tuple[Guard, ...]:
    """The guards that read declared dims, each once; those that say anything else are left out."""
    lines = {guard.words: guard.line for guard in noted_in_dims(exported.guards, contract, parameters)}
    found = filter(None, _in_dims(shape_guards(exported.program), contract, parameters))
    return tuple({guard.words: replace(guard, line=lines.get(guard.words)) for guard in found}.values())


def noted_in_dims(
    noted: Sequence[GuardLine], contract: ModelContract, parameters: Sequence[Parameter]
) -> tuple[Guard, ...]:
    """The same of guards that were noted while torch traced, which an export that failed has as well."""
    found = _in_dims([line.text for line in noted], contract, parameters)
    return tuple(replace(guard, line=line) for line, guard in zip(noted, found, strict=True) if guard is not None)


def _in_dims(
    lines: Sequence[str], contract: ModelContract, parameters: Sequence[Parameter]
) -> tuple[Guard | None, ...]:
    """Each line's guard; None for one that says anything else."""
    named, dims = {"L": _spelled_inputs(contract, parameters)}, {dim.name for dim in contract.dims}
    return tuple(_guard(line, named, dims) for line in lines)


class _Spelled:
    """A stand-in for a tensor in a guard: its axes are the contract's words for their lengths."""

    def __init__(self, shape: tuple[str, ...]) -> None:
        self.shape = shape

    def size(self) -> tuple[str, ...]:
        """As `torch.Tensor.size`."""
        return self.shape


def _spelled_inputs(contract: ModelContract, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """What `L` is in a guard; strict export numbers the inputs instead of naming them."""
    values = build_values(contract, lambda _, spec: _Spelled(tuple(map(str, spec.shape))))
    call = bind(values, parameters)
    return {**named_arguments(call, parameters), "flat_args": tree_leaves((call.args, call.kwargs))}


def _guard(line: str, named: Mapping[str, Any], dims: set[str]) -> Guard | None:
    try:
        spelled = _Speller(named).visit(ast.parse(line, mode="eval"))
        # Before the code: `_Elementwise` changes the tree in place.
        condition = _Tidy().visit(spelled.body)
        holds, words = ast.unparse(condition), ast.unparse(_negated(condition))
        read = {node.id for node in ast.walk(spelled) if isinstance(node, ast.Name)} - FUNCTIONS.keys()
        code = compile(ast.fix_missing_locations(_Elementwise().visit(spelled)), "<guard>", "eval")
    except Exception:  # noqa: BLE001 - whatever torch writes there besides sizes chooses none
        return None
    # One that reads anything else, such as a value, cannot be computed from sizes.
    return Guard(words=words, holds=holds, dims=tuple(sorted(read)), code=code) if read and read <= dims else None


class _Speller(ast.NodeTransformer):
    """`L['x'].size()[0]` to the contract's expression for that axis."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = dict(named)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        # Evaluated rather than matched, so that every way of spelling an axis works.
        whole = ast.fix_missing_locations(ast.Expression(node))
        text = eval(compile(whole, "<axis>", "eval"), {"__builtins__": {}, **self._named})  # noqa: S307 - as above
        axis: ast.expr = ast.parse(text, mode="eval").body
        return axis


class _Tidy(ast.NodeTransformer):
    """`1 + n` and `-1 + n` as people write them."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        number = _number(node.left)
        if not isinstance(node.op, ast.Add) or number is None or _number(node.right) is not None:
            return node
        op = ast.Sub() if number < 0 else ast.Add()
        return ast.BinOp(left=node.right, op=op, right=ast.Constant(abs(number)))


def _number(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, int) else None


def _negated(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPPOSITES:
        return ast.Compare(left=node.left, ops=[OPPOSITES[type(node.ops[0])]()], comparators=node.comparators)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    return ast.UnaryOp(op=ast.Not(), operand=node)


class _Elementwise(ast.NodeTransformer):
    """`and`, `or` and `not`, which take no arrays, to functions that do."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        name = "__all" if isinstance(node.op, ast.And) else "__any"
        return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=node.values, keywords=[])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return ast.Call(func=ast.Name(id="__not", ctx=ast.Load()), args=[node.operand], keywords=[])


_SAME_IN_NUMPY = (
    "ceil", "floor", "trunc", "sqrt", "exp", "log", "log2", "sin", "cos", "tan", "sinh", "cosh", "tanh", "inf", "nan",
)  # fmt: skip
FUNCTIONS: dict[str, Any] = {
    "math": SimpleNamespace(
        **{name: getattr(np, name) for name in _SAME_IN_NUMPY}, asin=np.arcsin, acos=np.arccos, atan=np.arctan
    ),
    "torch": SimpleNamespace(sym_float=np.float64, _sym_sqrt=np.sqrt, sym_max=np.maximum, sym_min=np.minimum),
    "float": np.float64,
    "int": np.trunc,
    "round": np.round,
    "max": lambda *values: reduce(np.maximum, values),
    "min": lambda *values: reduce(np.minimum, values),
    "abs": np.abs,
    "__all": lambda *values: reduce(np.logical_and, values),
    "__any": lambda *values: reduce(np.logical_or, values),
    "__not": np.logical_not,
}
"""What a guard may call, elementwise: all that torch's printer of guards writes (2.13 and 2.14).

Python's `int` truncates and its `round` rounds halves to even; so do NumPy's.
"""
