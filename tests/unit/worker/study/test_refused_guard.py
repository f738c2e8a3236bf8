"""The condition that torch.export stumbles over, and the line of the user that asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from worker_samples import contract, tensor

from export_gate.wall.contract import Dim, ModelContract
from export_gate.wall.diagnosis import ExportGuard
from export_gate.worker.controls.build import reference_sizes, reference_values
from export_gate.worker.export.branches import Guard, guards_in_dims
from export_gate.worker.export.guard_lines import GuardLine
from export_gate.worker.export.program import export_program
from export_gate.worker.model.factory import Parameter, bind, forward_parameters
from export_gate.worker.study.refused_guard import described, in_one_dim, line_of, refused_guard, sizes_that_hold

HERE = (Path(__file__).parent,)
LENGTH = Dim(name="length", min=2, max=12)


class LongOrShort(nn.Module):
    """Sums a long input otherwise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[2, length] to float32[2]."""
        if x.shape[1] > 8:
            return x[:, -8:].sum(1)
        return x.sum(1) * 2


class Fixed(nn.Module):
    """Adds a table of one length."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[2, length] to the same."""
        return x + torch.ones(x.numel() // 2 * 0 + 7)


class Pooled(nn.Module):
    """Keeps the last window even where it is not whole."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[2, length] to float32[2, length // 2]."""
        return nn.functional.avg_pool1d(x, 3, 2, 1, ceil_mode=True)


def refused(module: nn.Module, promised: ModelContract, noted: list[GuardLine] | None = None) -> ExportGuard | None:
    """What torch.export stumbles over."""
    noted = [] if noted is None else noted
    parameters = forward_parameters(module)
    call = bind(reference_values(promised, reference_sizes(promised)), parameters)
    with pytest.raises(Exception, match=r"Constraints violated|specialized|Not all values of"):
        export_program(module, call, promised, parameters, {}, guards=noted)
    return told(noted, promised, parameters)


def told(noted: list[GuardLine], promised: ModelContract, parameters: tuple[Parameter, ...] = ()) -> ExportGuard | None:
    """What is said of the condition, if there is one."""
    guard = refused_guard(noted, promised, parameters, {})
    return None if guard is None else described(guard, promised, {}, HERE)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("module", "holds", "broken", "text"),
    [
        (LongOrShort(), "length <= 8", "length > 8", "if x.shape[1] > 8:"),
        (Fixed(), "length == 7", "length != 7", "return x + torch.ones(x.numel() // 2 * 0 + 7)"),
        (Pooled(), "2 * (length // 2) < length + 1", "", "return nn.functional.avg_pool1d(x, 3, 2, 1, ceil_mode=True)"),
    ],
)
def test_the_line_that_asks_for_it_is_named(module: nn.Module, strict: bool, holds: str, broken: str, text: str):
    """In either mode; a condition that every size keeps is one that torch cannot prove."""
    found = refused(module, contract({"x": tensor(2, "length")}, LENGTH, strict=strict))
    assert found is not None
    assert (found.holds, found.broken, found.dims) == (holds, broken, ("length",))
    assert found.source is not None
    assert (Path(found.source.path).name, found.source.text) == (Path(__file__).name, text)


def test_the_lines_of_a_program_are_known_too():
    """A branch that an export followed has its line; a line outside the project has none."""

    class Equal(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x.sum() * 2 if x.shape[0] == y.shape[0] else y.sum()

    dims = [Dim(name=name, min=2, max=9) for name in ("a", "b")]
    promised, module = contract({"x": tensor("a"), "y": tensor("b")}, *dims), Equal()
    parameters = forward_parameters(module)
    call = bind(reference_values(promised, reference_sizes(promised)), parameters)
    (guard,) = guards_in_dims(export_program(module, call, promised, parameters, {}), promised, parameters)
    line = line_of(guard, HERE)
    assert line is not None
    assert (guard.words, line.text) == ("a == b", "return x.sum() * 2 if x.shape[0] == y.shape[0] else y.sum()")
    assert line_of(guard, (Path("/elsewhere"),)) is None


def test_without_notes_nothing_is_said():
    """A torch that does not report its guards."""
    assert told([], contract({"x": tensor(2, "length")}, LENGTH)) is None
    unknown = [GuardLine(text="L['x'].size()[7] == 3", frames=()), GuardLine(text="(", frames=())]
    parameters = forward_parameters(LongOrShort())
    assert told(unknown, contract({"x": tensor(2, "length")}, LENGTH), parameters) is None


class ExceptTwo(nn.Module):
    """Sums two positions otherwise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[2, length] to float32[2]."""
        return x.sum(1) if x.shape[1] - 1 != 1 else x[:, 0]


@pytest.mark.parametrize(
    ("module", "held"),
    [
        (LongOrShort(), ("length", range(2, 9))),
        (ExceptTwo(), ("length", range(3, 13))),
        (Fixed(), None),  # the reference alone is no range
    ],
)
def test_the_sizes_around_the_reference_at_which_it_holds(module: nn.Module, held: tuple[str, range] | None):
    """They are what to try instead of the declared range, without holes."""
    promised = contract({"x": tensor(2, "length")}, LENGTH)
    noted: list[GuardLine] = []
    refused(module, promised, noted)
    guard = refused_guard(noted, promised, forward_parameters(module), {})
    assert sizes_that_hold(guard, promised) == held


def test_a_line_of_another_package_is_named_beside_the_callers():
    """The caller's line is where the project can act, and the package's shows why."""
    promised = contract({"x": tensor(2, "length")}, LENGTH)
    site = "/env/lib/site-packages"
    frames = ((f"{site}/torch/_ops.py", 3), (f"{site}/scans/layers.py", 7), (__file__, 1), (f"{site}/runner.py", 9))
    noted = [GuardLine(text="L['x'].size()[1] == 7", frames=frames)]
    guard = told(noted, promised, forward_parameters(Fixed()))
    assert guard is not None
    assert guard.foreign is not None
    assert (guard.foreign.path, guard.foreign.line) == ("scans/layers.py", 7)
    assert guard.source is not None
    assert guard.source.path == __file__


@pytest.mark.parametrize(
    ("condition", "words", "dims"),
    [
        ("(length + 1) % (batch * (length + 1)) != 0", "batch == 1", ("batch",)),
        ("(batch - 3) * length != 0", "batch == 3", ("batch",)),
        ("batch * length != 4", "original", ("batch", "length")),
        ("batch * length > 4", "original", ("batch", "length")),
        ("batch + length < 0", "original", ("batch", "length")),
        ("batch + length > 0", "original", ("batch", "length")),
    ],
    ids=["expanded", "product", "two-sizes", "several", "always", "never"],
)
def test_a_guard_of_several_dims_that_is_about_one_size_says_so(condition: str, words: str, dims: tuple[str, ...]):
    """What torch asks of a shape can be long, and come to `batch != 1`."""
    promised = contract({"x": tensor("batch", "length")}, Dim(name="batch", min=1, max=4), LENGTH)
    code = compile(condition, "<guard>", "eval")
    given = Guard(words="original", holds=condition, dims=("batch", "length"), code=code)
    found = in_one_dim(promised, given, {})
    assert (found.words, found.dims) == (words, dims)
    sizes = [{"batch": batch, "length": length} for batch in range(1, 5) for length in LENGTH.sizes]
    assert [bool(found.is_broken(each)[0]) for each in sizes] == [bool(given.is_broken(each)[0]) for each in sizes]
