"""Check eager's recorded outputs against declarations other than those of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from export_gate.rules.refusals import RAISED
from export_gate.wall.contract import ModelContract, Output
from export_gate.wall.observation import ModelObservation, OutputLeaf, PromiseBroken
from export_gate.wall.promises import broken_promises, leaf_promises


def held_again(contract: ModelContract, observation: ModelObservation) -> ModelObservation:
    """The observation with the promises that eager breaks under this contract, in place of the recorded ones.

    Names, number and dtypes are those of the first control input that eager took, shapes those of every one that was
    compared. What eager raised stays.
    """
    raised = tuple(promise for promise in observation.broken if RAISED.match(promise.message))
    # Without outputs nothing was seen that another promise could be compared with.
    if not observation.outputs and (observation.failure or observation.problem):
        return observation
    outputs = _under_recorded_names(contract.outputs, observation.outputs)
    return replace(observation, broken=(*raised, *_broken(outputs, observation, {promise.case for promise in raised})))


def unobserved_dims(contract: ModelContract, observation: ModelObservation) -> list[str]:
    """Dims of the outputs' shapes that have no recorded size at some control input."""
    named = {dim for output in contract.outputs for size in output.shape or () for dim in size.factors}
    return sorted({dim for member in observation.control_inputs for dim in named - member.sizes.keys()})


def _under_recorded_names(outputs: Sequence[Output], leaves: Sequence[OutputLeaf]) -> tuple[Output, ...]:
    """The declarations, renamed by position if none of their names is a leaf's, as the worker does when it observes."""
    found = [leaf.name for leaf in leaves]
    if len(outputs) != len(found) or {output.name for output in outputs} & set(found):
        return tuple(outputs)
    return tuple(replace(output, name=name) for output, name in zip(outputs, found, strict=True))


def _broken(outputs: Sequence[Output], observation: ModelObservation, refused: set[str]) -> Iterator[PromiseBroken]:
    taken = [member for member in observation.control_inputs if member.name not in refused]
    compared = _compared(observation)
    declared = {output.name: output for output in outputs}
    for place, member in enumerate(taken):
        messages = list(broken_promises(observation.outputs, outputs, member.sizes)) if place == 0 else []
        # At the first input eager's outputs themselves were recorded, at the others only what was compared.
        for leaf in compared.get(member.name, ()) if place else ():
            messages += leaf_promises(leaf, declared[leaf.name], member.sizes) if leaf.name in declared else []
        for message in messages:
            yield PromiseBroken(case=member.name, message=message)


def _compared(observation: ModelObservation) -> dict[str, dict[OutputLeaf, None]]:
    """Control input -> what eager returned there, as far as it was compared."""
    found: dict[str, dict[OutputLeaf, None]] = {}
    dtypes = {leaf.name: leaf.dtype for leaf in observation.outputs}
    for case in (case for target in observation.targets for case in target.cases):
        for leaf in case.outputs:
            # A comparison may count a Python float as float32: the dtype is what eager itself returned.
            dtype = dtypes.get(leaf.output, leaf.expected_dtype)
            seen = OutputLeaf(name=leaf.output, dtype=dtype, shape=leaf.expected_shape)
            found.setdefault(case.case, {})[seen] = None
    return found
