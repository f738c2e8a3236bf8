"""An artifact was written but cannot be loaded again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from export_gate.rules.base import Finding, Rule
from export_gate.rules.blame import OTHER_NAMES
from export_gate.rules.failures import failures_of, finding
from export_gate.rules.measure import Measured
from export_gate.rules.missing_package import missing_package_cause, missing_package_hint
from export_gate.rules.wording import first_line, paragraph, targets_key
from export_gate.wall.contract import ModelContract
from export_gate.wall.observation import ARTIFACT_CHANGED, Failure


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each target whose artifact does not load."""
    contract = measured.contract
    for group in failures_of("load-failed", measured):
        failure = group[0].failure
        is_missing = failure.kind == "missing-package"
        cause = missing_package_cause(failure) if is_missing else f"{failure.type}: {first_line(failure.message)}"
        what = f"the artifact changed while it was verified: {failure.message}"
        if failure.type != ARTIFACT_CHANGED:
            what = f"the artifact does not load: {cause}"
        if OTHER_NAMES in failure.message:
            what = f"the artifact's names are not the contract's: {first_line(failure.message)}"
        message = f"{group[0].place(contract.name)}: {what}"
        found = finding(RULE.name, contract, group, message, _hint(contract, failure, group[0].target or "target"))
        yield replace(found, details=(*_names(failure), *found.details))


def _names(failure: Failure) -> tuple[str, ...]:
    return paragraph("\n".join(failure.message.splitlines()[1:])) if OTHER_NAMES in failure.message else ()


def _hint(contract: ModelContract, failure: Failure, target: str) -> str:
    if OTHER_NAMES in failure.message:
        key = f"models.{contract.name}"
        return (
            f"Say what the file calls each input: `name` under `{key}.inputs`, such as `x: {{name: images, ...}}`; "
            f"list outputs under the file's names, in eager's order, in `{key}.outputs`; or write the file with the "
            "contract's names."
        )
    if failure.type == ARTIFACT_CHANGED:
        return (
            "Find what writes to it while the gate runs (the model's code, or another job in the folder): the file "
            "there now is not the one that was verified, so do not ship it."
        )
    if failure.kind == "missing-package":
        return missing_package_hint(contract, target)
    if "NOT_IMPLEMENTED" in failure.message or "NotImplemented" in failure.type:
        return (
            "ONNX Runtime has no kernel for this operator and dtype on the chosen provider (bfloat16 is mostly "
            "missing on the CPU): cast around it in the model, export it in float32, or choose another provider "
            f"under {targets_key(contract, target, 'providers')}."
        )
    return (
        "Check that the artifact is loaded by the versions that wrote it, that no file next to it (external "
        "data) is missing, and that the loader knows every custom operator; the traceback is in the details."
    )


RULE = Rule(
    name="load-failed",
    severity="violation",
    summary="The artifact was written but cannot be loaded, or changed while it was verified.",
    stage="load",
    waivable=None,
    check=check,
)
