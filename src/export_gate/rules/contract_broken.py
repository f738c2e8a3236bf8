"""The eager model itself breaks its contract: it raises at an input in range, or returns undeclared outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from export_gate.rules.base import NOTHING_TO_DO, Finding, Rule
from export_gate.rules.cases import other_cases
from export_gate.rules.failures import failure_details, failures_of
from export_gate.rules.measure import Measured
from export_gate.rules.refusals import RAISED, refused_empty_masks, refused_layouts
from export_gate.rules.relation_advice import relation_hint, relation_words
from export_gate.rules.value_sizes import value_size_advice, value_size_words
from export_gate.rules.wording import at_source, first_line, paragraph
from export_gate.wall.contract import ModelContract
from export_gate.wall.diagnosis import Owner
from export_gate.wall.observation import LAZY_LAYERS, Failure, MissingRelation, ModelObservation, PromiseBroken
from export_gate.wall.source import SourceLine

ENDED = {
    "model": "the model could not be created",
    "controls": "the control set could not be built",
    "eager": "eager raised",
}
UNTRIED = {
    "model": "the model cannot be created, so no input was tried",
    "controls": "the control inputs cannot be made as the contract declares them",
}
"""Stage -> the cause in words, where eager was never asked."""


def check(measured: Measured) -> Iterator[Finding]:
    """One finding: for the failure that ended the model before its targets, else for promises broken at inputs."""
    contract, observation = measured.contract, measured.observation
    groups = failures_of("contract-broken", measured)
    if groups:
        # Its details name the promises that were broken before.
        yield _ended(contract, observation, groups[0][0].failure)
        return
    layouts = refused_layouts(observation)
    # A mask that keeps nothing is the subject of `masked-positions`.
    empty, _ = refused_empty_masks(contract, observation)
    broken = tuple(promise for promise in observation.broken if promise not in (*layouts, *empty))
    if broken:
        yield _broken(measured, broken)
    if layouts:
        yield _layout(contract, layouts)


def _ended(contract: ModelContract, observation: ModelObservation, failure: Failure) -> Finding:
    is_lazy = failure.type == LAZY_LAYERS
    kind = "" if is_lazy else f"{failure.type}: "
    what = f"{ENDED[failure.stage]}{at_source(failure.source)}: {kind}{first_line(failure.message)}"
    also = tuple(f"also at {promise.case}: {first_line(promise.message)}" for promise in observation.broken[:10])
    return RULE.finding(
        contract.name,
        what,
        hint=LAZY_HINT if is_lazy else _hint(contract.name) if failure.stage == "eager" else START_HINT,
        case=failure.case,
        occurrences=1 + len(observation.broken),
        owner="contract" if failure.stage == "controls" else "model",
        cause="eager",
        verdict=UNTRIED.get(failure.stage, ""),
        source=failure.source,
        details=failure_details(failure) + also,
    )


def _layout(contract: ModelContract, refused: Sequence[PromiseBroken]) -> Finding:
    """A note: code such as `x.view(...)` accepts only dense tensors, and runtimes pass only dense tensors."""
    first = refused[0]
    return RULE.finding(
        contract.name,
        f"eager refuses this memory layout{at_source(first.source)}: {first_line(first.message)}",
        hint=f"{NOTHING_TO_DO} if callers pass dense tensors; use `reshape` instead of `view` to accept any layout.",
        severity="note",
        case=first.case,
        occurrences=len(refused),
        owner="model",
        cause="layout",
        source=first.source,
        details=paragraph(first.message)[1:] + other_cases([promise.case for promise in refused]),
    )


def _owner(broken: Sequence[PromiseBroken], observation: ModelObservation) -> Owner:
    """The model if it accepts no input at all, else the contract, which promises more than the model does."""
    inputs = observation.control_inputs
    raised = {promise.case for promise in broken if RAISED.match(promise.message)}
    return "model" if inputs and raised >= {member.name for member in inputs} else "contract"


def _broken(measured: Measured, broken: Sequence[PromiseBroken]) -> Finding:
    contract, observation = measured.contract, measured.observation
    first, relations = broken[0], observation.relations
    what = "raises inside the contract" if RAISED.match(first.message) else "breaks the contract"
    return RULE.finding(
        contract.name,
        f"eager {what}{at_source(first.source)}: {first_line(first.message)}",
        hint=_broken_hint(measured, first, relations),
        case=first.case,
        occurrences=len(broken),
        tried=_tried(broken, observation),
        key=relations[0].key if relations else "",
        owner=_owner(broken, observation),
        cause="eager" if RAISED.match(first.message) else "interface",
        verdict=_broken_words(measured, first, relations),
        source=first.source,
        details=paragraph(first.message)[1:] + other_cases([promise.case for promise in broken]),
    )


def _tried(broken: Sequence[PromiseBroken], observation: ModelObservation) -> int:
    """How many inputs eager was asked; 0 if some of them are sizes of the sweep, of which only refusals are noted."""
    known = {member.name for member in observation.controls.inputs} if observation.controls else set()
    return len(known) if known >= {promise.case for promise in broken} else 0


def _broken_hint(measured: Measured, first: PromiseBroken, relations: Sequence[MissingRelation]) -> str:
    if NESTED in first.message:
        return NESTED_HINT
    if relations:
        return relation_hint(measured.contract, relations[0])
    return next(filter(None, map(value_size_advice, _lines(measured, first))), _hint(measured.contract.name))


def _broken_words(measured: Measured, first: PromiseBroken, relations: Sequence[MissingRelation]) -> str:
    if relations:
        return relation_words(measured.contract, relations[0], first.source)
    return next(filter(None, map(value_size_words, _lines(measured, first))), "")


def _lines(measured: Measured, first: PromiseBroken) -> tuple[SourceLine | None, ...]:
    """Where sizes that depend on values may come from: torch.export stops at all, often at the line before eager's."""
    ends = [failed.failure.source for failed in measured.failed if failed.failure.stage == "export"]
    return (*ends, first.source)


def _hint(model: str) -> str:
    return (
        f"Fix the model, or declare what it really takes and returns: narrow `models.{model}.dims` or the inputs' "
        "`range` and `values` to what eager computes, and write `outputs` as eager returns them."
    )


NESTED = "to_padded_tensor"
"""What `nn.TransformerEncoder` calls on its way through nested tensors (torch 2.13)."""
NESTED_HINT = (
    "In eval mode, torch's fast path for attention runs masked batches as nested tensors, which no export follows. "
    "They give other values at masked positions, and refuse masks that keep nothing. Call "
    "`torch.backends.mha.set_fastpath_enabled(False)` in the factory, so that eager takes the way that is exported."
)
LAZY_HINT = (
    "Run the model once on an example in the factory, before it returns it (`model(torch.zeros(...))`, in the shape of "
    "the contract's inputs), or use layers whose sizes are written down, such as `nn.Linear`."
)
START_HINT = "Call the factory and run forward once in the project's interpreter."

RULE = Rule(
    name="contract-broken",
    severity="violation",
    summary="The eager model raises inside its declared ranges or returns other outputs than declared.",
    stage="eager",
    waivable=None,
    check=check,
)
