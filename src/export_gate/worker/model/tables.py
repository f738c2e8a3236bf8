"""Find which tables of weights integer inputs index: one forward is watched, operator by operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten

LOOKUPS = {
    aten.embedding.default: (0, 1),
    aten.index_select.default: (0, 2),
    aten._embedding_bag.default: (0, 1),  # noqa: SLF001 - torch's names
    aten._embedding_bag_forward_only.default: (0, 1),  # noqa: SLF001
}
"""Operators that read rows of a table: the positions of the table and of the indices."""
MOVES = frozenset((
    "view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "expand", "permute", "transpose", "t", "slice", "select",
    "alias", "detach", "clone", "_to_copy", "as_strided", "split", "unbind", "repeat", "flatten", "lift_fresh",
))  # fmt: skip
"""Operators, whatever their overload, whose result holds elements of their first argument as they are."""


class Lookups(TorchDispatchMode):  # type: ignore[misc] # torch leaves it untyped
    """Within it, every look-up in a table by an input's elements is noted."""

    def __init__(self, inputs: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self._paths = {id(tensor): path for path, tensor in inputs.items()}
        self._alive: list[torch.Tensor] = list(inputs.values())  # an id belongs to another tensor once its own is gone

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, and note what it does with an input's elements."""
        returned = func(*args, **(kwargs or {}))
        for table, axis, indices in _lookups(func, args):
            path = self._paths.get(id(indices))
            if path is not None:
                self.note(path, table, axis, indices)
        # The same elements in another tensor, whose look-ups are those of the input.
        if args and id(args[0]) in self._paths and func.overloadpacket.__name__ in MOVES:
            self._follow(tree_leaves(returned), self._paths[id(args[0])])
        return returned

    def _follow(self, results: Iterable[Any], path: str) -> None:
        for result in results:
            # A float is not an index any more.
            if isinstance(result, torch.Tensor) and not result.is_floating_point():
                self._paths[id(result)] = path
                self._alive.append(result)

    def note(self, path: str, table: torch.Tensor, axis: int, indices: torch.Tensor) -> None:
        """Take in a look-up along one axis of a table by the elements of the input at that path."""
        raise NotImplementedError


class TableLengths(Lookups):
    """Within it, a forward shows which inputs index which of its weights."""

    def __init__(self, module: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> None:
        super().__init__(inputs)
        self.found: dict[str, int] = {}
        """Path of an input -> length of the shortest table that it indexes."""
        self._weights = {memory_of(weight) for weight in (*module.parameters(), *module.buffers())}

    def note(self, path: str, table: torch.Tensor, axis: int, indices: torch.Tensor) -> None:  # noqa: ARG002 - which rows does not matter
        """Take the table's length."""
        if memory_of(table) in self._weights:
            length = int(table.shape[axis])
            self.found[path] = min(self.found.get(path, length), length)


class RowsRead(Lookups):
    """Within it, a program tells which rows of which tables its inputs read."""

    def __init__(
        self,
        tables: Mapping[str, torch.Tensor],
        inputs: Mapping[str, torch.Tensor],
        found: dict[tuple[str, str, int], npt.NDArray[np.bool_]],
    ) -> None:
        super().__init__(inputs)
        self.found = found
        """(table, path of an input, axis) -> whether each row was read, of all calls so far."""
        self._names = {memory_of(tensor): name for name, tensor in tables.items()}

    def note(self, path: str, table: torch.Tensor, axis: int, indices: torch.Tensor) -> None:
        """Take the rows."""
        name = self._names.get(memory_of(table))
        if name is None or indices.dtype == torch.bool:
            return
        length = int(table.shape[axis])
        rows = indices.detach().reshape(-1).numpy()
        read = self.found.setdefault((name, path, axis), np.zeros(length, bool))
        read[rows[(rows >= -length) & (rows < length)]] = True


def _lookups(func: Any, args: Any) -> Iterator[tuple[torch.Tensor, int, Any]]:
    """(table, axis, indices) of an operator that reads a table."""
    if func in LOOKUPS:
        table, indices = LOOKUPS[func]
        yield args[table], args[1] if func is aten.index_select.default else 0, args[indices]
    elif func is aten.index.Tensor:
        yield from ((args[0], axis, indices) for axis, indices in enumerate(args[1]) if indices is not None)


def memory_of(tensor: torch.Tensor) -> int:
    """Where the elements are, by which a weight is known."""
    # Of the storage, because a view or a transpose of a weight is another tensor.
    return int(tensor.untyped_storage().data_ptr())
