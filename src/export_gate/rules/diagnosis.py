"""Find owner and cause of an output that differs, from the inputs that pass and fail and the worker's experiments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from export_gate.rules.blame import Blame, is_handed_in
from export_gate.rules.causes import OPERATOR_OWNERS, cause_of, cure_of
from export_gate.rules.forms import file_owner, inspection_of, owner_of, rung_words
from export_gate.rules.measure import Measured, Measurement
from export_gate.rules.size_pattern import members_of, raising_sizes
from export_gate.rules.verdict import verdict
from export_gate.rules.weights import weights_of, weights_words
from export_gate.rules.wording import listing
from export_gate.wall.contract import TargetName
from export_gate.wall.diagnosis import Cause, Inspection, Owner
from export_gate.wall.words import count, rounded


def diagnose(measured: Measured, target: TargetName, output: str, faults: Sequence[Measurement]) -> Blame:
    """Owner, cause and evidence of one output's faults, the worst first."""
    if _is_eagers_own(faults[0]):
        return Blame(owner="model", cause="eager")
    weights = weights_of(measured, target)
    inspection = inspection_of(measured, target, output)
    trace, smallest = (inspection.trace, inspection.smallest) if inspection else (None, None)
    if weights is not None and weights.quantised and not _has_quantisers(inspection):
        seen = count(weights.quantised, "node")
        words = f"the file is quantised ({seen} of it compute with quantised numbers), and eager is not"
        return Blame(
            owner="artifact", cause="weights", verdict=words, is_quantised=True, trace=trace, smallest=smallest
        )
    # Other weights explain any difference, so the experiments, which compare forms of one model, prove nothing.
    if weights is not None and weights.differing_count:
        # Where most differ, the first node that does is only the first that has weights.
        is_edited = 2 * weights.differing_count <= weights.found
        shown = trace if is_edited else None
        return Blame(owner="artifact", cause="weights", evidence=weights_words(weights), trace=shown)
    owner = owner_of(measured, target, faults, inspection)
    cause, because = cause_of(measured, target, faults, inspection, owner)
    pattern = tuple(_pattern(measured, target, output, faults))
    climbed = () if inspection is None else (rung_words(inspection.rungs),)
    evidence = (*because, *climbed, *pattern, *_not_rounding(measured, target, faults, cause))
    settled, cure = _settled(owner, cause), cure_of(measured, faults, inspection)
    return Blame(
        owner=settled,
        cause=cause,
        verdict=verdict(settled, cause, cure, inspection.rungs if inspection else (), because),
        evidence=tuple(filter(None, evidence)),
        cure=cure,
        trace=trace,
        smallest=smallest,
    )


def _has_quantisers(inspection: Inspection | None) -> bool:
    """Whether the model quantises too, so that both sides should agree."""
    return inspection is not None and any("quantize" in name for name in inspection.selects)


def _is_eagers_own(worst: Measurement) -> bool:
    """Whether the contract forbids what eager itself returns, and the artifact with it."""
    return worst.fault == "nonfinite" and not worst.comparison.nonfinite_mismatched


def blame_call(measured: Measured, target: TargetName | None) -> Blame | None:
    """Owner and cause of calls that raised; None without experiments on them."""
    # An inspection without an output is of calls that raised.
    inspection = inspection_of(measured, target, "") if target else None
    if target is None or inspection is None:
        return None
    is_given = is_handed_in(measured.contract, target)
    answers = {rung.name: rung.answer for rung in inspection.rungs}
    owner: Owner | None = "torch.export" if answers.get("exported-program") == "failed" and not is_given else None
    owner = owner or file_owner(answers, is_given=is_given)
    causes: dict[Owner, Cause] = {"torch.export": "export", "converter": "conversion"}
    cause = causes.get(owner, "operator" if owner in OPERATOR_OWNERS else "unknown") if owner else "unknown"
    sizes = raising_sizes(measured, target) if cause == "unknown" else ""
    cause = "size-arithmetic" if sizes else cause
    evidence = tuple(filter(None, (sizes, rung_words(inspection.rungs))))
    words = verdict(owner, cause, None, inspection.rungs, (sizes,) if sizes else ())
    return Blame(owner=owner, cause=cause, verdict=words, evidence=evidence, smallest=inspection.smallest)


def _settled(owner: Owner | None, cause: Cause) -> Owner | None:
    """Rounding and randomness are the model's own, whichever form shows them."""
    if cause == "size-guard":
        return "torch.export"
    return "model" if cause in ("rounding", "tie", "state", "randomness") else owner


def _pattern(measured: Measured, target: TargetName, output: str, faults: Sequence[Measurement]) -> Iterator[str]:
    """The families of inputs that always fail, while others pass."""
    leaves = [leaf for leaf in measured.of(target) if leaf.output == output]
    members = members_of(measured)
    families = sorted({members[f.case].family for f in faults if f.case in members})
    passing = {members[leaf.case].family for leaf in leaves if not leaf.faults and leaf.case in members}
    # How many fail is said with the worst one.
    if len(leaves) > len(faults) and families and not passing.intersection(families):
        yield f"every input of {'family' if len(families) == 1 else 'families'} {listing(families)}"


def _not_rounding(measured: Measured, target: TargetName, faults: Sequence[Measurement], cause: Cause) -> Iterator[str]:
    if cause in ("rounding", "tie"):
        return
    for seen in measured.seen(target):
        for noise in seen.noise:
            if (noise.output, noise.case) == (faults[0].output, faults[0].case):
                yield (
                    f"not rounding: the artifact is {rounded(noise.distance)} from the float64 result, eager "
                    f"{rounded(noise.f64)}"
                )
