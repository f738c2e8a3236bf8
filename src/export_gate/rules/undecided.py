"""Say of an output that rounding alone decides what was seen, and what helps: the steps of a quantiser, or noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from export_gate.rules.base import Finding
from export_gate.rules.measure import Measured, Measurement
from export_gate.rules.numbers import describe_noise
from export_gate.rules.tolerances import tells
from export_gate.rules.wording import listing, place, round_up, targets_key
from export_gate.wall.contract import TargetName
from export_gate.wall.words import rounded

NEAR = 0.05
"""A difference this near to one step of a quantiser, as a share of it, is one step."""


def undecided(measured: Measured, target: TargetName, leaves: Sequence[Measurement]) -> Finding:
    """The violation: no error was found, and a wrong output would not be found either."""
    worst = max(leaves, key=lambda leaf: leaf.comparison.max_abs_diff)
    step = quantum(measured, worst)
    # Inputs without spread are allowed more, and do not count as evidence.
    spread = [leaf for leaf in leaves if leaf.noise and not leaf.noise.is_flat]
    allowed = max(leaf.norm.allowed for leaf in spread or leaves if leaf.norm)
    seen = f"eager and {target} differ by one quantisation step ({step:.2g}) at rounding ties; " if step else ""
    return Finding(
        rule="nothing-compared",
        severity="violation",
        model=measured.contract.name,
        target=target,
        output=worst.output,
        message=(
            f"{place(measured.contract.name, target, worst.output)}: {seen}the tolerance that float32 needs here "
            f"({rounded(allowed)}) is so wide that a wrong output would pass too, so nothing verifies this "
            "output"
        ),
        hint=_step_hint(measured, target, leaves) if step else _noise_hint(measured, worst),
        details=(describe_noise(worst.noise),) if worst.noise else (),
        owner="model",
        cause="rounding",
    )


def quantum(measured: Measured, worst: Measurement) -> float:
    """The step of the grid on which eager's values lie, if eager is one step from float64 and from the artifact."""
    steps = [c.step for c in measured.observation.contrasts if c.output == worst.output and c.step > 0]
    if not steps or worst.noise is None:
        return 0.0
    step = min(steps)
    gaps = (worst.comparison.max_abs_diff, worst.noise.f64)
    return step if all(abs(gap / step - 1) < NEAR for gap in gaps) else 0.0


def _step_hint(measured: Measured, target: TargetName, leaves: Sequence[Measurement]) -> str:
    atol = rounded(round_up(max(leaf.comparison.max_abs_diff for leaf in leaves)))
    return (
        f"If one step is acceptable, declare `atol: {atol}` in {targets_key(measured.contract, target, 'tolerance')}; "
        "otherwise compare before the last quantiser: return its input instead of this output."
    )


def _noise_hint(measured: Measured, worst: Measurement) -> str:
    """What can lower the noise or raise what it is compared with; only what is not so already."""
    controls = measured.observation.controls
    unlimited = controls.undeclared_range if controls else ()
    ways = (
        [f"declare a `range` of {listing([f'`{name}`' for name in unlimited])} as callers send it"] if unlimited else []
    )
    ways += ["scale the output up"] if _is_small(worst) else []
    ways += ["make the model better conditioned (a larger eps, no difference of large numbers, float64 in that place)"]
    text = ways[0] if len(ways) == 1 else f"{', '.join(ways[:-1])}, or {ways[-1]}"
    return f"{text[0].upper()}{text[1:]}: float32 alone cannot verify it."


def _is_small(worst: Measurement) -> bool:
    """Whether the atol, and not the noise, is too large for an output of this size."""
    if worst.norm is None:
        return False
    alone = replace(worst.norm, allowed=worst.norm.allowed - (worst.tolerance.atol or 0.0))
    return tells(replace(worst, norm=alone))
