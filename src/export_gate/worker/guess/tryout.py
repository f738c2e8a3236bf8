"""Combinations of guesses to the first that the model really takes, and how far its dims go."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from export_gate.contract import Dim, ModelContract, SequenceSpec, Size, Spec, TensorSpec
from export_gate.description import Found
from export_gate.worker.controls.build import reference_values
from export_gate.worker.failures import describe
from export_gate.worker.guess.layers import BATCH, SEQ, Option
from export_gate.worker.model import Parameter, bind
from export_gate.worker.reference import Runner, module_runner
from export_gate.worker.values import Leaf

FIRST, SECOND = {BATCH: 2, SEQ: 9}, {BATCH: 3, SEQ: 11}
"""Sizes to try: no two alike, so that an output's axes tell which dim they follow."""
LARGEST = {BATCH: (16,), SEQ: (64, 32, 16)}
"""Upper ends to try, the widest first."""
SMALLEST = {BATCH: (1, 2), SEQ: (1, 2, 8)}
PATIENCE_S = 60.0
"""No new combination or size is tried after this time, in seconds."""

Sizes = dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What trying showed."""

    options: tuple[Option, ...]
    """The combination that ran, or the likeliest."""
    dims: tuple[Dim, ...]
    works: bool
    tried: int
    sizes: tuple[Sizes, ...] = ()
    """Those that ran, in the order they were tried."""
    outputs: tuple[Found, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A model to be tried, and until when."""

    module: torch.nn.Module
    names: tuple[str, ...]
    """Of the parameters that the options are for."""
    parameters: tuple[Parameter, ...]
    constants: Mapping[str, Spec]
    """Further arguments that every call gets."""
    until: float
    """On `time.monotonic`."""

    @property
    def is_late(self) -> bool:
        """Whether to try no more."""
        return time.monotonic() > self.until

    def run(self, options: Sequence[Option], sizes: Sizes) -> tuple[Leaf, ...]:
        """forward's outputs on plain values at these sizes.

        Raises:
            Exception: whatever forward raises.
        """
        specs = {name: option.spec for name, option in zip(self.names, options, strict=True)}
        inputs = in_order({**specs, **self.constants}, self.parameters)
        dims = tuple(Dim(name=name, min=1, max=1024) for name in sorted(dims_of(specs)))
        contract = ModelContract(name="trial", factory="", inputs=inputs, dims=dims, targets=())
        values = reference_values(contract, {dim.name: sizes[dim.name] for dim in dims})
        runner: Runner = module_runner(self.module, {})
        return runner(bind(values, self.parameters))

    def runs(self, options: Sequence[Option], sizes: Sizes) -> bool:
        """Whether forward takes these sizes."""
        try:
            self.run(options, sizes)
        except Exception:  # noqa: BLE001 - whatever forward raises is the answer
            return False
        return True


def make_bench(
    module: torch.nn.Module, names: Sequence[str], parameters: Sequence[Parameter], constants: Mapping[str, Spec]
) -> Bench:
    """A bench that loses its patience after `PATIENCE_S`."""
    return Bench(
        module=module,
        names=tuple(names),
        parameters=tuple(parameters),
        constants=constants,
        until=time.monotonic() + PATIENCE_S,
    )


def try_out(bench: Bench, candidates: Sequence[tuple[Option, ...]]) -> Trial:
    """The first combination that runs at two batch sizes, else the first that runs at all, else the likeliest."""
    problem, partly = "", None
    for number, options in enumerate(candidates, start=1):
        try:
            first = bench.run(options, FIRST)
        except Exception as error:  # noqa: BLE001 - whatever forward raises is the answer
            problem = problem or sentence_of(error)
            first = None
        if first is not None and bench.runs(options, SECOND):
            return _measured(bench, options, number)
        if first is not None and partly is None:
            partly = number
        if bench.is_late:
            break
    if partly is not None:
        return _partly(bench, candidates[partly - 1], number)
    return Trial(
        options=candidates[0], dims=_dims(candidates[0], {}, {}), works=False, tried=number, problem=problem
    )


def _partly(bench: Bench, options: tuple[Option, ...], tried: int) -> Trial:
    """Of a model that does not take every size: the dims that must keep theirs become constants."""
    for fixed in ((SEQ,), (BATCH,), (BATCH, SEQ)):
        settled = tuple(replace(option, spec=_fixed(option.spec, fixed)) for option in options)
        if bench.runs(settled, FIRST) and bench.runs(settled, SECOND):
            return _measured(bench, settled, tried)
    raise AssertionError("with all sizes fixed the second run is the first")


def _measured(bench: Bench, options: tuple[Option, ...], tried: int) -> Trial:
    """How far each dim goes, and what comes out."""
    used = dims_of({str(i): option.spec for i, option in enumerate(options)})
    ran = [FIRST, SECOND]
    low: Sizes = {}
    high: Sizes = {}
    for name in used:
        low[name] = next((n for n in SMALLEST[name] if _add(bench, options, name, n, ran)), FIRST[name])
        high[name] = next((n for n in LARGEST[name] if _add(bench, options, name, n, ran)), SECOND[name])
    shown = tuple({name: sizes[name] for name in used} for sizes in ran)
    return Trial(
        options=options,
        dims=_dims(options, low, high),
        works=True,
        tried=tried,
        sizes=tuple(dict(items) for items in dict.fromkeys(tuple(sizes.items()) for sizes in shown)),
        outputs=_outputs(bench.run(options, FIRST), bench.run(options, SECOND), used),
    )


def _add(bench: Bench, options: Sequence[Option], name: str, size: int, ran: list[Sizes]) -> bool:
    sizes = {**FIRST, name: size}
    is_good = not bench.is_late and not _below_lengths(options, name, size) and bench.runs(options, sizes)
    ran += [sizes] if is_good else []
    return is_good


def _below_lengths(options: Sequence[Option], name: str, size: int) -> bool:
    """Whether sequences would be shorter than the lengths that are handed in beside them."""
    lengths = [o.spec.range[1] for o in options if isinstance(o.spec, TensorSpec) and _is_lengths(o.spec)]
    return name == SEQ and any(size < longest for longest in lengths if longest is not None)


def _is_lengths(spec: TensorSpec) -> bool:
    return spec.dtype == "int64" and spec.range is not None and spec.range[0] == 1


def _dims(options: Sequence[Option], low: Sizes, high: Sizes) -> tuple[Dim, ...]:
    used = dims_of({str(i): option.spec for i, option in enumerate(options)})
    return tuple(
        Dim(name=name, min=low.get(name, 1), max=high.get(name, LARGEST[name][0])) for name in (BATCH, SEQ) if name in used
    )


def dims_of(specs: Mapping[str, Spec]) -> list[str]:
    """Dims that the specs name, the batch first."""
    found = {size.dim for spec in specs.values() for leaf in leaves_of(spec) for size in leaf.shape}
    return [name for name in (BATCH, SEQ) if name in found]


def leaves_of(spec: Spec) -> Iterator[TensorSpec]:
    """The tensors of a spec."""
    if isinstance(spec, TensorSpec):
        yield spec
    elif isinstance(spec, SequenceSpec):
        for item in spec.items:
            yield from leaves_of(item)


def _fixed(spec: Spec, names: Sequence[str]) -> Spec:
    if isinstance(spec, SequenceSpec):
        return replace(spec, items=tuple(_fixed(item, names) for item in spec.items))
    if not isinstance(spec, TensorSpec):
        return spec
    return replace(spec, shape=tuple(Size(offset=FIRST[s.dim]) if s.dim in names else s for s in spec.shape))  # type: ignore[index] # None is in no names


def in_order(specs: Mapping[str, Spec], parameters: Sequence[Parameter]) -> dict[str, Spec]:
    """The specs in forward's order."""
    return {p.name: specs[p.name] for p in parameters if p.name in specs}


def _outputs(first: Sequence[Leaf], second: Sequence[Leaf], used: Sequence[str]) -> tuple[Found, ...]:
    if [leaf.name for leaf in first] != [leaf.name for leaf in second]:
        return ()
    return tuple(
        Found(name=a.name, dtype=a.dtype, shape=_shape(a, b, used), nonfinite=_has_nonfinite(a))
        for a, b in zip(first, second, strict=True)
    )


def _shape(first: Leaf, second: Leaf, used: Sequence[str]) -> tuple[Size, ...] | None:
    """Each axis as the dim that has its length at both sizes, or as a constant."""
    if first.value is None or second.value is None or first.value.ndim != second.value.ndim:
        return None
    axes = [_axis(a, b, used) for a, b in zip(first.value.shape, second.value.shape, strict=True)]
    return None if None in axes else tuple(axis for axis in axes if axis is not None)


def _axis(first: int, second: int, used: Sequence[str]) -> Size | None:
    for name in used:
        factor, rest = divmod(second - first, SECOND[name] - FIRST[name])
        offset = first - factor * FIRST[name]
        if factor > 0 and rest == 0 and (offset == 0 or name == SEQ):
            return Size(dim=name, factor=factor, offset=offset)
    return Size(offset=first) if first == second else None


def _has_nonfinite(leaf: Leaf) -> bool:
    return leaf.value is not None and leaf.value.dtype.kind == "f" and not np.isfinite(leaf.value).all()


def sentence_of(error: BaseException) -> str:
    """The exception's class and the first line of its text."""
    lines = describe(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__

