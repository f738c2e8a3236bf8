"""Jobs whose check may have the name of the gate's: branch protection cannot tell them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from export_gate.loosening.compare import Step, shown
from export_gate.loosening.steps import Workflow

ANYTHING = "*"
"""What an expression stands for in the name of a check."""


def names(before: Mapping[str, Workflow], after: Mapping[str, Workflow]) -> Iterator[tuple[str, Step]]:
    """Jobs that the change gives such a name, by their files."""
    forms = {form for workflow in before.values() for name in _of_gate(workflow) for form in _forms(name)}
    # Of a name that is nothing but an expression nobody knows which one it is.
    ours = sorted(form for form in forms if form.strip(f" ()/{ANYTHING}"))
    old, new = (Counter(name for each in files.values() for name in each.checks) for files in (before, after))
    for file, workflow in after.items():
        known = before.get(file, Workflow(steps=()))
        # A token that gives checks can give the gate's, whatever the gate finds.
        if gained := [name for name in workflow.grants if forms and name not in known.grants]:
            yield file, ("loosened", "permissions", f"also {', '.join(gained)}: write, to give checks of any name")
        for name in dict.fromkeys(workflow.checks):
            taken = [own for own in ours if any(can_be_one(form, own) for form in _forms(name))]
            if not taken:
                continue
            is_one, own = name in taken, shown(taken[0])
            words, has = (shown(name), "has") if is_one else (f"{own}: it is called {shown(name)}", "may have")
            if workflow.others.count(name) > known.others.count(name):
                yield file, ("loosened", "", f"a job without the gate {has} the name of its check, {words}")
            elif new[name] > old[name] and workflow.checks.count(name) > known.checks.count(name):
                yield file, ("loosened", "", f"another job {has} the name of the gate's check, {words}")


def _of_gate(workflow: Workflow) -> Iterator[str]:
    yield from (Counter(workflow.checks) - Counter(workflow.others)).elements()


def _forms(name: str) -> set[str]:
    """With and without the leg of a matrix, which GitHub does not add to every name."""
    return {name, name.removesuffix(f" ({ANYTHING})")}


def can_be_one(name: str, other: str) -> bool:
    """Whether both patterns can be the same name. GitHub's API says of some checks that case does not count."""
    name, other = name.casefold(), other.casefold()
    # The places in `other` up to which it can be what `name` is up to now; ANYTHING may be nothing.
    places = _further({0}, other)
    for character in name:
        if character == ANYTHING:
            places = set(range(min(places, default=len(other) + 1), len(other) + 1))
        else:
            stay = {place for place in places if other[place : place + 1] == ANYTHING}
            places = _further(stay | {place + 1 for place in places if other[place : place + 1] == character}, other)
    return len(other) in places


def _further(places: set[int], pattern: str) -> set[int]:
    found = set(places)
    for place in sorted(places):
        end = place
        while pattern[end : end + 1] == ANYTHING:
            end += 1
            found.add(end)
    return found
