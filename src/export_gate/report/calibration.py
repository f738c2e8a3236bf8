"""Format how far a model's artifacts are from eager, and eager from float64, as `export-gate calibrate` prints it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from export_gate.report.escape import terminal
from export_gate.rules.measure import Measured, Measurement
from export_gate.rules.wording import round_up
from export_gate.wall.contract import TargetName
from export_gate.wall.noise import telling_bound
from export_gate.wall.words import rounded

ROOM = 2.0
"""A suggested tolerance is this many times what was measured: other machines round in another order."""
HEADERS = ("target", "output", "largest difference", "at", "of allowed", "noise floor", "tolerance to write")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """One output of one target."""

    target: TargetName
    output: str
    worst: Measurement
    """The one closest to its bound, or farthest over it."""
    floor: float | None
    """The largest noise floor of eager that was measured; None if nothing differed."""
    tolerance: float | None
    """An atol and rtol under which everything measured passes with room to spare; None if nothing differs."""
    is_sharp: bool
    """Whether a wrong output would still fail under it."""


def calibrate(measured: Measured) -> Iterator[Calibrated]:
    """Every floating output of every target, measured against the contract's own tolerances."""
    for planned in measured.contract.targets:
        leaves = [leaf for leaf in measured.of(planned.name) if leaf.norm is not None and not leaf.is_exact]
        noise = [found for seen in measured.seen(planned.name) for found in seen.noise]
        for output in dict.fromkeys(leaf.output for leaf in leaves):
            own = [leaf for leaf in leaves if leaf.output == output]
            floors = {found.case: found.floor for found in noise if found.output == output}
            yield _calibrated(planned.name, output, own, floors)


def _calibrated(target: TargetName, output: str, leaves: Sequence[Measurement], floors: dict[str, float]) -> Calibrated:
    norms = {leaf.case: leaf.norm for leaf in leaves if leaf.norm is not None}
    # With atol = rtol = t, the bound is t + t * scale.
    needed = max(max(norm.measured, floors.get(case, 0.0)) / (1 + norm.scale) for case, norm in norms.items())
    tolerance = round_up(ROOM * needed) if needed else None
    scale = max(norm.scale for norm in norms.values())
    return Calibrated(
        target=target,
        output=output,
        worst=max(leaves, key=lambda leaf: leaf.norm.ratio if leaf.norm else 0.0),
        floor=max(floors.values(), default=None),
        tolerance=tolerance,
        is_sharp=tolerance is None or tolerance * (1 + scale) <= telling_bound(None, scale),
    )


def calibration_lines(measured: Measured) -> list[str]:
    """A table, and what it means."""
    found = list(calibrate(measured))
    if not found:
        return [f"{terminal(measured.contract.name)}: no floating output was compared"]
    rows = [HEADERS, *(tuple(map(terminal, _cells(each))) for each in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADERS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [*lines, "", *_explained(found)]


def _cells(found: Calibrated) -> tuple[str, ...]:
    norm = found.worst.norm
    assert norm is not None
    if found.tolerance is None:
        return (found.target, found.output, "exact", "", "", "", "any")
    return (
        found.target,
        found.output,
        rounded(norm.measured),
        found.worst.case,
        f"{100 * norm.ratio:.0f}%",
        "" if found.floor is None else rounded(found.floor),
        f"{{atol: {rounded(found.tolerance)}, rtol: {rounded(found.tolerance)}}}",
    )


def _explained(found: Sequence[Calibrated]) -> Iterator[str]:
    yield f"A tolerance to write is {ROOM:.0f} times the larger of both, at every control input, rounded up."
    blind = [f"{each.output} on {each.target}" for each in found if not each.is_sharp]
    if blind:
        names = terminal(", ".join(blind))
        yield f"Too large to tell a right output from a wrong one: {names}. Find the cause with `export-gate run`."
