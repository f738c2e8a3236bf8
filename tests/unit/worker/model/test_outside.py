"""State outside of the module, and what draws, are found with their lines by running the model once more."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from export_gate.worker.model.drawing import drawing_line, numpy_line
from export_gate.worker.model.outside import changed_outside
from export_gate.worker.model.writing import writing_line

ROOTS = (Path(__file__).parent,)
CALLS = 0
SEEN: dict[str, list[int]] = {"rows": []}


class Counted:
    """A class that counts."""

    steps = 0

    def forward(self) -> None:
        """Count."""
        Counted.steps += 1  # of the class


def count_global() -> None:
    """Count in the module."""
    global CALLS  # noqa: PLW0603 - what is looked for
    CALLS += 1  # of the module


def fill_dict() -> None:
    """Fill a list."""
    SEEN["rows"].append(1)  # of a list in it


def enclosed() -> Callable[[], None]:
    """Return a function that counts."""
    total = 0

    def add() -> None:
        nonlocal total
        total += 1  # of the closure

    return add


def defaulted() -> Callable[[], None]:
    """Return a function that counts in a default."""

    def add(memory: list[int] = [0]) -> None:  # noqa: B006 - what is looked for
        memory[0] += 1  # of the default

    return add


@pytest.mark.parametrize(
    ("make", "name", "line"),
    [
        (lambda: count_global, "CALLS: ", "of the module"),
        (lambda: fill_dict, "SEEN['rows']: list of ", "of a list in it"),
        (enclosed, "total: 0 -> 1", "of the closure"),
        (defaulted, "memory[0]: ", "of the default"),
        (lambda: Counted().forward, "Counted.steps: ", "of the class"),
    ],
)
def test_state_outside_of_the_model_has_a_name_and_a_line(make: Callable[[], Callable[[], None]], name: str, line: str):
    """No snapshot of the module shows it."""
    # Made here: the garbage collector, which finds a function by its code, no longer sees what was imported.
    run = make()
    found = changed_outside(run, ROOTS)
    assert found is not None
    assert found.changes[0].startswith(name)
    written = writing_line(run, found.stamp, ROOTS)
    assert written is not None
    assert line in written.text


def test_what_only_reads_changes_nothing():
    """Constants and functions that forward uses are no state."""
    assert changed_outside(lambda: len(SEEN), ROOTS) is None


def _draw_in_library() -> Any:
    return random.uniform(0, 1)


def _read_clock() -> float:
    return time.time()


def _unfilled() -> Any:
    return torch.empty(3)


def _noise() -> Any:
    torch.empty(3)
    return torch.randn_like(torch.ones(3))


def _numpy() -> float:
    return float(np.random.rand())  # noqa: NPY002 - what models use


@pytest.mark.parametrize(
    ("run", "name", "text"),
    [
        (_draw_in_library, "random.uniform", "return random.uniform(0, 1)"),
        (_read_clock, "time.time", "return time.time()"),
        (_unfilled, "torch.empty", "return torch.empty(3)"),
        (_noise, "torch.randn_like", "return torch.randn_like(torch.ones(3))"),
    ],
)
def test_what_draws_has_a_name_and_a_line(run: Callable[[], Any], name: str, text: str):
    """Draws come before memory that is not filled, which is mostly overwritten."""
    found = drawing_line(run, ROOTS)
    assert found is not None
    assert (found.name, found.source.text) == (name, text)


def test_numpys_generator_has_a_line():
    """Its functions are compiled, so only the generator's state shows them."""
    found = numpy_line(_numpy, ROOTS)
    assert found is not None
    assert found.source.text.startswith("return float(np.random.rand())")
    assert drawing_line(lambda: sorted([2, 1]), ROOTS) is None
