"""Mend a guess whose shapes failed: give it the rank, width or length that the exception asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from export_gate.wall.contract import Size, TensorSpec
from export_gate.worker.controls.specs import INTEGERS
from export_gate.worker.guess.edits import Case, Options, fixed, leaves_of, put
from export_gate.worker.guess.layers import BATCH, LONG, SEQ, tensor
from export_gate.worker.guess.outputs import FIRST
from export_gate.worker.guess.watch import Argument, Path

SIDE, FRAMES = 32, 8
GROWTH, LONGEST_AXIS = 4, 1 << 13
# torch's errors carry no data: only their texts say what size or rank was wanted.
WANTED_GOT = re.compile(
    r"(?:expected?s?|match(?:es)?|must|should|needs?|to have|of length|model)\b[^\d]*?\(?(\d+)[^\d]*"
    r"(?:got|found|received|but|not|is)[^\d]*?\(?(\d+)",
    re.IGNORECASE,
)
GOT_WANTED = re.compile(
    r"\(?(\d+)(?:\*\d+)?\)?[^\d]*(?:match|must be|should be|instead of)[^\d]*?\(?(\d+)", re.IGNORECASE
)
RANKS = (
    re.compile(r"expected (?P<wanted>\d)D? (?:or \dD )?input \(got (?P<got>\d)D"),
    re.compile(r"input\.dim\(\) = (?P<got>\d) is not equal to len\(dims\) = (?P<wanted>\d)"),
    re.compile(r"unpack \(expected (?:at least )?(?P<wanted>\d)(?:, got (?P<got>\d))?"),
    re.compile(r"input must have (?P<wanted>\d) dimensions, got (?P<got>\d)"),
)
BEYOND = re.compile(r"Dimension out of range|too many indices for tensor")
SMALL = re.compile(
    r"can't be greater than|too small|smaller than|should be less than|non-?positive|at least|0 < n_fft",
    re.IGNORECASE,
)


def ranks(case: Case) -> Iterator[Options]:
    """Give an argument as many axes as the function takes."""
    # EmbeddingBag takes offsets with flat ids only.
    for argument in case.failed.arguments[:1] if "offsets has to be None" in case.message else ():
        for path in argument.origins:
            yield case.having(path, replace(leaves_of(case.options)[path], shape=tensor("int64", SEQ).shape))
    for argument in case.failed.arguments[:1] if case.failed.function else case.failed.arguments:
        further = _further_axes(case, argument)
        for path in argument.origins if further else ():
            spec = leaves_of(case.options)[path]
            for shape in _shapes(spec, len(spec.shape) + further):
                yield case.having(path, replace(spec, shape=shape, positions=()))


def _further_axes(case: Case, argument: Argument) -> int:
    """How many axes the argument lacks; negative if it has too many."""
    rank = len(argument.shape)
    # Besides the axes that it convolves, the batch and the channels.
    if found := re.fullmatch(r"conv(?:_transpose)?(\d)d", case.failed.function):
        return int(found[1]) + 2 - rank
    if case.failed.function == "stft" and rank > 2:  # noqa: PLR2004 - waveforms, or one alone
        return 2 - rank
    if BEYOND.search(case.message):
        return 1
    for pattern in RANKS:
        if found := pattern.search(case.message):
            groups = found.groupdict()
            return int(groups["wanted"]) - int(groups.get("got") or rank)
    return 0


def _shapes(spec: TensorSpec, rank: int) -> Iterator[tuple[Size, ...]]:
    """Usual shapes of that rank, with the number of features that the old one has."""
    numbers = [axis.offset for axis in spec.shape if not axis.factors]
    features = numbers[-1] if len(spec.shape) <= 3 and SEQ in _names(spec) else next(iter(numbers), 3)  # noqa: PLR2004 - sequences
    shapes: dict[int, tuple[tuple[str | int, ...], ...]] = {
        1: ((BATCH,),),
        2: ((BATCH, LONG), (BATCH, features)) if features == 1 else ((BATCH, features), (BATCH, SEQ), (BATCH, LONG)),
        3: ((BATCH, SEQ, features), (BATCH, features, SIDE), (BATCH, SIDE, features), (BATCH, 1, features)),
        4: ((BATCH, features, SIDE, SIDE), (BATCH, SIDE, SIDE, features), (BATCH, SEQ, features, features)),
        5: ((BATCH, features, FRAMES, SIDE, SIDE), (BATCH, FRAMES, features, SIDE, SIDE)),
    }
    for shape in shapes.get(rank, ()):
        yield tensor(spec.dtype, *shape).shape


def _names(spec: TensorSpec) -> set[str]:
    return {dim for axis in spec.shape for dim in axis.factors}


def widths(case: Case) -> Iterator[Options]:
    """The width of one axis as the layer, the other operand or the exception has it."""
    given = case.failed.arguments
    for argument, axis, wanted in _mismatches(case):
        if argument.size(axis) != wanted:
            yield from resized(case, argument, argument.size(axis), wanted)
    for pattern, places in ((WANTED_GOT, (1, 2)), (GOT_WANTED, (2, 1))):
        if found := pattern.search(case.message):
            wanted, got = (int(found[place]) for place in places)
            for argument in given or (_everything(case.options),):
                yield from resized(case, argument, got, wanted)


def _everything(options: Options) -> Argument:
    """Stands for a tensor that comes from all inputs."""
    return Argument(shape=(), is_floating=True, dtype="float32", origins=tuple(leaves_of(options)))


def _mismatches(case: Case) -> Iterator[tuple[Argument, int, int]]:
    """An argument, its axis and the size that the axis should have."""
    given, function = case.failed.arguments, case.failed.function
    if given and (found := re.search(r"to have (\d+) channels", case.message)):
        yield given[0], 1, int(found[1])
    if len(given) < 2:  # noqa: PLR2004 - all else compares two tensors
        return
    first, second = given[:2]
    if function == "linear":
        yield first, -1, second.size(-1)
    elif function in {"matmul", "mm", "bmm", "__matmul__", "addmm"}:
        left, right = given[-2:]
        yield left, -1, right.size(max(len(right.shape) - 2, 0))
        yield right, -2, left.size(-1)
    elif function in {"layer_norm", "rms_norm"}:
        yield first, -1, second.size(-1)
    elif function in {"batch_norm", "group_norm", "instance_norm"}:
        yield first, 1, second.size(0)
    elif found := re.search(r"\((\d+)\) must match.*\((\d+)\) at non-singleton dimension (\d+)", case.message):
        axis = int(found[3]) - max(len(first.shape), len(second.shape))
        yield first, axis, int(found[2])
        yield second, axis, int(found[1])


def resized(case: Case, argument: Argument, got: int, wanted: int) -> Iterator[Options]:
    """The inputs of an argument with `wanted` in place of the axis that has the size `got`."""
    if min(got, wanted) < 1:
        return
    leaves = leaves_of(case.options)
    origins = (axis for path in argument.origins for axis in leaves[path].shape)
    # The size may be that of a dim, which then cannot vary.
    if dim := next((axis.dim for axis in origins if axis.dim not in {None, BATCH} and axis.at(FIRST) == got), None):
        yield fixed(case.options, {dim: wanted})
    for path in argument.origins:
        for shape in _reshaped(leaves[path], got, wanted):
            yield case.having(path, replace(leaves[path], shape=shape, positions=()))
    yield from _shared(case, argument, got, wanted)


def _reshaped(spec: TensorSpec, got: int, wanted: int) -> Iterator[tuple[Size, ...]]:
    sizes = [axis.at(FIRST) for axis in spec.shape]
    places = [
        place
        for place in range(len(sizes) - 1, -1, -1)
        if sizes[place] == got and BATCH not in spec.shape[place].factors
    ]
    # Likeliest first: the axes are in another order, one has another length, or one is flattened with others.
    for place in places:
        if wanted in sizes[1:] and wanted != got:
            yield _moved(spec.shape, sizes.index(wanted, 1), place)
    for place in places:
        yield _with_axis(spec.shape, place, wanted)
    for place in range(len(sizes) - 1, 0, -1):
        if place not in places and sizes[place] > 1 and got % sizes[place] == 0 and wanted * sizes[place] % got == 0:
            yield _with_axis(spec.shape, place, wanted * sizes[place] // got)


def _moved(shape: Sequence[Size], source: int, target: int) -> tuple[Size, ...]:
    rest = [*shape[:source], *shape[source + 1 :]]
    return (*rest[:target], shape[source], *rest[target:])


def _with_axis(shape: Sequence[Size], place: int, size: int) -> tuple[Size, ...]:
    return (*shape[:place], Size(offset=size), *shape[place + 1 :])


def _shared(case: Case, argument: Argument, got: int, wanted: int) -> Iterator[Options]:
    """Inputs that were put side by side: their widths share what is wanted, or one of them gives or takes the rest."""
    leaves = {path: spec for path, spec in leaves_of(case.options).items() if path in argument.origins}
    deepest = max((len(spec.shape) for spec in leaves.values()), default=0)
    for axis in (-1, *range(1, deepest - 1)):
        wide = {path: _width(spec, axis) for path, spec in leaves.items() if _width(spec, axis)}
        if len(wide) > 1 and sum(wide.values()) == got and wanted >= len(wide):
            yield _divided(case, wide, axis, wanted)
        for path, width in reversed(wide.items()):
            rest = width + wanted - got
            if axis == -1 and rest > 0 and width < got and leaves[path].dtype not in INTEGERS:
                yield case.having(path, _of_width(leaves[path], axis, rest))


def _divided(case: Case, wide: Mapping[Path, int], axis: int, wanted: int) -> Options:
    options = case.options
    for place, path in enumerate(wide):
        share = wanted // len(wide) + (place < wanted % len(wide))
        options = put(options, path, _of_width(leaves_of(options)[path], axis, share), case.reason)
    return options


def _width(spec: TensorSpec, axis: int) -> int:
    """The size of the axis; 0 if it is a dim or is missing."""
    is_there = axis < len(spec.shape) and len(spec.shape) > 0
    return spec.shape[axis].offset if is_there and not spec.shape[axis].factors else 0


def _of_width(spec: TensorSpec, axis: int, width: int) -> TensorSpec:
    return replace(spec, shape=_with_axis(spec.shape, axis % len(spec.shape), width), positions=())


def longer(case: Case) -> Iterator[Options]:
    """Axes long enough for the kernel or window."""
    if not SMALL.search(case.message):
        return
    for argument in case.failed.arguments[:1]:
        for path in argument.origins:
            spec = leaves_of(case.options)[path]
            numbers = [axis.offset for axis in spec.shape[1:] if not axis.factors]
            longest = max(numbers, default=0)
            if 1 < longest <= LONGEST_AXIS:
                grown = tuple(
                    Size(offset=longest * GROWTH) if axis == Size(offset=longest) else axis for axis in spec.shape
                )
                yield case.having(path, replace(spec, shape=grown))
            if SEQ in _names(spec):
                fixed = tuple(Size(offset=LONG) if SEQ in axis.factors else axis for axis in spec.shape)
                yield case.having(path, replace(spec, shape=fixed))
