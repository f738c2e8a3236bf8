"""The condition on sizes because of which torch.export refused a range, and the line of the user that asks for it."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from export_gate.wall.contract import ModelContract
from export_gate.wall.diagnosis import ExportGuard
from export_gate.wall.source import SourceLine
from export_gate.worker.controls.build import reference_sizes
from export_gate.worker.controls.search import EXHAUSTIVE, search_sizes
from export_gate.worker.export.branches import Guard, noted_in_dims
from export_gate.worker.export.guard_lines import GuardLine
from export_gate.worker.model.factory import Parameter
from export_gate.worker.process.failures import is_foreign_code, is_own, package_line, quoted_line

SIZES_KEPT = 64
"""More than a reader looks at."""


def refused_guard(
    noted: Sequence[GuardLine],
    contract: ModelContract,
    parameters: Sequence[Parameter],
    fixed: Mapping[str, int],
) -> Guard | None:
    """The condition that torch.export stumbled over; None if it noted none.

    A guard that only one declared size keeps comes first, since it is what makes a dim a constant; then one that some
    declared size breaks, then one that torch could only not prove.

    Args:
        noted: what torch noted while it traced.
        contract: of the model.
        parameters: of `forward`.
        fixed: dims that the export fixes.
    """
    guards = [in_one_dim(contract, guard, fixed) for guard in noted_in_dims(noted, contract, parameters)]
    kept = [_kept(guard, contract, fixed) for guard in guards]
    broken = [guard for guard, (count, total) in zip(guards, kept, strict=True) if count < total]
    fixing = [guard for guard, (count, total) in zip(guards, kept, strict=True) if count == 1 < total]
    # A bound that holds at every declared size is one that torch derives itself, so it is not what it stumbled over.
    return next(iter(fixing or broken or [guard for guard in guards if not _is_bound(guard)]), None)


def described(guard: Guard, contract: ModelContract, fixed: Mapping[str, int], roots: tuple[Path, ...]) -> ExportGuard:
    """What reports say of the condition: where it does not hold, and the lines of the project that lead to it."""
    count, total = _kept(guard, contract, fixed)
    return ExportGuard(
        holds=guard.holds,
        broken=guard.words if count < total else "",
        dims=guard.dims,
        sizes=breaking_sizes(contract, guard, fixed),
        source=line_of(guard, roots),
        foreign=_foreign_line_of(guard, roots),
        function=guard.line.function if guard.line else "",
    )


def sizes_that_hold(guard: Guard | None, contract: ModelContract) -> tuple[str, range] | None:
    """The dim of a condition, and the declared sizes around the reference at which it holds.

    None if it is about several dims or a dim of more than a million sizes, or holds everywhere or at less than half of
    the sizes.
    """
    if guard is None or len(guard.dims) != 1 or len(contract.dim(guard.dims[0]).sizes) > EXHAUSTIVE:
        return None
    dim, reference = contract.dim(guard.dims[0]), reference_sizes(contract)
    sizes = np.asarray(dim.sizes)
    broken = guard.is_broken({**reference, dim.name: sizes}, len(sizes))
    # From the reference both ways, up to the first size that breaks it: only sizes in one piece make a range.
    middle = dim.sizes.index(reference[dim.name])
    below, above = np.flatnonzero(broken[:middle]), np.flatnonzero(broken[middle:])
    held = dim.sizes[int(below[-1]) + 1 if below.size else 0 : middle + int(above[0]) if above.size else None]
    # A condition that few sizes meet fixes a value that is computed from the size, which no narrower range mends.
    return (dim.name, held) if len(sizes) // 2 < len(held) < len(sizes) else None


def in_one_dim(contract: ModelContract, guard: Guard, fixed: Mapping[str, int]) -> Guard:
    """The guard as `batch != 1` if one size of one dim is all that breaks it, whatever the others are.

    torch asks many things of shapes that come to no more than that, such as whether an expanded tensor is contiguous.
    """
    if len(guard.dims) == 1:
        return guard
    tuples = search_sizes(contract, fixed, guard.dims)
    broken = guard.is_broken(tuples, len(next(iter(tuples.values()))))
    for name in guard.dims:
        sizes = np.unique(tuples[name][broken])
        if len(sizes) == 1 and not broken.all() and np.array_equal(broken, tuples[name] == sizes[0]):
            holds = f"{name} != {sizes[0]}"
            code = compile(holds, "<guard>", "eval")
            return replace(guard, words=f"{name} == {sizes[0]}", holds=holds, dims=(name,), code=code)
    return guard


def breaking_sizes(contract: ModelContract, guard: Guard, fixed: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes of its one dim that break the guard, ascending."""
    if len(guard.dims) != 1:
        return ()
    tuples = search_sizes(contract, fixed, guard.dims)
    sizes = tuples[guard.dims[0]]
    return tuple(map(int, np.unique(sizes[guard.is_broken(tuples, len(sizes))])[:SIZES_KEPT]))


def line_of(guard: Guard, roots: tuple[Path, ...]) -> SourceLine | None:
    """The innermost line of the project's own code at which torch needed the guard."""
    frames = guard.line.frames if guard.line else ()
    return next((quoted_line(path, line) for path, line in frames if is_own(path, roots)), None)


def _foreign_line_of(guard: Guard, roots: tuple[Path, ...]) -> SourceLine | None:
    """The line of a package, other than torch, that the project's innermost line led to."""
    frames = guard.line.frames if guard.line else ()
    inner = list(itertools.takewhile(lambda frame: not is_own(frame[0], roots), frames))
    called = next((frame for frame in inner if is_foreign_code(frame[0])), None)
    return package_line(*called) if called and len(inner) < len(frames) else None


def _kept(guard: Guard, contract: ModelContract, fixed: Mapping[str, int]) -> tuple[int, int]:
    """How many declared sizes keep the guard, and how many there are."""
    tuples = search_sizes(contract, fixed, guard.dims)
    total = len(next(iter(tuples.values())))
    return total - int(guard.is_broken(tuples, total).sum()), total


def _is_bound(guard: Guard) -> bool:
    """Whether the condition compares one dim with a number."""
    condition = ast.parse(guard.holds, mode="eval").body
    sides = [condition.left, *condition.comparators] if isinstance(condition, ast.Compare) else [condition]
    return all(isinstance(side, (ast.Name, ast.Constant)) for side in sides) and len(guard.dims) == 1
