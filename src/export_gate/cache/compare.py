"""Compare a kept verdict's dependencies with what they are now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from export_gate.cache.circumstances import digest_of
from export_gate.cache.entry import Entry
from export_gate.cache.present import MISSING, Present

MOST_DAYS = 30
"""After that many days a model is verified again, whatever is known of its dependencies."""
WARNING_DAYS = 7
"""A verdict that needs a waiver is not reused in its last days."""
ALL = "*"
WORDS = {
    "export-gate": "export-gate itself",
    "interpreter": "the interpreter",
    "machine": "the machine",
    "environment": "the environment",
}
"""What a circumstance is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The present, as one model's process would find it."""

    present: Present
    circumstances: Mapping[str, str]
    variables: Mapping[str, str]
    """All that the model's process has."""
    today: str
    """ISO date (UTC)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Why a verdict does not hold any more."""

    words: str
    path: str = ""
    """The file or folder, if the difference is in one."""


def differences(entry: Entry, now: Now) -> Iterator[Difference]:
    """Everything that differs; what is quick to see comes first."""
    # A generator to the end: `first_difference` reads no file after the first reason.
    yield from _time(entry, now.today)
    for difference, before, state in _states(entry, now):
        if before != state:
            yield difference


def _states(entry: Entry, now: Now) -> Iterator[tuple[Difference, str, str | None]]:
    """Each dependency as it was and as it is."""
    for name, before in entry.circumstances.items():
        yield Difference(WORDS.get(name, name)), before, now.circumstances.get(name)
    for name, before in entry.variables.items():
        words = "an environment variable" if name == ALL else f"the environment variable {name}"
        yield Difference(words), before, variable_state(name, now.variables)
    present = now.present
    for name, before in entry.path.items():
        yield Difference(f"modules in {name}", name), before, present.modules(name, entry.modules)
    for name, (children, before) in entry.packages.items():
        yield Difference(f"modules in {name}", name), before, present.modules(name, children)
    for name, before in entry.folders.items():
        yield Difference(f"the entries of {name}", name), before, present.folder(name)
    for name, before in entry.sites.items():
        yield Difference(f"installed packages in {name}", name), before, present.site(name)
    for name, before in entry.files.items():
        yield Difference(name, name), before, present.file(name)


def first_difference(entry: Entry, now: Now) -> Difference | None:
    """One reason why the verdict does not hold; None if it does."""
    return next(differences(entry, now), None)


def variable_state(name: str, variables: Mapping[str, str]) -> str:
    """A digest of a variable's value, so that no value is kept."""
    if name == ALL:
        return digest_of(sorted(f"{each}={value}" for each, value in variables.items()))
    return digest_of([variables[name]]) if name in variables else MISSING


def _time(entry: Entry, today: str) -> Iterator[Difference]:
    try:
        age = (date.fromisoformat(today) - date.fromisoformat(entry.day)).days
        left = (date.fromisoformat(entry.until) - date.fromisoformat(today)).days if entry.until else WARNING_DAYS
    except ValueError:
        yield Difference("a date that cannot be read")
        return
    # A day in the future comes from a wrong clock, and the verdict would hold for too long.
    if not 0 <= age <= MOST_DAYS:
        yield Difference(f"the day: it was verified on {entry.day}")
    if left < WARNING_DAYS:
        yield Difference(f"a waiver that ends on {entry.until}")
