"""An output has another element type than eager's."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.advice import advice
from export_gate.rules.base import Finding, Rule
from export_gate.rules.blame import is_handed_in, kind_of
from export_gate.rules.cases import Differing, differing_outputs
from export_gate.rules.forms import inspection_of, program_dtype
from export_gate.rules.measure import Measured
from export_gate.rules.wording import targets_key
from export_gate.wall.contract import ModelContract, TargetName
from export_gate.wall.observation import Comparison


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each output of each target."""
    for differing in differing_outputs(measured, "dtype"):
        worst = differing.worst.comparison
        difference = f"expected dtype {worst.expected_dtype}, got {worst.actual_dtype}"
        yield differing.finding(RULE, difference, _hint(measured, differing))


def _hint(measured: Measured, differing: Differing) -> str:
    contract, target, worst = measured.contract, differing.target, differing.worst.comparison
    # Of a file that was handed in, the model's code says nothing.
    if differing.blame.cause == "weights" or is_handed_in(contract, target):
        return advice(contract, target, differing.blame)
    if _is_split_complex(worst) and kind_of(contract, target) == "onnx":
        return _complex(contract, target)
    inspection = inspection_of(measured, target, differing.output)
    if program_dtype(measured, differing.worst, inspection) == worst.expected_dtype:
        return _lost_later(contract, target, worst)
    return (
        f"Fix the type at the end of forward with `.to(torch.{worst.expected_dtype})`: type promotion with Python "
        "numbers, a Python number returned as output and integer reductions are converted differently."
    )


def _is_split_complex(worst: Comparison) -> bool:
    """Whether real and imaginary parts lie along a further last axis."""
    is_complex = worst.expected_dtype.startswith("complex")
    return is_complex and worst.actual_shape == (*worst.expected_shape, 2)


def _complex(contract: ModelContract, target: TargetName) -> str:
    return (
        "torch's ONNX exporter writes a complex output as real numbers with a last axis of 2. Return "
        "`torch.view_as_real(out)` and build the complex number in the caller (`torch.view_as_complex`); if you do "
        f"not need this format, remove `{target}` from {targets_key(contract)}."
    )


def _lost_later(contract: ModelContract, target: TargetName, worst: Comparison) -> str:
    return (
        f"The exported program's output is {worst.expected_dtype} already, so a cast to it changes nothing: the "
        f"conversion to {target} makes it {worst.actual_dtype}. If {worst.actual_dtype} holds every value, return it "
        f"from the model (`.to(torch.{worst.actual_dtype})` at the end of forward) and cast in the caller; if you do "
        f"not need this format, remove `{target}` from {targets_key(contract)}."
    )


RULE = Rule(
    name="dtype-mismatch",
    severity="violation",
    summary="An output has another dtype than eager's.",
    stage="compare",
    waivable=("target", "output", "case"),
    check=check,
)
