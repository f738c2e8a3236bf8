"""Outputs that are None, which no ONNX file can return."""

from __future__ import annotations

import numpy as np

from export_gate.wall.observation import OutputLeaf
from export_gate.worker.leaves.values import Call, Leaf
from export_gate.worker.targets.base import absent_notes, with_absent

OUTPUTS = (OutputLeaf(name="loss", dtype="None", shape=()), OutputLeaf(name="logits", dtype="float32", shape=(2,)))
LOGITS = Leaf(name="logits", dtype="float32", value=np.zeros(2, np.float32))


def test_a_none_leaf_stands_where_eager_has_it():
    """Both sides of the comparison have the same structure, and a note says that the artifact lacks the leaf."""
    run = with_absent(lambda _: (LOGITS,), OUTPUTS)
    assert [(leaf.name, leaf.dtype) for leaf in run(Call())] == [("loss", "None"), ("logits", "float32")]
    assert absent_notes(OUTPUTS) == ("output 'loss' is None and is not part of the artifact",)


def test_an_artifact_that_returns_it_keeps_its_own():
    """Nothing is added twice, and nothing that eager does not have."""
    own = Leaf(name="loss", dtype="float32", value=np.ones(1, np.float32))
    assert with_absent(lambda _: (own, LOGITS), OUTPUTS)(Call()) == (own, LOGITS)
    assert with_absent(lambda _: (LOGITS,), OUTPUTS[1:])(Call()) == (LOGITS,)
