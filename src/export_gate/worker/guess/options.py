"""List what each of forward's parameters could accept, and the combinations worth a test."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from torch import nn

from export_gate.wall.contract import DictSpec, SequenceSpec, TensorSpec
from export_gate.worker.guess.consumers import consumers, keys_of, layers_in_order
from export_gate.worker.guess.layers import SEQUENCE_LAYERS, Option, layer_options
from export_gate.worker.guess.names import (
    any_specs,
    configured,
    constant_for,
    float_dtype,
    is_image,
    is_mask,
    is_single,
    is_telling,
    named_specs,
    spelled,
)
from export_gate.worker.guess.scripted import plain_modules
from export_gate.worker.guess.usual import is_graph, of_nodes, usual_specs

COMBINATIONS = 24
"""Combinations that are tried, each by several runs of forward."""
LAYERS_LOOKED_AT = 4
MOST_BRANCHES = 8
"""Longer lists of layers are layers in a row rather than branches."""


def options_for(parameter: inspect.Parameter, module: nn.Module) -> tuple[Option, ...]:
    """What the parameter could take, the likeliest first; never empty."""
    constant = constant_for(parameter.annotation)
    if constant is not None:
        return (Option(spec=constant, reason=f"annotated {spelled(parameter.annotation)}"),)
    keys = keys_of(module, parameter.name)
    if keys:
        return _dicts(parameter, keys, module)
    options = _tensors(parameter.name, module)
    length = _sequence_length(parameter, module)
    if length is None:
        return options
    kind, count = length
    return tuple(
        Option(spec=SequenceSpec(kind=kind, items=(option.spec,) * count), reason=option.reason)  # type: ignore[arg-type] # one of the two that _sequence_length has
        for option in options
    )


def combinations(options: Sequence[Sequence[Option]]) -> tuple[tuple[Option, ...], ...]:
    """One option per parameter, the likeliest together first, at most `COMBINATIONS`."""
    depth = {0: 1, 1: COMBINATIONS, 2: 6, 3: 4}.get(len(options), 3 if len(options) < 7 else 2)  # noqa: PLR2004 - keeps the product small
    ranked = itertools.product(*(list(enumerate(choices[:depth])) for choices in options))
    # The likeliest together first; of equal sums, those without a far-fetched guess in them first.
    ordered = sorted(ranked, key=lambda ranks: (sum(rank for rank, _ in ranks), max((r for r, _ in ranks), default=0)))
    return tuple(tuple(option for _, option in ranks) for ranks in ordered[:COMBINATIONS])


def _tensors(name: str, module: nn.Module) -> tuple[Option, ...]:
    options = (*suggested(name, module), *_unsuggested(module))
    if is_graph(module):
        nodes = [replace(option, spec=of_nodes(option.spec)) for option in options]
        return _unique((*nodes, *options))
    return _unique(options)


def _dicts(parameter: inspect.Parameter, keys: Sequence[str], module: nn.Module) -> tuple[Option, ...]:
    """A dict of what each key's value could be."""
    choices = combinations([_tensors(f"{parameter.name}.{key}", module) for key in keys])
    return tuple(
        Option(
            spec=DictSpec(items={key: option.spec for key, option in zip(keys, chosen, strict=True)}),
            reason=f"the keys that forward reads; {chosen[0].reason}",
        )
        for chosen in choices
    )


def suggested(path: str, module: nn.Module) -> tuple[Option, ...]:
    """What an input's name and the layers that get it say; empty if they say nothing.

    Args:
        path: a parameter of forward, or one key of it as `batch.image`.
        module: the model.
    """
    name, floats = path.rpartition(".")[2], float_dtype(module)
    usual = [Option(spec=spec, reason="its name") for spec in usual_specs(name.lower(), module, floats)]
    by_name = [Option(spec=spec, reason="its name") for spec in named_specs(name, module, floats)]
    layers = () if is_mask(name) else consumers(module, path)
    by_layer = [
        option for layer in layers for option in layer_options(layer, floats, is_sequential=_is_sequential(module))
    ]
    # Sorting is stable: among equals the order of the layers stays.
    if is_image(name):
        by_layer.sort(key=lambda option: isinstance(option.spec, TensorSpec) and len(option.spec.shape) < 4)  # noqa: PLR2004 - an image with its batch
    if is_single(name):
        by_layer.sort(key=lambda option: not isinstance(option.spec, TensorSpec) or len(option.spec.shape) > 1)
    knows_better = is_telling(name) or configured(module, "vocab_size", "image_size") is not None
    return _unique((*usual, *by_name, *by_layer) if knows_better else (*usual, *by_layer, *by_name))


def _unsuggested(module: nn.Module) -> Iterator[Option]:
    """If nothing says what a parameter is: what the model's first layers take, then anything."""
    floats = float_dtype(module)
    for layer in layers_in_order(module)[:LAYERS_LOOKED_AT]:
        yield from layer_options(layer, floats, is_sequential=_is_sequential(module))
    yield from (Option(spec=spec, reason="nothing but its place") for spec in any_specs(floats))


def _is_sequential(module: nn.Module) -> bool:
    return any(isinstance(part, SEQUENCE_LAYERS) for _, part in plain_modules(module))


def _sequence_length(parameter: inspect.Parameter, module: nn.Module) -> tuple[str, int] | None:
    """`list[Tensor]` takes one for each branch of the model, `tuple[Tensor, Tensor]` as many as it says."""
    text = spelled(parameter.annotation)
    found = re.search(r"\b(list|List|Sequence|Iterable|tuple|Tuple)\[(.*)\]", text)
    if not found or "Tensor" not in found[2]:
        return None
    if found[1].lower() != "tuple":
        return "list", _branches(module)
    return "tuple", 2 if "..." in found[2] else found[2].count("Tensor")


def _branches(module: nn.Module) -> int:
    """The length of the first list of layers; two where there is none."""
    lengths = (len(part) for part in module.modules() if isinstance(part, nn.ModuleList))
    return next((length for length in lengths if 1 < length <= MOST_BRANCHES), 2)


def _unique(options: Iterable[Option]) -> tuple[Option, ...]:
    seen: dict[str, Option] = {}
    for option in options:
        seen.setdefault(repr(option.spec), option)
    return tuple(seen.values())
