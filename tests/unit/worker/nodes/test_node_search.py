"""From a wrong output back to the node whose own error it is."""

from __future__ import annotations

from export_gate.worker.nodes.gap import Gap
from export_gate.worker.nodes.search import suspicions

FLOOR = 8e-6
CHAIN = ("a", "b", "c", "d")
PARENTS = {"b": ("a",), "c": ("b",), "d": ("c",)}
ORDER = {name: place for place, name in enumerate(CHAIN)}


def _gaps(*errors: float) -> dict[str, Gap]:
    return {name: Gap(error=error, floor=FLOOR) for name, error in zip(CHAIN, errors, strict=True)}


def _names(gaps: dict[str, Gap], parents: dict[str, tuple[str, ...]] = PARENTS) -> list[str]:
    return [each.name for each in suspicions("d", gaps, parents, ORDER)]


def test_the_first_value_that_is_wrong_is_suspected():
    """The inputs of the suspect agree."""
    assert _names(_gaps(0, 0.3, 0.3, 0.2)) == ["b"]


def test_an_error_that_is_amplified_later_is_followed_to_where_it_starts():
    """The amplifier is suspected first, cleared by its expected inputs, and then a lower threshold finds the origin."""
    found = suspicions("d", _gaps(0, 1e-3, 0.5, 0.5), PARENTS, ORDER)

    assert [each.name for each in found] == ["c", "b"]
    assert not found[0].is_confirmed_by(Gap(error=1e-7, floor=FLOOR))
    assert found[1].is_confirmed_by(Gap(error=1e-3, floor=FLOOR))


def test_wrong_values_that_do_not_lead_to_the_output_are_not_suspected():
    """A mask that is written in another way, and that the softmax makes harmless, is not suspected."""
    parents = {"c": ("a", "b"), "d": ("c",)}

    assert _names(_gaps(0.9, 0, 0, 0.2), parents) == ["d"]


def test_rounding_is_never_suspected():
    """Below the floor there is nothing to find, and nothing is confirmed."""
    assert _names(_gaps(1e-6, 1e-6, 1e-6, 1e-6)) == []
    (suspicion, *_) = suspicions("d", _gaps(0, 0, 0, 2e-5), PARENTS, ORDER)
    assert not suspicion.is_confirmed_by(Gap(error=7e-6, floor=FLOOR))


def test_a_loop_of_parents_ends():
    """Graphs in invented results must not hang a report."""
    assert _names(_gaps(0.5, 0.5, 0.5, 0.5), {**PARENTS, "a": ("d",)}) == []
