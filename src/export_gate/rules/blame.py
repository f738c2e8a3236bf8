"""Owner and cause of failures: by how they ended, their stage, and the classes and words of torch and the runtimes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from export_gate.wall.contract import ModelContract, TargetName
from export_gate.wall.diagnosis import Cause, Change, Owner
from export_gate.wall.nodes import NodeTrace
from export_gate.wall.observation import ARTIFACT_CHANGED, OWN_FAULT, UNWRITTEN_SIZES, Failure, Stage
from export_gate.wall.smallest import SmallestInput

SIZE_GUARD = re.compile(
    r"Constraints violated|ConstraintViolationError|specialized it to be a constant|Not all values of [^\n]* satisfy"
    rf"|{UNWRITTEN_SIZES}|(?:guard|expression)[^\n]*\bs\d+\b"
)
"""What torch.export says where the model's code fixes or splits a size (torch 2.13)."""
INVALID_FILE = re.compile(
    r"INVALID_GRAPH|InvalidGraph|INVALID_PROTOBUF|ShapeInferenceError|TypeInferenceError|Type Error"
)
NO_KERNEL = re.compile(r"NOT_IMPLEMENTED|NotImplemented|is not a registered function/op")
OTHER_NAMES = "that the contract lacks"
"""The worker's words on an ONNX file with other names than the contract; a table of both sides follows."""
OTHER_DTYPES = ", the dtype in the contract"
"""The same on an ONNX file that takes an input in another dtype."""
SAVED = ("exported-program", "pt2")
"""Kinds of target that torch.export itself saves, loads and runs."""
RESOURCES = ("SIGKILL", "SIGTERM", "SIGBUS")
OWNERS: dict[Stage, Owner] = {
    "model": "model",
    "controls": "contract",
    "eager": "model",
    "export": "torch.export",
    "convert": "converter",
    "load": "runtime",
    "run": "runtime",
    "compare": "runtime",
    "guards": "runtime",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Who broke a promise and why, with the evidence."""

    owner: Owner | None = None
    cause: Cause = "unknown"
    verdict: str = ""
    """Owner and cause in one sentence, with what shows them; empty without experiments."""
    evidence: tuple[str, ...] = ()
    is_quantised: bool = False
    """Whether the file computes with quantised numbers, and the model does not."""
    cure: Change | None = None
    """The change to the input's values after which it agrees; None if none was found."""
    trace: NodeTrace | None = None
    """Where along the graph the output goes wrong."""
    smallest: SmallestInput | None = None
    """The smallest input found that fails in the same way."""


NOT_KNOWN = Blame()


def blame_failure(failure: Failure, contract: ModelContract, target: TargetName | None) -> Blame:
    """Owner and cause of one failure, as far as the failure itself says them."""
    if failure.type == OWN_FAULT:
        return Blame(owner="gate", cause="crash")
    is_torch = failure.stage in ("convert", "load", "run") and kind_of(contract, target) in SAVED
    # Their files are written and read by torch.export itself, not by a converter and a runtime.
    owner: Owner = "torch.export" if is_torch else OWNERS[failure.stage]
    if failure.kind == "died":
        # `exit N`: somebody called exit, which exporters and runtimes do not.
        own: Owner = "model" if failure.type.startswith("exit") else owner
        return Blame(owner=own, cause="resources" if failure.type in RESOURCES else "crash")
    if failure.kind == "timed-out":
        return Blame(owner=owner, cause="resources")
    if failure.kind == "missing-package":
        return Blame(owner="contract")
    return _raised(failure, contract, target, owner)


def kind_of(contract: ModelContract, target: TargetName | None) -> str:
    """The kind of a target, which may have another name; empty for none."""
    return next((planned.kind for planned in contract.targets if planned.name == target), target or "")


def is_handed_in(contract: ModelContract, target: TargetName | None) -> bool:
    """Whether the contract names a file for that target, so that the gate made none."""
    return any(planned.name == target and planned.artifact for planned in contract.targets)


def _raised(failure: Failure, contract: ModelContract, target: TargetName | None, owner: Owner) -> Blame:
    match failure.stage:
        case "export":
            text = f"{failure.type}: {failure.message}"
            return Blame(owner=owner, cause="size-guard" if SIZE_GUARD.search(text) else "export")
        case "convert":
            return Blame(owner=owner, cause="conversion")
        case "load":
            return _load(failure, is_given=is_handed_in(contract, target))
        case "model" | "controls" | "eager":
            return Blame(owner=owner, cause="eager")
        case _:
            given = is_handed_in(contract, target)
            return Blame(owner="artifact" if given else owner if kind_of(contract, target) in SAVED else None)


def has_other_interface(failure: Failure) -> bool:
    """Whether a file has other names or dtypes than the contract; the message has a table of both sides."""
    return OTHER_NAMES in failure.message or OTHER_DTYPES in failure.message


def _load(failure: Failure, *, is_given: bool) -> Blame:
    if has_other_interface(failure):
        return Blame(owner="artifact" if is_given else "converter", cause="interface")
    if failure.type == ARTIFACT_CHANGED:
        return Blame(owner="artifact")
    if NO_KERNEL.search(f"{failure.type}: {failure.message}"):
        return Blame(owner="runtime", cause="operator")
    is_invalid = INVALID_FILE.search(f"{failure.type}: {failure.message}") is not None
    if is_given:
        is_graph = is_invalid and "PROTOBUF" not in failure.message
        return Blame(owner="artifact", cause="operator" if is_graph else "unknown")
    if is_invalid:
        return Blame(owner="converter", cause="conversion")
    return NOT_KNOWN
