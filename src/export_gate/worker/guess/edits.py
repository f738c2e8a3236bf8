"""Guesses as a whole: the tensors in them, and the same guess with another tensor or with constants for dims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from export_gate.wall.contract import Bound, DictSpec, SequenceSpec, Size, Spec, TensorSpec
from export_gate.worker.guess.layers import DIMS, LENGTH, SEQ, Option
from export_gate.worker.guess.outputs import FIRST
from export_gate.worker.guess.watch import Failed, Path

Options = Mapping[str, Option]
"""Parameter -> how it is fed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A guess and how it failed."""

    options: Options
    failed: Failed
    offered: Callable[[str], Option | None]
    """How to feed one more parameter of forward; None if there is none of that name that may be added."""

    @property
    def message(self) -> str:
        """What the exception says."""
        return str(self.failed.error)

    def having(self, path: Path, spec: TensorSpec) -> Options:
        """The guess with another tensor at that place."""
        return put(self.options, path, spec, self.reason)

    @property
    def reason(self) -> str:
        """Why the tensor is another one, for the config."""
        layer = type(self.failed.layer).__name__ if self.failed.layer is not None else "forward"
        return f"as {self.failed.function or layer} takes it"


def put(options: Options, path: Path, spec: TensorSpec, reason: str = "") -> Options:
    """The options with another tensor at that place, and another reason if there is one."""
    name, *below = path
    old = options[str(name)]
    return {**options, str(name): Option(spec=_within(old.spec, tuple(below), spec), reason=reason or old.reason)}


def _within(old: Spec, path: Path, spec: TensorSpec) -> Spec:
    if not path:
        return spec
    if isinstance(old, SequenceSpec):
        items = tuple(
            _within(item, path[1:], spec) if place == path[0] else item for place, item in enumerate(old.items)
        )
        return replace(old, items=items)
    if isinstance(old, DictSpec):
        return replace(old, items={k: _within(v, path[1:], spec) if k == path[0] else v for k, v in old.items.items()})
    raise AssertionError(f"there is nothing at {path}")


def fixed(options: Options, sizes: Mapping[str, int]) -> dict[str, Option]:
    """The options with constants in place of these dims."""
    for path, spec in leaves_of(options).items():
        shape = tuple(size.fixed(dict(sizes)) for size in spec.shape)
        within = spec.range and (_number(spec.range[0], sizes), _number(spec.range[1], sizes))
        options = put(options, path, replace(spec, shape=shape, range=within))
    return dict(options)


def with_known_bounds(options: Options) -> Options:
    """Bounds by dims that no shape has become numbers: a config can name a dim only if an input has it."""
    leaves = leaves_of(options)
    named = {dim for spec in leaves.values() for size in spec.shape for dim in size.factors}
    sizes = {name: size for name, size in {**FIRST, SEQ: LENGTH}.items() if name not in named}
    for path, spec in leaves.items():
        if spec.range is not None:
            within = (_number(spec.range[0], sizes), _number(spec.range[1], sizes))
            options = put(options, path, replace(spec, range=within))
    return options


def _number(bound: Bound, sizes: Mapping[str, int]) -> Bound:
    left = bound.fixed(dict(sizes)) if isinstance(bound, Size) else bound
    return left.offset if isinstance(left, Size) and not left.factors else left


def leaves_of(options: Options) -> dict[Path, TensorSpec]:
    """The tensors of all parameters."""
    return {path: spec for name, option in options.items() for path, spec in _leaves((name,), option.spec)}


def _leaves(path: Path, spec: Spec) -> Iterator[tuple[Path, TensorSpec]]:
    if isinstance(spec, TensorSpec):
        yield path, spec
    elif isinstance(spec, (SequenceSpec, DictSpec)):
        items = spec.items.items() if isinstance(spec, DictSpec) else enumerate(spec.items)
        for key, item in items:
            yield from _leaves((*path, key), item)


def specs_of(options: Options) -> dict[str, Spec]:
    """The options without their reasons."""
    return {name: option.spec for name, option in options.items()}


def dims_of(specs: Mapping[str, Spec]) -> list[str]:
    """Dims that the specs name, the batch first."""
    leaves = (leaf for name, spec in specs.items() for _, leaf in _leaves((name,), spec))
    found = {dim for leaf in leaves for size in leaf.shape for dim in size.factors}
    return [name for name in DIMS if name in found]
