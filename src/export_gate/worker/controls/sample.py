"""Choose samples of a split: evenly over labels, each group once before any gives a second, by seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

from export_gate.worker.controls.stream import Stream


def choose_samples(
    count: int, labels: Sequence[Hashable], groups: Sequence[Hashable], stream: Stream
) -> tuple[int, ...]:
    """Indices of `count` samples, ascending.

    Labels share the count as evenly as their numbers allow. Samples are taken in rounds: in each, as many labels'
    places as possible are filled from different groups (a maximum matching), so that no group gives a second sample
    while another could have given its first.

    Args:
        count: At most `len(labels)`.
        labels: Of each sample; all equal for no stratification.
        groups: Of each sample; all different for no grouping.
        stream: Decides among equals.
    """
    order = [int(index) for index in stream.permutation(len(labels))]
    # In the seeded order, which decides what labels get the places that are left over.
    left = _quotas(count, [labels[index] for index in order])
    free = set(order)
    chosen: list[int] = []
    while len(chosen) < count:
        taken = _round(left, [index for index in order if index in free], labels, groups)
        chosen += taken
        free.difference_update(taken)
        for index in taken:
            left[labels[index]] -= 1
    return tuple(sorted(chosen))


def _quotas(count: int, labels: Sequence[Hashable]) -> dict[Hashable, int]:
    """Places of each label: one at a time in turn, until `count` are given or a label has no more samples."""
    available: dict[Hashable, int] = defaultdict(int)
    for label in labels:
        available[label] += 1
    quotas: dict[Hashable, int] = dict.fromkeys(available, 0)
    while sum(quotas.values()) < count:
        for label, number in available.items():
            if quotas[label] < number and sum(quotas.values()) < count:
                quotas[label] += 1
    return quotas


def _round(
    left: dict[Hashable, int], order: Sequence[int], labels: Sequence[Hashable], groups: Sequence[Hashable]
) -> list[int]:
    """At most one sample per group, as many as possible within each label's places left."""
    options: dict[Hashable, dict[Hashable, int]] = defaultdict(dict)
    for index in order:
        options[labels[index]].setdefault(groups[index], index)
    owner: dict[Hashable, tuple[Hashable, int]] = {}
    for label, places in left.items():
        for place in range(places):
            if not _augment((label, place), options, owner):
                break
    return [options[label][group] for group, (label, _) in owner.items()]


def _augment(
    start: tuple[Hashable, int],
    options: dict[Hashable, dict[Hashable, int]],
    owner: dict[Hashable, tuple[Hashable, int]],
) -> bool:
    """Give `start` a group, moving earlier places to other groups where needed (breadth first)."""
    reached: dict[Hashable, tuple[Hashable, int]] = {}
    queue = [start]
    # The queue grows while it is walked.
    for place in queue:
        for group in options[place[0]]:
            if group in reached:
                continue
            reached[group] = place
            if group not in owner:
                _move(group, start, reached, owner)
                return True
            queue.append(owner[group])
    return False


def _move(
    group: Hashable,
    start: tuple[Hashable, int],
    reached: dict[Hashable, tuple[Hashable, int]],
    owner: dict[Hashable, tuple[Hashable, int]],
) -> None:
    # Back along the path to `start`: each place takes the new group, and leaves its own to the place before it.
    held = {place: held_group for held_group, place in owner.items()}
    while True:
        place = reached[group]
        owner[group] = place
        if place == start:
            return
        group = held[place]
