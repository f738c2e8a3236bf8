"""A difference at places that a mask switches off, where eager promises nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from export_gate.rules.base import Finding, Rule
from export_gate.rules.cases import excused_outputs, other_cases
from export_gate.rules.measure import Measured, Measurement
from export_gate.rules.refusals import refused_empty_masks
from export_gate.rules.wording import first_line, listing
from export_gate.wall.contract import TargetName
from export_gate.wall.observation import PromiseBroken

PLACES = {
    "empty-row": "samples without any kept position",
    "off-position": "switched-off positions",
    "moving": "elements that depend on switched-off input",
}


def check(measured: Measured) -> Iterator[Finding]:
    """One warning for each output of each target, at the case where most elements are left out."""
    for target, leaves in excused_outputs(measured, "masked", lambda leaf: leaf.masked.dropped if leaf.masked else 0):
        yield _finding(measured, target, leaves)
    refused, mask = refused_empty_masks(measured.contract, measured.observation)
    if mask is not None:
        yield _refused(measured.contract.name, refused, mask)


def _refused(model: str, refused: Sequence[PromiseBroken], mask: str) -> Finding:
    first = refused[0]
    return RULE.finding(
        model,
        f"eager raises only where {mask} keeps no position of any sample: {first_line(first.message)}",
        hint=(
            f"Set `models.{model}.inputs.{mask}.mask` to `keep` (1 is a real token) or `drop` (1 is padding), so that "
            "every row has a position; `any` makes this a violation."
        ),
        case=first.case,
        occurrences=len(refused),
        source=first.source,
        details=other_cases([promise.case for promise in refused]),
    )


def _finding(measured: Measured, target: TargetName, leaves: Sequence[Measurement]) -> Finding:
    worst, model = leaves[0], measured.contract.name
    assert worst.masked is not None
    masks = tuple(dict.fromkeys(mask for leaf in leaves if leaf.masked for mask in leaf.masked.masks))
    reasons = dict.fromkeys(reason for leaf in leaves if leaf.masked for reason in leaf.masked.reasons)
    places = " and ".join(PLACES[reason] for reason in reasons)
    # The comparison is the one without the dropped elements.
    dropped, kept = worst.masked.dropped, worst.comparison.elements
    return RULE.finding(
        model,
        (
            f"differs from eager only at {places} of {listing(masks)}: {dropped} of {dropped + kept} elements were "
            "left out, the others agree"
        ),
        hint=_hint(measured, worst.output, masks[0], is_empty=list(reasons) == ["empty-row"]),
        target=target,
        output=worst.output,
        case=worst.case,
        occurrences=len(leaves),
        details=other_cases([leaf.case for leaf in leaves]),
    )


def _hint(measured: Measured, output: str, mask: str, *, is_empty: bool) -> str:
    model = measured.contract.name
    if is_empty:
        return (
            f"Set `models.{model}.inputs.{mask}.mask` to `keep` (1 is a real token) or `drop` (1 is padding), so that "
            "every row has a position; `any` compares rows without one as well."
        )
    return (
        f"Set `models.{model}.outputs.{output}.where` to `{mask}` to compare only what the mask keeps, or to `all` if "
        "callers read the other places too."
    )


RULE = Rule(
    name="masked-positions",
    severity="warning",
    summary="An output differs, or eager raises, only at places that a mask switches off.",
    stage="compare",
    waivable=None,
    owner="model",
    cause="mask",
    check=check,
)
