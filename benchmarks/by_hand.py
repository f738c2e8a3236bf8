"""What a careful engineer writes by hand for one model: the same exports, loads and comparisons as the gate's.

`by_hand.py CONFIG MODEL INPUTS` with the control inputs from a file that `gate_inputs.py` wrote. No guard probes, no
hygiene, no report: the cost beside which the gate is measured.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch


def load_factory(reference: str, folder: Path) -> Any:
    """`module:attribute` or `file.py:attribute` below the folder."""
    place, _, attribute = reference.partition(":")
    sys.path.insert(0, str(folder))
    if not place.endswith(".py"):
        return getattr(importlib.import_module(place), attribute)
    spec = importlib.util.spec_from_file_location("model_by_hand", folder / place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, attribute)


def flatten(value: Any) -> list[np.ndarray]:
    """Tensor leaves as arrays."""
    return [leaf.detach().numpy() for leaf in torch.utils._pytree.tree_leaves(value)]


def compare(expected: list[np.ndarray], actual: list[np.ndarray]) -> None:
    """Shapes, dtypes, NaN masks and the norms, in float64."""
    assert len(expected) == len(actual)
    for e, a in zip(expected, actual, strict=True):
        assert (e.shape, e.dtype) == (a.shape, a.dtype)
        assert np.array_equal(np.isnan(e), np.isnan(a))
        wide, other = e.astype(np.float64), a.astype(np.float64)
        limit = 1e-5 + 1e-5 * np.abs(wide).max(initial=0.0)
        assert np.abs(wide - other).max(initial=0.0) <= limit, (np.abs(wide - other).max(), limit)


def main(plan: dict[str, Any]) -> None:
    """Export to three targets and compare each at every control input."""
    import onnx
    import onnxruntime

    torch.set_num_threads(1)
    cases = torch.load(plan["inputs"], weights_only=True)
    model = load_factory(plan["factory"], Path(plan["folder"]))()
    dims = {name: torch.export.Dim(name, min=low, max=high) for name, (low, high) in plan["dims"].items()}
    shapes = {name: {int(i): dims[dim] for i, dim in axes.items()} for name, axes in plan["axes"].items()}
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        expected = [flatten(model(**case)) for case in cases]
        program = torch.export.export(model, (), plan_example(cases, plan), dynamic_shapes=shapes)
        module = program.module()
        for case, outputs in zip(cases, expected, strict=True):
            compare(outputs, flatten(module(**case)))
        torch.export.save(program, f"{folder}/model.pt2")
        loaded = torch.export.load(f"{folder}/model.pt2").module()
        for case, outputs in zip(cases, expected, strict=True):
            compare(outputs, flatten(loaded(**case)))
        del loaded
        converted = torch.onnx.export(program, (), kwargs=plan_example(cases, plan), dynamo=True, verbose=False)
        assert converted is not None
        converted.save(f"{folder}/model.onnx", external_data=plan["weights"] > 64 << 20)
        onnx.checker.check_model(f"{folder}/model.onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.add_session_config_entry("session.disable_prepacking", "1")
        session = onnxruntime.InferenceSession(f"{folder}/model.onnx", options, providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_inputs()]
        for case, outputs in zip(cases, expected, strict=True):
            compare(outputs, session.run(None, {name: case[name].numpy() for name in names}))


def plan_example(cases: list[dict[str, torch.Tensor]], plan: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The control input that the export is traced with."""
    return cases[plan["example"]]


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
