"""Find the layers in forward's source that receive a parameter: the first of them shows best what it is."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from export_gate.worker.guess.layers import MAIN_INPUTS, Layer, is_layer, open_up
from export_gate.worker.guess.scripted import plain_modules

DEPTH = 12
"""Submodules and methods looked into, one inside the other."""
NOT_VALUES = frozenset({"shape", "device", "dtype", "ndim", "size", "dim", "numel", "is_cuda", "new_zeros", "new_ones"})
"""Attributes that say something about a tensor without passing its values on."""


def consumers(module: nn.Module, parameter: str, prefix: str = "", depth: int = DEPTH) -> tuple[Layer, ...]:
    """The layers that forward hands the parameter to, in order, each under its dotted name.

    Empty if the source is not available or does not show it.
    """
    module = open_up(module)
    if is_layer(module):
        return (Layer(module=module, name=prefix),) if parameter in MAIN_INPUTS else ()
    if isinstance(module, nn.Sequential):
        return _first_of(module, prefix, depth)
    return _of_function(module, type(module).forward, parameter, prefix, depth)


def _first_of(sequence: nn.Module, prefix: str, depth: int) -> tuple[Layer, ...]:
    """The layers of the first child that is more than elementwise."""
    for name, child in sequence.named_children():
        found = consumers(child, first_parameter(child), _join(prefix, name), depth - 1) if depth else ()
        if found:
            return found
    return ()


def first_parameter(module: nn.Module) -> str:
    """The name of forward's first parameter."""
    return next(iter(inspect.signature(module.forward).parameters), "")


def _of_function(module: nn.Module, function: Any, parameter: str, prefix: str, depth: int) -> tuple[Layer, ...]:
    tree = _source(function, parameter.partition(".")[0])
    if tree is None or depth == 0 or not tree.args.args:
        return ()
    reader = Reader(module=module, this=tree.args.args[0].arg, prefix=prefix, depth=depth, carries={parameter})
    reader.read(tree.body)
    return tuple(reader.found)


def keys_of(module: nn.Module, parameter: str) -> tuple[str, ...]:
    """The keys that forward reads from the parameter, as in `batch["image"]`, in order."""
    tree = _source(type(module).forward, parameter)
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)] if tree else []
    return tuple(dict.fromkeys(name.partition(".")[2] for name in names if name.startswith(f"{parameter}.")))


class _KeysAsNames(ast.NodeTransformer):
    """Turns `batch["image"]` into a variable `batch.image`, which no source can have."""

    def __init__(self, parameter: str) -> None:
        self._parameter = parameter

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))) if name == self._parameter:
                return ast.Name(id=f"{name}.{key}", ctx=node.ctx)
        return self.generic_visit(node)


def _source(function: Any, parameter: str) -> ast.FunctionDef | None:
    """The function's tree, with the parameter's keys as variables."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    return _KeysAsNames(parameter).visit(tree) if isinstance(tree, ast.FunctionDef) else None


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


class Reader:
    """Follows one parameter through the statements of a function, by names alone."""

    def __init__(self, *, module: nn.Module, this: str, prefix: str, depth: int, carries: set[str]) -> None:
        self._module, self._this, self._prefix, self._depth = module, this, prefix, depth
        self._carries = carries
        """Variables that hold the parameter or what elementwise code made of it."""
        self._modules: dict[str, tuple[Any, str]] = {}
        """Loop variables that stand for a submodule."""
        self.found: list[Layer] = []

    def read(self, statements: list[ast.stmt]) -> None:
        """Take in statements in order; both branches of an `if`."""
        for statement in statements:
            match statement:
                case ast.Assign(targets=targets, value=value):
                    carried = self._carried(value)
                    for target in targets:
                        self._assign(target, carried)
                case (
                    ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value)
                ):
                    carried = self._carried(value)
                    # `x += y` does not take away what x holds, unlike an assignment.
                    if carried or isinstance(statement, ast.AnnAssign):
                        self._assign(target, carried)
                case ast.For(target=target, iter=iterated, body=body):
                    self._loop(target, iterated)
                    self.read(body)
                case ast.Expr(value=value) | ast.Return(value=ast.expr() as value):
                    self._carried(value)
                case _:
                    for block in ("body", "orelse", "finalbody"):
                        self.read(getattr(statement, block, []))

    def _assign(self, target: ast.expr, carried: bool) -> None:
        names = {node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        self._carries = self._carries | names if carried else self._carries - names

    def _loop(self, target: ast.expr, iterated: ast.expr) -> None:
        """`for layer in self.layers` and `for i, layer in enumerate(self.layers)`: the first one stands for all."""
        if isinstance(iterated, ast.Call) and iterated.args:
            iterated = iterated.args[0]
        owner, name = self._resolve(iterated)
        names = [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]
        if isinstance(owner, (nn.ModuleList, nn.Sequential)) and len(owner) and names:
            # The last name is the layer's, as `enumerate` puts the number first.
            self._modules[names[-1]] = owner[0], _join(name, "0")
        elif self._carried(iterated):
            self._assign(target, carried=True)

    def _carried(self, expression: ast.AST) -> bool:
        """Whether the expression's value holds the parameter; notes the layers that take it in on the way."""
        match expression:
            case ast.Name(id=name):
                return name in self._carries
            case ast.Attribute(attr=attribute) if attribute in NOT_VALUES:
                return False
            case ast.Call():
                return self._call(expression)
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return self._product(left, right)
            case ast.Compare():
                return False
            # `|` and not `or`: both sides are read, for the layers in them.
            case ast.IfExp(body=body, orelse=orelse):
                return self._carried(body) | self._carried(orelse)
        return any([self._carried(child) for child in ast.iter_child_nodes(expression)])  # noqa: C419 - each is read

    def _product(self, left: ast.expr, right: ast.expr) -> bool:
        """`x @ self.weight` is a linear layer without a name."""
        carried = self._carried(left)
        weight, name = self._resolve(right)
        if carried and isinstance(weight, torch.Tensor) and weight.ndim >= 2:  # noqa: PLR2004 - a matrix
            # On `meta`, because only its sizes are read.
            self.found.append(Layer(module=nn.Linear(weight.shape[-2], weight.shape[-1], device="meta"), name=name))
            return False
        return carried | self._carried(right)

    def _call(self, call: ast.Call) -> bool:
        passed = {index: self._carried(argument) for index, argument in enumerate(call.args)}
        named = {keyword.arg: self._carried(keyword.value) for keyword in call.keywords}
        on_value = isinstance(call.func, ast.Attribute) and call.func.attr not in NOT_VALUES
        carried = any(passed.values()) or any(named.values())
        callee, name = self._resolve(call.func)
        if not carried or callee is None:
            return carried or (on_value and self._carried(call.func))
        found = list(self._into(callee, name, passed, named))
        self.found += found
        # What a layer returns is not the parameter any more.
        return not found

    def _into(self, callee: Any, name: str, passed: dict[int, bool], named: dict[str | None, bool]) -> Iterator[Layer]:
        """The layers inside a submodule or a method of this module that get the parameter."""
        is_module = isinstance(callee, nn.Module)
        function = callee.forward if is_module else callee
        try:
            parameters = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            return
        names = [parameters[i] for i, carried in passed.items() if carried and i < len(parameters)]
        names += [str(keyword) for keyword, carried in named.items() if carried and keyword in parameters]
        for parameter in names:
            if is_module:
                yield from consumers(callee, parameter, name, self._depth - 1)
            # In any other function it is not known what `self` is.
            elif getattr(callee, "__self__", None) is self._module:
                yield from _of_function(self._module, callee, parameter, self._prefix, self._depth - 1)

    def _resolve(self, expression: ast.expr) -> tuple[Any, str]:
        """What `self.a.b[0]` is on the instance, with its dotted name; None if it is something else."""
        match expression:
            case ast.Name(id=name) if name == self._this:
                return self._module, self._prefix
            case ast.Name(id=name):
                return self._modules.get(name, (None, ""))
            case ast.Attribute(value=value, attr=attribute):
                owner, name = self._resolve(value)
                return _attribute(owner, attribute), _join(name, attribute)
            case ast.Subscript(value=value, slice=ast.Constant(value=key)):
                owner, name = self._resolve(value)
                try:
                    return owner[key], _join(name, str(key))
                except (TypeError, KeyError, IndexError):
                    return None, ""
        return None, ""


def _attribute(owner: Any, name: str) -> Any:
    """The attribute, or None: a property of the model may raise anything."""
    try:
        return getattr(owner, name, None)
    except Exception:  # noqa: BLE001 - see above
        return None


def layers_in_order(module: nn.Module) -> tuple[Layer, ...]:
    """All layers of a module in the order of their assignment, for use if the source does not show it."""
    return tuple(
        Layer(module=part, name=name) for name, part in plain_modules(module) if is_layer(part) and not _is_inner(name)
    )


def _is_inner(name: str) -> bool:
    """Whether the layer belongs to another one, as attention's output projection does."""
    return name.endswith("out_proj")
