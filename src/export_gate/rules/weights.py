"""Other weights in a file than in the module, in words."""

from __future__ import annotations

from export_gate.rules.measure import Measured
from export_gate.rules.wording import listing
from export_gate.wall.contract import TargetName
from export_gate.wall.diagnosis import WeightsCompared
from export_gate.wall.words import count


def weights_of(measured: Measured, target: TargetName) -> WeightsCompared | None:
    """How the file's tensors compare with the module's."""
    return next((seen.weights for seen in measured.seen(target) if seen.weights is not None), None)


def weights_words(weights: WeightsCompared) -> tuple[str, ...]:
    """What differs between the file's weights and the module's."""
    how = "of the same name" if weights.by_name else "of the same shape"
    if weights.differing_count == weights.found:
        every = f"all {weights.found} weights" if weights.found > 1 else "the one weight"
        first = f"{every} {how} {'differ' if weights.found > 1 else 'differs'} from the file's"
    else:
        first = f"{weights.differing_count} of {count(weights.found, 'weight')} {how} differ from the file's"
    return (f"{first}: {listing(weights.differing, limit=3)}",)
