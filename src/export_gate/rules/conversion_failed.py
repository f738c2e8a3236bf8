"""An exported program could not be converted to a target's format: which operator, and what to use instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from export_gate.rules.base import Finding, Rule
from export_gate.rules.failures import failures_of, finding
from export_gate.rules.measure import Measured
from export_gate.rules.missing_package import missing_package_cause, missing_package_hint
from export_gate.rules.wording import at_source, first_line, listing, plain, targets_key
from export_gate.wall.contract import ModelContract
from export_gate.wall.diagnosis import ConversionTrial
from export_gate.wall.observation import Failure
from export_gate.wall.words import count

NO_TRANSLATION = re.compile(
    r"No ONNX function found for <OpOverload\(op='(?P<op>[\w.:]+)', overload='(?P<overload>\w+)'\)>"
    r"(?:[^\n]*No decompositions registered for the (?P<input>complex|real)-valued input)?"
)


ATTENTION = "attn_implementation"
"""What models of transformers take; the other ways are options of the target."""

EXCEPTION_SUMMARY = re.compile(r"## Exception summary\s+<class '(?:\w+\.)*(\w+)'>: ([^\n]+)")
"""torch.onnx names the cause there, below its own general advice (torch 2.13)."""


OBJECT = " object at 0x"
"""A message with this shows a pass manager instead of the place where it stopped; the first exception says more."""

NO_NAME = re.compile(
    r"(?:No registered serialization name for|Can't serialize TreeSpec of namedtuple class)\s+"
    r"<class '(?P<module>[\w.]*?)\.?(?P<name>\w+)'>"
)
"""torch.export.save on an output or input class that torch can take apart but not write down (torch 2.13)."""


NO_OLDER_FORM = re.compile(r"operator (?P<op>\w+) cannot be converted from opset \d+ to \d+\b.*? is (?P<lowest>\d+):")
"""The worker's words on an operator that onnx's version converter cannot bring to the opset."""


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each target that could not be made."""
    contract = measured.contract
    for group in failures_of("conversion-failed", measured):
        failure = group[0].failure
        message = (
            f"{group[0].place(contract.name)}: the conversion failed{at_source(failure.source)}: {_cause(failure)}"
        )
        target = group[0].target or "target"
        trials = [trial for seen in measured.seen(target) for trial in seen.conversion_trials]
        hint = _trial_advice(contract, target, trials) or _hint(contract, failure, target)
        yield finding(RULE.name, contract, group, message, f"{hint}{_failed_trials(trials)}")


def _trial_advice(contract: ModelContract, target: str, trials: Sequence[ConversionTrial]) -> str:
    """The option with which the program converts; empty if none was found."""
    worked = next((trial for trial in trials if trial.answer == "agrees"), None)
    if worked is None:
        return ""
    inputs = count(worked.inputs, "control input")
    tried = f"this was tried, and the file that it makes gives eager's results at {inputs}."
    if worked.option == ATTENTION:
        key = f"models.{contract.name}.kwargs.{ATTENTION}"
        return f"Load the model with `{ATTENTION}={worked.value!r}` (`{key}`, if the factory passes it on): {tried}"
    return f"Set {targets_key(contract, target, worked.option)} to `{_yaml(worked)}`: {tried}"


def _failed_trials(trials: Sequence[ConversionTrial]) -> str:
    """What was tried, if nothing helped."""
    if not trials or any(trial.answer == "agrees" for trial in trials):
        return ""
    tried = [f"`{t.option}: {_yaml(t)}`" + (" (other results)" * (t.answer == "differs")) for t in trials]
    return f" Tried without success: {listing(tried)}."


def _yaml(trial: ConversionTrial) -> str:
    return trial.value if isinstance(trial.value, str) else str(trial.value).lower()


def _cause(failure: Failure) -> str:
    if failure.kind == "missing-package":
        return missing_package_cause(failure)
    unnamed = NO_NAME.search(plain(failure.message))
    if unnamed:
        return f"{unnamed['name']} has no serialized name, without which torch.export.save cannot write it"
    if NO_OLDER_FORM.search(plain(failure.message)):
        return first_line(failure.message)
    missing = NO_TRANSLATION.search(plain(failure.message))
    if not missing:
        summary = EXCEPTION_SUMMARY.search(plain(failure.message))
        if summary and OBJECT not in summary[2]:
            return f"{summary[1]}: {summary[2]}"
        # The exporter wraps the cause in an exception with general advice.
        is_wrapped = OBJECT in failure.message.partition("\n")[0] or summary is not None
        first = first_line(failure.causes[0]) if failure.causes and is_wrapped else ""
        return first or f"{failure.type}: {first_line(failure.message)}"
    entries = " with complex input" if missing["input"] == "complex" else ""
    return f"operator {_operator(missing)}{entries} has no ONNX translation"


def _hint(contract: ModelContract, failure: Failure, target: str) -> str:
    if failure.kind == "missing-package":
        return missing_package_hint(contract, target)
    unnamed = NO_NAME.search(plain(failure.message))
    if unnamed:
        name = unnamed["name"]
        return (
            f"Below the class, call `torch.utils._pytree._register_namedtuple({name}, serialized_type_name=...)` "
            "(`torch.export.register_dataclass` for a dataclass), or return a tuple or dict. The program itself is not "
            f"affected; if you do not need this format, remove `{target}` from {targets_key(contract)}."
        )
    # The worker's own words, in `targets/onnx.py`.
    if "which ONNX cannot return" in failure.message:
        return f"Change the model's output, or remove `{target}` from {targets_key(contract)}."
    older = NO_OLDER_FORM.search(plain(failure.message))
    if older:
        return (
            f"Set {targets_key(contract, target, 'opset')} to {older['lowest']} or higher, replace {older['op']} in "
            f"the model by operators that the older opset has, or remove `{target}` from {targets_key(contract)}."
        )
    missing = NO_TRANSLATION.search(plain(failure.message))
    if missing and missing["input"] == "complex":
        return (
            f"Compute {_operator(missing)} on real and imaginary parts (`torch.view_as_real`), or remove `{target}` "
            f"from {targets_key(contract)}."
        )
    if missing:
        return (
            f"Rewrite {_operator(missing)} with operators that have a translation, raise "
            f"{targets_key(contract, target, 'opset')} if a newer opset has it, or remove `{target}` from "
            f"{targets_key(contract)}."
        )
    return (
        "Find the operator at which the converter stopped in the details and rewrite it with simpler ones; a "
        f"newer torch or onnxscript may convert it. If you do not need this format, remove `{target}` from "
        f"{targets_key(contract)}."
    )


def _operator(missing: re.Match[str]) -> str:
    overload = missing["overload"]
    return missing["op"] if overload == "default" else f"{missing['op']}.{overload}"


RULE = Rule(
    name="conversion-failed",
    severity="violation",
    summary="The exported program could not be converted to the target's format.",
    stage="convert",
    waivable=None,
    owner="converter",
    cause="conversion",
    check=check,
)
