"""An exported program could not be converted to a target's format: which operator, and what to use instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from export_gate.rules.base import Finding, Rule
from export_gate.rules.conversion_ways import failed_ways, trials_of, way_that_works
from export_gate.rules.failures import failures_of, finding
from export_gate.rules.measure import Measured
from export_gate.rules.missing_package import missing_package_cause, missing_package_hint
from export_gate.rules.recipe_table import COMPLEX, Recipe
from export_gate.rules.recipes import called, recipe_of
from export_gate.rules.wording import at_source, capital, first_line, plain, targets_key
from export_gate.wall.contract import ModelContract, TargetName
from export_gate.wall.nodes import GuiltyNode
from export_gate.wall.observation import Failure

NO_TRANSLATION = re.compile(
    r"No ONNX function found for <OpOverload\(op='(?P<op>[\w.:]+)', overload='(?P<overload>\w+)'\)>"
    r"(?:[^\n]*No decompositions registered for the (?P<input>complex|real)-valued input)?"
)


EXCEPTION_SUMMARY = re.compile(r"## Exception summary\s+<class '(?:\w+\.)*(\w+)'>: ([^\n]+)")
"""torch.onnx names the cause there, below its own general advice (torch 2.13)."""


OBJECT = " object at 0x"
"""A message with this shows a pass manager instead of the place where it stopped; the first exception says more."""

NO_NAME = re.compile(
    r"(?:No registered serialization name for|Can't serialize TreeSpec of namedtuple class)\s+"
    r"<class '(?P<module>[\w.]*?)\.?(?P<name>\w+)'>"
)
"""torch.export.save on an output or input class that torch can take apart but not write down (torch 2.13)."""


TORCHS_OWN = ("aten", "prims", "prim", "torchvision", "quantized", "quantized_decomposed", "higher_order", "torch")
"""Namespaces of operators that a project did not write itself."""
LINEAR_ALGEBRA = re.compile(r"\b_?linalg_|torch\.linalg\.")

NO_OLDER_FORM = re.compile(r"operator (?P<op>\w+) cannot be converted from opset \d+ to \d+\b.*? is (?P<lowest>\d+):")
"""The worker's words on an operator that onnx's version converter cannot bring to the opset."""


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each target that could not be made."""
    contract = measured.contract
    for group in failures_of("conversion-failed", measured):
        failure, target = group[0].failure, group[0].target or "target"
        stopped = _stopped(measured, target)
        message = (
            f"{group[0].place(contract.name)}: the conversion failed{at_source(failure.source)}: "
            f"{_cause(failure, stopped)}"
        )
        trials = trials_of(measured, target)
        way = way_that_works(contract, target, trials)
        missing = NO_TRANSLATION.search(plain(failure.message))
        is_complex = missing is not None and missing["input"] == COMPLEX
        recipe = None if way else recipe_of(stopped, COMPLEX if is_complex else "")
        hint = way or _hint(contract, failure, target, stopped, recipe)
        found = finding(RULE.name, contract, group, message, f"{hint}{failed_ways(trials)}")
        source = found.source or (stopped.source if stopped else None)
        if missing and failure.kind != "missing-package":
            numbers = " for complex tensors" if is_complex else ""
            found = replace(found, verdict=f"torch.onnx has no translation of {_named(missing, stopped)}{numbers}")
        yield replace(found, source=source, recipe=recipe.lines if recipe else "")


def _stopped(measured: Measured, target: TargetName) -> GuiltyNode | None:
    """The node that could not be translated."""
    return next((seen.stopped_at for seen in measured.seen(target) if seen.stopped_at), None)


def _cause(failure: Failure, stopped: GuiltyNode | None) -> str:
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
        at = f"{called(stopped)} does not convert: " if stopped else ""
        if summary and OBJECT not in summary[2]:
            return f"{at}{summary[1]}: {summary[2]}"
        # The exporter wraps the cause in an exception with general advice.
        is_wrapped = OBJECT in failure.message.partition("\n")[0] or summary is not None
        first = first_line(failure.causes[0]) if failure.causes and is_wrapped else ""
        return f"{at}{first or f'{failure.type}: {first_line(failure.message)}'}"
    entries = " with complex input" if missing["input"] == "complex" else ""
    return f"{_named(missing, stopped)}{entries} has no ONNX translation"


def _hint(
    contract: ModelContract, failure: Failure, target: str, stopped: GuiltyNode | None, recipe: Recipe | None
) -> str:
    if failure.kind == "missing-package":
        return missing_package_hint(contract, target)
    unnamed = NO_NAME.search(plain(failure.message))
    if unnamed:
        name = unnamed["name"]
        return (
            f'Below the class, call `torch.utils._pytree._register_namedtuple({name}, serialized_type_name="{name}")` '
            f'(for a dataclass `torch.export.register_dataclass({name}, serialized_type_name="{name}")`), or return a '
            "tuple or dict. The program itself is not affected; if you do not need this format, remove "
            f"`{target}` from {targets_key(contract)}."
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
    own = called(stopped) if stopped and stopped.function else _named(missing, None) if missing else ""
    otherwise = f"if you do not need this format, remove `{target}` from {targets_key(contract)}."
    if recipe:
        return f"{recipe.words}. {capital(otherwise)}"
    if missing and missing["input"] == COMPLEX:
        return f"Compute {own} on real and imaginary parts (`torch.view_as_real`). {capital(otherwise)}"
    if missing:
        return f"{_rewrite(own, stopped)}. {capital(otherwise)}"
    step = (
        _rewrite(called(stopped), stopped)
        if stopped
        else "Find the operator at which the converter stopped in the details and rewrite it with simpler ones"
    )
    return f"{step}; a newer torch or onnxscript may convert it. {capital(otherwise)}"


def _rewrite(name: str, stopped: GuiltyNode | None) -> str:
    """ONNX has no decompositions of matrices, which cannot be written with a few other operators."""
    operator = stopped.operator if stopped else name.rpartition(" ")[2]
    if operator.partition(".")[0] not in TORCHS_OWN:
        return (
            f"{capital(name)} is a custom operator: if it is written in torch, call the function itself in forward, "
            "without `torch.library`; else write what it computes with torch's own operators"
        )
    if LINEAR_ALGEBRA.search(f"{name} {stopped.operator if stopped else ''}"):
        return (
            f"Compute {name} outside of the exported model and pass its result in (once, in `__init__`, if it does not "
            "depend on inputs)"
        )
    return f"Write {name} with operators that have a translation"


def _named(missing: re.Match[str], stopped: GuiltyNode | None) -> str:
    """The function that the user calls, with the operator that it became if that has another name."""
    overload = missing["overload"]
    operator = missing["op"] if overload == "default" else f"{missing['op']}.{overload}"
    if stopped is None or not stopped.function:
        return f"operator {operator}"
    is_same = missing["op"].partition(".")[2] == stopped.function.rpartition(".")[2]
    return f"`{stopped.function}`" if is_same else f"`{stopped.function}` (operator {operator})"


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
