"""A model read a file that is not pushed as it is: what was verified is not what others get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from export_gate.loosening.record import CONFIG
from export_gate.rules.base import Finding, Named
from export_gate.wall.observation import ModelObservation

SHOWN = 3


def check(models: Sequence[ModelObservation], config: str, unpushed: Mapping[str, str]) -> Iterator[Finding]:
    """One finding for each model that read such files, and one for the config itself.

    Args:
        models: what was observed.
        config: the config's path from the root of the checkout.
        unpushed: such paths of files, and of folders as a whole, that are not pushed as they are -> why.
    """
    if why := _reason(config, unpushed):
        yield _finding(CONFIG, f"{config} is not in the commit that is pushed as it was verified ({why})")
    for model in models:
        files = [f"{name} ({why})" for name in model.files if (why := _reason(name, unpushed))]
        if files:
            more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
            what = f"it read files that are not in the commit that is pushed: {', '.join(files[:SHOWN])}{more}"
            yield _finding(model.model, what)


def _reason(name: str, unpushed: Mapping[str, str]) -> str:
    """Why a file is not pushed as it is, by its own name or that of a folder that git lists whole; empty if it is."""
    if name in unpushed:
        return unpushed[name]
    above = (up.as_posix() for up in PurePosixPath(name).parents)
    # What is around a submodule is not in it, and so not part of the whole that stands for it.
    folder = next((up for up in above if up in unpushed and not (up == "." and name.startswith("../"))), "")
    if folder in ("", "."):
        return unpushed.get(folder, "")
    return f"{folder}: {unpushed[folder]}"


def _finding(model: str, what: str) -> Finding:
    return RULE.finding(
        model,
        what,
        hint="Commit what the model needs, or restore it; add to .gitignore what is no part of the project.",
    )


RULE = Named(
    name="unpushed-file",
    severity="violation",
    summary="The model read a file that the pushed commit does not have like that.",
    stage="eager",
    waivable=None,
    owner="contract",
)
