"""Try other ways to convert a program after the target's own failed: what is known to help."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from export_gate.wall.contract import Target, Tolerance
from export_gate.wall.diagnosis import ConversionTrial
from export_gate.wall.equivalence import first_fault
from export_gate.wall.observation import Failure
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.leaves.compare import compare_case
from export_gate.worker.model.factory import Parameter, bind
from export_gate.worker.model.reference import Reference, Runner
from export_gate.worker.process.isolated import Isolated
from export_gate.worker.study.allowance import MOST_S, Allowance
from export_gate.worker.targets import TARGETS
from export_gate.worker.targets.base import Context

WAYS: tuple[tuple[str, bool], ...] = (("decompose", True), ("optimize", False))
"""Options of an ONNX target, in the order in which they help most often."""
COMPARED = 8
"""Control inputs at which the file of a trial is compared with eager."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converter:
    """What a trial converts, and what its file is compared with."""

    context: Context
    target: Target
    parameters: Sequence[Parameter]
    cases: Sequence[ControlCase]
    references: Mapping[str, Reference]
    tolerance: Callable[[str], Tolerance]
    allowance: Allowance

    def trials(self, failure: Failure) -> tuple[ConversionTrial, ...]:
        """Each way that the target does not go already, up to the first that works; none where none can help.

        Each is tried in a forked copy of the process, within the allowance for experiments.
        """
        if self.target.kind != "onnx" or failure.kind != "exception" or not self.allowance.left_of(MOST_S):
            return ()
        ways = [ConversionTrial(option=o, value=v) for o, v in WAYS if self.target.options[o] != v]
        found: list[ConversionTrial] = []
        with self.allowance.spending():
            deadline = time.monotonic() + self.allowance.left_of(MOST_S)  # nothing else follows a failed conversion
            for way in ways:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or (found and found[-1].answer == "agrees"):
                    break
                isolated = Isolated(
                    kind=ConversionTrial, call=self._tried, died=lambda trial, _: trial, limit_s=max(left_s, 1.0)
                )
                found += isolated.each((way,))
        return tuple(trial for trial in found if trial.answer != "not-tried")

    def _tried(self, trial: ConversionTrial) -> ConversionTrial:
        target = replace(self.target, options={**self.target.options, trial.option: trial.value})
        module = TARGETS[target.kind]
        with tempfile.TemporaryDirectory(prefix="export-gate-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            context = replace(self.context, folder=Path(folder), kept={})
            try:
                with torch.no_grad():  # as the program was exported
                    path = module.convert(context, target)
                run = module.load(context, target, path).run
            except Exception:  # noqa: BLE001 - whatever the converter makes of it
                return replace(trial, answer="refused")
            asked = [case for case in self.cases if case.name in self.references][:COMPARED]
            agrees = bool(asked) and all(self._agrees(case, run) for case in asked)
        return replace(trial, answer="agrees" if agrees else "differs", inputs=len(asked))

    def _agrees(self, case: ControlCase, run: Runner) -> bool:
        try:
            actual = run(bind(case.make(), self.parameters))
        except Exception:  # noqa: BLE001 - whatever a runtime raises
            return False
        compared = compare_case(case.name, self.references[case.name].leaves, actual)
        return compared.structure is None and not any(
            first_fault(output, self.tolerance(output.expected_dtype), "match") for output in compared.outputs
        )
