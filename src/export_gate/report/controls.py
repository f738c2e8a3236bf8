"""Format the control set as lines of text, as `export-gate controls` prints it."""

from __future__ import annotations

from typing import Any

from export_gate.report.escape import terminal
from export_gate.wall.observation import ControlSetObservation, ModelObservation


def listing(model: ModelObservation) -> list[str]:
    """One line per control input, in order, then what was omitted and the digest."""
    controls = model.controls
    if controls is None:
        name = terminal(model.model)
        return [f"{name}: a TorchScript module, which has no control set; see the rule torchscript-model"]
    width = max((len(case.name) for case in controls.inputs), default=0)
    lines = [f"{terminal(case.name):{width}}  {case.group:9}  {terminal(case.family)}" for case in controls.inputs]
    return [*lines, *_summary(controls)]


def one_input(answer: dict[str, Any]) -> list[str]:
    """One control input: each tensor with its dtype, shape and values (long ones abridged)."""
    lines = [terminal(answer["name"])]
    for name, array in answer["inputs"].items():
        shape = ", ".join(str(size) for size in array["shape"])
        lines.append(f"{terminal(name)}: {terminal(array['dtype'])}[{shape}]")
        lines += [f"  {terminal(line)}" for line in array["text"].splitlines()]
    return lines


def _summary(controls: ControlSetObservation) -> list[str]:
    lines = [f"{len(controls.inputs)} control inputs, sha256 {controls.sha256}"]
    if controls.left_out:
        lines.append(f"{controls.left_out} left out: {controls.left_out_reason}")
    if controls.undeclared_range:
        lines.append(f"no range declared for {', '.join(controls.undeclared_range)}: wide inputs were not tried")
    return [*lines, *(terminal(note) for note in controls.notes)]
