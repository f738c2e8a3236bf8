"""Replay a kit: read it, run it, judge it, and format the lines for a terminal.

Each output of each data set is compared within the kit's own tolerances, in the same order as in `run`: structure,
dtype, shape, non-finite elements, values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from export_gate.kit.read import read_kit
from export_gate.kit.run import Seen, run_kit
from export_gate.rules.measure import Measurement, measure_leaf
from export_gate.rules.numbers import describe_fault
from export_gate.rules.structure_mismatch import describe_structure
from export_gate.rules.wording import first_line, place
from export_gate.run.interpreter import Interpreter, find_runtime
from export_gate.wall.conformance import MANIFEST, Kit, KitExport
from export_gate.wall.digest import digest_file
from export_gate.wall.observation import CaseResult, Environment, Failure
from export_gate.wall.request import ReplayRequest
from export_gate.wall.words import count, rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One kind of difference of an output, at its worst data set."""

    message: str
    occurrences: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The result of replaying a kit on this machine."""

    kit: Kit
    sha256: str
    """SHA-256 of kit.json, which contains the digest of every other file."""
    python: Interpreter
    environment: Environment | None
    providers: tuple[str, ...]
    conforming: int
    """Data sets that conform in every output."""
    differences: tuple[Difference, ...]
    closest: str
    """The output that is closest to its tolerance; empty if all are exact or none could be compared."""

    @property
    def exit_code(self) -> int:
        """0 if every data set was run and conforms."""
        # Both, because a data set without a result may leave no difference behind.
        return 0 if self.conforming == self.kit.cases and not self.differences else 1


def replay(folder: Path, providers: Sequence[str], python: str | None, environment: Mapping[str, str]) -> Replay:
    """Check the kit's files, run its data sets in ONNX Runtime and compare.

    Raises:
        UserError: the kit is malformed or was changed, or the interpreter cannot replay it.
        GateError: the worker broke down.
    """
    kit = read_kit(folder)
    found = find_runtime(python, environment)
    request = ReplayRequest(folder=str(folder.resolve()), kit=kit, providers=tuple(providers))
    seen = run_kit(request, found.path, environment)
    results = list(_results(kit, seen))
    leaves = [leaf for result in results for leaf in _leaves(kit, result)]
    return Replay(
        kit=kit,
        sha256=digest_file(folder / MANIFEST),
        python=found,
        environment=seen.environment,
        providers=request.providers,
        conforming=sum(_conforms(kit, result) for result in results),
        differences=(*_failures(kit, seen), *_structures(kit, seen), *_faults(kit, leaves)),
        closest=_closest(leaves),
    )


def report(replayed: Replay) -> list[str]:
    """The lines for a terminal, with the verdict last."""
    kit = replayed.kit
    lines = []
    for difference in replayed.differences:
        more = f" (and {count(difference.occurrences - 1, 'more data set')})" if difference.occurrences > 1 else ""
        lines.append(f"{difference.message}{more}")
    if replayed.closest:
        lines.append(f"closest to its tolerance: {replayed.closest}")
    lines.append(_origin(replayed))
    if not kit.verified:
        lines.append("the model was NOT verified when the kit was written")
    versions = replayed.environment.versions if replayed.environment else {}
    runtime = f"onnxruntime {versions.get('onnxruntime', 'of an unknown version')} ({', '.join(replayed.providers)})"
    verdict = "conforms" if replayed.exit_code == 0 else "does NOT conform"
    lines.append(f"{kit.model} {verdict}: {replayed.conforming} of {count(kit.cases, 'data set')} in {runtime}")
    return lines


def _origin(replayed: Replay) -> str:
    kit = replayed.kit
    commit, _, changed = (kit.revision or "").partition("-")
    revision = f" at {commit[:10]}{' with uncommitted changes' * bool(changed)}" if commit else ""
    return (
        f"kit of export-gate {kit.tool_version}{revision}, torch {kit.versions.get('torch', 'unknown')}: config "
        f"{kit.config_sha256[:12]}, control set {kit.controls_sha256[:12]}, kit.json {replayed.sha256[:12]}"
    )


def _results(kit: Kit, seen: Seen) -> Iterator[CaseResult]:
    """The results of the kit's data sets, in their order."""
    for export in kit.exports:
        # Not strict: an export that failed early has fewer results.
        for data_set, result in zip(export.data_sets, seen.cases.get(export.key, []), strict=False):
            if result.case == data_set.case:
                yield result


def _conforms(kit: Kit, result: CaseResult) -> bool:
    names = [output.name for output in kit.numbers if output.is_compared]
    is_complete = result.structure is None and [found.output for found in result.outputs] == names
    return is_complete and not any(leaf.faults for leaf in _leaves(kit, result))


def _leaves(kit: Kit, result: CaseResult) -> tuple[Measurement, ...]:
    promised = {output.name: output for output in kit.outputs}
    return tuple(
        measure_leaf(result.case, found, promised[found.output].tolerance, promised[found.output].nonfinite)
        for found in (() if result.structure else result.outputs)
    )


def _failures(kit: Kit, seen: Seen) -> Iterator[Difference]:
    for export in kit.exports:
        failure = seen.failures.get(export.key)
        missing = len(export.data_sets) - len(seen.cases.get(export.key, []))
        if failure is not None:
            where = place(kit.model, kit.target, case=failure.case, at=_variant(export))
            yield Difference(message=f"{where}: {failure.stage} failed: {_what(failure)}")
        elif missing:
            where = place(kit.model, kit.target, at=_variant(export))
            yield Difference(message=f"{where}: no result of {count(missing, 'data set')}")


def _variant(export: KitExport) -> str | None:
    return export.folder or None


def _what(failure: Failure) -> str:
    return f"{failure.type}: {first_line(failure.message)}"


def _structures(kit: Kit, seen: Seen) -> Iterator[Difference]:
    odd = [result for result in _results(kit, seen) if result.structure]
    if odd and odd[0].structure:
        message = f"{place(kit.model, kit.target, case=odd[0].case)}: {describe_structure(odd[0].structure)}"
        yield Difference(message=message, occurrences=len(odd))


def _faults(kit: Kit, leaves: Sequence[Measurement]) -> Iterator[Difference]:
    """One difference for each output and kind of fault, at its worst data set."""
    grouped: dict[tuple[str, str], list[Measurement]] = {}
    for leaf in leaves:
        if leaf.fault:
            grouped.setdefault((leaf.output, leaf.fault), []).append(leaf)
    for (output, _), faults in grouped.items():
        worst = max(faults, key=lambda fault: fault.excess)
        where = place(kit.model, kit.target, output, worst.case)
        yield Difference(message=f"{where}: {describe_fault(worst)}", occurrences=len(faults))


def _closest(leaves: Sequence[Measurement]) -> str:
    compared = [(leaf.norm, leaf) for leaf in leaves if leaf.norm and not leaf.is_exact]
    if not compared:
        return ""
    norm, leaf = max(compared, key=lambda each: each[0].ratio)
    values = f"max |P-M| {rounded(norm.measured)} of {rounded(norm.allowed)}"
    return f"output {leaf.output!r}, case {leaf.case}: {values}" if norm.measured else ""
