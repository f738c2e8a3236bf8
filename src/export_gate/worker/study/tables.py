"""Take the range of an undeclared integer input from the length of the table that it indexes, if it indexes one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from export_gate.wall.contract import ModelContract, TensorSpec
from export_gate.wall.inputs import with_tensors
from export_gate.worker.controls.build import reference_sizes, reference_values
from export_gate.worker.controls.intervals import is_undeclared
from export_gate.worker.controls.layout import tensors_of
from export_gate.worker.controls.specs import is_integer, tensor_leaves
from export_gate.worker.model.factory import bind
from export_gate.worker.model.reference import module_runner
from export_gate.worker.model.tables import TableLengths
from export_gate.worker.process.stages import Desk
from export_gate.worker.study.subject import Subject


def with_table_ranges(subject: Subject, desk: Desk) -> tuple[Subject, tuple[str, ...]]:
    """The subject with the ranges that tables give, and a note on each; as it is where nothing is missing.

    With 0 and 1 alone, which is what an undeclared integer gets, any other row of a table could be wrong.
    """
    missing = [path for path, spec in tensor_leaves(subject.contract) if is_integer(spec) and is_undeclared(spec)]
    if not missing:
        return subject, ()
    # Forward runs here, which may hang or crash.
    desk.channel.at("eager")
    lengths = {path: length for path, length in _lengths(subject).items() if path in missing and length > 0}
    contract = with_ranges(subject.contract, {path: (0, length - 1) for path, length in lengths.items()})
    notes = tuple(
        f"input {path} has no declared range: 0..{length - 1} is taken from the table that it indexes"
        for path, length in lengths.items()
    )
    return replace(subject, contract=contract), notes


def with_ranges(contract: ModelContract, ranges: Mapping[str, tuple[float, float]]) -> ModelContract:
    """The contract with these ranges at the tensor leaves of those paths."""

    def ranged(path: str, spec: TensorSpec) -> TensorSpec:
        return replace(spec, range=ranges[path]) if path in ranges else spec

    return replace(contract, inputs=with_tensors(contract.inputs, ranged))


def _lengths(subject: Subject) -> dict[str, int]:
    """The lengths, from one watched forward on a twin; nothing if eager refuses it, which its references will show."""
    contract = subject.contract
    try:
        module = subject.twin()
        values = reference_values(contract, reference_sizes(contract))
        watch = TableLengths(module, tensors_of(values))
        run = module_runner(module, {})
        with watch:
            run(bind(values, subject.parameters))
    except (Exception, SystemExit):  # noqa: BLE001 - as said above
        return {}
    return watch.found
