"""Walk declared inputs: trees of lists, tuples and dicts whose leaves are tensors and constants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Union

from export_gate.wall.contract import DictSpec, SequenceSpec, Spec, TensorSpec

InputPath = tuple[Union[str, int], ...]
"""Names and positions from an input down to one of its parts."""


def parts(spec: Spec) -> dict[Any, Spec]:
    """What a list, tuple or dict is made of, by position or key; tensors and constants have no parts."""
    match spec:
        case SequenceSpec():
            return dict(enumerate(spec.items))
        case DictSpec():
            return dict(spec.items)
        case _:
            return {}


def leaves(path: InputPath, spec: Spec) -> Iterator[tuple[InputPath, TensorSpec]]:
    """The tensors of one input, whose own path is given."""
    if isinstance(spec, TensorSpec):
        yield path, spec
    for key, part in parts(spec).items():
        yield from leaves((*path, key), part)


def tensors(inputs: Mapping[str, Spec]) -> Iterator[tuple[str, TensorSpec]]:
    """All tensors in forward's order, each with its path as text: `x`, `pyramid.0`, `state.hidden`."""
    for name, spec in inputs.items():
        yield from ((".".join(map(str, path)), leaf) for path, leaf in leaves((name,), spec))


def with_tensors(inputs: Mapping[str, Spec], change: Callable[[str, TensorSpec], TensorSpec]) -> dict[str, Spec]:
    """The inputs with every tensor changed; `change` gets its path as text."""
    return {name: _changed(name, spec, change) for name, spec in inputs.items()}


def _changed(path: str, spec: Spec, change: Callable[[str, TensorSpec], TensorSpec]) -> Spec:
    changed = {key: _changed(f"{path}.{key}", part, change) for key, part in parts(spec).items()}
    match spec:
        case TensorSpec():
            return change(path, spec)
        case SequenceSpec():
            return replace(spec, items=tuple(changed.values()))
        case DictSpec():
            return replace(spec, items={str(key): part for key, part in changed.items()})
        case _:
            return spec
