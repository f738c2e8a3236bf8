"""Compare a kit's outputs with numpy, onnx and onnxruntime alone: torch is neither needed nor imported.

Runs every data set of the kit (as the driver has checked it) in ONNX Runtime and sends what it saw as events. The
driver judges.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from export_gate.wall.conformance import ONNX_FILE, DataSet, KitExport
from export_gate.wall.errors import UserError
from export_gate.wall.observation import Environment, Failure, Stage
from export_gate.wall.protocol import Event
from export_gate.wall.request import ReplayRequest
from export_gate.worker.process.channel import Channel

if TYPE_CHECKING:
    from export_gate.worker.leaves.values import Leaf
    from export_gate.worker.replay.kit_files import Expectation

PACKAGES = ("numpy", "onnx", "onnxruntime")
MESSAGE_CHARACTERS = 2000


@dataclass(slots=True, kw_only=True)
class Reporter:
    """Where the events of one export go."""

    channel: Channel
    target: str
    at: tuple[Stage, str] = ("load", "")
    """The stage and the control input that the work is at."""

    def go_to(self, stage: Stage, case: str = "") -> None:
        """Say where the work is, so that a death has a place."""
        self.at = (stage, case)
        self.channel.at(stage, target=self.target, case=case)

    def fail(self, error: BaseException) -> None:
        """Say what ONNX Runtime raised, and where."""
        stage, case = self.at
        failure = Failure(
            stage=stage,
            kind="exception",
            type=type(error).__name__,
            message=str(error)[:MESSAGE_CHARACTERS],
            case=case or None,
        )
        self.channel.fail(failure, target=self.target)


def replay(request: ReplayRequest, channel: Channel) -> None:
    """Run and compare the kit's data sets in this process."""
    problem = _unimportable() or _unavailable(request)
    if problem:
        channel.send(Event(op="unusable", value=problem))
        return
    model = request.kit.model
    channel.set("environment", _environment())
    channel.send(Event(op="started", model=model, value=os.getpid()))
    try:
        for export in request.kit.exports:
            _replay(export, request, Reporter(channel=replace(channel, model=model), target=export.key))
    except UserError as error:
        channel.send(Event(op="unusable", value=error.text))
        return
    channel.send(Event(op="ended", model=model))


def _replay(export: KitExport, request: ReplayRequest, reporter: Reporter) -> None:
    """Run and compare the data sets of one export, as far as ONNX Runtime goes."""
    # Imported here, because what they import may be missing, which `_unimportable` reports before.
    from export_gate.worker.onnx_file.session import open_session
    from export_gate.worker.replay.kit_files import check_graph, read_set

    path = Path(request.folder) / export.path(ONNX_FILE)
    check_graph(path, export, request)
    reporter.go_to("load")
    try:
        session = open_session(path, request.providers, request.kit.optimization)
    except Exception as error:  # noqa: BLE001 - whatever ONNX Runtime raises is an observation
        reporter.fail(error)
        return
    for data_set in export.data_sets:
        expected = read_set(data_set, export, request)
        reporter.go_to("run", data_set.case)
        try:
            actual = _run(session, expected.inputs, request)
        except Exception as error:  # noqa: BLE001 - as above
            reporter.fail(error)
            return
        _compare(data_set, expected, actual, request, reporter)


def _compare(
    data_set: DataSet, expected: Expectation, actual: list[Leaf], request: ReplayRequest, reporter: Reporter
) -> None:
    from export_gate.worker.leaves.compare import compare_case

    axis = next((o.tolerance.axis for o in request.kit.outputs if o.tolerance.axis is not None), None)
    ignored = {output.name for output in request.kit.outputs if not output.is_compared}
    left = [leaf for leaf in actual if leaf.name not in ignored]
    result = compare_case(data_set.case, expected.outputs, left, axis, expected.keep)
    reporter.channel.add("cases", result, target=reporter.target)


def _run(session: Any, inputs: list[Leaf], request: ReplayRequest) -> list[Leaf]:
    """Run the session on the inputs; its outputs under the contract's names."""
    from export_gate.worker.onnx_file.session import has_bfloat16

    names = {output.graph_name: output.name for output in request.kit.outputs}
    outputs = [value.name for value in session.get_outputs()]
    if has_bfloat16(session):
        made = session.run_with_ort_values(None, {leaf.name: _ortvalue(leaf) for leaf in inputs})
        return [_leaf_of(names.get(n, n), value) for n, value in zip(outputs, made, strict=True)]
    arrays = session.run(None, {leaf.name: leaf.value for leaf in inputs})
    return [_leaf(names.get(n, n), array) for n, array in zip(outputs, arrays, strict=True)]


def _ortvalue(leaf: Leaf) -> Any:
    import numpy as np
    import onnxruntime

    from export_gate.worker.onnx_file.session import BFLOAT16
    from export_gate.worker.onnx_file.tensors import narrow_bfloat16

    if leaf.dtype == "bfloat16" and leaf.value is not None:
        bits = narrow_bfloat16(leaf.value)
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, BFLOAT16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(leaf.value))


def _leaf_of(name: str, value: Any) -> Leaf:
    from export_gate.worker.leaves.values import Leaf
    from export_gate.worker.onnx_file.session import bfloat16_bits
    from export_gate.worker.onnx_file.tensors import widen_bfloat16

    if value.data_type() == "tensor(bfloat16)":
        return Leaf(name=name, dtype="bfloat16", value=widen_bfloat16(bfloat16_bits(value)))
    return _leaf(name, value.numpy())


def _leaf(name: str, array: Any) -> Leaf:
    """A leaf; it is not a number if the graph returns text, a sequence or a map."""
    from export_gate.wall.conformance import VALUES_DTYPES
    from export_gate.worker.leaves.values import Leaf

    dtype = str(getattr(array, "dtype", type(array).__name__))
    return Leaf(name=name, dtype=dtype, value=array if dtype in VALUES_DTYPES else None)


def _unimportable() -> str:
    """The packages to install, or why they cannot be imported; empty if all can."""
    problems = dict(_import_problems())
    if not problems:
        return ""
    reasons = "; ".join(f"{name} ({reason})" for name, reason in problems.items())
    return (
        f"{sys.executable} cannot import {reasons}: "
        f"install with `{sys.executable} -m pip install {' '.join(problems)}`, "
        "or name another interpreter with `--python` or EXPORT_GATE_PYTHON"
    )


def _import_problems() -> Iterator[tuple[str, str]]:
    for name in PACKAGES:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - a package can fail to import in any way
            is_missing = isinstance(error, ModuleNotFoundError) and error.name == name
            yield (
                name,
                "not installed" if is_missing else f"{type(error).__name__}: {' '.join(str(error).split())[:300]}",
            )


def _unavailable(request: ReplayRequest) -> str:
    import onnxruntime

    present = onnxruntime.get_available_providers()
    missing = [provider for provider in request.providers if provider not in present]
    if not missing:
        return ""
    return (
        f"provider {ascii(missing[0])[1:-1]} is not available: onnxruntime {onnxruntime.__version__} of "
        f"{sys.executable} has {', '.join(present)}"
    )


def _environment() -> Environment:
    return Environment(
        python=platform.python_version(),
        executable=sys.executable,
        platform=platform.platform(),
        cpu=platform.processor() or platform.machine(),
        versions={name: importlib.import_module(name).__version__ for name in PACKAGES},
    )
