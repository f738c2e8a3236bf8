"""Build the control set of a contract: named, seeded, hashed, limited."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from export_gate.wall.contract import ModelContract
from export_gate.worker.controls.data import FileCases, data_cases
from export_gate.worker.controls.function import function_cases
from export_gate.worker.controls.generate import generated_cases, main_family, values_at
from export_gate.worker.controls.golden import golden_cases
from export_gate.worker.controls.intervals import is_undeclared
from export_gate.worker.controls.record import ControlCase, ControlSet
from export_gate.worker.controls.sizes import Sizes, plan_sizes, reference_sizes
from export_gate.worker.controls.specs import is_integer, tensor_leaves
from export_gate.worker.leaves.values import Call, Values, flatten
from export_gate.worker.model.factory import Parameter, bind

__all__ = ["build_control_set", "digest", "reference_call", "reference_sizes", "reference_values", "values_at"]


def build_control_set(contract: ModelContract, base: Path) -> ControlSet:
    """The control set of a model, those inputs first that catch most.

    Order: plain draws at boundary sizes, then what the project itself hands in (golden, function, data), then all
    other generated inputs.

    Args:
        contract: Its modules must be importable: `pythonpath` is already on sys.path.
        base: Folder that relative paths start from.

    Raises:
        UserError: a data file, golden file or function is not what the contract says.
    """
    plan = plan_sizes(contract)
    files = _files(contract, base)
    own = [case for file in files if file.cases and file.cases[0].group == "golden" for case in file.cases]
    own += function_cases(contract, base)
    own += [case for file in files if file.cases and file.cases[0].group == "data" for case in file.cases]
    # Both are iterators, but `_unique` reads them to the end: what is left out is counted.
    first, further = generated_cases(contract, plan)
    cases = _unique([*first, *own, *further])
    limit = contract.controls.limit
    left_out = max(len(cases) - limit, 0)
    undeclared = [(path, spec) for path, spec in tensor_leaves(contract) if is_undeclared(spec)]
    return ControlSet(
        cases=cases[:limit],
        left_out=left_out,
        left_out_reason=f"beyond controls.limit of {limit} cases" if left_out else "",
        undeclared_range=tuple(path for path, spec in undeclared if not is_integer(spec)),
        undeclared_integers=tuple(path for path, spec in undeclared if is_integer(spec)),
        notes=tuple(note for file in files for note in file.notes),
    )


def reference_values(contract: ModelContract, sizes: Sizes) -> Values:
    """The example input for torch.export: the plainest draw at these sizes."""
    return values_at(contract, sizes, main_family(contract), 1)


def reference_call(
    contract: ModelContract, parameters: Sequence[Parameter], fixed: Mapping[str, int] = MappingProxyType({})
) -> Call:
    """The example call for torch.export, with fresh values at the reference sizes, but for dims that are `fixed`."""
    return bind(reference_values(contract, {**reference_sizes(contract), **fixed}), parameters)


def digest(cases: Iterable[ControlCase]) -> str:
    """sha256 over the names, and each tensor's name, dtype, shape and bytes, in order; all NaNs count alike."""
    total = hashlib.sha256()
    for case in cases:
        total.update(f"{case.name}\n".encode())
        for leaf in flatten(case.make()):
            if leaf.value is not None:
                total.update(f"{leaf.name} {leaf.dtype} {list(leaf.value.shape)}\n".encode())
                total.update(_plain_bytes(leaf.value))
    return total.hexdigest()


def _plain_bytes(values: npt.NDArray[Any]) -> bytes:
    """Little-endian bytes with one NaN for all: its payload is the platform's."""
    if values.dtype.kind in "fc":
        values = np.where(np.isnan(values), np.array(np.nan, dtype=values.dtype), values)
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def _files(contract: ModelContract, base: Path) -> list[FileCases]:
    golden = [golden_cases(contract, base, number) for number in range(len(contract.controls.golden))]
    return golden + [data_cases(contract, base, number) for number in range(len(contract.controls.data))]


def _unique(cases: Sequence[ControlCase]) -> tuple[ControlCase, ...]:
    """Cases with the second and later bearers of a name renamed `name~2`, ...; generated repeats are dropped."""
    seen: dict[str, int] = {}
    kept: list[ControlCase] = []
    for case in cases:
        times = seen[case.name] = seen.get(case.name, 0) + 1
        if times == 1:
            kept.append(case)
        # A generated name says all about its values, so a second one is the same input.
        elif case.group != "generated":
            kept.append(replace(case, name=re.sub(r"(?=@)|$", f"~{times}", case.name, count=1)))
    return tuple(kept)
