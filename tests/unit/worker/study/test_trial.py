"""Which control inputs are really used: case patterns, the FLOP budget, the affine basis."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from worker_samples import Doubled, Recorder, Through, contract, job, subject, tensor

from export_gate.wall.contract import (
    ConstantSpec,
    Controls,
    DataSource,
    DictSpec,
    Dim,
    GoldenSource,
    ModelContract,
    SequenceSpec,
)
from export_gate.wall.errors import UserError
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.study.subject import looks_affine
from export_gate.worker.study.trial import COMPARISON_FLOPS, MINIMUM_CASES, Trial, choose_trial, matching

BATCH = Dim(name="batch", min=1, max=8)
ROWS = tensor("batch", 3, range=(-10.0, 10.0))


class Counting(nn.Module):
    """A linear layer that counts its calls in a buffer and in Python, and writes to its last input."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("calls", torch.zeros(()))
        self.seen: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, 3] to float32[batch, 2]."""
        self.calls += 1
        self.seen.append(len(x))
        return self.linear(x)


class Squared(nn.Module):
    """Not affine."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Any float to its square."""
        return x * x


def choose(module: nn.Module, promised: ModelContract, folder: Path, *patterns: str) -> Trial:
    """The trial of a model."""
    return choose_trial(job(promised, folder, *patterns), subject(module, promised), Recorder(folder).desk)


def controls(**fields: Any) -> Controls:
    """No basis unless asked for."""
    return Controls(**{"affine_basis": "never", **fields})


def names(trial: Trial) -> list[str]:
    """Names of the control inputs."""
    return [case.name for case in trial.cases]


def flops_of(rows: int) -> int:
    """Of the linear layer above: two per multiply-add."""
    return 2 * 3 * 2 * rows


def work_of(rows: int) -> float:
    """The same, and what the comparison of its two columns counts."""
    return flops_of(rows) + COMPARISON_FLOPS * 2 * rows


def test_all_cases_without_patterns(tmp_path: Path):
    """Without patterns every control input is used, and the observation lists them in order with their digest."""
    trial = choose(Counting(), contract({"x": ROWS}, BATCH, controls=controls()), tmp_path)
    assert [member.name for member in trial.observation.inputs] == names(trial)
    assert len(trial.cases) > 20
    assert (trial.observation.left_out, trial.observation.left_out_reason) == (0, "")
    assert len(trial.observation.sha256) == 64


def test_patterns_pick_cases_by_name(tmp_path: Path):
    """`--case 'halves-*'` and further patterns keep what any of them matches, in the set's order."""
    promised = contract({"x": ROWS}, BATCH, controls=controls())
    picked = names(choose(Counting(), promised, tmp_path, "halves-*", "*@batch=8"))
    every = names(choose(Counting(), promised, tmp_path))
    assert picked == [name for name in every if name.startswith("halves-") or name.endswith("@batch=8")]
    assert 2 < len(picked) < len(every)


def test_a_pattern_is_case_sensitive_and_whole():
    """A pattern must match the whole name: a part of it matches nothing without a star."""
    cases = [ControlCase(name=name, family="f", group="generated", sizes={}, make=dict) for name in ("ab-1", "Ab-1")]
    assert [case.name for case in matching(cases, ["A*"])] == ["Ab-1"]
    with pytest.raises(UserError):
        matching(cases, ["ab"])


def test_a_pattern_that_matches_nothing_is_the_users_mistake(tmp_path: Path):
    """The message lists the existing names and the command that shows all."""
    promised = contract({"x": tensor(2, range=(0.0, 1.0), draws=("zeros", "low"))}, controls=controls())
    with pytest.raises(UserError) as raised:
        choose(Doubled(), promised, tmp_path, "nonsense*", "other")
    assert str(raised.value) == "no control input matches 'nonsense*', 'other'; there are 2: zeros-1, noncontiguous-1"
    assert raised.value.hint == "list them with `export-gate controls MODEL`"


def test_a_long_list_of_names_is_cut():
    """Of many control inputs the first eight are named."""
    cases = [ControlCase(name=f"n-{i}", family="f", group="generated", sizes={}, make=dict) for i in range(9)]
    with pytest.raises(UserError) as raised:
        matching(cases, ["x"])
    assert str(raised.value) == (
        "no control input matches 'x'; there are 9: n-0, n-1, n-2, n-3, n-4, n-5, n-6, n-7, ..."
    )


def test_the_digest_is_of_the_cases_used(tmp_path: Path):
    """A part of the set has another digest than the whole."""
    promised = contract({"x": ROWS}, BATCH, controls=controls())
    whole = choose(Counting(), promised, tmp_path).observation.sha256
    assert choose(Counting(), promised, tmp_path).observation.sha256 == whole
    assert choose(Counting(), promised, tmp_path, "halves-*").observation.sha256 != whole


def test_the_budget_drops_cases_by_their_size(tmp_path: Path):
    """The work of the first case, scaled by input elements, are summed in order; the excess is dropped and reported."""
    free = choose(Counting(), contract({"x": ROWS}, BATCH, controls=controls()), tmp_path)
    budget = sum(work_of(case.sizes["batch"]) for case in free.cases[:10])
    promised = contract({"x": ROWS}, BATCH, controls=controls(budget_flops=budget))
    trial = choose(Counting(), promised, tmp_path)
    assert trial.observation.case_flops == flops_of(free.cases[0].sizes["batch"])
    assert names(trial)[:10] == names(free)[:10]
    assert sum(work_of(case.sizes["batch"]) for case in trial.cases) <= budget
    dropped = len(free.cases) - len(trial.cases)
    assert (trial.observation.left_out, trial.observation.left_out_reason) == (
        dropped,
        f"{dropped} over the FLOP budget",
    )


def test_both_bounds_are_told(tmp_path: Path):
    """The limit on cases and the budget are both named if both apply."""
    promised = contract({"x": ROWS}, BATCH, controls=controls(limit=10, budget_flops=1.0))
    observation = choose(Counting(), promised, tmp_path).observation
    assert observation.left_out_reason == "beyond controls.limit of 10 cases; 4 over the FLOP budget"
    assert len(observation.inputs) == MINIMUM_CASES


def test_the_users_own_cases_are_always_kept(tmp_path: Path):
    """Goldens, data and functions are used however small the budget is."""
    rows = np.arange(12, dtype=np.float32).reshape(4, 3) / 12
    np.savez(tmp_path / "split.npz", x=rows)
    np.savez(tmp_path / "golden.npz", x=rows[:2], output=np.zeros((2, 2), np.float32))
    (tmp_path / "own.py").write_text("import torch\ndef cases():\n    return {'mine': {'x': torch.zeros(2, 3)}}\n")
    promised = contract(
        {"x": ROWS},
        BATCH,
        controls=controls(
            budget_flops=1.0,
            data=(DataSource(path="split.npz", count=3),),
            golden=(GoldenSource(path="golden.npz"),),
            function="own.py:cases",
        ),
    )
    groups = [case.group for case in choose(Counting(), promised, tmp_path).cases]
    own = [group for group in groups if group != "generated"]
    assert sorted(own) == ["data", "function", "golden"]
    assert len(groups) - len(own) <= MINIMUM_CASES


def test_without_a_count_there_is_no_budget(tmp_path: Path):
    """A model whose forward raises at the first input, or exits, is left to eager's own report: nothing is dropped."""

    class Raising(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise SystemExit("no")

    trial = choose(Raising(), contract({"x": ROWS}, BATCH, controls=controls(budget_flops=1.0)), tmp_path)
    assert trial.observation.case_flops is None
    assert trial.observation.left_out == 0


def test_choosing_leaves_the_model_untouched(tmp_path: Path):
    """Counting FLOPs and looking for an affine map use twins: buffers and Python state stay fresh."""
    module = Counting()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    choose(module, contract({"x": ROWS}, BATCH), tmp_path)
    assert module.seen == []
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


def test_a_twin_shares_the_weights():
    """A twin has no second set of weights, but buffers of its own."""
    given = subject(Counting(), contract({"x": ROWS}, BATCH))
    twin = given.twin()
    assert isinstance(twin, Counting)
    assert isinstance(given.module, Counting)
    assert twin.linear.weight is given.module.linear.weight
    assert twin.calls is not given.module.calls


@pytest.mark.parametrize(("module", "has_basis"), [(Through(nn.Linear(3, 2)), True), (Squared(), False)])
def test_basis_only_where_the_map_looks_affine(tmp_path: Path, module: nn.Module, has_basis: bool):
    """`affine-basis: auto` adds the d+1 points for models that keep midpoints."""
    trial = choose(module, contract({"x": ROWS}, BATCH), tmp_path)
    assert trial.has_basis is has_basis
    assert any(case.group == "affine" for case in trial.cases) is has_basis


@pytest.mark.parametrize(("wanted", "has_basis"), [("always", True), ("never", False)])
def test_basis_as_the_contract_says(tmp_path: Path, wanted: Any, has_basis: bool):
    """`always` and `never` do not depend on the model."""
    module: nn.Module = Squared() if wanted == "always" else Through(nn.Linear(3, 2))
    trial = choose(module, contract({"x": ROWS}, BATCH, controls=Controls(affine_basis=wanted)), tmp_path)
    assert trial.has_basis is has_basis


def test_a_basis_point_can_be_run_alone(tmp_path: Path):
    """A finding at a basis point names a case that `--case` finds; alone it covers no input space."""
    trial = choose(Through(nn.Linear(3, 2)), contract({"x": ROWS}, BATCH), tmp_path, "basis-1@*")
    assert [case.group for case in trial.cases] == ["affine"]
    wide = contract({"x": tensor("batch", 12, range=(-10.0, 10.0))}, BATCH)
    assert not choose(Through(nn.Linear(12, 2)), wide, tmp_path, "basis-1@*").has_basis
    assert choose(Through(nn.Linear(12, 2)), wide, tmp_path, "basis-*").has_basis


def test_basis_is_never_over_budget(tmp_path: Path):
    """The basis points count together, so the budget takes none of them."""
    trial = choose(
        Through(nn.Linear(3, 2)), contract({"x": ROWS}, BATCH, controls=Controls(budget_flops=1.0)), tmp_path
    )
    assert trial.has_basis


class Mixed(nn.Module):
    """An affine map of a list and a dict, beside a constant."""

    def forward(self, parts: list[torch.Tensor], named: dict[str, torch.Tensor], scale: float) -> torch.Tensor:
        """The sum, scaled."""
        return (parts[0] + parts[1] - named["a"]) * scale


class Bent(nn.Module):
    """Nearly the identity, as a deep network of ReLUs in one regime is nearly affine."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One percent steeper above zero."""
        return x + 0.01 * torch.relu(x)


@pytest.mark.parametrize(
    ("make", "is_affine"),
    [
        (Bent, False),
        (lambda: nn.Linear(3, 2), True),
        (lambda: nn.Linear(3, 2, dtype=torch.float64), True),
        (lambda: nn.Linear(3, 2, dtype=torch.bfloat16), True),
        (lambda: nn.Sequential(nn.Linear(3, 2), nn.ReLU()), False),
        (lambda: nn.Softmax(-1), False),
        (Squared, False),
    ],
)
def test_affine_maps_keep_midpoints(make: Callable[[], nn.Module], is_affine: bool):
    """The fast filter distinguishes affine maps from others, up to the rounding of each dtype."""
    torch.manual_seed(0)
    module = make()
    dtype = str(next((p.dtype for p in module.parameters()), torch.float32)).removeprefix("torch.")
    assert looks_affine(subject(Through(module), contract({"x": tensor(4, 3, dtype=dtype)}))) is is_affine


def test_affine_maps_of_nested_inputs_keep_midpoints():
    """The midpoint of a list and of a dict is that of their tensors; constants stay."""
    one = tensor(4, 3)
    promised = contract(
        {
            "parts": SequenceSpec(kind="list", items=(one, one)),
            "named": DictSpec(items={"a": one}),
            "scale": ConstantSpec(value=0.5),
        }
    )
    assert looks_affine(subject(Mixed(), promised))


class Longer(nn.Module):
    """Returns more values at its third call, as a model may that selects elements by their values."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the class."""
        self.calls += 1
        return x[: 2 + self.calls // 3]


def test_a_map_whose_midpoint_has_another_size_is_not_affine():
    """Two inputs may select as many elements, and the midpoint another number."""
    assert not looks_affine(subject(Longer(), contract({"x": tensor(4, 3)})))


def test_a_model_that_raises_looks_like_nothing():
    """Eager's failures are reported when its references are made."""
    assert not looks_affine(subject(Through(nn.Linear(5, 2)), contract({"x": tensor(4, 3)})))


def test_no_control_input_at_all_is_a_mistake(tmp_path: Path):
    """A function may return none where the gate draws none either."""
    (tmp_path / "no_cases.py").write_text("def cases():\n    return {}\n")
    promised = contract({"x": ROWS}, BATCH, controls=controls(generated=False, function="no_cases.py:cases"))
    with pytest.raises(UserError, match="expected at least one control input, got none"):
        choose(Squared(), promised, tmp_path)
