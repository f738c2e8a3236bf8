"""Find the nodes that may have introduced the error of an output, from the errors of values along a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from export_gate.worker.nodes.gap import Gap

STEP = 8.0
"""Between one threshold and the next lower one."""
MOST_SUSPECTS = 16
"""Suspects that are tested, each by running its node alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """A value that is wrong by more than a threshold while the nearest values before it are not."""

    name: str
    threshold: float

    def is_confirmed_by(self, own: Gap) -> bool:
        """Whether the node is as wrong with the expected inputs, so that the error is its own."""
        return own.error > max(self.threshold / 2, own.floor)


def suspicions(
    end: str, gaps: Mapping[str, Gap], parents: Mapping[str, Sequence[str]], order: Mapping[str, int]
) -> tuple[Suspicion, ...]:
    """Walk back from a wrong value, over wrong values, to those with inputs that agree.

    Large errors are followed first: an error that later nodes amplify, and rounding, show only below a lower threshold.

    Args:
        end: the output's value.
        gaps: of each value that has a counterpart.
        parents: the nearest such values before each.
        order: places of the values in the graph, the earliest first.
    """
    found: dict[str, Suspicion] = {}
    for threshold in _thresholds(gaps[end]):
        origins = _origins(end, gaps, parents, threshold)
        for name in sorted(origins, key=lambda name: order.get(name, 0)):
            found.setdefault(name, Suspicion(name=name, threshold=threshold))
    return tuple(found.values())[:MOST_SUSPECTS]


def _thresholds(end: Gap) -> Iterator[float]:
    threshold = min(end.error, 1.0) / 2
    # Integers have a floor of 0, down to which there would be hundreds of thresholds.
    floor = max(end.floor, 1e-15)
    while threshold > floor:
        yield threshold
        threshold /= STEP
    if end.error > floor:
        yield floor


def _origins(end: str, gaps: Mapping[str, Gap], parents: Mapping[str, Sequence[str]], threshold: float) -> set[str]:
    def is_bad(name: str) -> bool:
        return gaps[name].error > max(threshold, gaps[name].floor)

    seen, waiting, origins = {end}, [end] if is_bad(end) else [], set()
    while waiting:
        name = waiting.pop()
        bad = [parent for parent in parents.get(name, ()) if is_bad(parent)]
        if not bad:
            origins.add(name)
        waiting += [parent for parent in bad if parent not in seen]
        seen.update(bad)
    return origins
