"""Names of a file beside the contract's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from export_gate.worker.targets.signature import Names, require_dtypes, require_names

FITTING = Names(
    inputs=("ids", "mask"), outputs=("hidden", "pooled"), graph_inputs=("ids",), graph_outputs=("pooled", "hidden")
)


def test_names_that_the_contract_has_pass():
    """An input that the graph lacks, another order and another number of outputs are not name problems."""
    require_names(FITTING)
    require_names(replace(FITTING, graph_outputs=("pooled", "hidden", "extra")))


def test_both_sides_are_listed():
    """The first line says what does not match, and a table has all names of both sides in order."""
    with pytest.raises(ValueError, match="graph") as raised:
        require_names(replace(FITTING, graph_inputs=("input_ids",), graph_outputs=("last_hidden_state", "pooled")))
    assert str(raised.value).splitlines() == [
        (
            "the graph has input 'input_ids' that the contract lacks; the contract has inputs 'ids', 'mask'; the graph "
            "has output 'last_hidden_state' that the contract lacks; the contract has outputs 'hidden', 'pooled'"
        ),
        "          contract  artifact",
        "input 1   ids       input_ids",
        "input 2   mask      -",
        "output 1  hidden    last_hidden_state",
        "output 2  pooled    pooled",
    ]


def test_an_input_in_another_dtype_is_listed_with_both():
    """Callers send what the contract says; an input that the graph lacks, or whose type nobody knows, is none."""
    require_dtypes({"ids": "int64", "x": "float32"}, {"ids": "int64"})
    with pytest.raises(ValueError, match="graph") as raised:
        require_dtypes({"ids": "int64", "x": "float32", "y": "bool"}, {"ids": "int32", "x": "float32"})
    assert str(raised.value).splitlines() == [
        "the graph takes 'ids' as int32 instead of int64, the dtype in the contract",
        "     contract  artifact",
        "ids  int64     int32",
        "x    float32   float32",
        "y    bool      -",
    ]
