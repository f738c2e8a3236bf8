"""Advise what to do where only NaN, infinity, zero or -0.0 among the inputs make an output differ."""

from __future__ import annotations

from collections.abc import Mapping

from export_gate.rules.blame import Blame
from export_gate.rules.measure import Measurement
from export_gate.rules.wording import listing
from export_gate.wall.contract import ModelContract
from export_gate.wall.inputs import tensors
from export_gate.wall.smallest import SmallestInput

NAMES = {"nan": "NaN", "inf": "infinity"}


def is_sign_of_zero(worst: Measurement) -> bool:
    """Whether the same elements are infinite, and some of them of the other sign."""
    expected, actual = worst.comparison.expected_nonfinite, worst.comparison.actual_nonfinite
    changed = abs(expected.posinf - actual.posinf)
    # As many more of one sign as fewer of the other, and nothing else: each mismatch is such a pair.
    is_pair = expected.posinf + expected.neginf == actual.posinf + actual.neginf
    return worst.fault == "nonfinite" and is_pair and 0 < changed == worst.comparison.nonfinite_mismatched


def special_advice(contract: ModelContract, blame: Blame) -> str:
    """The next step, by the values that matter."""
    if blame.cure == "no-negative-zeros":
        return (
            f"The sign of zero decides: if callers can pass -0.0, make it positive before {_operator(blame)} "
            "(`torch.where(x == 0, 0.0, x)`)."
        )
    if blame.cure == "no-zeros":
        return (
            f"Decide what the model returns at zero, before {_operator(blame)} (`torch.where(x == 0, ...)`); or "
            "declare a `range` or `values` without zero, if callers never pass it."
        )
    # The default puts 0 in NaN's place, which an index or a maximum then passes over.
    handle = (
        f"handle it in the model before {_operator(blame)}, e.g. with `torch.nan_to_num(x, nan=...)`: the number "
        "that you choose changes eager's result as well"
    )
    declared = {path: spec.nonfinite for path, spec in tensors(contract.inputs) if spec.nonfinite}
    if not declared:
        return f"{handle[0].upper()}{handle[1:]}."
    kinds = _kinds(declared, blame.smallest)
    values = listing([f"`{kind}`" for kind in kinds])
    keys = listing([f"`models.{contract.name}.inputs.{path}.nonfinite`" for path in declared])
    passed = " or ".join(NAMES[kind] for kind in kinds)
    return f"If callers never pass {passed}, remove {values} from {keys}; otherwise {handle}."


def _operator(blame: Blame) -> str:
    """`argmax` of `aten.argmax.default`."""
    guilty = blame.trace.guilty if blame.trace else None
    return f"`{guilty.operator.removeprefix('aten.').partition('.')[0]}`" if guilty else "the operator"


def _kinds(declared: Mapping[str, tuple[str, ...]], smallest: SmallestInput | None) -> list[str]:
    """The non-finite values of the smallest failing input; all declared ones if its values are not known."""
    every = [kind for kind in NAMES if any(kind in kinds for kinds in declared.values())]
    texts = [tensor.text for tensor in smallest.tensors if tensor.text] if smallest else []
    return [kind for kind in every if any(kind in text for text in texts)] or every
