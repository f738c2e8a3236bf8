"""The factory returned a model in train mode, which computes another function than the one that ships."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Measured
from export_gate.rules.wording import listing
from export_gate.wall.words import count

EFFECTS = {
    "Dropout": "dropout would zero values at random",
    "BatchNorm": "batch norm would use the batch's own statistics and change its buffers",
    "InstanceNorm": "instance norm would change its buffers",
}


def check(measured: Measured) -> Iterator[Finding]:
    """A violation under `train-mode: refuse`, a note if the contract had it switched to eval mode."""
    contract, observation = measured.contract, measured.observation
    hygiene = observation.hygiene
    number = max(hygiene.train_module_count, len(hygiene.train_modules))
    if number == 0:
        return
    named = (
        f", of which {listing(hygiene.train_modules)} {'behaves' if len(hygiene.train_modules) == 1 else 'behave'} "
        "differently in train mode"
        if hygiene.train_modules
        else ""
    )
    what = f"the factory returns {count(number, 'module')} in train mode{named}"
    is_forced = hygiene.forced_eval and contract.train_mode == "force-eval"
    yield RULE.finding(
        contract.name,
        f"{what}; the gate switched to eval mode, as `train-mode: force-eval` asks" if is_forced else what,
        hint=FORCED_HINT if is_forced else _hint(contract.name, hygiene.train_modules),
        severity="note" if is_forced else "violation",
        occurrences=number,
        key="train-mode" if is_forced else "factory",
        details=hygiene.train_modules,
    )


def _hint(model: str, modules: tuple[str, ...]) -> str:
    effects = [effect for kind, effect in EFFECTS.items() if any(kind in module for module in modules)]
    consequence = f"Exported like this, {listing(effects)}. " if effects else ""
    return (
        f"{consequence}Call `.eval()` on the model in the factory, after loading weights; or set "
        f"`models.{model}.train-mode` to `force-eval` to let the gate do it."
    )


FORCED_HINT = "Make sure that whatever exports the model for shipping calls `.eval()` as well."

RULE = Rule(
    name="train-mode",
    severity="violation",
    summary="The factory returns a model in train mode.",
    stage="eager",
    waivable=(),
    owner="model",
    cause="train-mode",
    check=check,
)
