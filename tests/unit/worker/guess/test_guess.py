"""What forward's source, the layers and names tell of a model's inputs."""

# ruff: noqa: ANN001, ANN002, D102 - the models are what users write

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from export_gate.starter.text import spec_text
from export_gate.wall.contract import ConstantSpec, DictSpec, Job, ModelContract, SequenceSpec, Size, TensorSpec
from export_gate.wall.description import Found
from export_gate.wall.errors import UserError
from export_gate.worker.guess.consumers import consumers, keys_of
from export_gate.worker.guess.describe import _describe, is_exportable, load_module, spelled_signature
from export_gate.worker.guess.options import COMBINATIONS, combinations, options_for
from export_gate.worker.guess.outputs import confirmed
from export_gate.worker.leaves.values import Leaf


class Helpers(nn.Module):
    """Hands its inputs on through methods, variables, loops and elementwise layers."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Sequential(nn.Dropout(), nn.Linear(5, 3))
        self.blocks = nn.ModuleList([nn.Linear(7, 7), nn.Linear(7, 7)])
        self.weight = nn.Parameter(torch.zeros(6, 2))
        self.late = nn.Linear(3, 2)
        self.tags = nn.Embedding(9, 3)

    def encode(self, value):
        return self.start(value)

    def forward(self, a, b, c, d, *, tag):
        first = torch.relu(a).contiguous()
        h = self.encode(first)
        for block in self.blocks:
            b = block(b)
        if tag is not None:
            h = h + self.tags(input=tag)
        rows = d.shape[0]
        return self.late(h).sum() + b.sum() + (c.flatten(1) @ self.weight).sum() + rows


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        ("a", ["start.1: Linear(5, 3)"]),
        ("b", ["blocks.0: Linear(7, 7)"]),
        ("c", ["weight: Linear(6, 2)"]),
        ("d", []),
        ("tag", ["tags: Embedding(9, 3)"]),
    ],
)
def test_source_tells_the_first_layer_of_each_input(parameter: str, expected: list[str]):
    """Methods, variables, loops, keywords and elementwise code are followed; `x.shape` ends the path."""
    assert [str(layer) for layer in consumers(Helpers(), parameter)] == expected


class Keyed(nn.Module):
    """Reads a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)
        self.linear = nn.Linear(7, 4)

    def forward(self, batch):
        image = batch["image"]
        return self.conv(image).mean((2, 3)) + self.linear(batch["extra"])


def test_keys_of_a_dict_input_are_those_that_forward_reads():
    """`batch["image"]` declares a dict with that key, with the tensor that the layer behind it needs."""
    assert keys_of(Keyed(), "batch") == ("image", "extra")
    spec = first_option(Keyed(), "batch").spec
    assert isinstance(spec, DictSpec)
    assert {key: shape(item) for key, item in spec.items.items()} == {
        "image": "float32 batch 3 32 32",
        "extra": "float32 batch 7",
    }


def first_option(module: nn.Module, name: str):
    """The likeliest option of a parameter."""
    return options_for(inspect.signature(module.forward).parameters[name], module)[0]


def shape(spec: object) -> str:
    """A tensor in a few words."""
    assert isinstance(spec, TensorSpec)
    return " ".join([spec.dtype, *map(str, spec.shape)])


class Around(nn.Module):
    """One layer and nothing else."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.Embedding(11, 2), "int64 batch seq"),
        (nn.Linear(5, 2), "float32 batch 5"),
        (nn.Linear(5, 2).double(), "float64 batch 5"),
        (nn.Conv1d(2, 3, 1), "float32 batch 2 32"),
        (nn.Conv2d(2, 3, 1).half(), "float16 batch 2 32 32"),
        (nn.Conv3d(2, 3, 1).bfloat16(), "bfloat16 batch 2 32 32 32"),
        (nn.ConvTranspose2d(4, 3, 1), "float32 batch 4 32 32"),
        (nn.LSTM(6, 2), "float32 seq batch 6"),
        (nn.GRU(6, 2, batch_first=True), "float32 batch seq 6"),
        (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), 1), "float32 batch seq 8"),
        (nn.TransformerEncoderLayer(8, 2, 8), "float32 seq batch 8"),
        (nn.BatchNorm1d(5), "float32 batch 5"),
        (nn.BatchNorm2d(5), "float32 batch 5 32 32"),
        (nn.GroupNorm(2, 4), "float32 batch 4 32 32"),
        (nn.LayerNorm([4, 5]), "float32 batch 4 5"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_first_layer_tells_dtype_and_shape(layer: nn.Module, expected: str):
    """The dtype is that of the weights, except for ids; sequences have their axes where `batch_first` says."""
    assert shape(first_option(Around(layer), "x").spec) == expected


def test_ids_range_over_the_embedding():
    """The highest id is the last row of the table."""
    assert first_option(Around(nn.Embedding(11, 2)), "x").spec.range == (0, 10)


class Named(nn.Module):
    """Parameters that only their names and annotations tell."""

    def forward(  # noqa: PLR0917
        self,
        input_ids,
        attention_mask,
        pad_mask,
        lengths,
        pixel_values,
        scale: float,
        flag: "bool | None",  # noqa: UP037 - as a string, as `from __future__ import annotations` has it
        pyramid: list[torch.Tensor],
        pair: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    ):
        """Nothing: only the signature is read."""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("input_ids", "int64 batch seq"),
        ("attention_mask", "int64 batch seq"),
        ("pad_mask", "bool batch seq"),
        ("lengths", "int64 batch"),
        ("pixel_values", "float32 batch 3 32 32"),
    ],
)
def test_names_tell_where_no_layer_does(name: str, expected: str):
    """Ids, masks, lengths and images are recognised by their usual names."""
    assert shape(first_option(Named(), name).spec) == expected


def test_annotations_tell_constants_and_sequences():
    """Plain Python annotations become constants, lists two tensors, tuples as many as they declare."""
    assert first_option(Named(), "scale").spec == ConstantSpec(value=1.0)
    assert first_option(Named(), "flag").spec == ConstantSpec(value=False)
    lengths = {name: first_option(Named(), name).spec for name in ("pyramid", "pair")}
    assert all(isinstance(spec, SequenceSpec) for spec in lengths.values())
    assert {name: (spec.kind, len(spec.items)) for name, spec in lengths.items()} == {
        "pyramid": ("list", 2),
        "pair": ("tuple", 3),
    }


def test_combinations_are_few_and_begin_with_the_likeliest():
    """At most 24 combinations are tried, whatever the number of inputs; all first choices together come first."""
    for count in range(1, 9):
        options = [options_for(inspect.signature(Around.forward).parameters["x"], Around(nn.Linear(5, 2)))] * count
        found = combinations(options)
        assert len(found) <= COMBINATIONS
        assert found[0] == tuple(choices[0] for choices in options)
        assert len(set(map(repr, found))) == len(found)


class Picky(nn.Module):
    """Convolutions before a linear layer that fits one image size only."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.linear = nn.Linear(2 * 62 * 62, 3)

    def forward(self, x, gain=2.0):
        return {"logits": self.linear(self.conv(x).flatten(1)) * gain}


@pytest.mark.slow
def test_trial_finds_the_size_that_fits():
    """Guesses are tried until forward runs; outputs are described with the dim that they follow."""
    found = _describe(Picky())
    assert (found.verdict, found.tried, found.training) == ("works", 5, 3)
    assert shape(found.inputs[0].spec) == "float32 batch 1 64 64"
    assert found.sizes == ("batch 1, 2, 3, 16",)
    assert [(out.name, out.dtype, " ".join(map(str, out.shape or ()))) for out in found.outputs] == [
        ("logits", "float32", "batch 3")
    ]
    assert [(left.name, left.spec) for left in found.left_out] == [("gain", ConstantSpec(value=2.0))]


class Positions(nn.Module):
    """Knows 20 positions."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(9, 4)
        self.positions = nn.Embedding(20, 4)

    def forward(self, ids):
        return self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))


def test_trial_finds_how_long_sequences_may_be():
    """The max of `seq` is one at which forward runs."""
    assert {dim.name: (dim.min, dim.max) for dim in _describe(Positions()).dims} == {"batch": (1, 16), "seq": (1, 16)}


class Fixed(nn.Module):
    """Takes sequences of nine only."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(9, 4)
        self.linear = nn.Linear(36, 2)

    def forward(self, ids):
        return self.linear(self.tokens(ids).flatten(1))


@pytest.mark.slow
def test_size_that_cannot_vary_becomes_a_constant():
    """A dim at which forward runs at only one size is written as that size."""
    found = _describe(Fixed())
    assert (found.verdict, shape(found.inputs[0].spec)) == ("works", "int64 batch 9")


def test_shape_that_another_size_refutes_is_not_told():
    """A shape that fits two sizes is dropped if a third one shows another; then no output is named."""
    batch = Size(factors={"batch": 1})
    outputs = tuple(Found(name=name, dtype="float32", shape=(batch,)) for name in "ab")
    leaves = [Leaf(name=name, dtype="float32", value=np.zeros(rows)) for name, rows in (("a", 12), ("b", 16))]
    assert [found.shape for found in confirmed(outputs, leaves, {"batch": 16})] == [None, (batch,)]
    assert confirmed(outputs, leaves[:1], {"batch": 16}) == ()


class Never(nn.Module):
    """Takes no tensor."""

    def forward(self, graph: Mapping[str, int]):
        return graph.nodes


def test_failed_trial_says_why():
    """If no guess works, the likeliest one is kept, with the exception's first line."""
    found = _describe(Never())
    assert (found.verdict, found.problem) == ("fails", "AttributeError: 'Tensor' object has no attribute 'nodes'")


def test_signature_is_shown_without_annotations():
    """Annotations would hide the names."""
    parameters = tuple(inspect.signature(Named().forward).parameters.values())
    assert spelled_signature(parameters[:2]) == "forward(input_ids, attention_mask)"


ZOO = """
import torch
from torch import nn

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 6)
        self.rnn = nn.LSTM(6, 4, batch_first=True)

    def forward(self, words, back: bool):
        found = self.rnn(self.table(words))[0]
        return found.flip(1) if back else found

def make_sized(classes, *, width, depth=2):
    pass

def make_scripted():
    return torch.jit.script(Tagger().eval())

def make_loaded():
    torch.jit.save(make_scripted(), "tagger.pt")
    return torch.jit.load("tagger.pt")

def make_function():
    return lambda thing: torch.tanh(thing)

INSTANCE = nn.Linear(2, 2)
"""


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize(
    ("attribute", "message", "hint"),
    [
        pytest.param(
            "make_sized",
            "factory 'zoo.py:make_sized' needs arguments: its parameters are (classes, *, width, depth=2)",
            (
                "pass them with `--kwargs classes=... --kwargs width=...`, or name a function that needs none, such as "
                "`def make_model(): return make_sized(classes=..., width=...)`"
            ),
            id="arguments",
        ),
        pytest.param(
            "make_function",
            "factory 'zoo.py:make_function' returned a function, expected a torch.nn.Module",
            (
                "return the module itself, its weights loaded and in eval mode; any callable will do only where every "
                "target has an `artifact`"
            ),
            id="function",
        ),
        pytest.param(
            "INSTANCE",
            "factory 'zoo.py:INSTANCE' is an nn.Module itself (Linear), expected a function or class that makes one",
            "add a function that returns it, such as `def make_model(): return ...`, and name that one",
            id="instance",
        ),
    ],
)
def test_factory_that_init_cannot_call_is_refused(tmp_path: Path, attribute: str, message: str, hint: str):
    """The message says what prevents the call, and what to do."""
    (tmp_path / "zoo.py").write_text(ZOO)
    contract = ModelContract(name="zoo", factory=f"zoo.py:{attribute}", inputs={}, targets=())
    with pytest.raises(UserError) as refused:
        load_module(Job(contract=contract, base=str(tmp_path), pythonpath=(), artifacts=""))
    assert (str(refused.value), refused.value.hint) == (message, hint)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("attribute", ["make_scripted", "make_loaded"])
def test_torchscript_is_described_as_a_reference_of_files(tmp_path: Path, attribute: str):
    """Its schema names the inputs and its weights show their widths; nothing of it can be exported."""
    (tmp_path / "zoo.py").write_text(ZOO)
    contract = ModelContract(name="zoo", factory=f"zoo.py:{attribute}", inputs={}, targets=())
    found = _describe(load_module(Job(contract=contract, base=str(tmp_path), pythonpath=(), artifacts="")))
    assert [f"{guess.name} {spec_text(guess.spec)}" for guess in found.inputs] == [
        "words {dtype: int64, shape: [batch, seq], range: [0, 19]}",
        "back {constant: false}",
    ]
    assert (found.verdict, found.is_exportable) == ("works", False)


def test_any_callable_is_described_as_the_reference_of_a_file(tmp_path: Path):
    """If a file is named, a function is not a mistake."""
    (tmp_path / "zoo.py").write_text(ZOO)
    contract = ModelContract(name="zoo", factory="zoo.py:make_function", inputs={}, targets=())
    job = Job(contract=contract, base=str(tmp_path), pythonpath=(), artifacts="")
    assert not is_exportable(load_module(job, takes_callables=True))


class Silent(nn.Module):
    """Names none of its inputs."""

    def forward(self, *args):
        return args


def test_model_without_named_parameters_is_refused():
    """`*args` alone shows neither how many inputs there are nor their names."""
    with pytest.raises(UserError) as refused:
        _describe(Silent())
    assert str(refused.value) == "Silent.forward(*args) names no parameter: init cannot tell its inputs"
    assert refused.value.hint == "write the config by hand; docs/config.md begins with a small one"
