"""What holds state that forward changes is named, with the line that makes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from torch import nn
from worker_samples import written_module

from export_gate.wall.source import SourceLine
from export_gate.worker.model.dtype_lines import lines_naming
from export_gate.worker.model.kept import home_of

CODE = """
import torch
from torch import nn

CACHE = {}

def centred():
    seen = {"n": 0}
    def run(x):
        seen["n"] += 1
        return x
    return run

def logged(x, log=[]):
    log.append(1)
    return x

class Model(nn.Module):
    calls = 0
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3, dtype=torch.bfloat16))
        self.last = None
        self.to(torch.bfloat16)  # bfloat16 twice
    def forward(self, x):
        CACHE["x"] = 1
        return x
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Any]]:
    """The file, and an instance of its model."""
    folder = tmp_path_factory.mktemp("kept")
    with written_module(folder, "kept_model", CODE) as module:
        yield folder / "kept_model.py", module.Model()


@pytest.mark.parametrize(
    ("change", "writing", "kind", "line"),
    [
        ("mean[0]: 0 -> 1", 26, "buffer", 22),
        ("last: None -> 3", 26, "attribute", 23),
        ("CACHE: dict of 0 -> dict of 1", 26, "global", 5),
        ("seen['n']: 0 -> 1", 10, "closure", 8),
        ("log: list of 0 -> list of 1", 15, "default", 14),
        ("Model.calls: 0 -> 1", 26, "class", 19),
    ],
)
def test_state_is_found_where_it_is_made(made: tuple[Path, Any], change: str, writing: int, kind: str, line: int):
    """Inside of the module and outside."""
    path, model = made
    home = home_of(change, SourceLine(path=str(path), line=writing, text=""), model)
    assert home is not None
    assert (home.kind, home.source and home.source.line) == (kind, line)


def test_nothing_is_said_of_what_is_not_found(made: tuple[Path, Any]):
    """Such as a name that another file made."""
    path, _ = made
    assert home_of("other: 0 -> 1", SourceLine(path=str(path), line=15, text=""), nn.Linear(1, 1)) is None


def test_lines_that_name_a_short_dtype_are_the_projects_own(made: tuple[Path, Any]):
    """Of imported files, without what comments say."""
    path, _ = made
    found = lines_naming("bfloat16", (path.parent,))
    assert [(line.path, line.line) for line in found] == [(str(path), 22), (str(path), 24)]
    assert lines_naming("int32", (path.parent,)) == ()
