"""Run one control input through each form between eager and the runtime, to find the first form that differs.

Every form is made only when it is asked for, and in a forked copy of the process: it may crash or hang.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from export_gate.wall.contract import Target, Tolerance
from export_gate.wall.diagnosis import Answer, Rung, RungName
from export_gate.wall.equivalence import faults, worst_norm
from export_gate.worker.leaves.compare import compare_case
from export_gate.worker.leaves.values import Call, Leaf
from export_gate.worker.model.reference import Runner, module_runner
from export_gate.worker.process.failures import describe
from export_gate.worker.study.conversions import decomposed
from export_gate.worker.targets import TARGETS
from export_gate.worker.targets.base import Context
from export_gate.worker.targets.onnx import evaluator_runner

PROGRAM: tuple[RungName, ...] = ("exported-program",)
ONNX: tuple[RungName, ...] = ("exported-program", "file-unoptimised", "file", "decomposed", "reference-evaluator")
"""Those that say most for their price first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """How to make each form."""

    context: Context
    target: Target
    path: Path | None
    run: Runner
    """The artifact as it was verified."""

    @property
    def names(self) -> tuple[RungName, ...]:
        """The forms that this target has."""
        names = ONNX if self.target.kind == "onnx" else PROGRAM
        if self.target.kind == "exported-program":
            return ()
        has_program = self.context.program is not None
        return tuple(name for name in names if has_program or name not in ("exported-program", "decomposed"))

    def runner(self, name: RungName) -> Runner:
        """Make one form.

        Raises:
            Exception: it cannot be made.
        """
        match name:
            case "exported-program":
                return self._of_program(self.context.exported.program)
            case "decomposed":
                return self._of_program(self.decomposed())
            case "file-unoptimised":
                unoptimised = replace(self.target, options={**self.target.options, "optimization": "disable"})
                return TARGETS["onnx"].load(self.context, unoptimised, self.path).run
            case "file":
                return self.run
            case "reference-evaluator":
                assert self.path is not None
                return evaluator_runner(self.path, self.context.input_names)

    def decomposed(self) -> Any:
        """The program as the ONNX exporter decomposes it: as it did, or once more."""
        return decomposed(self.context, self.target)

    def _of_program(self, program: Any) -> Runner:
        # A copy, because the module shares its buffers with the program, which the next form is made of.
        return module_runner(copy.deepcopy(program.module()), self.context.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Climber:
    """One control input and what eager returned at it."""

    call: Callable[[], Call]
    expected: Sequence[Leaf]
    tolerance: Callable[[str], Tolerance]
    output: str
    """The output that is looked at; all of them where it is empty."""


def climb(forms: Forms, name: RungName, climber: Climber) -> Rung:
    """Run one form and compare it with eager."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = forms.runner(name)
    except Exception as error:  # noqa: BLE001 - whatever making it raises
        return Rung(name=name, answer="not-tried", message=describe(error)[:200])
    try:
        actual = run(climber.call())
    except Exception as error:  # noqa: BLE001 - whatever a form raises is its answer
        return Rung(name=name, answer="failed", message=describe(error)[:200])
    return _compared(name, actual, climber)


def _compared(name: RungName, actual: Sequence[Leaf], climber: Climber) -> Rung:
    result, tolerance = compare_case("", climber.expected, actual), climber.tolerance
    if result.structure is not None:
        return Rung(name=name, answer="differs", message="other outputs")
    own = [found for found in result.outputs if climber.output in ("", found.output)]
    wrong = [found for found in own if faults(found, tolerance(found.expected_dtype), "match")]
    answer: Answer = "differs" if wrong else "agrees"
    measured = [worst_norm(found, tolerance(found.expected_dtype)).measured for found in wrong if found.error_quantiles]
    dtype = own[0].actual_dtype if climber.output and own else ""
    return Rung(name=name, answer=answer, max_abs_diff=max(measured, default=None), dtype=dtype)


def selecting(program: Any) -> tuple[str, ...]:
    """Operators of a program that choose among values or round them, so that rounding can change the answer."""
    nodes = program.graph.nodes if program is not None else ()
    names = {_choice(node) for node in nodes if node.op == "call_function"}
    return tuple(sorted(names & {*CHOOSING, *QUANTISING, TRUNCATED}))


def _choice(node: Any) -> str:
    name = str(getattr(node.target, "_opname", ""))
    dtypes = [each for each in (*node.args, *node.kwargs.values()) if isinstance(each, torch.dtype)]
    is_cast = name in ("to", "_to_copy") and any(not each.is_floating_point for each in dtypes)
    return TRUNCATED if is_cast else name


TRUNCATED = "conversion to integers"
CHOOSING = ("argmax", "argmin", "topk", "sort", "argsort", "kthvalue", "median", "mode", "max", "min", "searchsorted")
QUANTISING = (
    "round", "fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine", "quantize_per_tensor", "floor",
    "ceil", "trunc", "frac", "floor_divide", "remainder", "fmod", "sign", "bucketize", "gt", "ge", "lt", "le",
)  # fmt: skip
"""At an exact step these do not depend on rounding; where eager's float64 result is another one they do."""
