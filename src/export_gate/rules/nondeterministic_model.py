"""Eager does not agree with itself, so that no artifact can agree with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Measured
from export_gate.rules.numbers import spread
from export_gate.rules.wording import listing
from export_gate.wall.observation import Comparison, ModelObservation, RowsDiffering
from export_gate.wall.words import count, rounded

CLOCKS = ("time.", "datetime.")


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for weights that differ between factory calls, one for each output that differs between runs."""
    contract, observation = measured.contract, measured.observation
    hygiene = observation.hygiene
    if hygiene.factory_differs:
        yield RULE.finding(
            contract.name,
            (
                "two calls of the factory with the same seeds give different weights: "
                f"{listing(hygiene.factory_differs)}"
            ),
            hint=(
                "Load the weights from a checkpoint, or draw them from `torch.manual_seed` alone: other random "
                "sources, the clock, and a generator kept between calls make every instance a different model."
            ),
            occurrences=len(hygiene.factory_differs),
            details=hygiene.factory_differs,
        )
    for worst in hygiene.nondeterministic:
        yield _finding(observation, worst)
    # The operators alone prove nothing: forward may seed the generator before it draws.
    if observation.random_operators and hygiene.draws and not hygiene.nondeterministic:
        yield _drawing(observation)


def _drawing(observation: ModelObservation) -> Finding:
    """Randomness that no run showed, because it acts rarely or at some inputs only."""
    operators = observation.random_operators
    return RULE.finding(
        observation.model,
        f"eager draws random numbers without seeding them, although no two runs differed: {listing(operators)}",
        hint=_hint(operators, None),
        source=observation.random_source,
        occurrences=len(operators),
        details=operators,
    )


def _finding(observation: ModelObservation, worst: Comparison) -> Finding:
    operators = observation.random_operators
    hygiene = observation.hygiene
    called = hygiene.drawn_with
    is_clock = called.startswith(CLOCKS)
    if operators:
        drawn = f"; the exported program draws with {listing([f'`{name}`' for name in operators])}"
    else:
        drawn = f"; forward calls `{called}`" if called else ""
    return RULE.finding(
        observation.model,
        (
            f"eager differs between {count(observation.hygiene.repeats, 'run')} on the same input: "
            f"{describe_difference(worst)}{_row_words(worst.rows)}{drawn}"
        ),
        hint=_hint(operators or [called], worst.rows, called),
        output=worst.output,
        source=observation.random_source or hygiene.drawing,
        owner="model",
        cause="ambient" if is_clock else "randomness",
        measured=worst.max_abs_diff,
        allowed=0.0,
        details=spread(worst, "one run", "another"),
    )


def _drops_rows(rows: RowsDiffering | None) -> bool:
    """Whether some rows differ altogether and the others not at all."""
    return rows is not None and not rows.partly and 0 < rows.whole < rows.total


def _row_words(rows: RowsDiffering | None) -> str:
    return f"; whole rows differ ({rows.whole} of {rows.total})" if rows and _drops_rows(rows) else ""


def _hint(operators: Sequence[str], rows: RowsDiffering | None, called: str = "") -> str:
    """What draws, as far as it is known, and what to write instead."""
    if called.startswith(CLOCKS):
        what = (
            "Compute outside of the model what comes from the clock, and make that an input of forward (and of the "
            "contract): an exported program keeps the time of its export. Seconds since 1970 are no such input: in "
            "float32 they move in steps of 128."
        )
    elif "empty" in called:
        what = "`torch.empty` returns memory as it is: write every element before it is read, or use `torch.zeros`."
    elif _drops_rows(rows):
        what = (
            "Whole rows that differ are typical of DropPath (stochastic depth) that ignores `self.training`: return "
            "its input unchanged when `not self.training`."
        )
    elif any("dropout" in name for name in operators):
        what = (
            "Pass `training=self.training` to `F.dropout` (or use `nn.Dropout`), so that it is off in eval mode. If it "
            "is meant to be on (Monte Carlo dropout), draw the mask outside and take it as an input of forward."
        )
    elif any(operators):
        what = (
            "Draw only when `self.training`, and use the mean in eval mode, in which the gate runs the model; or take "
            "the random numbers as an input of forward. An exported program may keep one draw."
        )
    else:
        what = (
            "Look for dropout that is always on (`F.dropout` without `training=self.training`), `torch.rand*` in "
            "forward, uninitialised memory (`torch.empty`) and nondeterministic kernels; draw only when "
            "`self.training`, or take the random numbers as an input of forward."
        )
    return f"{what} Until this is fixed, differences between artifacts and eager mean nothing."


def describe_difference(comparison: Comparison) -> str:
    """What differs between two runs of eager that should be identical."""
    if comparison.expected_dtype != comparison.actual_dtype:
        return f"dtype {comparison.expected_dtype} and {comparison.actual_dtype}"
    if comparison.expected_shape != comparison.actual_shape:
        return f"shape {comparison.expected_shape} and {comparison.actual_shape}"
    return (
        f"{comparison.mismatched_elements} of {comparison.elements} elements, by up to "
        f"{rounded(comparison.max_abs_diff)}"
    )


RULE = Rule(
    name="nondeterministic-model",
    severity="violation",
    summary="Eager gives different results for the same input, or the factory different weights.",
    stage="eager",
    waivable=("output",),
    owner="model",
    cause="randomness",
    check=check,
)
