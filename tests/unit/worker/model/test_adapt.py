"""Fixed tensors and built objects: forward gets them, and the contract's inputs are plain."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from worker_samples import contract, tensor

from export_gate.wall.contract import ConstantSpec, DictSpec, SequenceSpec
from export_gate.worker.leaves.values import flatten
from export_gate.worker.model.adapt import adapt, builds_objects, input_changes
from export_gate.worker.model.factory import forward_parameters

CODE = """
class Pair:
    def __init__(self, parts):
        self.first, self.second = parts["first"], parts["second"]
"""


class Weighted(nn.Module):
    """Takes a fixed tensor and an object."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor, scales: Tensor, pairs: Any) -> Tensor:
        """Everything together."""
        return self.weight * x * scales + pairs[0].first + pairs[0].second


def changed(folder: Path) -> tuple[nn.Module, dict[str, Any]]:
    """The module, adapted to its contract, and plain inputs."""
    (folder / "own.py").write_text(CODE, encoding="utf-8")
    pair = DictSpec(items={"first": tensor(2), "second": tensor(2)}, build="own.py:Pair")
    inputs = {
        "x": tensor(2),
        "scales": ConstantSpec(value=(2, 3), dtype="float32"),
        "pairs": SequenceSpec(kind="tuple", items=(pair,)),
    }
    model, module = contract(inputs), Weighted()
    assert builds_objects(model)
    adapt(module, input_changes(model, folder), is_output_kept=False)
    return module, {"x": torch.ones(2), "scales": None, "pairs": ({"first": torch.ones(2), "second": torch.zeros(2)},)}


def test_forward_gets_the_tensor_and_the_object(tmp_path: Path):
    """They are passed by position and by name, under the parameters that forward has."""
    module, values = changed(tmp_path)
    assert module(*values.values()).tolist() == [3, 4]
    assert module(**values).tolist() == [3, 4]
    assert [parameter.name for parameter in forward_parameters(module)] == ["x", "scales", "pairs"]


def test_a_copy_calls_its_own_forward(tmp_path: Path):
    """A twin with other weights gives other results."""
    module, values = changed(tmp_path)
    twin = copy.deepcopy(module)
    with torch.no_grad():
        twin.weight.fill_(10)
    assert twin(*values.values()).tolist() == [21, 31]
    assert module(*values.values()).tolist() == [3, 4]


def test_a_copy_calls_a_method_of_the_instance_on_itself(tmp_path: Path):
    """A forward that was set on the instance does not mix up a twin's results either."""
    module = Weighted()
    module.forward = MethodType(lambda self, scales: self.weight * scales, module)
    inputs = {"scales": ConstantSpec(value=(2, 3), dtype="float32")}
    adapt(module, input_changes(contract(inputs), tmp_path), is_output_kept=False)
    twin = copy.deepcopy(module)
    with torch.no_grad():
        twin.weight.fill_(10)
    assert twin(None).tolist() == [20, 30]
    assert module(None).tolist() == [2, 3]


def test_the_program_has_plain_inputs(tmp_path: Path):
    """The fixed tensor is baked in, and the object is made inside the program."""
    module, values = changed(tmp_path)
    program = torch.export.export(module, tuple(values.values()))
    assert program.module()(*values.values()).tolist() == [3, 4]
    tensors = [name for name in program.graph_signature.user_inputs if isinstance(name, str)]
    assert len([n for n in program.graph.nodes if n.name in tensors and isinstance(n.meta.get("val"), Tensor)]) == 3


def test_a_model_without_them_is_left_alone():
    """Its forward is the class's."""
    module = nn.Linear(2, 2)
    adapt(module, input_changes(contract({"x": tensor(2)}), Path()), is_output_kept=True)
    assert "forward" not in vars(module)


def test_objects_that_come_back_keep_the_names_of_their_leaves(tmp_path: Path):
    """Registered classes are taken apart into dicts with the same names."""
    class_ = type("Kept", (), {})
    torch.utils._pytree.register_pytree_node(
        class_,
        lambda kept: ([kept.a], None),
        lambda children, _: kept_of(class_, children),
        flatten_with_keys_fn=lambda kept: ([(torch.utils._pytree.GetAttrKey("a"), kept.a)], None),
    )
    module = nn.Identity()
    adapt(module, {"input": partial(kept_of, class_)}, is_output_kept=False)
    returned = module([torch.ones(2)])
    assert [leaf.name for leaf in flatten(returned)] == [
        leaf.name for leaf in flatten(kept_of(class_, [torch.ones(2)]))
    ]


def kept_of(class_: Any, children: Any) -> Any:
    """An instance that holds the first child."""
    kept = class_()
    kept.a = children[0]
    return kept
