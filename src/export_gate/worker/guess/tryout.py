"""Find the first combination of guesses that the model takes, and how far its dims go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from export_gate.wall.contract import Bound, Dim, Size
from export_gate.wall.description import Found
from export_gate.worker.controls.sizes import Sizes
from export_gate.worker.guess.bench import LARGEST, Bench, make_dims
from export_gate.worker.guess.edits import Case, Options, dims_of, fixed, leaves_of, specs_of, with_known_bounds
from export_gate.worker.guess.layers import BATCH, EDGES, NODES, SEQ
from export_gate.worker.guess.mend import mended, sorted_lengths
from export_gate.worker.guess.outputs import FIRST, SECOND, confirmed, find_outputs
from export_gate.worker.process.failures import describe

FIXED = {BATCH: 2, SEQ: 16, NODES: 16, EDGES: 32}
"""Sizes of dims that cannot vary, where the model takes them."""
SMALLEST = {BATCH: (1, 2), SEQ: (1, 2, 8), NODES: (1, 2, 8), EDGES: (1, 2, 8)}
"""Lower ends to try, the smallest first."""
GUESSES, MENDS = 160, 16
"""Limits on the guesses that are tried in all, and on those that one combination is mended to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The result of trying guesses."""

    options: Options
    """The guess that ran, or the likeliest."""
    dims: tuple[Dim, ...]
    works: bool
    tried: int
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Dim name -> sizes that ran."""
    outputs: tuple[Found, ...] = ()
    problem: str = ""
    """Why forward failed at the likeliest combination; empty if it works."""
    notes: tuple[str, ...] = ()


def try_out(bench: Bench, candidates: Sequence[Options]) -> Trial:
    """The first guess that runs at two sizes of each dim, else the first that runs at all, else the likeliest."""
    problem, partly, number = "", None, 0
    for number, attempt in enumerate(_attempts(bench, candidates), start=1):
        if attempt.error is not None:
            # The first one is kept, because it is that of the likeliest guess.
            problem = problem or sentence_of(attempt.error)
        elif bench.runs(attempt.options, SECOND):
            return measured(bench, attempt.options, number)
        else:
            problem = problem or "it ran at some values only"
            partly = partly or attempt.options
        if bench.is_late or number >= GUESSES:
            break
    settled = _partly(bench, partly, number) if partly is not None else None
    likeliest = with_known_bounds(candidates[0])
    return settled or Trial(options=likeliest, dims=make_dims(likeliest), works=False, tried=number, problem=problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One guess, and what forward raised at the first sizes."""

    options: Options
    error: BaseException | None


def _attempts(bench: Bench, candidates: Sequence[Options]) -> Iterator[Attempt]:
    """Each candidate, and what its exceptions ask to make of it, before the next one."""
    seen: set[str] = set()
    for candidate in candidates:
        waiting, mends = [candidate], 0
        while waiting and mends <= MENDS:
            waits = waiting.pop(0)
            options = with_known_bounds(waits)
            key = repr({name: option.spec for name, option in options.items()})
            if key in seen:
                continue
            seen.add(key)
            mends += 1
            problem = bench.problem(options)
            yield Attempt(options=options, error=problem[0] if problem else None)
            # Values that ran at the first sizes may still lack an order, which shows at others.
            failed = bench.failure(options, problem[1]) if problem else bench.failure(options, "", SECOND)
            if failed:
                case = Case(options=waits, failed=failed, offered=bench.offered)
                # In front: what an exception asks for is likelier than the next guess.
                waiting = [*(mended(case) if problem else sorted_lengths(case)), *waiting]


def _partly(bench: Bench, options: Options, tried: int) -> Trial | None:
    """Make constants of the dims that must keep their sizes, if the model does not take every size."""
    for names in groups_to_fix(dims_of(specs_of(options))):
        for sizes in (FIXED, FIRST):
            settled = fixed(options, {name: sizes[name] for name in names})
            if bench.runs(settled, FIRST) and bench.runs(settled, SECOND):
                return measured(bench, settled, tried)
    return None  # it depends on values, not on sizes


def groups_to_fix(used: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The dims to try as constants: each alone, the batch last, then all."""
    alone = [(name,) for name in (*used[1:], *used[:1])]
    return tuple(dict.fromkeys((*alone, tuple(used)))) if used else ()


def measured(bench: Bench, options: Options, tried: int) -> Trial:
    """Measure how far each dim goes, and what forward returns."""
    used = dims_of(specs_of(options))
    first, second = bench.run(options, FIRST), bench.run(options, SECOND)
    ran = Ran(bench=bench, options=options, outputs=find_outputs(first, second, used), sizes=[FIRST, SECOND])
    low: Sizes = {}
    high: Sizes = {}
    for name in used:
        low[name] = next((n for n in SMALLEST[name] if ran.also(name, n)), FIRST[name])
        high[name] = next((n for n in LARGEST[name] if ran.also(name, n)), SECOND[name])
    return Trial(
        options=options,
        dims=make_dims(options, low, high),
        works=True,
        tried=tried,
        sizes={name: tuple(sorted({sizes[name] for sizes in ran.sizes})) for name in used},
        outputs=ran.outputs,
    )


@dataclass(slots=True, kw_only=True)
class Ran:
    """The sizes at which forward ran, and the outputs that it returned at all of them."""

    bench: Bench
    options: Options
    outputs: tuple[Found, ...]
    sizes: list[Sizes]

    def also(self, name: str, size: int) -> bool:
        """Whether forward runs with this size of one dim too."""
        sizes = {**FIRST, name: size}
        if self.bench.is_late or _below_lengths(self.options, name, size):
            return False
        try:
            leaves = self.bench.run(self.options, sizes)
        except Exception:  # noqa: BLE001 - whatever forward raises is the answer
            return False
        self.sizes.append(sizes)
        self.outputs = confirmed(self.outputs, leaves, sizes)
        return True


def _below_lengths(options: Options, name: str, size: int) -> bool:
    """Whether sequences would be shorter than the lengths that are passed with them."""
    ranges = [spec.range for spec in leaves_of(options).values() if spec.dtype == "int64"]
    return name == SEQ and any(within is not None and within[0] == 1 and _exceeds(within[1], size) for within in ranges)


def _exceeds(bound: Bound, size: int) -> bool:
    return not isinstance(bound, Size) and bound > size


def sentence_of(error: BaseException) -> str:
    """The exception's class and the first line of its text."""
    lines = describe(error).splitlines()
    if lines and lines[0].startswith("The following operation failed in the TorchScript"):
        return lines[-1]  # what comes before is TorchScript's own traceback
    first = lines[0].partition(" For more information, run with")[0] if lines else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
