"""Find the owner of an output that differs: it made the first form of the model, from program to file, that differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from export_gate.rules.blame import is_handed_in, kind_of
from export_gate.rules.measure import Measured, Measurement
from export_gate.wall.contract import TargetName
from export_gate.wall.diagnosis import Answer, Inspection, Owner, Rung, RungName
from export_gate.wall.words import rounded

RUNG_WORDS: dict[RungName, str] = {
    "exported-program": "the exported program",
    "decomposed": "the program after torch's decompositions",
    "file-unoptimised": "the ONNX file without ONNX Runtime's optimisations",
    "file": "the ONNX file with them",
    "reference-evaluator": "the ONNX reference evaluator",
}


def inspection_of(measured: Measured, target: TargetName, output: str) -> Inspection | None:
    """The worker's experiments on this output, if it made any."""
    found = [each for seen in measured.seen(target) for each in seen.inspections]
    return next((each for each in found if each.output == output), None)


def owner_of(
    measured: Measured, target: TargetName, faults: Sequence[Measurement], inspection: Inspection | None
) -> Owner | None:
    """The first form of the model that differs from eager; without experiments what other targets show."""
    kind = kind_of(measured.contract, target)
    if kind == "exported-program":
        return "torch.export"
    is_given = is_handed_in(measured.contract, target)
    rungs = {rung.name: rung.answer for rung in inspection.rungs} if inspection else {}
    program = program_answer(measured, faults[0], inspection)
    # A file that was handed in was not made from this program, so the program's faults explain nothing.
    if not is_given and program in ("differs", "failed"):
        return "torch.export"
    # Saving and loading are torch.export's work too.
    if kind == "pt2":
        return "artifact" if is_given else "torch.export"
    if kind == "aoti":
        return "artifact" if is_given else ("converter" if program == "agrees" else None)
    return file_owner(rungs, is_given=is_given)


def rung_words(rungs: Sequence[Rung]) -> str:
    """`the exported program agrees with eager, the file without optimisations differs by 3.1e-01`."""
    parts = [_rung(rung) for rung in rungs if rung.answer != "not-tried"]
    return f"{'; '.join(parts)}" if parts else ""


def file_owner(rungs: Mapping[RungName, Answer], *, is_given: bool) -> Owner | None:
    """Who made a wrong file, or computes a right one wrongly; None if nothing shows it."""
    bad = ("differs", "failed")
    if rungs.get("decomposed") in bad and not is_given:
        return "decomposition"
    if rungs.get("file-unoptimised") == "agrees" and rungs.get("file") in bad:
        return "runtime-optimisation"
    if rungs.get("file-unoptimised") not in bad:
        return None
    # A second implementation computes eager's result from the same file, so the file is right.
    if rungs.get("reference-evaluator") == "agrees":
        return "runtime"
    return "artifact" if is_given else "converter"


def program_answer(measured: Measured, fault: Measurement, inspection: Inspection | None) -> str | None:
    """How the exported program does at the worst input: by experiment, or as a target of its own."""
    tried = [rung.answer for rung in inspection.rungs if rung.name == "exported-program"] if inspection else []
    return tried[0] if tried and tried[0] != "not-tried" else _seen_answer(measured, fault)


def program_dtype(measured: Measured, fault: Measurement, inspection: Inspection | None) -> str:
    """The dtype of the exported program's output: by experiment, or as a target of its own; empty if not known."""
    tried = [rung.dtype for rung in inspection.rungs if rung.name == "exported-program"] if inspection else []
    if tried and tried[0]:
        return tried[0]
    seen = _seen_leaf(measured, fault)
    return seen.comparison.actual_dtype if seen else ""


def _seen_answer(measured: Measured, fault: Measurement) -> str | None:
    """How the exported program did at the same input, if it is a target of its own."""
    seen = _seen_leaf(measured, fault)
    return None if seen is None else ("differs" if seen.faults else "agrees")


def _seen_leaf(measured: Measured, fault: Measurement) -> Measurement | None:
    programs = [t.name for t in measured.contract.targets if t.kind == "exported-program"]
    leaves = [leaf for name in programs for leaf in measured.of(name)]
    return next((leaf for leaf in leaves if (leaf.output, leaf.case) == (fault.output, fault.case)), None)


def _rung(rung: Rung) -> str:
    words = RUNG_WORDS[rung.name]
    if rung.answer == "agrees":
        return f"{words} agrees with eager"
    if rung.answer == "failed":
        return f"{words} raises"
    by = "" if rung.max_abs_diff is None else f" by {rounded(rung.max_abs_diff)}"
    return f"{words} differs{by}"
