"""Run a module with everything computed in float64, to distinguish rounding from a fault.

`module.double()` alone leaves what forward computes in float32 on purpose (rotary tables, `.float()`, norms); lifting
each operator alone fails in convolutions and recurrent layers, which compare dtypes before they dispatch. Both together
work. Source: measured on 16 architectures.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from export_gate.worker.leaves.values import Call, Leaf, flatten
from export_gate.worker.model.conditions import Conditions
from export_gate.worker.model.factory import seed_everything

WIDER = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
    torch.complex32: torch.complex128,
}


class InFloat64(TorchDispatchMode):  # type: ignore[misc] # torch has no types here
    """Lifts floating tensors, dtype arguments and results of every operator to float64.

    Results are lifted too, because an in-place operator would otherwise write to a lifted copy of a tensor that
    forward made. Python floats are rounded to float32 first: eager compares a float32 tensor with float32(0.7), and
    `>= 0.7` in float64 would move the threshold. But not in a model that has float64 alone, where 0.7 has all its bits.
    """

    def __init__(self, *, is_narrow: bool) -> None:
        super().__init__()
        self._is_narrow = is_narrow

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operator on lifted arguments."""
        del types
        # Forward may narrow a tensor, or make a narrow one, itself. Once is enough, and most models begin narrow.
        self._is_narrow = self._is_narrow or any(map(is_narrow, tree_leaves((args, kwargs))))
        returned = func(*tree_map(self._argument, args), **tree_map(self._argument, kwargs or {}))
        self._is_narrow = self._is_narrow or any(map(is_narrow, tree_leaves(returned)))
        return tree_map(_lifted, returned)

    def _argument(self, value: Any) -> Any:
        if isinstance(value, torch.dtype):
            return WIDER.get(value, value)
        if type(value) is float and self._is_narrow:
            with np.errstate(over="ignore"):
                # Beyond float32's range the value stays: as infinity it would turn a product with 0 into NaN.
                rounded = float(np.float32(value))
            return rounded if np.isfinite(rounded) else value
        return _lifted(value)


def in_float64(
    module: torch.nn.Module, call: Call, conditions: Conditions | None = None, *, was_narrow: bool = False
) -> tuple[Leaf, ...]:
    """The leaves that the module returns when everything is computed in float64.

    Args:
        module: an instance of its own; it is in float64 afterwards.
        call: forward's arguments, of any floating dtype.
        conditions: takes the branches of `torch.cond`.
        was_narrow: whether it had weights below float64 before an earlier call widened them.

    Raises:
        Exception: an operator has no float64 kernel, or forward depends on the dtype of its tensors.
    """
    leaves = (*module.parameters(), *module.buffers(), *tree_leaves((call.args, call.kwargs)))
    mode = InFloat64(is_narrow=was_narrow or any(map(is_narrow, leaves)))
    module.double()
    seed_everything()
    with torch.no_grad(), mode, (conditions or Conditions()).watched():
        returned = module(*tree_map(_lifted, call.args), **tree_map(_lifted, call.kwargs))
    return flatten(returned)


def is_narrow(value: Any) -> bool:
    """Whether it is a floating type below float64, or a tensor of one."""
    kind = value.dtype if isinstance(value, torch.Tensor) else value
    return isinstance(kind, torch.dtype) and kind in WIDER


def _lifted(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype in WIDER:
        return value.to(WIDER[value.dtype])
    return value
