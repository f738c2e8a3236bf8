"""Find the node that makes an output differ: which graph to look at, and what to compare it with."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from export_gate.wall.diagnosis import Inspection
from export_gate.wall.nodes import NodeTrace
from export_gate.worker.controls.build import reference_call
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.export.program import export_program
from export_gate.worker.leaves.values import Call
from export_gate.worker.model.factory import bind
from export_gate.worker.nodes.eager_trace import EagerTrace
from export_gate.worker.nodes.file import FileGraph
from export_gate.worker.nodes.file_trace import FileTrace
from export_gate.worker.nodes.program import prepared
from export_gate.worker.onnx_file.session import renamed_outputs
from export_gate.worker.study.laboratory import Laboratory
from export_gate.worker.study.rungs import Forms

TRACED = ("onnx", "exported-program", "pt2")
"""Kinds of target whose graph can be looked into."""


@dataclass(slots=True, kw_only=True)
class Tracer:
    """Looks into one target's graph; what it makes is kept for the next output."""

    forms: Forms
    laboratory: Laboratory
    separate: Mapping[str, int]
    """Sizes that this export fixes."""
    roots: tuple[Path, ...]
    """Folders of the project's own code."""
    files: dict[str, FileTrace] = field(default_factory=dict)
    """By optimisation."""
    program: Any = None

    def inspect(self, output: str, case: ControlCase, *, strict_dtype: bool) -> Inspection:
        """The trace of one output; none if a graph cannot be looked into, whatever the reason."""
        found = None
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traces = self._traces(output, case, strict_dtype=strict_dtype)
            found = next((trace for trace in traces if trace is not None), None)
        return Inspection(output=output, case=case.name, trace=found)

    def _traces(self, output: str, case: ControlCase, *, strict_dtype: bool) -> Iterator[NodeTrace | None]:
        """Compare the file with its program, the program with eager, and the file as ONNX Runtime changes it."""
        # Unoptimised first: what is wrong only afterwards is an optimisation's fault.
        if self.forms.target.kind == "onnx":
            yield self._of_file("disable", output, case, strict_dtype=strict_dtype)
        # A place, because the program's outputs are flat and have no names of the contract.
        at = [leaf.name for leaf in self.forms.context.outputs].index(output)
        beside = EagerTrace(program=self._exported(), roots=self.roots)
        self.laboratory.again(case.make())  # makes the instance, and refuses other weights than eager had
        assert self.laboratory.eager is not None
        yield beside.trace(lambda: self._call(case), self.laboratory.eager, at, strict_dtype=strict_dtype)
        if self.forms.target.kind == "onnx":
            optimization = self.forms.target.option("optimization", str)
            yield self._of_file(optimization, output, case, strict_dtype=strict_dtype)

    def _of_file(self, optimization: str, output: str, case: ControlCase, *, strict_dtype: bool) -> NodeTrace | None:
        traced = self.files.get(optimization) or self._opened(optimization)
        self.files[optimization] = traced
        graph_names = {own: name for name, own in renamed_outputs(traced.graph.model).items()}
        return traced.trace(case.name, self._call(case), graph_names.get(output, output), strict_dtype=strict_dtype)

    def _opened(self, optimization: str) -> FileTrace:
        path, context = self.forms.path, self.forms.context
        assert path is not None
        given = context.program is None
        return FileTrace(
            program=prepared(self._exported()) if given else self.forms.decomposed(),
            graph=FileGraph.read(path),
            input_names=context.input_names,
            providers=self.forms.target.option("providers", tuple),
            roots=self.roots,
            optimization=optimization,
        )

    def _exported(self) -> Any:
        """The program under check; for a file that was handed in the one that it should have been made from."""
        if self.forms.target.kind == "pt2" and self.forms.path is not None:
            self.program = self.program or torch.export.load(self.forms.path)
        if self.program is None:
            known = self.forms.context.program
            self.program = self._fresh() if known is None else known.program
        return self.program

    def _fresh(self) -> Any:
        # What eager compiled of `torch.cond` would be used inside the export, which fails (torch 2.13).
        torch.compiler.reset()
        contract, parameters = self.forms.context.contract, tuple(self.laboratory.parameters)
        call = reference_call(contract, parameters, self.separate)
        return export_program(self.laboratory.factory(), call, contract, parameters, self.separate).program

    def _call(self, case: ControlCase) -> Call:
        return bind(case.make(), self.laboratory.parameters)
