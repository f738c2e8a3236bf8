"""Compare eager's outputs with the declared ones, in sentences: for the worker, and for results judged again."""

from __future__ import annotations

from collections.abc import Sequence

from export_gate.wall.contract import Output
from export_gate.wall.observation import OutputLeaf


def broken_promises(leaves: Sequence[OutputLeaf], outputs: Sequence[Output], sizes: dict[str, int]) -> tuple[str, ...]:
    """How eager's outputs differ from the declared ones."""
    if not outputs:
        return ()
    found = [leaf.name for leaf in leaves]
    if len(found) != len(outputs) or {output.name for output in outputs} != set(found):
        declared_names = ", ".join(output.name for output in outputs)
        returned = f"eager returned {len(found)} outputs ({', '.join(found)})"
        return (f"{returned}, the contract declares {len(outputs)} ({declared_names})",)
    declared = {output.name: output for output in outputs}
    return tuple(message for leaf in leaves for message in leaf_promises(leaf, declared[leaf.name], sizes))


def leaf_promises(leaf: OutputLeaf, output: Output, sizes: dict[str, int]) -> list[str]:
    """How one output differs from its declaration."""
    messages = []
    if output.leaf == "none" and leaf.dtype != "None":
        messages.append(f"output {leaf.name!r} is {leaf.dtype}, declared none")
    if output.dtype is not None and leaf.dtype != output.dtype:
        messages.append(f"output {leaf.name!r} is {leaf.dtype}, declared {output.dtype}")
    expected = None if output.shape is None else tuple(size.at(sizes) for size in output.shape)
    if expected is not None and leaf.shape != expected:
        messages.append(f"output {leaf.name!r} has shape {list(leaf.shape)}, declared {list(expected)}")
    return messages
