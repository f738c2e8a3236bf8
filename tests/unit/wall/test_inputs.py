"""Trees of declared inputs."""

from __future__ import annotations

from dataclasses import replace

from export_gate.wall.contract import ConstantSpec, DictSpec, SequenceSpec, TensorSpec
from export_gate.wall.inputs import leaves, parts, tensors, with_tensors

X = TensorSpec(dtype="float32", shape=())
FLAG = ConstantSpec(value=True)
TREE = {
    "x": X,
    "pyramid": SequenceSpec(kind="list", items=(X, FLAG, SequenceSpec(kind="tuple", items=(X,)))),
    "state": DictSpec(items={"hidden": X, "0": FLAG}, build="m:f"),
}


def test_tensors_come_in_forwards_order_with_their_paths():
    """Lists add a position, dicts a key; constants are no tensors."""
    assert [path for path, _ in tensors(TREE)] == ["x", "pyramid.0", "pyramid.2.0", "state.hidden"]
    assert [path for path, _ in leaves(("pyramid",), TREE["pyramid"])] == [("pyramid", 0), ("pyramid", 2, 0)]


def test_changed_tensors_leave_the_rest_as_it_is():
    """Constants, kinds of containers and what builds an object from them stay."""
    changed = with_tensors(TREE, lambda path, spec: replace(spec, name=path))
    assert [spec.name for _, spec in tensors(changed)] == ["x", "pyramid.0", "pyramid.2.0", "state.hidden"]
    assert with_tensors(changed, lambda _, spec: replace(spec, name=None)) == TREE
    assert parts(changed["state"])["0"] == FLAG
