"""Experiments on an eager model beside another one that stands for its artifact."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from worker_samples import Fn, size

from export_gate.wall.contract import Dim, ModelContract, TensorSpec, make_target
from export_gate.wall.tolerance import resolve_tolerance
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.leaves.compare import compare_leaf
from export_gate.worker.model.factory import Factory, bind, forward_parameters
from export_gate.worker.model.reference import module_runner
from export_gate.worker.study.allowance import LEAST_S, MOST_S, Allowance
from export_gate.worker.study.laboratory import Laboratory
from export_gate.worker.study.noise import Pair
from export_gate.worker.study.steadiness import steadiness
from export_gate.worker.study.trials import Bench, changes, is_jump, size_trial

CONTRACT = ModelContract(
    name="m",
    factory="m:make",
    dims=(Dim(name="n", min=2, max=16),),
    inputs={"x": TensorSpec(dtype="float32", shape=(size("n"),), range=(-1.0, 1.0))},
    targets=(make_target("onnx"),),
)


def _bench(eager: Callable[[torch.Tensor], torch.Tensor], artifact: Callable[[torch.Tensor], torch.Tensor]) -> Bench:
    parameters = forward_parameters(Fn(eager))
    factory = Factory(make=lambda: Fn(eager), reference="m:make", kwargs={}, base=Path())
    return Bench(
        contract=CONTRACT,
        run=module_runner(Fn(artifact), {}),
        laboratory=Laboratory(factory=factory, parameters=parameters, names={}),
        tolerance=partial(resolve_tolerance, CONTRACT, "onnx"),
    )


def _case(*values: float) -> ControlCase:
    return ControlCase(
        name="c", family="normal", group="generated", sizes={"n": len(values)}, make=lambda: {"x": torch.tensor(values)}
    )


def test_an_artifact_that_is_wrong_at_negative_zero_is_cured_without_it():
    """Zeros of the other sign do not change this."""
    bench = _bench(lambda x: torch.copysign(torch.ones_like(x), x), lambda x: torch.where(x < 0, -1.0, 1.0))
    found = changes(bench, [_case(-0.0, 0.5, -0.5)], "output", "c")

    assert {each.change: each.agrees for each in found.changed} == {"no-negative-zeros": True, "no-zeros": True}


def test_an_artifact_that_is_wrong_everywhere_is_not_cured():
    """Nor is one cured whose input has no special value."""
    bench = _bench(lambda x: x, lambda x: x + 1)

    assert [each.agrees for each in changes(bench, [_case(0.0, 1.0)], "output", "c").changed] == [False]
    assert changes(bench, [_case(1.0, 2.0)], "output", "c").changed == ()


def test_every_failing_input_has_to_be_cured():
    """One input that fails without any special value has another cause."""
    bench = _bench(lambda x: x, lambda x: torch.where((x == 0) | (x == 2), 1.0, x))

    assert changes(bench, [_case(0.0, 1.0), _case(0.0, 2.0)], "output", "c").changed[0].agrees is False


@pytest.mark.parametrize(("wrong_at", "exceeding"), [(16, 6), (5, 0)])
def test_further_draws_say_whether_a_size_decides(wrong_at: int, exceeding: int):
    """All draws at the size of a rounded index differ, and none at another size."""
    bench = _bench(lambda x: x, lambda x: x.roll(1) if len(x) == wrong_at else x)
    trial = size_trial(bench, "output", "c", {"n": 16}, {"n": 8}).size_trial

    assert trial is not None
    assert (trial.draws, trial.exceeding, trial.other_draws, trial.other_exceeding) == (6, exceeding, 6, 0)


@pytest.mark.parametrize(("other", "draws"), [(12, 24), (4, 6)])
def test_a_wrong_size_that_shows_in_some_draws_gets_more(other: int, draws: int):
    """If the other size has enough elements to compare: with few, values alone could be the reason."""
    bench = _bench(lambda x: x, lambda x: torch.where(x[0] > x[1], x.roll(1), x) if len(x) == 16 else x)
    trial = size_trial(bench, "output", "c", {"n": 16}, {"n": other}).size_trial

    assert trial is not None
    assert (trial.draws, trial.other_draws, trial.other_exceeding) == (draws, draws, 0)
    assert 0 < trial.exceeding < draws


def _steady(
    eager: Callable[..., torch.Tensor], artifact: Callable[..., torch.Tensor], *values: float, op: str
) -> object:
    bench, case = _bench(eager, artifact), _case(*values)
    expected = module_runner(Fn(eager), {})(bind(case.make(), bench.laboratory.parameters))
    found = steadiness(bench, case, expected, "output", (op,))
    return found.outside, found.unsettled, found.near


def test_a_choice_between_equal_scores_is_unsettled():
    """One ulp decides it; a choice with a margin is settled."""
    last = lambda x: len(x) - 1 - x.flip(0).argmax()  # noqa: E731 - beside the lambda that it stands for

    assert _steady(lambda x: x.argmax(), last, 0.5, 0.5, op="argmax") == (1, 1, 1)
    assert _steady(lambda x: x.argmax(), lambda x: x.argmin(), 0.5, 0.9, op="argmax") == (1, 0, 0)


def test_rounding_at_an_exact_half_is_settled():
    """Another rounding mode is a different operator, not a tie."""
    away = lambda x: torch.floor(x + 0.5)  # noqa: E731 - as above

    assert _steady(torch.round, away, 0.5, 2.5, op="round") == (2, 0, 0)


def test_a_step_that_is_near_but_not_met_is_one_of_rounding():
    """One ulp of the input crosses it, and what float64 alone can tell apart does not."""
    other = lambda x: torch.floor(x * 3 + 1e-6)  # noqa: E731 - as above
    beside, exact = float(np.nextafter(np.float32(1 / 3), np.float32(0))), 1.0

    assert _steady(lambda x: torch.floor(x * 3), other, beside, 0.5, op="floor") == (1, 0, 1)
    assert _steady(torch.floor, lambda x: torch.floor(x - 1e-6), exact, 0.5, op="floor") == (1, 0, 0)


def test_experiments_end_with_their_allowance():
    """They take at most half of the run's time so far, and none when they are switched off."""
    assert Allowance(is_off=True).left_s == 0
    assert Allowance().left_s == LEAST_S
    assert Allowance(started=time.perf_counter() - 1000).left_s == MOST_S
    half = Allowance(started=time.perf_counter() - 10)
    assert half.left_s == pytest.approx(5, abs=0.5)
    with half.spending():
        time.sleep(0.05)
    assert half.left_s == pytest.approx(4.95, abs=0.5)


@pytest.mark.parametrize("number", [1.0, 1.0 + 0j], ids=["real", "complex"])
def test_a_jump_of_the_model_is_one_for_complex_numbers_too(number: complex):
    """One step of an input below a whole number, eager gives the artifact's answer."""
    bench = _bench(
        lambda x: torch.view_as_real(x + 0j)[..., 0].floor(),
        lambda x: (torch.view_as_real(x + 0j)[..., 0] - 1e-7).floor(),
    )

    def make() -> dict[str, torch.Tensor]:
        return {"x": torch.tensor([number, 0.5])}

    (expected,) = bench.laboratory.again(make())
    (actual,) = bench.run(bind(make(), bench.laboratory.parameters))
    assert is_jump(bench, make, Pair(comparison=compare_leaf(expected, actual), expected=expected, actual=actual))
