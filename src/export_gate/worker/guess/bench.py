"""Run a model on guessed inputs, and say where it fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from export_gate.wall.contract import Dim, ModelContract, Spec
from export_gate.worker.controls.build import reference_values, values_at
from export_gate.worker.controls.layout import tensors_in
from export_gate.worker.controls.sizes import Sizes
from export_gate.worker.guess.edits import Options, dims_of, specs_of
from export_gate.worker.guess.layers import BATCH, EDGES, NODES, SEQ, Option
from export_gate.worker.guess.outputs import FIRST
from export_gate.worker.guess.watch import Failed, watch
from export_gate.worker.leaves.values import Call, Leaf, Values
from export_gate.worker.model.factory import Parameter, bind
from export_gate.worker.model.reference import Runner, module_runner

EXTREMES = ("integer-high", "integer-low")
"""Families whose values are the ends of integer ranges: a guess must take them too."""
LARGEST = {BATCH: (16,), SEQ: (64, 32, 16), NODES: (32,), EDGES: (64,)}
"""Upper ends to try, the widest first."""
PATIENCE_S = 20.0
"""No new guess or size is tried after this time, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A model to be tried, and until when."""

    module: torch.nn.Module
    parameters: tuple[Parameter, ...]
    constants: Mapping[str, Spec]
    """Further arguments that every call gets."""
    offered: Callable[[str], Option | None]
    """How to feed a parameter that has a default, for a forward that does not run without it."""
    until: float
    """On `time.monotonic`."""

    @property
    def is_late(self) -> bool:
        """Whether to try no more."""
        return time.monotonic() > self.until

    def run(self, options: Options, sizes: Sizes, family: str = "") -> tuple[Leaf, ...]:
        """What forward returns on values at these sizes, the plainest unless a family is named.

        Raises:
            Exception: whatever forward raises.
        """
        run: Runner = module_runner(self.module, {})
        return run(bind(self.values(options, sizes, family), self.parameters))

    def values(self, options: Options, sizes: Sizes, family: str = "") -> Values:
        """Arguments by name."""
        contract = self.contract(options, make_dims(options))
        return values_at(contract, sizes, family, 1) if family else reference_values(contract, sizes)

    def problem(self, options: Options) -> tuple[Exception, str] | None:
        """What forward raises at the first sizes, and at values of which family; None if it runs."""
        for family in ("", *EXTREMES):
            try:
                self.run(options, FIRST, family)
            except Exception as error:  # noqa: BLE001 - whatever forward raises is the answer
                return error, family
        return None

    def failure(self, options: Options, family: str, sizes: Sizes = FIRST) -> Failed | None:
        """Where forward fails at these sizes; None if it does not."""
        try:
            values = self.values(options, sizes, family)
        except Exception:  # noqa: BLE001 - values that cannot be drawn say nothing about forward
            return None
        call = bind(values, self.parameters)
        run = module_runner(self.module, {})
        return watch(lambda: run(call), dict(tensors_in(values)))

    def contract(self, options: Options, dims: Sequence[Dim]) -> ModelContract:
        """The contract that the options make up."""
        specs = {name: option.spec for name, option in options.items()}
        inputs = in_order({**specs, **self.constants}, self.parameters)
        return ModelContract(name="trial", factory="", inputs=inputs, dims=tuple(dims), targets=())

    def call(self, contract: ModelContract, sizes: Sizes) -> Call:
        """Arguments of forward: the plainest values at these sizes."""
        return bind(reference_values(contract, sizes), self.parameters)

    def runs(self, options: Options, sizes: Sizes) -> bool:
        """Whether forward takes these sizes."""
        try:
            self.run(options, sizes)
        except Exception:  # noqa: BLE001 - whatever forward raises is the answer
            return False
        return True


def make_bench(
    module: torch.nn.Module,
    parameters: Sequence[Parameter],
    constants: Mapping[str, Spec],
    offered: Callable[[str], Option | None],
) -> Bench:
    """A bench that loses its patience after `PATIENCE_S`."""
    return Bench(
        module=module,
        parameters=tuple(parameters),
        constants=constants,
        offered=offered,
        until=time.monotonic() + PATIENCE_S,
    )


def renewed(bench: Bench) -> Bench:
    """The bench with all of its patience."""
    return replace(bench, until=time.monotonic() + PATIENCE_S)


def in_order(specs: Mapping[str, Spec], parameters: Sequence[Parameter]) -> dict[str, Spec]:
    """The specs in forward's order."""
    return {p.name: specs[p.name] for p in parameters if p.name in specs}


def make_dims(options: Options, low: Mapping[str, int] = {}, high: Mapping[str, int] = {}) -> tuple[Dim, ...]:
    """The dims that the options name, by default as wide as they are ever tried."""
    used = dims_of(specs_of(options))
    return tuple(Dim(name=name, min=low.get(name, 1), max=high.get(name, LARGEST[name][0])) for name in used)
