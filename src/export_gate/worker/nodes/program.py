"""An exported program's node values at one call, and what its nodes are: operator, module path and source line."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils import _pytree as pytree

from export_gate.wall.nodes import GuiltyNode
from export_gate.worker.export.randomness import arguments_of
from export_gate.worker.leaves.values import Call, to_numpy
from export_gate.worker.model.factory import seed_everything
from export_gate.worker.process.failures import lines_of_trace

Array = npt.NDArray[Any]


class Stopped(Exception):  # noqa: N818 - a signal, not an error
    """Everything that was wanted has been seen."""


class Walk(torch.fx.Interpreter):  # type: ignore[misc] # torch is untyped here
    """Runs a program node by node and hands over each value."""

    def __init__(self, module: torch.fx.GraphModule, see: Callable[[torch.fx.Node, Any], None]) -> None:
        super().__init__(module)
        self._see = see

    def run_node(self, n: torch.fx.Node) -> Any:
        """Run the node; of an operator the value is handed over."""
        value = super().run_node(n)
        if n.op == "call_function":
            self._see(n, value)
        return value


def prepared(program: Any) -> Any:
    """The program as the ONNX exporter decomposes it, whose node names are the file's value names.

    By torch's own table if the exporter has moved its own (private, torch 2.13).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from torch.onnx._internal.exporter import _core, _registration
        except ImportError:
            return program.run_decompositions()
        registry = _registration.ONNXRegistry.from_torchlib()
        return _core._prepare_exported_program_for_export(program, registry=registry)  # noqa: SLF001 - see above


def module_of(program: Any) -> torch.fx.GraphModule:
    """The program's module without its guards: a walk is for inputs that a file takes, which has none."""
    module: torch.fx.GraphModule = program.module(check_guards=False)
    return module


def walk(program: Any, module: torch.fx.GraphModule, call: Call, see: Callable[[torch.fx.Node, Any], None]) -> Any:
    """Run the program's module at the call; returns its flat outputs, None if `see` stopped it.

    Raises:
        Exception: whatever a node raises.
    """
    seed_everything()
    with torch.no_grad():
        try:
            # The inputs are flat already, as the placeholders want them.
            return Walk(module, see).run(*flat_inputs(program, call), enable_io_processing=False)
        except Stopped:
            return None


def flat_inputs(program: Any, call: Call) -> list[Any]:
    """The call's leaves in the order of the program's placeholders."""
    _, keywords = program.call_spec.in_spec.children()
    # In the order of the export, which that of a call need not be.
    ordered = {name: call.kwargs[name] for name in keywords.context if name in call.kwargs}
    leaves: list[Any] = pytree.tree_leaves((call.args, ordered))
    return leaves


def array_of(value: Any) -> Array | None:
    """The value as a file would have it; None if it is neither a tensor nor a number."""
    if isinstance(value, torch.Tensor):
        real = torch.view_as_real(value) if value.is_complex() else value
        # A program that is decomposed for a file writes into nothing, so that no copy is needed.
        return to_numpy(real) if real.dtype == torch.bfloat16 else real.detach().numpy(force=True)
    if isinstance(value, bool | int | float):
        return np.asarray(value)
    return None


def nodes_of(module: torch.fx.GraphModule) -> Mapping[str, torch.fx.Node]:
    """The program's operators by name."""
    return {node.name: node for node in module.graph.nodes if node.op == "call_function"}


def unmapped(nodes: Mapping[str, torch.fx.Node], compared: Collection[str]) -> int:
    """The number of operators on tensors that have no counterpart."""
    return sum(name not in compared and isinstance(n.meta.get("val"), torch.Tensor) for name, n in nodes.items())


def described(node: torch.fx.Node, roots: tuple[Path, ...]) -> GuiltyNode:
    """What the node is and where it comes from; nothing measured."""
    whole = _whole(node)
    source, foreign = lines_of_trace(whole.meta.get("stack_trace") or "", roots)
    path, kind = _innermost_module(whole)
    return GuiltyNode(
        name=node.name,
        operator=operator_of(whole),
        function=_function(whole),
        arguments=_constants(whole),
        module=path,
        module_class=kind,
        scale_factors=_scale_factors(whole),
        source=source,
        foreign=foreign,
    )


def _scale_factors(node: torch.fx.Node) -> tuple[float, ...]:
    """Constant factors that an upsampling operator was given."""
    given = arguments_of(node).get("scale_factors")
    factors = tuple(given) if isinstance(given, (list, tuple)) else ()
    return factors if all(isinstance(factor, float) for factor in factors) else ()


def _constants(node: torch.fx.Node) -> tuple[tuple[str, str], ...]:
    return tuple((name, repr(value)) for name, value in arguments_of(node).items() if not _depends(value))


def _depends(value: Any) -> bool:
    """Whether a value is a node's, or holds one."""
    return any(isinstance(leaf, torch.fx.Node) for leaf in pytree.tree_leaves(value))


def _function(node: torch.fx.Node) -> str:
    """The name by which users know the function that led to the node: `torch.cdist`, `F.pad`, `torch.linalg.inv`."""
    # A kind and a name, as `builtin_function_or_method.cdist`; only non-strict export notes it.
    name = str((node.meta.get("torch_fn") or ("", ""))[1]).rpartition(".")[2]
    if not name or name.startswith("_"):
        return ""
    for prefix in ("linalg", "special", "fft"):
        part = name.removeprefix(f"{prefix}_")
        if part != name and hasattr(getattr(torch, prefix), part):
            return f"torch.{prefix}.{part}"
    homes = (("torch", torch), ("F", torch.nn.functional), ("Tensor", torch.Tensor))
    return next((f"{shown}.{name}" for shown, home in homes if hasattr(home, name)), "")


def _whole(node: torch.fx.Node) -> torch.fx.Node:
    """The operator of whose results the node is one."""
    given = node.args[0] if node.target is operator.getitem and node.args else None
    return given if isinstance(given, torch.fx.Node) else node


def operator_of(node: torch.fx.Node) -> str:
    """`aten.linear.default`, or the function's own name."""
    target = node.target
    return (
        target if isinstance(target, str) else str(getattr(target, "__name__", target) if _is_plain(target) else target)
    )


def _is_plain(target: Any) -> bool:
    return not isinstance(target, torch._ops.OperatorBase)  # noqa: SLF001 - the base of all operators


def _innermost_module(node: torch.fx.Node) -> tuple[str, str]:
    stack = [entry for entry in (node.meta.get("nn_module_stack") or {}).values() if isinstance(entry, tuple)]
    path, kind = stack[-1] if stack else ("", "")
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    # What torch notes for nodes that its own passes add.
    known = not str(path).startswith("_empty_nn_module_stack")
    return (str(path), name.rpartition(".")[2]) if known else ("", "")
