"""An artifact raised at an input that eager computes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from export_gate.rules.base import Finding, Rule
from export_gate.rules.diagnosis import blame_call
from export_gate.rules.failures import failures_of, finding, inputs_run
from export_gate.rules.measure import Measured
from export_gate.rules.recipes import called, recipe_of
from export_gate.rules.wording import first_line


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each target that raised; refusals of a size are `range-narrowed`."""
    contract = measured.contract
    for group in failures_of("run-failed", measured):
        first = group[0]
        failure, target = first.failure, first.target or "the artifact"
        stage = "" if failure.stage == "run" else f" in stage {failure.stage}"
        message = (
            f"{first.place(contract.name)}: {target} raised{stage} where eager does not: {failure.type}: "
            f"{first_line(failure.message)}"
        )
        tried = inputs_run(measured, group)
        stopped = next((seen.stopped_at for seen in measured.seen(target) if seen.stopped_at), None)
        recipe = recipe_of(stopped, failure.message)
        layer = called(stopped) if stopped else "that layer of the model"
        hint = EVERYWHERE_HINT.format(layer=layer) if len(group) == tried > 1 else HINT
        found = replace(finding(RULE.name, contract, group, message, hint), tried=tried)
        if stopped is not None:
            found = replace(found, source=found.source or stopped.source)
        if recipe is not None:
            found = replace(found, hint=f"{recipe.words}.", recipe=recipe.lines)
        blame = blame_call(measured, first.target)
        if blame is not None:
            found = replace(found, owner=blame.owner, cause=blame.cause, evidence=blame.evidence)
            found = replace(found, smallest=blame.smallest, verdict=blame.verdict)
        yield found


HINT = (
    "Compare the sizes and values of this control input with those that pass. The usual causes are a value that export "
    "baked in, an index out of range, or an operator without a kernel for this dtype. If the model does not have to "
    "accept such input, narrow `dims` or `range` in the contract."
)

EVERYWHERE_HINT = (
    "It fails at every input, so this is no matter of sizes or values: the file holds an operator, or one of its "
    "attributes, that the runtime does not take. Write {layer} with other operators."
)


RULE = Rule(
    name="run-failed",
    severity="violation",
    summary="The artifact raised at a control input that eager computes.",
    stage="run",
    waivable=("target", "case"),
    check=check,
)
