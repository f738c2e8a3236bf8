"""Combinations of guesses to the first that the model really takes, and how far its dims go."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from export_gate.wall.contract import DictSpec, Dim, ModelContract, SequenceSpec, Size, Spec, TensorSpec
from export_gate.wall.description import Found
from export_gate.worker.controls.build import reference_values
from export_gate.worker.guess.layers import BATCH, SEQ, Option
from export_gate.worker.guess.outputs import FIRST, SECOND, Sizes, confirmed, find_outputs
from export_gate.worker.leaves.values import Call, Leaf
from export_gate.worker.model.factory import Parameter, bind
from export_gate.worker.model.reference import Runner, module_runner
from export_gate.worker.process.failures import describe

FIXED = {BATCH: 2, SEQ: 16}
"""Sizes of dims that cannot vary, where the model takes them."""
LARGEST = {BATCH: (16,), SEQ: (64, 32, 16)}
"""Upper ends to try, the widest first."""
SMALLEST = {BATCH: (1, 2), SEQ: (1, 2, 8)}
PATIENCE_S = 60.0
"""No new combination or size is tried after this time, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What trying showed."""

    options: tuple[Option, ...]
    """The combination that ran, or the likeliest."""
    dims: tuple[Dim, ...]
    works: bool
    tried: int
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Dim name -> sizes that ran."""
    outputs: tuple[Found, ...] = ()
    problem: str = ""
    """Why forward failed at the likeliest combination; empty where it works."""
    notes: tuple[str, ...] = ()


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
        """What forward returns on plain values at these sizes.

        Raises:
            Exception: whatever forward raises.
        """
        run: Runner = module_runner(self.module, {})
        return run(self.call(self.contract(options, ()), sizes))

    def contract(self, options: Sequence[Option], dims: Sequence[Dim]) -> ModelContract:
        """The contract that the options make up."""
        specs = {name: option.spec for name, option in zip(self.names, options, strict=True)}
        inputs = in_order({**specs, **self.constants}, self.parameters)
        return ModelContract(name="trial", factory="", inputs=inputs, dims=tuple(dims), targets=())

    def call(self, contract: ModelContract, sizes: Sizes) -> Call:
        """Arguments of forward: the plainest values at these sizes."""
        return bind(reference_values(contract, sizes), self.parameters)

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
            return measured(bench, options, number)
        if first is not None and partly is None:
            partly = number
        if bench.is_late:
            break
    if partly is not None:
        return _partly(bench, candidates[partly - 1], number)
    return Trial(options=candidates[0], dims=_dims(candidates[0], {}, {}), works=False, tried=number, problem=problem)


def _partly(bench: Bench, options: tuple[Option, ...], tried: int) -> Trial:
    """Of a model that does not take every size: the dims that must keep theirs become constants."""
    for names in ((SEQ,), (BATCH,), (BATCH, SEQ)):
        for sizes in (FIXED, FIRST):
            settled = fixed(options, names, sizes)
            if bench.runs(settled, FIRST) and bench.runs(settled, SECOND):
                return measured(bench, settled, tried)
    raise AssertionError("with all sizes fixed the second run is the first")


def measured(bench: Bench, options: tuple[Option, ...], tried: int) -> Trial:
    """How far each dim goes, and what comes out."""
    used = dims_of({str(i): option.spec for i, option in enumerate(options)})
    first, second = bench.run(options, FIRST), bench.run(options, SECOND)
    ran = Ran(bench=bench, options=options, outputs=find_outputs(first, second, used), sizes=[FIRST, SECOND])
    low: Sizes = {}
    high: Sizes = {}
    for name in used:
        low[name] = next((n for n in SMALLEST[name] if ran.also(name, n)), FIRST[name])
        high[name] = next((n for n in LARGEST[name] if ran.also(name, n)), SECOND[name])
    return Trial(
        options=options,
        dims=_dims(options, low, high),
        works=True,
        tried=tried,
        sizes={name: tuple(sorted({sizes[name] for sizes in ran.sizes})) for name in used},
        outputs=ran.outputs,
    )


@dataclass(slots=True, kw_only=True)
class Ran:
    """The sizes at which forward ran, and the outputs that it returned at all of them."""

    bench: Bench
    options: tuple[Option, ...]
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


def _below_lengths(options: Sequence[Option], name: str, size: int) -> bool:
    """Whether sequences would be shorter than the lengths that are handed in beside them."""
    ranges = [o.spec.bounds for o in options if isinstance(o.spec, TensorSpec) and o.spec.dtype == "int64"]
    return name == SEQ and any(within is not None and within[0] == 1 and size < within[1] for within in ranges)


def _dims(options: Sequence[Option], low: Sizes, high: Sizes) -> tuple[Dim, ...]:
    used = dims_of({str(i): option.spec for i, option in enumerate(options)})
    return tuple(
        Dim(name=name, min=low.get(name, 1), max=high.get(name, LARGEST[name][0]))
        for name in (BATCH, SEQ)
        if name in used
    )


def dims_of(specs: Mapping[str, Spec]) -> list[str]:
    """Dims that the specs name, the batch first."""
    found = {dim for spec in specs.values() for leaf in leaves_of(spec) for size in leaf.shape for dim in size.factors}
    return [name for name in (BATCH, SEQ) if name in found]


def leaves_of(spec: Spec) -> Iterator[TensorSpec]:
    """The tensors of a spec."""
    if isinstance(spec, TensorSpec):
        yield spec
    elif isinstance(spec, (SequenceSpec, DictSpec)):
        for item in spec.items.values() if isinstance(spec, DictSpec) else spec.items:
            yield from leaves_of(item)


def fixed(options: Sequence[Option], names: Sequence[str], sizes: Sizes) -> tuple[Option, ...]:
    """The options with the named dims as constants."""
    constants: dict[str | None, Size] = {name: Size(offset=sizes[name]) for name in names}
    return tuple(replace(option, spec=_fixed(option.spec, constants)) for option in options)


def _fixed(spec: Spec, constants: Mapping[str | None, Size]) -> Spec:
    if isinstance(spec, SequenceSpec):
        return replace(spec, items=tuple(_fixed(item, constants) for item in spec.items))
    if isinstance(spec, DictSpec):
        return replace(spec, items={key: _fixed(item, constants) for key, item in spec.items.items()})
    if not isinstance(spec, TensorSpec):
        return spec
    return replace(spec, shape=tuple(constants.get(size.dim, size) for size in spec.shape))


def in_order(specs: Mapping[str, Spec], parameters: Sequence[Parameter]) -> dict[str, Spec]:
    """The specs in forward's order."""
    return {p.name: specs[p.name] for p in parameters if p.name in specs}


def sentence_of(error: BaseException) -> str:
    """The exception's class and the first line of its text."""
    lines = describe(error).splitlines()
    first = lines[0].partition(" For more information, run with")[0] if lines else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
