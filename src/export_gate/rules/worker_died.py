"""The process that ran a model ended without a report: a crash in native code, the kernel, or a call to exit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from export_gate.rules.base import Finding, Rule
from export_gate.rules.blame import kind_of
from export_gate.rules.failures import failures_of, finding
from export_gate.rules.measure import Measured
from export_gate.rules.wording import paragraph
from export_gate.wall.contract import ModelContract
from export_gate.wall.observation import OWN_FAULT, Failure, ModelObservation

MEANINGS = {
    "SIGKILL": (
        "SIGKILL usually comes from the kernel because memory ran out: run fewer models at a time (`--jobs`), lower "
        "the largest sizes in `dims`, or use a machine with more memory."
    ),
    "SIGSEGV": (
        "Native code crashed: run the named case alone, and report the crash to the project whose library is in the "
        "details."
    ),
    "SIGABRT": (
        "Native code aborted on a failed assertion, which is usually among the last lines printed (see the details)."
    ),
    "SIGILL": "This CPU lacks an instruction: native code or a compiled package was built for another machine.",
    "SIGBUS": "Mapped memory disappeared: a full disk or a full /dev/shm, or a file that was changed while in use.",
    "SIGTERM": "Something asked the worker to stop: a cancelled job, or a supervisor with a time or memory limit.",
    OWN_FAULT: (
        "This is a bug in export-gate: please report it with the traceback in the details. The model is not verified."
    ),
    "a damaged channel": (
        "Something in the model writes to file descriptors that it did not open, and observations were lost: "
        "write only to files that the model opens, or to standard output."
    ),
    "SIGFPE": "An integer division by zero in native code: look for a size of 0 in the named case.",
}
CRASHES = ("SIGSEGV", "SIGABRT", "SIGFPE")
"""Endings that one input can cause."""


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each target (or the model) whose worker died."""
    contract, observation = measured.contract, measured.observation
    for group in failures_of("worker-died", measured):
        failure = group[0].failure
        message = f"{group[0].place(contract.name)}: the worker died with {failure.type} in stage {failure.stage}"
        hint = MEANINGS.get(failure.type, _other(failure.type))
        empty = _empty_dims(failure, observation) if failure.type in CRASHES else []
        if empty:
            library = "ONNX Runtime" if kind_of(contract, group[0].target) == "onnx" else "native code"
            hint, message = _of_nothing(contract, empty, library), f"{message}, at an empty input ({_zeros(empty)})"
        elif failure.type in CRASHES and failure.case is not None:
            hint += " If the model does not have to accept the named input, narrow `dims` or `range` to leave it out."
        elif (failure.type, failure.stage) == ("SIGABRT", "convert"):
            hint += " A full disk makes torch abort here as well."
        found = finding(RULE.name, contract, group, message, hint)
        if empty:
            found = replace(found, verdict=f"{library} crashes at an empty input ({_zeros(empty)})")
        yield found if found.details else _with_output(found, observation)


def _empty_dims(failure: Failure, observation: ModelObservation) -> list[str]:
    """The dims of which the input that it died of has none."""
    found = (member.sizes for member in observation.control_inputs if member.name == failure.case)
    return [name for sizes in found for name, size in sizes.items() if size == 0]


def _zeros(dims: Sequence[str]) -> str:
    return ", ".join(f"`{name}` is 0" for name in dims)


def _of_nothing(contract: ModelContract, empty: Sequence[str], library: str) -> str:
    keys = " and ".join(f"`models.{contract.name}.dims.{name}.min`" for name in empty)
    return (
        f"If callers never send an empty input, raise {keys} to the smallest size that they send. If they do, let them "
        f"skip the call there and use an empty result. The crash is a bug of {library}: report it with the named input."
    )


def _other(ending: str) -> str:
    if ending.startswith("exit"):
        return (
            "Something in the model or a library ended the process: look for `sys.exit` or `os._exit`; raise instead."
        )
    return "The last lines that the worker printed are in the details."


def _with_output(found: Finding, observation: ModelObservation) -> Finding:
    return replace(found, details=paragraph(observation.printed))


RULE = Rule(
    name="worker-died",
    severity="violation",
    summary="The process that ran the model died.",
    stage=None,
    waivable=None,
    check=check,
)
