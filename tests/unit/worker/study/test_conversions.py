"""Later targets are converted in a copy of the process, and what fails there fails here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import nn
from worker_samples import contract, tensor

from export_gate.config.targets import make_target
from export_gate.wall.contract import Target
from export_gate.worker.export.program import export_program
from export_gate.worker.leaves.values import Call
from export_gate.worker.model.factory import forward_parameters
from export_gate.worker.process.children import CAN_FORK
from export_gate.worker.study import conversions
from export_gate.worker.study.conversions import conversions_begun, decomposed
from export_gate.worker.targets import TARGETS
from export_gate.worker.targets.base import Context, TargetModule

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="there is no fork here")
FIRST, SECOND, THIRD = make_target("exported-program"), make_target("pt2"), make_target("onnx")


class Fake:
    """A target whose file says which process wrote it, before it does what the test says."""

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self.then = then

    def convert(self, context: Context, target: Target) -> Path:
        """A file with the number of the process."""
        self.then()
        path = context.folder / target.file_name
        path.write_text(str(os.getpid()))
        return path


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
    """Of a linear layer, on a machine with two processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    module, x, promised = nn.Linear(3, 2).eval(), torch.ones(1, 3), contract({"input": tensor(1, 3)})
    return Context(
        contract=promised,
        program=export_program(module, Call(args=(x,)), promised, forward_parameters(module), {}),
        folder=tmp_path / "artifacts",
        input_names=("input",),
        outputs=(),
        names={},
        metadata={},
        has_basis=False,
    )


def _faked(monkeypatch: pytest.MonkeyPatch, **fakes: Fake) -> None:
    modules = {kind: cast("TargetModule", fake) for kind, fake in fakes.items()}
    monkeypatch.setattr(conversions, "TARGETS", {**TARGETS, **modules})


def _writers(context: Context, *targets: Target) -> list[int]:
    with conversions_begun([(context, target) for target in targets]) as convert:
        paths = [convert(context, target) for target in targets]
    return [int(path.read_text()) for path in paths if path is not None]


def test_all_but_the_first_are_converted_in_one_copy(context: Context, monkeypatch: pytest.MonkeyPatch):
    """The first is needed at once, and a target without a file has none from the copy either."""
    _faked(monkeypatch, pt2=Fake(), onnx=Fake())
    here, *there = _writers(context, SECOND, THIRD)
    assert here == os.getpid()
    assert there != [here]
    first, second = _writers(context, FIRST, SECOND, THIRD)
    assert first == second != os.getpid()
    assert len(_writers(context, THIRD, FIRST)) == 1


def test_it_converts_while_this_process_works(context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Nothing has to ask for the file first."""
    reader, writer = os.pipe()
    _faked(monkeypatch, onnx=Fake(lambda: os.write(writer, b"begun")))
    with conversions_begun([(context, FIRST), (context, THIRD)]):
        assert os.read(reader, 5) == b"begun"


@pytest.mark.parametrize("end", [lambda: os._exit(3), lambda: 1 / 0], ids=["dies", "raises"])
def test_what_the_copy_cannot_write_is_converted_here(
    end: Callable[[], Any], context: Context, monkeypatch: pytest.MonkeyPatch
):
    """So that its failure is raised here; what follows comes from a copy again."""
    here = os.getpid()
    _faked(monkeypatch, pt2=Fake(lambda: os.getpid() == here or end()), onnx=Fake())
    second, third = _writers(context, FIRST, SECOND, THIRD)
    assert second == here != third

    _faked(monkeypatch, onnx=Fake(lambda: 1 / 0))
    with conversions_begun([(context, FIRST), (context, THIRD)]) as convert, pytest.raises(ZeroDivisionError):
        convert(context, THIRD)


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [(conversions, "MOST_BYTES", 31), (conversions, "CAN_FORK", False), (os, "sched_getaffinity", lambda _: {0})],
    ids=["large", "no-fork", "one-processor"],
)
def test_without_room_or_a_copy_each_is_converted_in_its_turn(
    where: Any, name: str, value: Any, context: Context, monkeypatch: pytest.MonkeyPatch
):
    """The layer has 32 bytes of weights; a copy's conversion of many would be in memory beside a loaded artifact."""
    _faked(monkeypatch, pt2=Fake(), onnx=Fake())
    monkeypatch.setattr(where, name, value)
    assert set(_writers(context, FIRST, SECOND, THIRD)) == {os.getpid()}


@pytest.mark.slow
def test_the_program_is_decomposed_again_where_a_copy_did_it(context: Context):
    """Its values have the names of those in the copy's file, which experiments follow."""
    with conversions_begun([(context, FIRST), (context, THIRD)]) as convert:
        assert convert(context, THIRD) is not None
    assert context.kept == {}
    again = [node.name for node in decomposed(context, THIRD).graph.nodes]
    with conversions_begun([(context, THIRD)]) as convert:
        convert(context, THIRD)
    (kept,) = context.kept.values()
    assert again == [node.name for node in kept.graph.nodes]
