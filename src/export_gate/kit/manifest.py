"""Build a kit's manifest from a judged run and the files that its worker wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from export_gate.kit.files import describe_file, list_files
from export_gate.outcome.judging import Outcome
from export_gate.rules.measure import Measured, nonfinite_policy
from export_gate.wall.codec import encode
from export_gate.wall.conformance import KIT_SCHEMA, MANIFEST, VALUES_DTYPES, Kit, KitData, KitFile, KitOutput
from export_gate.wall.contract import TargetName
from export_gate.wall.errors import GateError
from export_gate.wall.observation import ModelObservation, OutputLeaf
from export_gate.wall.tolerance import resolve_tolerance


def describe_kit(outcome: Outcome, written: Sequence[KitData], folder: Path, *, verified: bool) -> Kit:
    """The manifest of the files in the folder.

    Raises:
        GateError: an artifact in the folder is not the one that was verified.
    """
    results, (measured,) = outcome.results, outcome.judgement.measured
    contract, seen = measured.contract, measured.observation
    environment = results.run.environment
    if environment is None or seen.controls is None:
        raise GateError(f"{contract.name}: the worker reported neither the environment nor the control set")
    onnx = next(target for target in contract.targets if target.kind == "onnx")
    options: Any = onnx.options
    files = {name: describe_file(folder / name) for name in list_files(folder)}
    _require_verified_files(seen, files)
    return Kit(
        schema_version=KIT_SCHEMA,
        tool_version=results.tool_version,
        model=contract.name,
        target=onnx.name,
        verified=verified,
        revision=results.head,
        config_sha256=results.config_sha256,
        controls_sha256=seen.controls.sha256,
        platform=environment.platform,
        cpu=environment.cpu,
        python=environment.python,
        versions=environment.versions,
        providers=options["providers"],
        optimization=options["optimization"],
        outputs=tuple(_output(measured, onnx.name, leaf, written) for leaf in seen.outputs),
        exports=tuple(data.export for data in written),
        files=files,
    )


def write_manifest(kit: Kit, folder: Path) -> None:
    """Write kit.json; equal kits give equal bytes."""
    text = json.dumps(encode(kit), indent=1, allow_nan=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def _output(measured: Measured, target: TargetName, leaf: OutputLeaf, written: Sequence[KitData]) -> KitOutput:
    contract = measured.contract
    graph_names = written[0].graph_names
    is_python = any(leaf.name in data.python for data in written)
    return KitOutput(
        name=leaf.name,
        graph_name=graph_names.get(leaf.name, leaf.name),
        dtype=leaf.dtype,
        python=is_python and leaf.dtype in VALUES_DTYPES,
        tolerance=resolve_tolerance(contract, target, _compared_dtype(measured, target, leaf)),
        nonfinite=nonfinite_policy(contract, measured.observation, leaf.name),
        is_compared=not any(output.name == leaf.name and output.leaf == "ignore" for output in contract.outputs),
    )


def _compared_dtype(measured: Measured, target: TargetName, leaf: OutputLeaf) -> str:
    """The dtype used when ONNX Runtime's output was compared: a Python float may count as float32."""
    compared = (found.comparison.expected_dtype for found in measured.of(target) if found.output == leaf.name)
    return next(compared, leaf.dtype)


def _require_verified_files(seen: ModelObservation, files: dict[str, KitFile]) -> None:
    # By content, because files have other names in a kit.
    copied = {file.sha256 for file in files.values()}
    for artifact in (target.artifact for target in seen.targets if target.artifact):
        for name, sha256 in (artifact.files or {artifact.path: artifact.sha256}).items():
            if sha256 not in copied:
                raise GateError(f"{name}: changed after its verification and before its copy into the kit")
