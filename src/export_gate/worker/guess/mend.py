"""Mend a failed guess as its exception asks: another dtype or range, another shape, or one more input."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from export_gate.wall.contract import Bound, Size
from export_gate.worker.controls.specs import INTEGERS
from export_gate.worker.guess.edits import Case, Options, leaves_of
from export_gate.worker.guess.layers import BATCH, CENTRED, SEQ, tensor
from export_gate.worker.guess.mend_shapes import longer, ranks, resized, widths
from export_gate.worker.guess.names import is_length
from export_gate.worker.guess.outputs import FIRST
from export_gate.worker.guess.watch import Argument

INDEXED = frozenset({
    "__getitem__", "__setitem__", "index_select", "gather", "scatter", "scatter_", "scatter_add", "scatter_add_",
    "scatter_reduce", "index_add", "index_add_", "index_copy", "index_put", "take", "take_along_dim", "one_hot",
})  # fmt: skip
"""Functions whose later tensors are indices."""
ASKS = re.compile(r"specify|specified|requires?d?|must|needs?|provided?|missing|NoneType", re.IGNORECASE)


def mended(case: Case) -> Iterator[Options]:
    """Guesses that may do better, the likeliest first."""
    for rule in RULES:
        yield from filter(_has_plain_lengths, rule(case))


def _has_plain_lengths(options: Options) -> bool:
    """Whether lengths are still whole numbers, one per sample: what their name says is surer than one exception."""
    lengths = [spec for path, spec in leaves_of(options).items() if is_length(str(path[-1]))]
    return all(spec.dtype in INTEGERS and len(spec.shape) <= 1 for spec in lengths)


def sorted_lengths(case: Case) -> Iterator[Options]:
    """Lengths in the order that packed sequences want."""
    if "sorted in decreasing order" not in case.message:
        return
    for path, spec in leaves_of(case.options).items():
        if is_length(str(path[-1])) and len(spec.shape) == 1 and spec.order is None:
            yield case.having(path, replace(spec, order="decreasing"))


def _rows(case: Case) -> Iterator[Options]:
    """Ids below the number of rows of the table that they look up."""
    if case.failed.function not in {"embedding", "embedding_bag"} or len(case.failed.arguments) < 2:  # noqa: PLR2004 - ids and table
        return
    ids, table = case.failed.arguments[:2]
    yield from _as_index(case, ids, max(table.size(0) - 1, 0))


def _indices(case: Case) -> Iterator[Options]:
    """Indices below the size of what they point into, which may be a dim."""
    if case.failed.function not in INDEXED or not case.failed.arguments:
        return
    target, *indices = case.failed.arguments
    found = re.search(r"dim(?:ension)? (\d+) with size (\d+)", case.message)
    size = max(int(found[2]) if found else target.size(0), 1)
    # It takes its indices first, and has the number of classes among its numbers.
    if case.failed.function == "one_hot":
        indices, size = [target], max((2, *case.failed.numbers))
    for index in indices:
        yield from _as_index(case, index, _last(size, case.options))
    if found and not indices and (wanted := re.search(r"index (\d+) is out of bounds", case.message)):
        yield from resized(case, target, int(found[2]), int(wanted[1]) + 1)


def _as_index(case: Case, ids: Argument, last: Bound) -> Iterator[Options]:
    """The inputs that the ids come from as integers up to `last`."""
    for path in ids.origins:
        spec = leaves_of(case.options)[path]
        low = spec.range[0] if spec.range and spec.dtype in INTEGERS else 0
        lowest = 0 if isinstance(low, Size) else max(low, 0)
        if not isinstance(last, Size):
            lowest = min(lowest, last)
        integers = replace(spec, dtype="int64", range=(lowest, last), positions=())
        if spec.dtype in INTEGERS:
            yield case.having(path, integers)
            continue
        yield case.having(path, integers)
        for shape in ((BATCH, SEQ), (BATCH,)):
            yield case.having(path, replace(integers, shape=tensor("int64", *shape).shape))


def _last(size: int, options: Options) -> Bound:
    """The last index, by the dim that has the size where there is one."""
    named = {dim for spec in leaves_of(options).values() for axis in spec.shape for dim in axis.factors}
    dim = next((name for name, known in FIRST.items() if known == size and name in named), None)
    return Size(factors={dim: 1}, offset=-1) if dim else size - 1


def _dtypes(case: Case) -> Iterator[Options]:
    """The dtype of the weights, or bools and integers where the exception wants them."""
    message = case.message.lower()
    if not re.search(r"type|bool|long|integer", message):
        return
    # What comes from no input is a weight.
    weights = [argument.dtype for argument in case.failed.arguments if argument.is_floating and not argument.origins]
    for argument in case.failed.arguments:
        for path in argument.origins:
            spec = leaves_of(case.options)[path]
            if weights and spec.dtype != weights[0]:
                within = spec.range if spec.dtype.startswith(("float", "bfloat")) else CENTRED
                yield case.having(path, replace(spec, dtype=weights[0], range=within))
            if "bool" in message and spec.dtype != "bool":
                yield case.having(path, replace(spec, dtype="bool", range=None))
            if re.search(r"long|int64|integer|index", message) and spec.dtype not in INTEGERS:
                yield case.having(path, replace(spec, dtype="int64", range=(0, 1)))


def _parameters(case: Case) -> Iterator[Options]:
    """One more parameter, which the exception or the line that raised names."""
    if not ASKS.search(case.message):
        return
    missing = [name for name in case.failed.nothing if "NoneType" in case.message]
    for name in dict.fromkeys((*re.findall(r"\w+", case.message), *missing)):
        offered = case.offered(name) if name not in case.options else None
        if offered is not None:
            yield {**case.options, name: offered}


RULES: tuple[Callable[[Case], Iterator[Options]], ...] = (
    _parameters, sorted_lengths, _rows, _indices, ranks, widths, _dtypes, longer,
)  # fmt: skip
