import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from control_samples import BATCH, contract, tensor

from export_gate.wall.contract import ConstantSpec, Controls, DictSpec, Dim, ModelContract, SequenceSpec
from export_gate.wall.errors import UserError
from export_gate.worker.controls.build import build_control_set

Write = Callable[[str], Path]
X = tensor("float32", "batch", 3, range=(-4, 4))
PLACE = "models.m.controls.function: cases.py:cases"


def model(*dims: Any, **inputs: Any):
    """A model whose cases come from cases.py."""
    return contract(*dims, controls=Controls(function="cases.py:cases"), **inputs)


@pytest.fixture
def write(tmp_path: Path):
    """Writes the body of `cases()` and returns the folder."""

    def written(body: str) -> Path:
        (tmp_path / "cases.py").write_text(f"import torch\ndef cases():\n    {body}\n")
        return tmp_path

    return written


def function_set(contract_: ModelContract, base: Path):
    """The function's cases, and the notes."""
    found = build_control_set(contract_, base)
    return [case for case in found.cases if case.group == "function"], found.notes


def refusal(contract_: ModelContract, base: Path):
    """The message of the mistake."""
    with pytest.raises(UserError) as caught:
        build_control_set(contract_, base)
    return caught.value.text


def test_cases_are_named_by_the_function(write: Write):
    """Names are the function's, made safe for a shell, with the sizes of the tensors."""
    base = write(
        "return {'one hole': (torch.zeros(3, 3),), '-18': {'x': torch.ones(4, 3)}, 'one/hole': [torch.ones(3, 3)]}"
    )
    cases, notes = function_set(model(BATCH, x=X), base)
    assert [case.name for case in cases] == [
        "function.one-hole@batch=3",
        "function.-18@batch=4",
        "function.one-hole~2@batch=3",
    ]
    assert cases[1].make()["x"].sum().item() == 12
    assert notes == ()


def test_constants_may_be_left_out(write: Write):
    """Arguments are bound in order; constants are filled in, or must equal the declared ones."""
    base = write("return {'a': (torch.ones(2, 3),), 'b': (0.1, torch.ones(2, 3)), 'c': {'x': torch.ones(2, 3)}}")
    cases, _ = function_set(model(BATCH, scale=ConstantSpec(value=0.1), x=X), base)
    assert [case.make()["scale"] for case in cases] == [0.1] * 3


def test_nested_arguments_are_kept(write: Write):
    """Lists and dicts are matched part by part."""
    base = write("return {'a': ([torch.ones(2, 3), torch.zeros(2, 3)], {'h': torch.ones(2, 3)})}")
    contract_ = model(BATCH, xs=SequenceSpec(kind="list", items=(X, X)), state=DictSpec(items={"h": X}))
    (case,), _ = function_set(contract_, base)
    values = case.make()
    assert [part.sum().item() for part in values["xs"]] == [6, 0]
    assert values["state"]["h"].sum().item() == 6


def test_memory_formats_survive(write: Write):
    """Channels-last, sliced and expanded tensors arrive with their strides, afresh at each call."""
    base = write(
        "return {'last': (torch.randn(2, 3, 4, 6).to(memory_format=torch.channels_last),),"
        " 'sliced': (torch.randn(2, 3, 4, 12)[..., ::2],), 'expanded': (torch.randn(1, 3, 4, 6).expand(2, 3, 4, 6),)}"
    )
    cases, _ = function_set(model(x=tensor("float32", 2, 3, 4, 6)), base)
    strides = [case.make()["x"].stride() for case in cases]
    assert strides == [(72, 1, 18, 3), (144, 48, 12, 2), (0, 24, 6, 1)]
    first = cases[1].make()["x"]
    kept = first.clone()
    first.zero_()
    assert torch.equal(cases[1].make()["x"], kept)


def test_values_outside_the_declared_ones_are_refused(write: Write):
    """A case that the contract does not admit is a mistake in one of the two."""
    said = refusal(model(BATCH, x=X), write("return {'odd': (torch.full((2, 3), float('nan')),)}"))
    assert "case 'odd': input 'x': expected no NaN (`nonfinite` does not" in said


def test_indices_outside_the_declared_range_are_refused(write: Write):
    """An index outside its range is not a special value: it reads something else, or crashes."""
    ids = tensor("int64", "batch", 3, range=(0, 9))
    said = refusal(model(BATCH, x=ids), write("return {'odd': (torch.full((2, 3), 10, dtype=torch.int64),)}"))
    assert "case 'odd': input 'x': expected values in [0, 9], got 10 to 10" in said


def test_floats_outside_their_range_are_run_as_given(write: Write):
    """Special values are what such a function is for; the range bounds what the gate draws."""
    (case,), _ = function_set(model(BATCH, x=X), write("return {'far': (torch.full((2, 3), 1234.0),)}"))
    assert case.make()["x"].unique().tolist() == [1234.0]


def test_the_function_leaves_the_random_state_alone(write: Write):
    """The function's seeds do not affect the model."""
    base = write("torch.manual_seed(0)\n    return {'a': (torch.randn(2, 3),)}")
    torch.manual_seed(5)
    expected = torch.random.get_rng_state()
    function_set(model(BATCH, x=X), base)
    assert torch.equal(torch.random.get_rng_state(), expected)


def test_parameters_are_accepted_as_tensors(write: Write):
    """A tensor that requires a gradient is detached."""
    base = write("return {'a': (torch.nn.Parameter(torch.ones(2, 3)),)}")
    (case,), _ = function_set(model(BATCH, x=X), base)
    assert not case.make()["x"].requires_grad


REFUSED = {
    "return [1]": (
        f"{PLACE}: expected a dict of cases, got a list of 1 items\n"
        "Return {name: tuple of forward's arguments} or {name: dict of them}."
    ),
    "raise ValueError('no data')": (
        f"{PLACE}: expected a dict of cases, it raised ValueError: no data\nMake the function run without arguments."
    ),
    "return {'a': torch.ones(2, 3)}": (
        f"{PLACE}: case 'a': expected a tuple or dict of forward's arguments, got a Tensor\n"
        "Write a single argument as `(x,)`."
    ),
    "return {'a': (torch.ones(2, 3), 1, 2)}": (
        f"{PLACE}: case 'a': expected 1 arguments (x), got 3\n"
        "Give each declared input in forward's order; constants may be left out."
    ),
    "return {'a': {'y': torch.ones(2, 3)}}": (
        f"{PLACE}: case 'a': expected the inputs x, got y\nName each declared input; constants may be left out."
    ),
    "return {'a': (torch.ones(2, 3).double(),)}": (
        f"{PLACE}: case 'a': input 'x': expected dtype float32, got float64\n"
        "Store it as float32, or declare `dtype: float64`."
    ),
    "return {'a': (torch.ones(3),)}": (
        f"{PLACE}: case 'a': input 'x': expected shape [batch, 3], got [3]\nGive it 2 axes, not 1."
    ),
    "return {'a': (torch.ones(2, 4),)}": (
        f"{PLACE}: case 'a': input 'x': axis 1: expected 3, got 4\n"
        "The declared shape is [batch, 3], the given one [2, 4]."
    ),
    "return {'a': (torch.ones(17, 3),)}": (
        f"{PLACE}: case 'a': dim batch: expected 2..16, got 17\nWiden models.m.dims.batch, or leave this input out."
    ),
    "return {'a': ([1.0],)}": (
        f"{PLACE}: case 'a': input 'x': expected a float32 tensor, got a list of 1 items\nGive what `inputs` declares."
    ),
    "return {'a': (None,)}": (
        f"{PLACE}: case 'a': input 'x': expected a float32 tensor, got None\nGive what `inputs` declares."
    ),
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_forward_does_not_take_is_refused(write: Write, body: str):
    """Each message names the case, the input, what was expected and what was given."""
    assert refusal(model(BATCH, x=X), write(body)) == REFUSED[body]


def test_another_constant_is_refused(write: Write):
    """A constant is baked in; a case cannot change it."""
    assert refusal(model(BATCH, scale=ConstantSpec(value=1), x=X), write("return {'a': (True, torch.ones(2, 3))}")) == (
        f"{PLACE}: case 'a': input 'scale': expected the constant 1, or nothing, got True\nGive what `inputs` declares."
    )


def test_another_number_of_items_is_refused(write: Write):
    """A list has as many items as the contract says."""
    pair = SequenceSpec(kind="list", items=(X, X))
    assert refusal(model(BATCH, xs=pair), write("return {'a': ([torch.ones(2, 3)],)}")) == (
        f"{PLACE}: case 'a': input 'xs': expected a list of 2 items, got a list of 1 items\n"
        "Give what `inputs` declares."
    )


def test_other_keys_are_refused(write: Write):
    """A dict must have the declared keys in the declared order."""
    state = DictSpec(items={"h": X, "c": X})
    body = "return {'a': ({'c': torch.ones(2, 3), 'h': torch.ones(2, 3)},)}"
    assert refusal(model(BATCH, state=state), write(body)) == (
        f"{PLACE}: case 'a': input 'state': expected a dict with the keys h, c, in that order, got a dict with the keys"
        " c, h\nGive what `inputs` declares."
    )


def test_dims_must_agree_between_inputs(write: Write):
    """One dim must have one size in a case."""
    body = "return {'a': (torch.ones(2, 3), torch.ones(4, 3))}"
    assert refusal(model(BATCH, x=X, y=X), write(body)) == (
        f"{PLACE}: case 'a': input 'y': axis 0: expected batch with batch=2, got 4\n"
        "The declared shape is [batch, 3], the given one [4, 3]."
    )


def test_a_static_dim_has_one_size(write: Write):
    """A case cannot change the size of a static dim either."""
    static = Dim(name="batch", min=2, max=16, mode="static", example=4)
    assert refusal(model(static, x=X), write("return {'a': (torch.ones(2, 3),)}")) == (
        f"{PLACE}: case 'a': dim batch: expected 4 (the dim is static), got 2\n"
        "Widen models.m.dims.batch, or leave this input out."
    )


def test_a_step_is_kept(write: Write):
    """Sizes must be multiples if the dim says so."""
    dim = Dim(name="batch", min=2, max=16, multiple_of=2)
    assert refusal(model(dim, x=X), write("return {'a': (torch.ones(5, 3),)}")) == (
        f"{PLACE}: case 'a': dim batch: expected 2..16 in steps of 2, got 5\n"
        "Widen models.m.dims.batch, or leave this input out."
    )


def test_something_that_cannot_be_called_is_refused(tmp_path: Path):
    """The reference must name a function."""
    (tmp_path / "cases.py").write_text("cases = 3\n")
    assert refusal(model(BATCH, x=X), tmp_path) == (
        f"{PLACE}: expected a function, got 3\nName a callable without parameters."
    )


def test_a_missing_function_says_where_it_was_looked_for(write: Write):
    """The message has the loader's own words and names the setting."""
    base = write("return {}")
    wrong = contract(BATCH, controls=Controls(function="cases.py:case"), x=X)
    assert re.match(
        r"models\.m\.controls\.function 'cases\.py:case': cases\.py has no attribute 'case'", refusal(wrong, base)
    )
