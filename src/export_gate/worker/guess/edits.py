"""Guesses as a whole: the tensors in them, and the same guess with another tensor or with constants for dims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from export_gate.wall.contract import Bound, Size, Spec, TensorSpec
from export_gate.wall.inputs import leaves, tensors, with_tensors
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
    name, place = str(path[0]), ".".join(map(str, path))
    old = options[name]
    changed = with_tensors({name: old.spec}, lambda here, leaf: spec if here == place else leaf)
    return {**options, name: Option(spec=changed[name], reason=reason or old.reason)}


def fixed(options: Options, sizes: Mapping[str, int]) -> dict[str, Option]:
    """The options with constants in place of these dims."""
    for path, spec in leaves_of(options).items():
        shape = tuple(size.fixed(dict(sizes)) for size in spec.shape)
        within = spec.range and (_number(spec.range[0], sizes), _number(spec.range[1], sizes))
        options = put(options, path, replace(spec, shape=shape, range=within))
    return dict(options)


def with_known_bounds(options: Options) -> Options:
    """Bounds by dims that no shape has become numbers: a config can name a dim only if an input has it."""
    given = leaves_of(options)
    named = {dim for spec in given.values() for size in spec.shape for dim in size.factors}
    sizes = {name: size for name, size in {**FIRST, SEQ: LENGTH}.items() if name not in named}
    for path, spec in given.items():
        if spec.range is not None:
            within = (_number(spec.range[0], sizes), _number(spec.range[1], sizes))
            options = put(options, path, replace(spec, range=within))
    return options


def _number(bound: Bound, sizes: Mapping[str, int]) -> Bound:
    left = bound.fixed(dict(sizes)) if isinstance(bound, Size) else bound
    return left.offset if isinstance(left, Size) and not left.factors else left


def leaves_of(options: Options) -> dict[Path, TensorSpec]:
    """The tensors of all parameters."""
    return {path: spec for name, option in options.items() for path, spec in leaves((name,), option.spec)}


def specs_of(options: Options) -> dict[str, Spec]:
    """The options without their reasons."""
    return {name: option.spec for name, option in options.items()}


def dims_of(specs: Mapping[str, Spec]) -> list[str]:
    """Dims that the specs name, the batch first."""
    found = {dim for _, leaf in tensors(specs) for size in leaf.shape for dim in size.factors}
    return [name for name in DIMS if name in found]
