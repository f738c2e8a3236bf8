"""Outputs to named leaves."""

from __future__ import annotations

from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from export_gate.worker.leaves.values import Call, as_leaf, flatten, to_numpy

Pair = namedtuple("Pair", ["mean", "var"])  # noqa: PYI024 - models return these
ONE = torch.tensor([1.0])


@dataclass
class Record:
    """One that torch takes apart."""

    values: torch.Tensor
    more: list[torch.Tensor]


torch.export.register_dataclass(Record, serialized_type_name="test_values.Record")


class Plain:
    """One that it does not."""


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (ONE, ["output"]),
        ((ONE, ONE), ["output.0", "output.1"]),
        ([ONE, (ONE, ONE)], ["output.0", "output.1.0", "output.1.1"]),
        ({"logits": ONE, "aux": [ONE, ONE]}, ["logits", "aux.0", "aux.1"]),
        (OrderedDict(b=ONE, a=ONE), ["b", "a"]),
        ({0: ONE}, ["0"]),
        (Pair(ONE, ONE), ["output.mean", "output.var"]),
        ({"stats": Pair(ONE, ONE)}, ["stats.mean", "stats.var"]),
        (deque([ONE, {"a": ONE}]), ["output.0", "output.1.a"]),
        ((ONE, Record(values=ONE, more=[ONE])), ["output.0", "output.1.values", "output.1.more.0"]),
        (Plain(), ["output"]),
        (({"a": ONE}, ONE), ["output.0.a", "output.1"]),
        (torch.max(torch.rand(2, 2), 0), ["output.0", "output.1"]),
        ((), []),
        ({}, []),
    ],
)
def test_leaves_are_named_by_their_path(value: Any, names: list[str]) -> None:
    """Leaves keep the order of the output; their names are keys and indices joined with dots."""
    assert [leaf.name for leaf in flatten(value)] == names


def test_a_given_name_starts_every_path() -> None:
    """The leaves of an input are named after the input."""
    assert [leaf.name for leaf in flatten([ONE, {"k": ONE}], "pyramid")] == ["pyramid.0", "pyramid.1.k"]


def test_a_model_output_of_transformers_is_a_mapping() -> None:
    """Hugging Face outputs keep their field names."""
    outputs = pytest.importorskip("transformers.modeling_outputs")
    output = outputs.BaseModelOutputWithPooling(last_hidden_state=ONE, pooler_output=ONE)
    assert [leaf.name for leaf in flatten(output)] == ["last_hidden_state", "pooler_output"]


@pytest.mark.parametrize(
    ("value", "dtype", "array"),
    [
        (3, "int64", np.asarray(3, np.int64)),
        (True, "bool", np.asarray(True)),
        (0.1, "float64", np.asarray(0.1)),
    ],
)
def test_python_numbers_are_scalars(value: Any, dtype: str, array: np.ndarray) -> None:
    """A Python int, float or bool counts as a 0-d int64, float64 or bool tensor, and says so."""
    (leaf,) = flatten(value)
    assert leaf.value is not None
    assert (leaf.dtype, leaf.value.dtype, leaf.value.shape, leaf.python) == (dtype, array.dtype, (), True)
    assert leaf.value == array


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool", "complex64"])
def test_an_array_is_a_leaf_like_a_tensor(dtype: str) -> None:
    """A reference may compute with NumPy; NumPy scalars have no axis, and later writes have no effect."""
    array = np.ones((2, 3), dtype=dtype)
    whole, one = flatten({"a": array, "b": array[0, 0]})
    array[:] = 0
    assert (whole.dtype, one.dtype) == (dtype, dtype)
    assert whole.value is not None
    assert whole.value.tolist() == np.ones((2, 3), dtype=dtype).tolist()
    assert one.value is not None
    assert one.value.shape == ()


def test_an_array_of_objects_is_no_number() -> None:
    """It has no values to compare."""
    assert as_leaf("a", np.array([None])).value is None


def test_a_tensor_is_no_python_number() -> None:
    """A 0-d tensor and a Python number are distinguished."""
    assert [leaf.python for leaf in flatten((torch.tensor(1), 1))] == [False, True]


@pytest.mark.parametrize(("value", "dtype"), [(None, "None"), ("text", "str"), (object(), "object")])
def test_other_leaves_have_a_type_and_no_value(value: Any, dtype: str) -> None:
    """None and strings are leaves without a value, so that their absence is noticed."""
    (leaf,) = flatten({"aux": value})
    assert (leaf.name, leaf.dtype, leaf.value, leaf.python) == ("aux", dtype, None, False)


@pytest.mark.parametrize(
    "dtype",
    ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128"],
)
def test_dtypes_are_spelled_as_torch_spells_them(dtype: str) -> None:
    """Every contract dtype survives with its name and NumPy's equal type."""
    (leaf,) = flatten(torch.ones(2, dtype=getattr(torch, dtype)))
    assert leaf.value is not None
    assert (leaf.dtype, str(leaf.value.dtype)) == (dtype, dtype)


def test_bfloat16_is_widened_without_loss() -> None:
    """bfloat16 keeps its name; its values are float32 and exact."""
    tensor = torch.tensor([1.0, -3.140625, float("inf"), 1e-39]).to(torch.bfloat16)
    (leaf,) = flatten(tensor)
    assert leaf.value is not None
    assert (leaf.dtype, str(leaf.value.dtype)) == ("bfloat16", "float32")
    assert torch.equal(torch.from_numpy(leaf.value).to(torch.bfloat16), tensor)


def test_values_are_copies() -> None:
    """A leaf keeps its value: a later write to the tensor does not change it."""
    tensor = torch.zeros(2)
    (leaf,) = flatten(tensor)
    tensor += 1
    assert leaf.value is not None
    assert leaf.value.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("tensor", "values"),
    [
        (torch.tensor([1.0, 2.0], requires_grad=True) * 2, [2.0, 4.0]),
        (torch.tensor([1 + 2j]).conj(), [1 - 2j]),
        (torch.tensor([1 + 2j]).conj().imag, [-2.0]),
        (torch.arange(6).reshape(2, 3).T, [[0, 3], [1, 4], [2, 5]]),
        (torch.tensor([1, 2]).expand(2, 2), [[1, 2], [1, 2]]),
        (torch.eye(2).to_sparse(), [[1.0, 0.0], [0.0, 1.0]]),
        (torch.empty(0, 3), []),
    ],
)
def test_any_tensor_gives_its_values(tensor: torch.Tensor, values: list[Any]) -> None:
    """Tensors with gradients, conjugated, negated, strided, expanded, sparse and empty ones give plain values."""
    assert to_numpy(tensor).tolist() == values


def test_a_call_has_no_arguments_by_default() -> None:
    """A model without inputs is called without arguments."""
    assert (Call().args, Call().kwargs) == ((), {})


def test_an_int_that_no_tensor_holds_is_compared_by_its_text():
    """Python's integers have no end, and eager may return such a one."""
    assert flatten(2**63 - 1)[0].value is not None
    (leaf,) = flatten(2**63)
    assert (leaf.dtype, leaf.value, leaf.constant) == ("int", None, "9223372036854775808")
