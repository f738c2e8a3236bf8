"""Compare two configs: their models, each by its contract, and the keys at the top level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from export_gate.loosening.compare import Step, arrow, fewer, larger, loosened_by_any, weaker
from export_gate.loosening.record import CONFIG, Alteration, Checked, ConfigChange
from export_gate.loosening.together import default_sizes, lengths, ties
from export_gate.loosening.tolerances import tolerances
from export_gate.loosening.walk import records
from export_gate.wall.contract import ModelContract


def compare_configs(origin: str, before: Checked, after: Checked) -> ConfigChange:
    """What the change from `before` to `after` does to the check."""
    # What applies to all models comes first: a report shows a part of a long list.
    found = (*_top_level(before, after), *_models(before, after))
    return ConfigChange(origin=origin, policy=before.relaxed, alterations=found)


def compare_contracts(before: ModelContract, after: ModelContract) -> tuple[Alteration, ...]:
    """What differs for one model, by the name that it has now."""
    together = (compare(before, after) for compare in (lengths, ties, default_sizes))
    name, steps = after.name, chain(records(before, after), *together)
    return (
        # The steps of tolerances.py are sentences already.
        *(Alteration(effect=effect, model=name, key=key, what=what) for effect, key, what in tolerances(before, after)),
        *(_alteration(name, step) for step in steps),
    )


def _alteration(model: str, step: Step) -> Alteration:
    effect, key, what = step
    return Alteration(effect=effect, model=model, key=key, what=f"{key} {what}")


def _models(before: Checked, after: Checked) -> Iterator[Alteration]:
    old, new = _by_name(before), _by_name(after)
    gone = [name for name in old if name not in new]
    come = [name for name in new if name not in old]
    renamed = _renamed(old, new, gone, come)
    for name in gone:
        if name in renamed:
            what = f"renamed to `{renamed[name]}`, so that its lock, waivers and history no longer apply"
        else:
            what = "removed, so that it is not checked any more"
        yield Alteration(effect="loosened", model=name, what=what)
    for name in come:
        if name not in renamed.values():
            yield Alteration(effect="tightened", model=name, what="added")
    for name, contract in old.items():
        now = new.get(renamed.get(name, name))
        if now is not None:
            yield from compare_contracts(contract, now)


def _by_name(checked: Checked) -> dict[str, ModelContract]:
    return {contract.name: contract for contract in checked.models}


def _renamed(
    old: Mapping[str, ModelContract], new: Mapping[str, ModelContract], gone: list[str], come: list[str]
) -> dict[str, str]:
    """Models that are gone while a new name has their factory, with these names."""
    left = list(come)
    renamed: dict[str, str] = {}
    for name in gone:
        # Without this, a rename would look like a removal and an addition, and what it loosens would stay unseen.
        same = [other for other in left if _source(new[other]) == _source(old[name])]
        if same:
            renamed[name] = same[0]
            left.remove(same[0])
    return renamed


def _source(contract: ModelContract) -> tuple[str, str]:
    return contract.factory, repr(sorted(contract.kwargs.items(), key=str))


def _top_level(before: Checked, after: Checked) -> Iterator[Alteration]:
    steps = {
        "python": loosened_by_any(before.python, after.python),
        # Also one at the end: all of them come before what is installed.
        "pythonpath": loosened_by_any(before.pythonpath, after.pythonpath),
        "relaxed": weaker("fail", "warn")(before.relaxed, after.relaxed),
        "fail-on": weaker("warning", "violation")(before.fail_on, after.fail_on),
        "waivers-max-days": larger(before.waivers_max_days, after.waivers_max_days),
        # The roles are swapped: a pattern more is a check less.
        "ignore": fewer(after.ignore, before.ignore),
    }
    for key, found in steps.items():
        for effect, _, what in found:
            words = _ignored(before, after) if key == "ignore" else what
            yield Alteration(effect=effect, model=CONFIG, key=key, what=f"{key} {words}")


def _ignored(before: Checked, after: Checked) -> str:
    return arrow(before.ignore, after.ignore)
