"""Observe what makes an eager module unfit for a check: train mode, randomness, changed inputs, state between calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from export_gate.wall.observation import Comparison, HygieneObservation, RowsDiffering
from export_gate.worker.leaves.compare import compare_case, compare_leaf
from export_gate.worker.leaves.values import Call, Leaf, flatten
from export_gate.worker.model.factory import forward_parameters
from export_gate.worker.model.reference import Runner, leaves_of
from export_gate.worker.model.state import State, restore_state, snapshot_state, tensor_digest
from export_gate.worker.model.state_changes import state_changes
from export_gate.worker.process.integrity import guarded

REPEATS = 6
"""Runs of one call: a draw with two outcomes gives the same one in all of them once in 32 times."""
WHOLE_ROW = 0.9
"""A row differs altogether from this share of its elements on: some may agree by chance, as zeros do."""
SEQUENCE = 4
"""Number of different calls made in a row."""
LONG, LONG_WEIGHTS = 256, 1 << 28
"""Further calls where state changes and shows in no output, and the weights that they may pass through in all."""

Maker = Callable[[], Call]
"""Creates the same call each time, with fresh arguments."""


def unseeded_runner(module: torch.nn.Module) -> Runner:
    """Run eager under no_grad without seeding, so that randomness shows."""
    forward = guarded(module)

    def run(call: Call) -> tuple[Leaf, ...]:
        with torch.no_grad():
            returned = forward(*call.args, **call.kwargs)
        return leaves_of(returned)

    return run


def observe_hygiene(module: torch.nn.Module, run: Runner, calls: Sequence[Maker]) -> HygieneObservation:
    """Observe one instance, which must not have run before; its fresh state is restored afterwards.

    The first call is repeated, then others follow in a row, then the first again: about 10 forwards. Only if the module
    changed is each call made once more from the fresh state.

    Args:
        module: The fresh instance.
        run: Runs it without seeding (see `unseeded_runner`): with a seed, a random model looks deterministic.
        calls: The smallest first; at most four are used.

    Raises:
        Exception: Whatever forward raises.
    """
    train, train_count = training_modules(module)
    fresh = snapshot_state(module)
    try:
        facts = _observe_runs(module, run, calls, fresh)
    finally:
        restore_state(fresh)
    return replace(facts, train_modules=train, train_module_count=train_count)


def _observe_runs(module: torch.nn.Module, run: Runner, calls: Sequence[Maker], fresh: State) -> HygieneObservation:
    parameters = [parameter.name for parameter in forward_parameters(module)]
    changed_inputs: dict[str, None] = {}

    def observed(make: Maker) -> tuple[Leaf, ...]:
        call = make()
        leaves = run(call)
        changed_inputs.update(dict.fromkeys(mutated(make(), call, parameters)))
        return leaves

    def from_fresh(make: Maker) -> tuple[Leaf, ...]:
        restore_state(fresh)
        return run(make())

    first, used = calls[0], [*calls[1:SEQUENCE], calls[0]]
    expected = observed(first)
    repeats = worst_differences((expected, observed(first)) for _ in range(REPEATS - 1))
    outputs = [observed(make) for make in used]
    changes = state_changes(fresh, module)
    if repeats and not changes:  # a switch or a cycle may be back where it began; one call later it is not
        observed(first)
        changes = state_changes(fresh, module)
    # State explains a difference between repeats as well as chance does. So once something changed, only runs from the
    # fresh state count as chance, and only outputs that are steady there can show an effect of state.
    chance, pairs = repeats, [(expected, outputs[-1])]
    if changes and not restore_state(fresh):  # a large parameter changed: nothing can be run as fresh again
        chance = ()
    elif changes:
        chance = worst_differences((expected, from_fresh(first)) for _ in range(REPEATS - 1)) if repeats else ()
        pairs = [(from_fresh(make), output) for make, output in zip(used, outputs, strict=True)]
    by_chance = {comparison.output for comparison in chance}
    effects = worst_by_output([*repeats, *worst_differences(pairs)])
    if changes and not effects:
        effects = _late_effects(module, lambda: run(first()), expected)
    return HygieneObservation(
        repeats=REPEATS,
        nondeterministic=chance,
        mutated_inputs=tuple(changed_inputs),
        state_changed=changes,
        state_effects=tuple(comparison for comparison in effects if comparison.output not in by_chance),
    )


def _late_effects(
    module: torch.nn.Module, call: Callable[[], tuple[Leaf, ...]], expected: tuple[Leaf, ...]
) -> tuple[Comparison, ...]:
    """How the same call first differs from before, many calls later: a counter may act once in so many."""
    before = snapshot_state(module)
    call()
    if not state_changes(before, module):  # a cache that is filled by now
        return ()
    weights = sum(parameter.numel() for parameter in module.parameters())
    later = (_differences(expected, call()) for _ in range(min(LONG, LONG_WEIGHTS // max(weights, 1))))
    return next(filter(None, later), ())


def worst_differences(pairs: Iterable[tuple[Sequence[Leaf], Sequence[Leaf]]]) -> tuple[Comparison, ...]:
    """Outputs that are not exactly equal: for each, the worst of all (expected, actual) pairs."""
    return worst_by_output(comparison for expected, actual in pairs for comparison in _differences(expected, actual))


def _differences(expected: Sequence[Leaf], actual: Sequence[Leaf]) -> tuple[Comparison, ...]:
    result = compare_case("", expected, actual)
    if result.structure is not None:
        return _missing_leaves(expected, actual)
    before, after = ({leaf.name: leaf for leaf in leaves} for leaves in (expected, actual))
    return tuple(
        replace(comparison, rows=_rows(before[comparison.output], after[comparison.output]))
        for comparison in result.outputs
        if _severity(comparison) > (False, 0, 0.0, 0)
    )


def _rows(expected: Leaf, actual: Leaf) -> RowsDiffering | None:
    """Which rows differ: a model that drops samples changes whole ones."""
    one, other = expected.value, actual.value
    if one is None or other is None or one.shape != other.shape or one.ndim < 2 or 0 in one.shape:  # noqa: PLR2004 - a row has elements
        return None
    is_other = (one != other) & ~((one != one) & (other != other))  # noqa: PLR0124 - NaN is not equal to itself
    shares = is_other.reshape(len(one), -1).mean(axis=1)
    whole = int((shares >= WHOLE_ROW).sum())
    return RowsDiffering(whole=whole, partly=int((shares > 0).sum()) - whole, total=len(one))


def _severity(comparison: Comparison) -> tuple[bool, int, float, int]:
    # As a tuple, another type outweighs any number, and a NaN in another place any difference.
    expected = (comparison.expected_dtype, comparison.expected_shape)
    is_other = expected != (comparison.actual_dtype, comparison.actual_shape)
    counts = comparison.nonfinite_mismatched, comparison.max_abs_diff, comparison.mismatched_elements
    return (is_other, *counts)


def worst_by_output(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """The worst comparison of each output."""
    worst: dict[str, Comparison] = {}
    for comparison in comparisons:
        known = worst.get(comparison.output)
        if known is None or _severity(comparison) > _severity(known):
            worst[comparison.output] = comparison
    return tuple(worst.values())


def _missing_leaves(expected: Sequence[Leaf], actual: Sequence[Leaf]) -> tuple[Comparison, ...]:
    """Leaves that only one side has, or that have another type there; the other side's dtype is `missing`."""
    before, after = ({leaf.name: leaf for leaf in leaves} for leaves in (expected, actual))

    def side(leaf: Leaf | None) -> tuple[str, tuple[int, ...]]:
        return ("missing", ()) if leaf is None else (leaf.dtype, () if leaf.value is None else leaf.value.shape)

    pairs = {name: (side(before.get(name)), side(after.get(name))) for name in {**before, **after}}
    return tuple(
        Comparison(output=name, expected_dtype=e[0], actual_dtype=a[0], expected_shape=e[1], actual_shape=a[1])
        for name, (e, a) in pairs.items()
        if e != a
    )


def mutated(before: Call, after: Call, parameters: Sequence[str]) -> tuple[str, ...]:
    """Names of inputs that a call changed in place; `parameters` are forward's, for positional arguments."""
    named = dict(enumerate(parameters))
    pairs = [(named.get(i, f"args.{i}"), *pair) for i, pair in enumerate(zip(before.args, after.args, strict=True))]
    pairs += [(name, value, after.kwargs[name]) for name, value in before.kwargs.items()]
    return tuple(name for input_name, old, new in pairs for name in _changed_leaves(input_name, old, new))


def _changed_leaves(name: str, old: Any, new: Any) -> tuple[str, ...]:
    before, after = flatten(old, name), flatten(new, name)
    if [(leaf.name, leaf.dtype) for leaf in before] != [(leaf.name, leaf.dtype) for leaf in after]:
        return (name,)
    pairs = zip(before, after, strict=True)
    return tuple(b.name for b, a in pairs if b.value is not None and _severity(compare_leaf(b, a)) > (False, 0, 0.0, 0))


def weight_digest(module: torch.nn.Module) -> dict[str, str]:
    """Digest of each parameter and buffer; sampled above 65,536 elements."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    return {name: tensor_digest(tensor) for name, tensor in tensors}


def factory_differences(first: dict[str, str], second: dict[str, str]) -> tuple[str, ...]:
    """Parameters and buffers whose digests differ, or that only one of two instances has."""
    return tuple(name for name in {**first, **second} if first.get(name) != second.get(name))


def training_modules(module: torch.nn.Module) -> tuple[tuple[str, ...], int]:
    """Submodules that behave differently in train mode, as `name (Class)`, and the number of all in train mode."""
    # TorchScript that was frozen has no mode left.
    training = [(name, part) for name, part in module.named_modules() if getattr(part, "training", False)]
    acting = tuple(f"{name or 'model'} ({_class_name(part)})" for name, part in training if _acts_differently(part))
    return acting, len(training)


def _class_name(part: torch.nn.Module) -> str:
    return str(part.original_name) if isinstance(part, torch.jit.ScriptModule) else type(part).__name__


def _acts_differently(part: torch.nn.Module) -> bool:
    if isinstance(part, torch.jit.ScriptModule):
        return str(part.original_name).startswith(SCRIPTED)
    if isinstance(part, _DropoutNd):
        return bool(part.p > 0)
    # Without running statistics, a norm uses those of the batch in both modes.
    if isinstance(part, _NormBase):
        return bool(part.running_mean is not None)
    if isinstance(part, torch.nn.RNNBase):
        # Dropout acts between the layers of a recurrent network, so a single layer has none.
        return bool(part.dropout > 0 and part.num_layers > 1)
    if isinstance(part, torch.nn.RReLU):
        # In train mode the slope is drawn between the two; in eval mode it is their mean.
        return bool(part.lower != part.upper)
    return any(_is_drop_rate(name, value) for name, value in vars(part).items()) or _reads_training(type(part))


SCRIPTED = ("Dropout", "AlphaDropout", "FeatureAlphaDropout", "BatchNorm", "SyncBatchNorm", "InstanceNorm", "RReLU")
"""Names of the classes that TorchScript modules were, as far as their name says it."""


def _is_drop_rate(name: str, value: Any) -> bool:
    return (name == "p" or "drop" in name) and isinstance(value, float) and 0 < value <= 1


def _reads_training(kind: type) -> bool:
    """Whether a method of a class outside torch reads `self.training`."""
    own = [cls for cls in kind.__mro__ if cls.__module__.partition(".")[0] not in ("torch", "builtins")]
    # These three only set the flag, or pass it on.
    methods = [value for cls in own for name, value in vars(cls).items() if name not in ("__init__", "train", "eval")]
    return any("training" in getattr(getattr(method, "__code__", None), "co_names", ()) for method in methods)
