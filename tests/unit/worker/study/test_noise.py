"""Rounding is excused and faults are not: each healthy net is compared with the same net with a planted fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from inquiry_samples import ONNX, inquire
from torch import nn
from worker_samples import Fn, contract, size, tensor

from export_gate.wall.contract import Controls, Dim, ModelContract, TensorSpec
from export_gate.worker.leaves.values import Call
from export_gate.worker.model.conditions import Conditions
from export_gate.worker.model.float64 import in_float64

BATCH, SEQ = size("batch"), size("seq")
EPS = 1e-3


class Norm(nn.Module):
    """A hand-written layer norm whose constant rows are decided by rounding: eps stands outside the root."""

    def __init__(self, *, eps: float = EPS, mean: Callable[[torch.Tensor], torch.Tensor] | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 16))
        self.eps = eps
        self.mean = mean or (lambda x: x.mean(-1, keepdim=True))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the class."""
        centred = x - self.mean(x)
        return self.weight * centred / (centred.pow(2).mean(-1, keepdim=True).sqrt() + self.eps)


class Net(nn.Module):
    """Two such norms around a linear layer and an activation, with a threshold and a rounding in float."""

    def __init__(
        self,
        *,
        eps: float = EPS,
        mean: Callable[[torch.Tensor], torch.Tensor] | None = None,
        scale: float = 1.0,
        act: Callable[[torch.Tensor], torch.Tensor] = nn.functional.gelu,
        above: Callable[[torch.Tensor, float], torch.Tensor] = torch.ge,
        rounded: Callable[[torch.Tensor], torch.Tensor] = torch.round,
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = Norm(eps=eps, mean=mean), Norm(eps=eps, mean=mean)
        self.linear = nn.Linear(16, 16)
        with torch.no_grad():
            self.linear.weight[3] *= scale
        self.act, self.above, self.rounded = act, above, rounded

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the class."""
        gate = torch.where(self.above(x, 0.5), 1.0, 0.25)
        return self.second(self.act(self.linear(self.first(x)))) * gate + self.rounded(x)


def other_order(x: torch.Tensor) -> torch.Tensor:
    """The same mean, summed in another order."""
    return torch.stack([part.sum(-1) for part in x.split(3, -1)], -1).sum(-1, keepdim=True) / x.shape[-1]


CONTRACT = ModelContract(
    name="m",
    factory="m:make",
    dims=(Dim(name="batch", min=1, max=4), Dim(name="seq", min=1, max=12)),
    inputs={"x": TensorSpec(dtype="float32", shape=(BATCH, SEQ, size(16)), range=(-5.0, 5.0))},
    targets=ONNX,
)

FAULTS: dict[str, Callable[[], nn.Module]] = {
    "eps x1.5": lambda: Net(mean=other_order, eps=1.5 * EPS),
    "channel + 5 %": lambda: Net(mean=other_order, scale=1.05),
    "activation's variant": lambda: Net(mean=other_order, act=lambda x: nn.functional.gelu(x, approximate="tanh")),
    "> for >=": lambda: Net(mean=other_order, above=torch.gt),
    "rounding mode": lambda: Net(mean=other_order, rounded=lambda x: torch.floor(x + 0.5)),
}


def test_another_order_of_summation_is_excused_where_float32_cannot_decide():
    """A healthy net that exceeds the tolerance at constant rows is not red."""
    found = inquire(CONTRACT, Net, lambda: Net(mean=other_order))

    assert found.suspects > 0
    assert found.inquiry.red == set()
    assert {noise.is_flat for noise in found.inquiry.noise} == {True}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_in_the_same_net_stays_red(fault: str):
    """What excuses rounding does not excuse a fault in the same net."""
    assert inquire(CONTRACT, Net, FAULTS[fault]).is_red


def test_the_twin_computes_in_float64_what_forward_computes_in_float32_on_purpose():
    """Casts, factories and in-place writes inside forward are widened; the threshold stays that of float32."""

    class Narrow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """See the class."""
            out = torch.zeros(x.shape, dtype=torch.float32)
            out += self.linear(x).float()
            return torch.where(x >= 0.7, out, -out)

    torch.manual_seed(0)
    x = torch.tensor([[0.7, 0.1, -0.3, 0.9]])
    module = Narrow()
    (leaf,) = in_float64(Narrow(), Call(args=(x,)))
    (same,) = in_float64(module, Call(args=(x,)))
    exact = x.double() @ module.linear.weight.T + module.linear.bias
    expected = torch.where(x >= 0.7, exact, -exact)

    assert leaf.value is not None
    assert same.value is not None
    assert (leaf.dtype, same.dtype) == ("float64", "float64")
    # Both sides are float64 sums of four products in the same order or not: a few units of 1e-16.
    assert abs(same.value - expected.detach().numpy()).max() < 1e-14


class Branching(nn.Module):
    """Takes a branch by a sum, which is near 0 at some control inputs."""

    def __init__(
        self,
        *,
        summed: Callable[[torch.Tensor], torch.Tensor] = torch.sum,
        bound: float = 0.0,
        above: Callable[[torch.Tensor, float], torch.Tensor] = torch.gt,
    ) -> None:
        super().__init__()
        self.summed, self.bound, self.above = summed, bound, above

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the class."""
        return torch.cond(self.above(self.summed(x), self.bound), torch.cos, torch.sin, (x,))


def one_by_one(x: torch.Tensor) -> torch.Tensor:
    """The same sum, one element after another."""
    return x.reshape(-1).cumsum(0)[-1]


SUMMED = replace(CONTRACT, inputs={"x": TensorSpec(dtype="float32", shape=(BATCH, SEQ, size(5)), range=(-1.0, 1.0))})


def test_either_branch_is_right_where_rounding_decides_a_condition():
    """The sum of the sweep is 0 but for rounding, so that its sign says nothing."""
    with Conditions().watched():  # torch.cond compiles at each size
        found = inquire(SUMMED, Branching, lambda: Branching(summed=one_by_one))

    assert found.suspects > 0
    assert found.inquiry.red == set()


@pytest.mark.parametrize(
    "fault",
    [
        lambda: Branching(bound=0.5),
        lambda: Branching(above=torch.ge),
        lambda: Branching(summed=lambda x: one_by_one(x) + 1e-3),
        lambda: Branching(summed=lambda x: -x.sum()),
    ],
)
def test_a_wrong_condition_stays_red(fault: Callable[[], nn.Module]):
    """What excuses a branch that rounding decides does not excuse another condition."""
    with Conditions().watched():
        assert inquire(SUMMED, Branching, fault).is_red


DOUBLE = contract(
    {"x": tensor("n", 4, dtype="float64", range=(-2.0, 2.0))},
    Dim(name="n", min=2, max=8),
    targets=ONNX,
    controls=Controls(random=1, limit=10),
)


def test_a_constant_in_float32_is_no_rounding_of_a_float64_model():
    """A file that keeps 0.7 in float32 is wrong in the eighth digit, which float64 has."""
    rounded = float(np.float32(0.7))
    assert inquire(DOUBLE, lambda: Fn(lambda x: x * 0.7), lambda: Fn(lambda x: x * rounded)).is_red
