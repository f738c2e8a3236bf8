from pathlib import Path
from typing import Any

import pytest
from judge_corpus import CORPUS

from export_gate.config import load_config
from export_gate.worker.controls.build import build_control_set, digest, reference_sizes
from export_gate.worker.controls.check import check_dtype, solve_sizes
from export_gate.worker.controls.intervals import admits
from export_gate.worker.controls.specs import tensor_leaves

CONFIGS = sorted(CORPUS.glob("*/export-gate.yml"))


def at(values: Any, path: Path):
    """The part of nested values at a dotted path."""
    for key in path.split("."):
        values = values[int(key)] if isinstance(values, (list, tuple)) else values[key]
    return values


@pytest.mark.slow
@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.parent.name)
def test_every_model_of_the_corpus_has_a_control_set(path: Path):
    """Each set has 15 to 100 uniquely named inputs that keep their contract, the same each time."""
    (model,) = load_config(path).models
    found = build_control_set(model, path.parent)
    assert 15 <= len(found.cases) <= 100
    assert found.left_out == 0
    assert len({case.name for case in found.cases}) == len(found.cases)
    assert found.cases[0].sizes == reference_sizes(model)
    for case in found.cases:
        values = case.make()
        tensors = [(leaf, spec, at(values, leaf)) for leaf, spec in tensor_leaves(model)]
        assert solve_sizes(model, case.name, [(p, s, tuple(t.shape)) for p, s, t in tensors]) == case.sizes
        for leaf, spec, tensor in tensors:
            check_dtype(case.name, leaf, spec, tensor)
            assert case.group == "function" or admits(spec, tensor) == ""
    assert digest(found.cases) == digest(build_control_set(model, path.parent).cases)
