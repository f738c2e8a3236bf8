"""A TorchScript model, which torch.export does not accept."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Measured


def check(measured: Measured) -> Iterator[Finding]:
    """One finding that names what the factory should return instead."""
    contract, observation = measured.contract, measured.observation
    if observation.hygiene.scripted:
        yield RULE.finding(
            contract.name,
            f"the factory {contract.factory} returns TorchScript, which torch.export does not accept",
            hint=(
                "Return the nn.Module itself, before `torch.jit.script`, `torch.jit.trace` or `torch.jit.load`: "
                "torch.export (https://docs.pytorch.org/docs/stable/export.html) captures Python code. A model that "
                "exists only as TorchScript must be rebuilt from its Python class and a state_dict. Where every target "
                "has an `artifact`, nothing is exported, and TorchScript will do."
            ),
        )


RULE = Rule(
    name="torchscript-model",
    severity="violation",
    summary="The factory returns TorchScript instead of an nn.Module in Python.",
    stage="eager",
    waivable=None,
    owner="model",
    cause="export",
    check=check,
)
