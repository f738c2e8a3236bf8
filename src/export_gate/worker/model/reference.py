"""Run the eager model on control inputs: its outputs are the expected side of every comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from export_gate.wall.contract import Output
from export_gate.wall.observation import OutputLeaf
from export_gate.worker.leaves.values import Call, Leaf, flatten, is_plain
from export_gate.worker.model.factory import seed_everything
from export_gate.worker.process.integrity import guarded

Runner = Callable[[Call], tuple[Leaf, ...]]
"""Runs the eager model or an artifact on one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What eager returned at one control input."""

    case: str
    read: Callable[[], tuple[Leaf, ...]]
    """Large outputs are not in memory until they are read."""

    @classmethod
    def held(cls, case: str, leaves: tuple[Leaf, ...]) -> Reference:
        """A reference in memory."""
        return cls(case=case, read=lambda: leaves)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The outputs; keep them no longer than one comparison."""
        return self.read()

    def changed(self, change: Callable[[tuple[Leaf, ...]], tuple[Leaf, ...]]) -> Reference:
        """The reference with its outputs changed whenever they are read."""
        return Reference(case=self.case, read=lambda: change(self.read()))


def module_runner(module: Callable[..., Any], names: Mapping[str, str]) -> Runner:
    """Run a module (eager, or a program's) under no_grad and fixed seeds; `names` renames output leaves."""
    forward = guarded(module)

    def run(call: Call) -> tuple[Leaf, ...]:
        seed_everything()
        with torch.no_grad():
            returned = forward(*call.args, **call.kwargs)
        return rename(leaves_of(returned), names)

    return run


def leaves_of(returned: Any) -> tuple[Leaf, ...]:
    """The leaves of what a project's module returned; containers of the project's own flatten themselves."""
    return flatten(returned) if is_plain(returned) else guarded(flatten)(returned)


def rename(leaves: tuple[Leaf, ...], names: Mapping[str, str]) -> tuple[Leaf, ...]:
    """The leaves under the contract's names."""
    return tuple(replace(leaf, name=names.get(leaf.name, leaf.name)) for leaf in leaves)


def without_ignored(leaves: Sequence[Leaf], outputs: Sequence[Output]) -> tuple[Leaf, ...]:
    """The leaves, under the contract's names, without those that it leaves out of the comparison."""
    ignored = {output.name for output in outputs if output.leaf == "ignore"}
    return tuple(leaf for leaf in leaves if leaf.name not in ignored)


def to_compare(references: Mapping[str, Reference], outputs: Sequence[Output]) -> dict[str, Reference]:
    """The references with the leaves that are compared."""
    compared = partial(without_ignored, outputs=outputs)
    return {name: said.changed(compared) for name, said in references.items()}


def contract_names(leaves: Sequence[Leaf], outputs: Sequence[Output]) -> dict[str, str]:
    """Eager's own leaf name -> the contract's, by position.

    Empty if the contract declares no names or another number, or if eager itself uses one of the declared names: then
    the names are keys of its outputs, and matching by position could swap them.
    """
    declared = [output.name for output in outputs]
    found = [leaf.name for leaf in leaves]
    if len(declared) != len(found) or set(declared) & set(found):
        return {}
    return dict(zip(found, declared, strict=True))


def describe_outputs(leaves: Sequence[Leaf]) -> tuple[OutputLeaf, ...]:
    """Names, dtypes and shapes of eager's outputs."""
    return tuple(
        OutputLeaf(name=leaf.name, dtype=leaf.dtype, shape=() if leaf.value is None else leaf.value.shape)
        for leaf in leaves
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one control input costs."""

    flops: float
    outputs: int
    """Elements that are compared."""


def count_work(module: torch.nn.Module, call: Call) -> Work:
    """Floating-point operations of one forward (as `torch.utils.flop_counter` counts them), and elements of outputs."""
    from torch.utils.flop_counter import FlopCounterMode

    seed_everything()
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        returned = guarded(module)(*call.args, **call.kwargs)
    elements = sum(0 if leaf.value is None else int(leaf.value.size) for leaf in leaves_of(returned))
    return Work(flops=float(counter.get_total_flops()), outputs=elements)
