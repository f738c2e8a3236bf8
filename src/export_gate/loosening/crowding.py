"""Further control inputs take the places of others within the limit: only the run knows whether any were left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from export_gate.loosening.record import Alteration, ConfigChange
from export_gate.wall.observation import ModelObservation

_MORE = re.compile(
    r"controls\.(data|golden|function|random|sizes|affine-basis)\b"
    r"|dims\.\w+\.(separate|max|min|multiple-of)|inputs\..*\.(draws|nonfinite|mask|shape)"
)
"""Keys by which a contract gets more control inputs, or others first, or such as take more of the budget."""


def with_crowding(change: ConfigChange, models: Sequence[ModelObservation]) -> ConfigChange:
    """The change, in which what adds inputs of some kind loosens the check of a model where others were left out."""
    left_out = {model.model: model.controls for model in models if model.controls and model.controls.left_out}

    def judged(alteration: Alteration) -> Alteration:
        controls = left_out.get(alteration.model)
        if controls is None or alteration.effect == "loosened" or not _MORE.match(alteration.key):
            return alteration
        what = f"{alteration.what}, which leaves out other inputs: {controls.left_out} {controls.left_out_reason}"
        return replace(alteration, effect="loosened", what=what)

    return replace(change, alterations=tuple(map(judged, change.alterations)))
