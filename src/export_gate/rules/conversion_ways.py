"""Advise the option with which a program converts and gives eager's results, if one was tried and does."""

from __future__ import annotations

from collections.abc import Sequence

from export_gate.rules.measure import Measured
from export_gate.rules.wording import listing, targets_key
from export_gate.wall.contract import ModelContract, TargetName
from export_gate.wall.diagnosis import MODEL_SWITCHES, ConversionTrial
from export_gate.wall.words import count


def way_that_works(contract: ModelContract, target: TargetName, trials: Sequence[ConversionTrial]) -> str:
    """The option to set; empty if none was found."""
    worked = next((trial for trial in trials if trial.answer == "agrees"), None)
    if worked is None:
        return ""
    inputs = count(worked.inputs, "control input")
    tried = f"this was tried, and the file that it makes gives eager's results at {inputs}."
    if worked.option in MODEL_SWITCHES:
        key = f"models.{contract.name}.kwargs.{worked.option}"
        return f"Load the model with `{worked.option}={worked.value!r}` (`{key}`, if the factory passes it on): {tried}"
    return f"Set {targets_key(contract, target, worked.option)} to `{_yaml(worked)}`: {tried}"


def failed_ways(trials: Sequence[ConversionTrial]) -> str:
    """What was tried, if nothing helped."""
    if not trials or any(trial.answer == "agrees" for trial in trials):
        return ""
    tried = [f"`{t.option}: {_yaml(t)}`" + (" (other results)" * (t.answer == "differs")) for t in trials]
    return f" Tried without success: {listing(tried)}."


def trials_of(measured: Measured, target: TargetName) -> tuple[ConversionTrial, ...]:
    """The trials for all exports of a target."""
    return tuple(trial for seen in measured.seen(target) for trial in seen.conversion_trials)


def _yaml(trial: ConversionTrial) -> str:
    return trial.value if isinstance(trial.value, str) else str(trial.value).lower()
