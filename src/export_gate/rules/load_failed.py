"""An artifact was written but cannot be loaded again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from export_gate.rules.base import Finding, Rule
from export_gate.rules.blame import OTHER_DTYPES, OTHER_NAMES, has_other_interface
from export_gate.rules.failures import failures_of, finding
from export_gate.rules.measure import Measured
from export_gate.rules.missing_package import missing_package_cause, missing_package_hint
from export_gate.rules.recipes import called
from export_gate.rules.user_lines import converted_call
from export_gate.rules.wording import first_line, listing, paragraph, source_place, targets_key
from export_gate.wall.contract import ModelContract
from export_gate.wall.nodes import GuiltyNode
from export_gate.wall.observation import ARTIFACT_CHANGED, Failure

WRONG_TYPE = re.compile(r"Type 'tensor\((?P<type>\w+)\)' of input parameter \([^)]*\) of operator \((?P<op>\w+)\)")
"""ONNX Runtime on a file whose operator has an input of a dtype that ONNX does not allow (1.20 to 1.32)."""
NO_KERNEL = re.compile(r"Could not find an implementation for (\w+)\(\d+\)")
"""ONNX Runtime on an operator that the provider lacks for a dtype (1.20 to 1.32)."""
LOST = re.compile(r"No such file or directory: '(?:[^']*/)?([^'/]+)'")
NAMES_ROW = re.compile(r"(?m)^\s*(input|output) +\d+ +(\S+) +(\S+) *$")
WIDER = {"uint8": "int32", "int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "bool": "int32"}
"""What to compute in instead; floats in float32."""
INVALID = "the file is not valid ONNX: an operator has attributes or inputs that ONNX does not give it"
INVALID_HINT = (
    "Correct the operator that the message names, or write the file again: `onnx.checker.check_model(path, "
    "full_check=True)` lists what is wrong with it."
)
TOGETHER = ", for weights and inputs together, since both must have one dtype"
HALVES = {
    "bfloat16": ("`.bfloat16()`", "`.to(torch.bfloat16)`"),
    "float16": ("`.half()`", "`.to(torch.float16)`"),
}
"""Dtypes of which ONNX Runtime has few kernels on the CPU, and how code asks for them."""


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each target whose artifact does not load."""
    contract = measured.contract
    for group in failures_of("load-failed", measured):
        failure = group[0].failure
        is_missing = failure.kind == "missing-package"
        lacking = NO_KERNEL.search(failure.message)
        cause = missing_package_cause(failure) if is_missing else f"{failure.type}: {first_line(failure.message)}"
        what = f"the artifact changed while it was verified: {failure.message}"
        if failure.type != ARTIFACT_CHANGED:
            what = f"the artifact does not load: {cause}"
        wrong = WRONG_TYPE.search(failure.message)
        if wrong:
            what = f"the artifact does not load: its {wrong['op']} takes {wrong['type']}, which ONNX does not allow"
        if OTHER_NAMES in failure.message:
            what = f"the artifact's names are not the contract's: {first_line(failure.message)}"
        if OTHER_DTYPES in failure.message:
            what = f"callers of the contract cannot call the artifact: {first_line(failure.message)}"
        message = f"{group[0].place(contract.name)}: {what}"
        found = finding(RULE.name, contract, group, message, _hint(contract, failure, group[0].target or "target"))
        stopped = next((seen.stopped_at for seen in measured.seen(group[0].target or "") if seen.stopped_at), None)
        if wrong:
            found = replace(found, hint=_type_hint(wrong, stopped), owner="converter", cause="conversion")
            found = replace(found, verdict=f"the conversion is wrong: it writes {wrong['op']} of {wrong['type']}")
        if (found.owner, found.cause) == ("artifact", "operator") and not lacking:
            found = replace(found, verdict=INVALID, hint=INVALID_HINT)
        if lacking:
            verdict, hint = _lacking(contract, lacking[1], group[0].target or "target", stopped)
            found = replace(found, verdict=verdict, hint=hint)
        source = found.source or (stopped.source if stopped else None)
        yield replace(found, details=(*_names(failure), *found.details), source=source)


def _lacking(contract: ModelContract, operator: str, target: str, stopped: GuiltyNode | None) -> tuple[str, str]:
    """What is said of an operator without a kernel."""
    dtype = stopped.dtype if stopped else ""
    what = f"ONNX Runtime has no kernel for {operator} of {dtype or 'this dtype'}"
    provider = f"Or choose a provider with such a kernel under {targets_key(contract, target, 'providers')}."
    if dtype not in HALVES:
        hint = f"Compute {called(stopped) if stopped else operator} in another dtype ({WIDER.get(dtype, 'float32')})"
        return what, f"{hint}, and convert the result back. {provider}"
    lines = listing([source_place(line) for line in stopped.dtype_lines], limit=4) if stopped else ""
    asked = (
        lines or f"the line where the model's weights get it, and out of the conversions ({', '.join(HALVES[dtype])})"
    )
    is_cast = stopped is not None and any("autocast" in line.text for line in stopped.dtype_lines)
    together = "" if is_cast and stopped and len(stopped.dtype_lines) == 1 else TOGETHER
    where = f" Take {dtype} out of {asked}{together}."
    few = f"Run the model in float32: ONNX Runtime has few kernels for {dtype} on the CPU."
    return what, f"{few}{where} {provider}"


def _type_hint(wrong: re.Match[str], stopped: GuiltyNode | None) -> str:
    other = WIDER.get(wrong["type"], "float32")
    layer = called(stopped) if stopped else f"what became `{wrong['op']}`"
    edited = converted_call(stopped, other, wrong["type"])
    if edited and stopped and stopped.source:
        return (
            f"Compute {layer} in {other} and convert the result back: write line {stopped.source.line} as `{edited}`."
        )
    return (
        f"Give {layer} a tensor of {other} (`.to(torch.{other})`, and its argument `dtype` if it has one), and convert "
        f"the result back: `.to(torch.{wrong['type']})`."
    )


def _names(failure: Failure) -> tuple[str, ...]:
    return paragraph("\n".join(failure.message.splitlines()[1:])) if has_other_interface(failure) else ()


def _hint(contract: ModelContract, failure: Failure, target: str) -> str:
    if OTHER_NAMES in failure.message:
        return _names_hint(contract, failure)
    if OTHER_DTYPES in failure.message:
        return (
            f"Write the file again with the contract's dtypes, or, if callers send the file's, declare those under "
            f"`models.{contract.name}.inputs`."
        )
    if failure.type == ARTIFACT_CHANGED:
        return (
            "Find what writes to it while the gate runs (the model's code, or another job in the folder): the file "
            "there now is not the one that was verified, so do not ship it."
        )
    if failure.kind == "missing-package":
        return missing_package_hint(contract, target)
    lost = LOST.search(failure.message) if failure.type == "FileNotFoundError" else None
    if lost:
        return (
            f"The file's weights are in a second file, `{lost[1]}`, which is not beside it: copy (or commit) both, or "
            "write one file with `external_data=False`."
        )
    if "NOT_IMPLEMENTED" in failure.message or "NotImplemented" in failure.type:
        return (
            "Run the model in float32 (without `.bfloat16()`, `.half()` or `.to(torch.bfloat16)`): ONNX Runtime has "
            "few kernels for other floats on the CPU. Or choose a provider with such a kernel under "
            f"{targets_key(contract, target, 'providers')}."
        )
    return (
        "Check that the artifact is loaded by the versions that wrote it, that no file next to it (external "
        "data) is missing, and that the loader knows every custom operator."
    )


def _names_hint(contract: ModelContract, failure: Failure) -> str:
    """What to declare for each input whose name alone differs, as the worker's table pairs them."""
    key, rows = f"models.{contract.name}", NAMES_ROW.findall(failure.message)
    renamed = [f"`{key}.inputs.{own}.name: {other}`" for kind, own, other in rows if kind == "input" and own != other]
    outputs = [other for kind, _, other in rows if kind == "output"]
    is_paired = not any("(none)" in row for row in rows)
    ways = [f"declare {listing(renamed)}"] if renamed and is_paired else []
    if is_paired and [own for kind, own, _ in rows if kind == "output"] != outputs:
        ways.append(f"name the outputs as the file does, in eager's order: `{key}.outputs` with {listing(outputs)}")
    if not ways:
        return (
            f"Say what the file calls each input: `name` under `{key}.inputs`, such as `x: {{name: images, ...}}`; "
            f"list outputs under the file's names, in eager's order, in `{key}.outputs`; or write the file with the "
            "contract's names."
        )
    said = ", and ".join(ways)
    return f"If only the names differ, {said}; or write the file with the contract's names."


RULE = Rule(
    name="load-failed",
    severity="violation",
    summary="The artifact was written but cannot be loaded, or changed while it was verified.",
    stage="load",
    waivable=None,
    check=check,
)
