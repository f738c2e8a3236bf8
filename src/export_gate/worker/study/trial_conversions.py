"""Try other ways to convert a program after the target's own failed or made a wrong file: what is known to help."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Union

import torch

from export_gate.wall.contract import Target, Tolerance
from export_gate.wall.diagnosis import MODEL_SWITCHES, Answer, ConversionTrial, Inspection, RungName
from export_gate.wall.nodes import GuiltyNode
from export_gate.worker.controls.build import reference_call
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.export.program import Exported, export_program
from export_gate.worker.leaves.compare import agree
from export_gate.worker.model.factory import Parameter, bind
from export_gate.worker.model.reference import Reference, Runner, without_ignored
from export_gate.worker.process.collection import uncollected
from export_gate.worker.process.isolated import Isolated
from export_gate.worker.study.allowance import Allowance
from export_gate.worker.study.excuses import excuse
from export_gate.worker.study.masks import Masks
from export_gate.worker.targets import TARGETS
from export_gate.worker.targets.base import Context
from export_gate.worker.targets.onnx_opset import LOWEST_WRITTEN

NEWEST_OPSET = 23
"""The newest one that torch's exporter writes (torch 2.13)."""
WAYS: tuple[tuple[str, Union[bool, int]], ...] = (("decompose", True), ("optimize", False), ("opset", NEWEST_OPSET))
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
    masks: Masks
    factory: Callable[[], torch.nn.Module]
    separate: dict[str, int]
    """Sizes that this export fixes."""
    allowance: Allowance
    stopped_at: GuiltyNode | None = None
    """The node that could not be converted."""

    def trials(self, least_s: float, *, with_switches: bool = False) -> tuple[ConversionTrial, ...]:
        """Each way that the target does not go already, up to the first that works.

        Each is tried in a forked copy of the process, within the allowance for experiments.

        Args:
            least_s: how long the experiments on this model may take at least.
            with_switches: whether the model's own choices of kernels are among them.
        """
        if self.target.kind != "onnx" or not self.allowance.left_of(least_s):
            return ()
        # Where the program converts, the exporter's optimisations are the likeliest to have changed its values: torch
        # takes out `+ 1e-9`, for example (torch 2.13).
        order = WAYS if with_switches else sorted(WAYS, key=lambda way: way[0] != "optimize")
        ways = [ConversionTrial(option=o, value=v) for o, v in order if self._is_new(o, v)]
        if with_switches:
            switches = [ConversionTrial(option=switch, value=plain) for switch, plain in MODEL_SWITCHES.items()]
            # No option of the converter knows a package's own operator, and a large model has time for few trials.
            is_custom = self.stopped_at is not None and not self.stopped_at.operator.startswith(("aten.", "prims."))
            ways = [*switches, *ways] if is_custom else [*ways, *switches]
        found: list[ConversionTrial] = []
        with self.allowance.spending():
            deadline = time.monotonic() + self.allowance.left_of(least_s)
            for way in ways:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or (found and found[-1].answer == "agrees"):
                    break
                # Made here: a copy that is killed at its limit would leave its folder behind, with the weights in it.
                with tempfile.TemporaryDirectory(prefix="export-gate-") as folder:
                    isolated = Isolated(
                        kind=ConversionTrial,
                        call=partial(self._tried, Path(folder)),
                        died=lambda trial, _: trial,
                        limit_s=max(left_s, 1.0),
                    )
                    found += isolated.each((way,))
        return tuple(trial for trial in found if trial.answer != "not-tried")

    def _is_new(self, option: str, value: Union[bool, int]) -> bool:
        asked = self.target.options[option]
        # An older opset was asked for on purpose.
        is_old = option == "opset" and asked is not None and self.target.option("opset", int) < LOWEST_WRITTEN
        return asked != value and not is_old

    def _tried(self, folder: Path, trial: ConversionTrial) -> ConversionTrial:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with torch.no_grad():  # as the program was exported
                    run = self._converted(trial, folder)
            except Exception:  # noqa: BLE001 - whatever the converter makes of it
                return replace(trial, answer="refused")
            if run is None:
                return trial
            asked = [case for case in self.cases if case.name in self.references][:COMPARED]
            agrees = bool(asked) and all(self._agrees(case, run) for case in asked)
        return replace(trial, answer="agrees" if agrees else "differs", inputs=len(asked))

    def _converted(self, trial: ConversionTrial, folder: Path) -> Runner | None:
        """What the trial makes, ready to run; None if it is not one for this model."""
        context, target = replace(self.context, folder=folder, kept={}), self.target
        if trial.option in MODEL_SWITCHES:
            program = self._with_plain(trial.option)
            if program is None:
                return None
            context = replace(context, program=program)
        else:
            target = replace(target, options={**target.options, trial.option: trial.value})
        module = TARGETS[target.kind]
        return module.load(context, target, module.convert(context, target)).run

    def _with_plain(self, switch: str) -> Exported | None:
        """The export of an instance with plain operators; None if there is no such switch, or nothing to switch."""
        model = self.factory()
        parts = [part for part in model.modules() if callable(getattr(part, f"set_{switch}", None))]
        others = [part for part in parts if _chosen(part, switch) not in (MODEL_SWITCHES[switch], "None", "")]
        if not others:
            return None
        for part in others:
            getattr(part, f"set_{switch}")(MODEL_SWITCHES[switch])
        contract = self.context.contract
        call = reference_call(contract, self.parameters, self.separate)
        with uncollected():
            exported = export_program(model, call, contract, tuple(self.parameters), self.separate)
        # A conversion takes longer than all before it.
        if self.stopped_at and any(str(n.target) == self.stopped_at.operator for n in exported.program.graph.nodes):
            raise ValueError(f"{self.stopped_at.operator} is still there")
        return exported

    def _agrees(self, case: ControlCase, run: Runner) -> bool:
        try:
            actual = without_ignored(run(bind(case.make(), self.parameters)), self.context.contract.outputs)
        except Exception:  # noqa: BLE001 - whatever a runtime raises
            return False
        expected = self.references[case.name].leaves
        if agree(expected, actual, self.tolerance):
            return True
        shapes = {leaf.name: leaf.value.shape for leaf in expected if leaf.value is not None}
        found = {name: excuse(name, shape, case, self.masks) for name, shape in shapes.items()}
        kept = {name: ~excused.dropped for name, excused in found.items() if excused is not None}
        return bool(kept) and agree(expected, actual, self.tolerance, kept)


def converted_wrong(found: Sequence[Inspection]) -> tuple[str, ...]:
    """The inputs at which a file is wrong, whatever runs it, and the program that it was made from is right."""
    return tuple(each.case for each in found if _is_wrong({rung.name: rung.answer for rung in each.rungs}))


def _is_wrong(answers: Mapping[RungName, Answer]) -> bool:
    # If the evaluator computes it rightly, the file is right: another file would not help the runtime.
    is_right = answers.get("exported-program") == "agrees" and answers.get("reference-evaluator") != "agrees"
    return is_right and answers.get("file-unoptimised") in ("differs", "failed")


def _chosen(part: torch.nn.Module, switch: str) -> str:
    return str(getattr(getattr(part, "config", None), f"_{switch}", ""))
