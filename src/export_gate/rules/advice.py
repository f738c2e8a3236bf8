"""Advise what to do about an output that differs, by cause and owner. Only rounding may ask for a larger tolerance."""

from __future__ import annotations

from export_gate.rules.blame import Blame
from export_gate.rules.size_advice import size_advice
from export_gate.rules.special_values import special_advice
from export_gate.rules.wording import targets_key
from export_gate.wall.contract import ModelContract, TargetName
from export_gate.wall.diagnosis import Cause, Owner

BY_CAUSE: dict[Cause, str] = {
    "weights": (
        "The artifact was made from other weights: rebuild it from this commit, or let the factory load the weights "
        "that it was made from."
    ),
    "size-arithmetic": (
        "The size alone decides: look for what the model computes from it, such as a rounded product or a float step "
        "(use integers, `n * 7 // 10`, or `size=` instead of `scale_factor`) or a fast path for some sizes; or narrow "
        "`dims` to sizes that agree."
    ),
    "tie": (
        "Both answers are right, up to rounding: make the choice unique (a secondary key, a margin), or return the "
        "values that are chosen or rounded, which agree."
    ),
    "layout": "Pass dense tensors (`x.contiguous()`): the artifact reads a strided input as if it were dense.",
    "state": (
        "Make the state an input and an output of forward, or, if it is to stay as it is in use, write it only when "
        "`self.training`: an artifact starts from the state at export and never changes it."
    ),
    "randomness": (
        "The artifact draws other numbers than eager, because export drops `torch.manual_seed` and generators: draw "
        "the numbers once into a buffer, or take them as an input of forward."
    ),
    "export": (
        "The program differs before any conversion: look for a Python number, flag or buffer that is computed from "
        "inputs and fixed at export."
    ),
    "mask": "Look at what the model returns where the mask is off; `where` in the contract leaves such places out.",
}
BY_OWNER: dict[Owner, str] = {
    "torch.export": (
        "The exported program itself differs: look for a Python number, flag or buffer that is computed from inputs "
        "and fixed at export."
    ),
    "decomposition": (
        "A decomposition computes something else than the operator: rewrite the operation with simpler ones, and "
        "report it to PyTorch: the command below with `--save-case case.npz` writes the input."
    ),
    "converter": (
        "The file is wrong, whatever runs it: rewrite the operation with simpler ones in the model, and report it to "
        "PyTorch (torch.onnx): the command below with `--save-case case.npz` writes the input."
    ),
    "runtime-optimisation": (
        "The file is right, and ONNX Runtime's graph optimisations change its result: ship and verify with "
        "{optimization} at `basic` or `disable`, and report it to ONNX Runtime: the command below with "
        "`--save-case case.npz` writes the input."
    ),
    "runtime": (
        "The file is right, and ONNX Runtime computes it wrongly: try another version or provider, rewrite the "
        "operation with simpler ones, and report it to ONNX Runtime: the command below with "
        "`--save-case case.npz` writes the input."
    ),
    "artifact": (
        "The file that was handed in computes something else: rebuild it from this commit; if it still "
        "differs, look for other settings in the script that makes it, and for edits afterwards."
    ),
}
QUANTISED = (
    "A quantised file differs from a float32 model by design, so that this says nothing against it. Verify the float32 "
    "file with this contract. Of the quantised one, decide how far it may be off, and declare that at {tolerance}; or "
    "give it a model of its own, whose factory returns the fake-quantised network."
)
NOT_KNOWN = (
    "What causes it is not known: compare the inputs that differ with those that do not, and run the worst alone."
)


def advice(contract: ModelContract, target: TargetName, blame: Blame) -> str:
    """What to do about an output that differs."""
    if blame.cause == "special-value":
        return special_advice(contract, blame)
    resized = size_advice(blame.trace.guilty) if blame.cause == "size-arithmetic" and blame.trace else ""
    if resized:
        return resized
    if blame.is_quantised:
        return QUANTISED.format(tolerance=targets_key(contract, target, "tolerance"))
    # The cause first: it names what to change, the owner only where.
    if blame.cause in BY_CAUSE:
        return BY_CAUSE[blame.cause]
    if blame.owner not in BY_OWNER:
        return NOT_KNOWN
    return BY_OWNER[blame.owner].format(optimization=targets_key(contract, target, "optimization"))
