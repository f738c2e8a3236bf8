"""Say in one sentence who is wrong about an output, by the experiments that show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from export_gate.rules.forms import RUNG_WORDS
from export_gate.rules.wording import listing
from export_gate.wall.diagnosis import Answer, Cause, Change, Owner, Rung, RungName

WHO: dict[Owner, str] = {
    "torch.export": "torch.export is wrong",
    "decomposition": "a decomposition of torch's is wrong",
    "converter": "the conversion is wrong",
    "runtime-optimisation": "an optimisation of ONNX Runtime is wrong",
    "runtime": "ONNX Runtime is wrong",
    "artifact": "the file that was handed in is wrong",
}
CURED: dict[Change, str] = {
    "no-negative-zeros": " at -0.0",
    "no-zeros": " at zeros",
    "no-nonfinite": " at NaN or infinity",
}
AT: dict[Cause, str] = {
    "size-arithmetic": " at some sizes",
    "layout": " for tensors in another memory layout",
    "mask": " where a mask switches something off",
}
GUARD = "torch.export followed one side of a condition on sizes"


def verdict(
    owner: Owner | None, cause: Cause, cure: Change | None, rungs: Sequence[Rung], because: Sequence[str]
) -> str:
    """`ONNX Runtime is wrong at NaN or infinity: the exported program and the reference evaluator agree with eager`.

    Args:
        owner: who was found to be wrong.
        cause: why.
        cure: the change of values after which the input agrees.
        rungs: forms of the model at the worst input.
        because: what the cause rests on, in words.

    Returns:
        An empty text if nothing more is known than owner and cause.
    """
    reasons = "; ".join(because)
    if cause == "size-guard":
        return f"{GUARD}: {reasons}" if reasons else ""
    if owner not in WHO:
        return ""
    where = CURED[cure] if cause == "special-value" and cure else AT.get(cause, "")
    proof = _proof(owner, {rung.name: rung.answer for rung in rungs})
    shown = proof or reasons
    return f"{WHO[owner]}{where}{': ' if shown else ''}{shown}" if shown or where else ""


def _proof(owner: Owner, answers: Mapping[RungName, Answer]) -> str:
    """The forms that agree with eager, and the first one that does not, as far as they show this owner."""
    # The decompositions lie between program and file, so they are of interest only where they are wrong.
    agree = [RUNG_WORDS[name] for name in RUNG_WORDS if answers.get(name) == "agrees" and name != "decomposed"]
    differ: dict[Owner, RungName] = {"torch.export": "exported-program", "decomposition": "decomposed"}
    first = differ.get(owner)
    if owner == "torch.export":
        return f"{RUNG_WORDS['exported-program']} differs from eager" if answers.get("exported-program") else ""
    if not agree:
        return ""
    known = f"{listing(agree)} {'agrees' if len(agree) == 1 else 'agree'} with eager"
    if first is not None:
        return f"{known}, {RUNG_WORDS[first]} does not"
    is_everywhere = owner == "converter" and answers.get("reference-evaluator") == "differs"
    return f"{known}, the ONNX file does not, whatever runs it" if is_everywhere else known
