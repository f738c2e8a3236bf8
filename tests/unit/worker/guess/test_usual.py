"""Inputs that have the same names everywhere."""

# ruff: noqa: ANN001, D101, D102 - the models are what users write

from __future__ import annotations

from types import SimpleNamespace

import pytest
from torch import nn

from export_gate.starter.text import spec_text
from export_gate.worker.guess.usual import is_graph, of_nodes, usual_specs


class Recurrent(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer


class Columns(nn.Module):
    def __init__(self, *rows: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(count, 2) for count in rows])


class Graph(nn.Module):
    def forward(self, x, edge_index, edge_attr):
        return x


class Speech(nn.Module):
    config = SimpleNamespace(num_mel_bins=20, max_source_positions=30)


LSTM = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
STATE = "{dtype: float32, shape: [4, batch, 4], range: [-3, 3]}"


@pytest.mark.parametrize(
    ("name", "model", "expected"),
    [
        ("state", Recurrent(LSTM), f"{{tuple: [{STATE}, {STATE}]}}"),
        ("h0", Recurrent(LSTM), STATE),
        ("hidden", Recurrent(nn.GRUCell(3, 5)), "{dtype: float32, shape: [batch, 5], range: [-3, 3]}"),
        ("x_cat", Columns(2, 3), "{dtype: int64, shape: [batch, 2], values: [[0, 1], [0, 1, 2]]}"),
        ("sparse_features", Columns(500, 30), "{dtype: int64, shape: [batch, 2], range: [0, 29]}"),
        ("offsets", nn.EmbeddingBag(9, 2), "{dtype: int64, shape: [3], values: [[0], [1, 2], [3, 4]]}"),
        ("edge_index", Graph(), "{dtype: int64, shape: [2, edges], range: [0, nodes-1]}"),
        ("edge_weight", Graph(), "{dtype: float32, shape: [edges], range: [0, 1]}"),
        ("waveform", nn.Linear(2, 2), "{dtype: float32, shape: [batch, 1600], range: [-1, 1]}"),
        ("input_features", Speech(), "{dtype: float32, shape: [batch, 20, 60], range: [-3, 3]}"),
    ],
)
def test_name_says_what_it_is(name: str, model: nn.Module, expected: str):
    """The name gives the likeliest form, with sizes from the model's layers or configuration."""
    assert spec_text(next(iter(usual_specs(name, model, "float32")))) == expected


@pytest.mark.parametrize("name", ["x", "state", "edge_index", "values"])
def test_other_names_say_nothing(name: str):
    """For a state without a recurrent layer, or edges without a graph, the layers decide."""
    assert list(usual_specs(name, nn.Linear(2, 2), "float32")) == []


def test_rows_of_a_graph_are_its_nodes():
    """If forward takes edges, the dim that is the batch of other models is the nodes."""
    assert is_graph(Graph())
    assert not is_graph(nn.Linear(2, 2))
    (weight, *_) = usual_specs("waveform", nn.Linear(2, 2), "float32")
    assert spec_text(of_nodes(weight)) == "{dtype: float32, shape: [nodes, 1600], range: [-1, 1]}"
