"""Instances of the model that are run again, to find out why something differs."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from export_gate.worker.leaves.values import Leaf, Values
from export_gate.worker.model.conditions import Conditions, errors_of
from export_gate.worker.model.factory import Factory, Parameter, bind
from export_gate.worker.model.float64 import in_float64, is_narrow
from export_gate.worker.model.hygiene import factory_differences, weight_digest
from export_gate.worker.model.reference import module_runner, rename


@dataclass(slots=True, kw_only=True)
class Laboratory:
    """Instances that are made when the first difference needs them, and kept for the next one."""

    factory: Factory
    parameters: Sequence[Parameter]
    names: Mapping[str, str]
    """Eager's own leaf name -> the contract's."""
    weights: dict[str, str] = field(default_factory=dict)
    """Digests of the weights that eager had; empty if they are not known."""
    eager: torch.nn.Module | None = None
    twin: torch.nn.Module | None = None
    """The instance in float64."""
    was_narrow: bool = False
    """Whether that one had weights below float64."""
    has_conditions: bool | None = None
    """Whether forward meets conditions on values; None as long as nobody has asked."""

    def widened(self, values: Values) -> tuple[Leaf, ...]:
        """The leaves in float64."""
        return self._wide(values, Conditions())[1]

    def widened_otherwise(self, values: Values, near: Iterable[Values]) -> tuple[Leaf, ...]:
        """The leaves in float64 with the other branch where rounding decides a condition; none if it does not.

        Args:
            values: the input.
            near: inputs beside it, at which the error of float32 in the conditions is measured.
        """
        if self.has_conditions is None:
            self.has_conditions = bool(self._narrow(values).gaps)
        if not self.has_conditions:
            return ()
        errors = errors_of((self._narrow(each), self._wide(each, Conditions())[0]) for each in near)
        if not any(errors):
            return ()
        other, leaves = self._wide(values, Conditions(errors=errors))
        return leaves if other.turned else ()

    def _narrow(self, values: Values) -> Conditions:
        met = Conditions()
        with met.watched():
            self.again(values)
        return met

    def _wide(self, values: Values, conditions: Conditions) -> tuple[Conditions, tuple[Leaf, ...]]:
        # `in_float64` widens the instance itself, so it cannot be the one that answers for eager.
        if self.twin is None:
            self.twin = self._fresh()
            self.was_narrow = any(map(is_narrow, (*self.twin.parameters(), *self.twin.buffers())))
        call = bind(values, self.parameters)
        leaves = in_float64(self.twin, call, conditions, was_narrow=self.was_narrow)
        return conditions, rename(leaves, self.names)

    def again(self, values: Values) -> tuple[Leaf, ...]:
        """Eager's own leaves at other values, or in another layout."""
        self.eager = self.eager or self._fresh()
        return module_runner(self.eager, self.names)(bind(values, self.parameters))

    def weights_of_eager(self) -> list[torch.Tensor]:
        """Parameters and buffers of an instance; none if the factory cannot make the same one again."""
        try:
            self.eager = self.eager or self._fresh()
        except Exception:  # noqa: BLE001 - whatever a factory raises at its second call
            return []
        return [*self.eager.parameters(), *self.eager.buffers()]

    def _fresh(self) -> torch.nn.Module:
        """An instance with eager's weights.

        Raises:
            ValueError: the factory makes another model at every call, which says nothing about rounding.
        """
        module = self.factory()
        if self.weights and factory_differences(self.weights, weight_digest(module)):
            raise ValueError("the factory makes another model")
        return module


def attempt(run: Callable[[], tuple[Leaf, ...]]) -> tuple[Leaf, ...] | None:
    """What the call returns; None if it raises, which excuses nothing."""
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run()
    return None
