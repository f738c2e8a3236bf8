"""What makes an eager model unfit for a check."""

from __future__ import annotations

import dataclasses
import random
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from export_gate.wall.observation import Comparison, HygieneObservation, RowsDiffering
from export_gate.worker.leaves.values import Call
from export_gate.worker.model import state
from export_gate.worker.model.hygiene import (
    factory_differences,
    observe_hygiene,
    training_modules,
    unseeded_runner,
    weight_digest,
    worst_differences,
)
from export_gate.worker.model.state import restore_state, snapshot_state
from export_gate.worker.model.state_changes import state_changes


def calls(*sizes: int) -> list[Callable[[], Call]]:
    """Calls with one float32[size, 3] input each."""
    return [lambda size=size: Call(args=(torch.arange(3.0 * size).reshape(size, 3),)) for size in sizes]


def observe(module: nn.Module, *sizes: int) -> HygieneObservation:
    """The facts about an instance over calls of these sizes."""
    return observe_hygiene(module, unseeded_runner(module), calls(*(sizes or (2, 3, 4))))


def repeated(module: nn.Module, make: Callable[[], Call], times: int) -> tuple[Comparison, ...]:
    """How further runs of one call differ from the first."""
    run = unseeded_runner(module)
    expected = run(make())
    return worst_differences((expected, run(make())) for _ in range(times - 1))


class Scenario(nn.Module):
    """A module whose forward is given."""

    def __init__(self, forward: Callable[[Any, torch.Tensor], Any], **attributes: Any) -> None:
        super().__init__()
        self.eval()
        self.step = forward
        for name, value in attributes.items():
            if isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, x: torch.Tensor) -> Any:
        """Do what the test gave."""
        return self.step(self, x)


# --- train mode -------------------------------------------------------------------------------------------------------


class DropPath(nn.Module):
    """Stochastic depth as model libraries write it."""

    def __init__(self, drop_prob: float) -> None:
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale the input."""
        return x * (1 - self.drop_prob)


class ReadsTraining(nn.Module):
    """Decides by `self.training` in a method of its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale the input."""
        return self.scaled(x)

    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        """Twice the input in train mode."""
        return x * 2 if self.training else x


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (nn.Dropout(0.1), "Dropout"),
        (nn.Dropout2d(0.1), "Dropout2d"),
        (nn.AlphaDropout(0.1), "AlphaDropout"),
        (nn.BatchNorm1d(3), "BatchNorm1d"),
        (nn.InstanceNorm1d(3, track_running_stats=True), "InstanceNorm1d"),
        (nn.MultiheadAttention(4, 2, dropout=0.1), "MultiheadAttention"),
        (nn.LSTM(3, 3, num_layers=2, dropout=0.1), "LSTM"),
        (nn.RReLU(), "RReLU"),
        (DropPath(0.1), "DropPath"),
        (ReadsTraining(), "ReadsTraining"),
    ],
)
def test_modules_that_act_differently_in_train_mode_are_named(module: nn.Module, name: str) -> None:
    """Dropout, batch norm and the like in train mode are named with their class; in eval mode none is."""
    model = nn.Sequential(nn.Linear(3, 3), module)
    names, count = training_modules(model)
    assert f"1 ({name})" in names
    assert count == sum(1 for _ in model.modules())
    assert training_modules(model.eval()) == ((), 0)


@pytest.mark.parametrize(
    "module",
    [
        nn.Linear(3, 3),
        nn.Dropout(0.0),
        nn.BatchNorm1d(3, track_running_stats=False),
        nn.InstanceNorm1d(3),
        nn.MultiheadAttention(4, 2),
        nn.GRU(3, 3, num_layers=2),
        nn.LayerNorm(3),
        nn.RReLU(0.2, 0.2),
        nn.PairwiseDistance(2),
        DropPath(0.0),
    ],
)
def test_modules_that_act_alike_are_only_counted(module: nn.Module) -> None:
    """A module in train mode that computes the same there is counted, not named."""
    names, count = training_modules(module)
    assert names == ()
    assert count >= 1


def test_the_model_itself_is_called_model() -> None:
    """The outermost module has no name of its own."""
    assert training_modules(nn.Dropout(0.5))[0] == ("model (Dropout)",)


def test_inner_dropout_of_a_transformer_layer_is_found() -> None:
    """A transformer layer in train mode is reported through its dropouts and its attention."""
    names, _ = training_modules(nn.TransformerEncoderLayer(4, 2, dropout=0.1))
    assert names == (
        "self_attn (MultiheadAttention)",
        "dropout (Dropout)",
        "dropout1 (Dropout)",
        "dropout2 (Dropout)",
    )


def test_train_mode_is_part_of_the_observation() -> None:
    """The observation carries the named modules and the count."""
    facts = observe(nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)))
    assert (facts.train_modules, facts.train_module_count) == (("1 (Dropout)",), 3)


def test_torchscript_is_observed() -> None:
    """As the reference of files, a TorchScript module is run like any other."""
    with pytest.warns(DeprecationWarning, match="torch.jit"):
        scripted = torch.jit.script(nn.Linear(3, 3).eval())
    facts = observe(scripted)
    assert (facts.nondeterministic, facts.state_changed, facts.repeats) == ((), (), 6)


# --- weights ----------------------------------------------------------------------------------------------------------


def test_twins_of_a_seeded_factory_have_equal_digests() -> None:
    """Parameters and buffers with equal values have equal digests."""
    models = []
    for _ in range(2):
        torch.manual_seed(0)
        models.append(nn.Sequential(nn.Linear(300, 300), nn.BatchNorm1d(300)))
    first, second = map(weight_digest, models)
    assert list(first) == [
        "0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked",
    ]  # fmt: skip
    assert factory_differences(first, second) == ()


def test_a_single_element_of_a_small_tensor_shows() -> None:
    """Small tensors are digested whole."""
    model = nn.Linear(8, 8)
    before = weight_digest(model)
    with torch.no_grad():
        model.weight[3, 4] += 1e-7
        model.bias[0] = -model.bias[0]
    assert factory_differences(before, weight_digest(model)) == ("weight", "bias")


def test_a_row_of_a_large_tensor_shows() -> None:
    """Large tensors are sampled densely enough to notice a changed row."""
    model = nn.Embedding(2000, 256)
    before = weight_digest(model)
    with torch.no_grad():
        model.weight[1234] = 0
    assert factory_differences(before, weight_digest(model)) == ("weight",)


def test_dtype_shape_and_missing_weights_show() -> None:
    """Weights of another type or shape, and weights that one instance does not have, are named."""
    assert factory_differences({"a": "1", "b": "2"}, {"b": "2", "c": "3"}) == ("a", "c")
    zeros = [torch.zeros(4), torch.zeros(2, 2), torch.zeros(4, dtype=torch.int32), torch.zeros(4, dtype=torch.bfloat16)]
    assert len({state.tensor_digest(tensor) for tensor in zeros}) == 4


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(1.0),
        torch.zeros(0, 3),
        torch.ones(3, dtype=torch.bool),
        torch.ones(2, dtype=torch.complex64).conj(),
        torch.zeros(2, dtype=torch.float8_e4m3fn),
        torch.eye(3).to_sparse(),
        torch.zeros(3, device="meta"),
        torch.zeros(100, 1000).T,
    ],
)
def test_any_tensor_has_a_digest(tensor: torch.Tensor) -> None:
    """Scalars, empty, narrow, sparse, meta and transposed tensors are digested without failing."""
    assert state.tensor_digest(tensor) == state.tensor_digest(tensor.clone())


# --- chance -----------------------------------------------------------------------------------------------------------


def test_a_pure_model_has_no_findings() -> None:
    """A deterministic model without state has nothing to report."""
    assert observe(nn.Linear(3, 3).eval()) == HygieneObservation(repeats=6)


@pytest.mark.parametrize(
    "forward",
    [
        lambda _, x: x + random.random(),
        lambda _, x: x + np.random.rand(),  # noqa: NPY002 - what models use
        lambda _, x: x + torch.rand(1),
        lambda _, x: nn.functional.dropout(x, 0.5, training=True),
        lambda _, x: x + time.perf_counter() % 1,  # a float32 has no milliseconds beside days
    ],
    ids=["python", "numpy", "torch", "dropout", "clock"],
)
def test_chance_and_clocks_are_nondeterministic(forward: Callable[..., Any]) -> None:
    """Random numbers of any library, a dropout that is always on and the clock are noticed in repeats."""
    facts = observe(Scenario(forward))
    (worst,) = facts.nondeterministic
    assert (worst.output, worst.mismatched_elements > 0, facts.repeats) == ("output", True, 6)
    assert (facts.state_changed, facts.state_effects) == ((), ())


def test_only_the_output_that_differs_is_named() -> None:
    """Deterministic outputs next to a random one are not reported."""
    facts = observe(Scenario(lambda _, x: {"stable": x, "noisy": x + torch.rand(1)}))
    assert [c.output for c in facts.nondeterministic] == ["noisy"]


@pytest.mark.parametrize("whole", [True, False])
def test_whole_rows_that_differ_are_told_from_single_elements(whole: bool) -> None:
    """A model that drops samples changes whole rows, dropout single elements."""
    kept = torch.ones(4, 3)
    kept[1, : 3 if whole else 1] = 0.0
    module = Scenario(lambda self, x: (x + 1) * self.masks.pop(0), masks=[torch.ones(4, 3), kept])
    (found,) = repeated(module, calls(4)[0], times=2)

    assert found.rows == RowsDiffering(whole=int(whole), partly=int(not whole), total=4)


def test_the_worst_repeat_is_kept() -> None:
    """Of all repeats the largest difference from the first run is kept."""
    module = Scenario(lambda self, x: x + self.noise.pop(0), noise=[0.0, 1.0, 5.0, -2.0])
    (worst,) = repeated(module, calls(2)[0], times=4)
    assert worst.max_abs_diff == 5.0


def test_a_number_of_outputs_that_varies_is_reported() -> None:
    """An output that comes and goes is reported as missing."""
    module = Scenario(lambda self, x: {"x": x, **({} if self.once.pop(0) else {"extra": x})}, once=[0, 1])
    (worst,) = repeated(module, calls(2)[0], times=2)
    assert (worst.output, worst.expected_dtype, worst.actual_dtype) == ("extra", "float32", "missing")
    assert (worst.expected_shape, worst.actual_shape) == ((2, 3), ())


def test_a_shape_that_varies_is_reported() -> None:
    """An output whose shape depends on chance is reported with both shapes."""
    module = Scenario(lambda self, x: x[: self.rows.pop(0)], rows=[2, 1])
    (worst,) = repeated(module, calls(2)[0], times=2)
    assert (worst.expected_shape, worst.actual_shape) == ((2, 3), (1, 3))


# --- changed inputs ---------------------------------------------------------------------------------------------------


def test_an_input_changed_in_place_is_named() -> None:
    """The report has the input's own name."""
    assert observe(Scenario(lambda _, x: x.add_(1))).mutated_inputs == ("x",)


class Nested(nn.Module):
    """Changes one tensor of a list, a keyword argument, and a list itself."""

    def forward(self, pyramid: list[torch.Tensor], *, mask: torch.Tensor, cache: list[torch.Tensor]) -> torch.Tensor:
        """Sum of what it got."""
        pyramid[1].zero_()
        mask |= True
        cache.append(mask)
        return pyramid[0] + pyramid[1]


def test_nested_and_keyword_inputs_are_named_by_their_path() -> None:
    """A tensor in a list is named with its index; a list that grew is named itself."""

    def make() -> Call:
        return Call(
            args=([torch.ones(2), torch.ones(2)],),
            kwargs={"mask": torch.zeros(2, dtype=torch.bool), "cache": []},
        )

    module = Nested().eval()
    facts = observe_hygiene(module, unseeded_runner(module), [make])
    assert facts.mutated_inputs == ("pyramid.1", "mask", "cache")
    assert facts.nondeterministic == ()


def test_nan_inputs_are_not_taken_for_changed() -> None:
    """An input with NaN that stays as it was is not reported."""
    module = nn.Linear(3, 3).eval()
    make = [lambda: Call(args=(torch.full((2, 3), float("nan")),))]
    assert observe_hygiene(module, unseeded_runner(module), make).mutated_inputs == ()


# --- state ------------------------------------------------------------------------------------------------------------


def _count_buffer(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.steps += 1
    return x * self.steps


def _count_python(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.count += 1
    return x * self.count


def _append(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.history.append(x)
    return x * len(self.history)


def _carry(self: Any, x: torch.Tensor) -> torch.Tensor:
    last, self.last = self.last, x.sum()
    return x if last is None else x + last


@pytest.mark.parametrize(
    ("module", "changes"),
    [
        (Scenario(_count_buffer, steps=torch.tensor(0)), ("steps: 0 -> 9",)),
        (Scenario(_count_python, count=0), ("count: 0 -> 9",)),
        (Scenario(_append, history=[]), ("history: list of 0 -> list of 9",)),
        (Scenario(_carry, last=None), ("last: None -> 15",)),
    ],
    ids=["buffer", "number", "list", "tensor"],
)
def test_state_that_changes_outputs_is_an_effect_and_not_chance(module: nn.Module, changes: tuple[str, ...]) -> None:
    """A counter, a growing list or a remembered tensor that affects the output is a state effect, wherever it is."""
    facts = observe(module)
    assert facts.state_changed == changes
    assert [c.output for c in facts.state_effects] == ["output"]
    assert facts.state_effects[0].max_abs_diff > 0
    assert facts.nondeterministic == ()


def _switch(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.turn = (self.turn + 1) % self.turns
    return x + self.turn


@pytest.mark.parametrize("turns", [3, 9])
def test_state_that_is_back_where_it_began_is_seen(turns: int) -> None:
    """A switch or a cycle that the observed calls go through a whole number of times is an effect, not chance."""
    facts = observe(Scenario(_switch, turn=0, turns=turns))
    assert facts.state_changed == ("turn: 0 -> 1",)
    assert [c.output for c in facts.state_effects] == ["output"]
    assert facts.nondeterministic == ()


def _seldom(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.count += 1
    return x + 1 if self.count % 64 == 0 else x


def test_a_counter_that_acts_once_in_many_calls_is_an_effect() -> None:
    """Calls go on where state changes and nothing shows, until something does."""
    facts = observe(Scenario(_seldom, count=0))
    assert facts.state_effects[0].max_abs_diff == 1.0
    assert facts.nondeterministic == ()


def _cached_mask(self: Any, x: torch.Tensor) -> torch.Tensor:
    if self.mask is None or self.mask.shape != x.shape:
        self.mask = torch.ones_like(x, dtype=torch.bool).tril()
    return x.masked_fill(~self.mask, 0.0)


def test_a_cached_tensor_is_no_effect() -> None:
    """A mask that is kept on the module changes its state but not its function."""
    facts = observe(Scenario(_cached_mask, mask=None))
    assert facts.state_changed == ("mask: None -> bool[2, 3]",)
    assert (facts.state_effects, facts.nondeterministic) == ((), ())


def _stale_cache(self: Any, x: torch.Tensor) -> torch.Tensor:
    if self.scale is None:
        self.scale = float(x.abs().max())
    return x / self.scale


def test_a_cache_that_keeps_the_first_input_is_an_effect() -> None:
    """A cache that the first input fills changes the outputs of later, different ones."""
    facts = observe(Scenario(_stale_cache, scale=None))
    assert facts.state_changed == ("scale: None -> 5",)
    (effect,) = facts.state_effects
    assert (effect.expected_at, effect.actual_at) == (1.0, float(np.float32(2.2)))
    assert effect.expected_shape == (4, 3)
    assert facts.nondeterministic == ()


def test_a_stale_cache_needs_different_inputs_to_show() -> None:
    """With one input only, the same model looks stateless in its outputs: only different calls find it."""
    assert observe(Scenario(_stale_cache, scale=None), 2).state_effects == ()


def _hidden(x: torch.Tensor, seen: list[int]) -> torch.Tensor:
    seen.append(len(x))
    return x * len(set(seen))


def test_state_that_cannot_be_seen_still_shows_in_the_outputs() -> None:
    """The first call's output is compared with a later one, so the effect of a global is found."""
    seen: list[int] = []
    facts = observe(Scenario(lambda _, x: _hidden(x, seen)))
    assert facts.state_changed == ()
    assert [c.output for c in facts.state_effects] == ["output"]


def test_batch_norm_in_train_mode_changes_its_buffers() -> None:
    """Running statistics that forward updates are listed with a value before and after."""
    facts = observe(nn.BatchNorm1d(3, momentum=0.5), 2)
    assert facts.state_changed == (
        "running_mean[0]: 0 -> 1.48828 (3 of 3 elements differ)",
        "running_var[0]: 1 -> 4.47266 (3 of 3 elements differ)",
        "num_batches_tracked: 0 -> 7",
    )
    assert facts.state_effects == ()


def test_chance_beside_state_is_told_apart() -> None:
    """If one output is random and another depends on a counter, each is reported once, with its own cause."""

    def both(self: Any, x: torch.Tensor) -> dict[str, torch.Tensor]:
        self.count += 1
        return {"random": x + torch.rand(1), "counted": x * self.count}

    facts = observe(Scenario(both, count=0))
    assert [c.output for c in facts.nondeterministic] == ["random"]
    assert [c.output for c in facts.state_effects] == ["counted"]


def test_the_instance_is_left_as_fresh() -> None:
    """After the observation, the module has its original state."""
    module = Scenario(_append, history=[], count=0, steps=torch.tensor(3))
    history, steps = module.history, module.steps
    observe(module)
    assert (module.history, int(module.steps)) == ([], 3)
    assert module.history is history
    assert module.steps is steps


def _decay(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.weight.mul_(0.5)
    return x * self.weight[0, 0]


def test_a_large_parameter_that_forward_changes_is_an_effect() -> None:
    """Weights too large to copy are compared by digest; their effect is reported although they cannot be restored."""
    facts = observe(Scenario(_decay, weight=nn.Parameter(torch.ones(300, 300))))
    assert facts.state_changed == ("weight: float32[300, 300] -> float32[300, 300] (other content)",)
    assert [c.output for c in facts.state_effects] == ["output"]
    assert facts.nondeterministic == ()


def test_what_forward_raises_comes_through() -> None:
    """An exception of the model reaches the caller, which records it."""
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        observe(nn.Linear(4, 4).eval())


def _fails_second(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.rows = self.rows or len(x)
    return x * torch.ones(self.rows, 1)


def test_the_instance_is_fresh_again_after_an_exception() -> None:
    """If forward raises at a later input, the state that earlier ones left is undone."""
    module = Scenario(_fails_second, rows=None)
    with pytest.raises(RuntimeError, match="must match"):
        observe(module)
    assert module.rows is None


# --- snapshots --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Memory:
    """An object of the project that a module may hold."""

    steps: int = 0
    rows: list[int] = dataclasses.field(default_factory=list)


def _set(name: str, value: Any) -> Callable[[Any], None]:
    return lambda module: setattr(module, name, value)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (_set("number", 2.5), "number: 1 -> 2.5"),
        (_set("number", True), "number: 1 -> True"),
        (_set("text", "b" * 50), "text: 'a' -> '" + "b" * 36 + "..."),
        (_set("nothing", torch.zeros(2, 2)), "nothing: None -> float32[2, 2]"),
        (_set("extra", 1), "extra: (absent) -> 1"),
        (lambda m: delattr(m, "text"), "text: 'a' -> (absent)"),
        (lambda m: m.items.append(3), "items: list of 2 -> list of 3"),
        (lambda m: m.items.__setitem__(1, 7), "items[1]: 2 -> 7"),
        (lambda m: m.table.update(k=2), "table['k']: 1 -> 2"),
        (lambda m: m.table.update(z=2), "table: dict of 1 -> dict of 2"),
        (lambda m: m.table.update(z=m.table.pop("k")), "table: dict of 1 -> dict of 1 (other content)"),
        (lambda m: m.queue.append(1), "queue: deque of 0 -> deque of 1"),
        (lambda m: m.known.add(5), "known: set of 1 -> set of 2"),
        (lambda m: m.array.__setitem__(0, 1), "array: float64[2] -> float64[2] (other content)"),
        (lambda m: m.pair[0].add_(1), "pair[0][1]: 0 -> 1 (1 of 2 elements differ)"),
        (lambda m: m.memory.rows.append(1), "memory.rows: list of 0 -> list of 1"),
        (_set("memory", Memory(steps=4)), "memory.steps: 0 -> 4"),
        (lambda m: m.inner.bias.data.zero_(), "inner.bias[0]: 1 -> 0 (2 of 2 elements differ)"),
        (lambda m: m.inner.train(), "inner.training: False -> True"),
        (_set("inner", nn.Identity()), "inner: Linear -> Identity"),
        (lambda m: m.register_buffer("late", torch.zeros(1)), "late: (absent) -> 0"),
        (_set("callback", max), "callback: builtin_function_or_method -> builtin_function_or_method (other content)"),
    ],
)
def test_every_kind_of_change_is_described_and_undone(change: Callable[[Any], None], text: str) -> None:
    """A change of any attribute of the module tree is one readable line, and restoring leaves no change."""
    module: Any = nn.Module().eval()
    pair = (torch.tensor([float("nan"), 0.0]), 1)
    module.number, module.text, module.nothing, module.items, module.table = 1, "a", None, [1, 2], {"k": 1}
    module.queue, module.known, module.array, module.pair = deque(), {1}, np.zeros(2), pair
    module.memory, module.callback, module.itself = Memory(), min, module
    module.inner = nn.Linear(2, 2).eval()
    module.inner.bias.data.fill_(1)
    before = snapshot_state(module)
    assert state_changes(before, module) == ()
    if text.startswith("pair"):
        pair[0][1] = -1.0  # a change made and taken back is none
        pair[0][1] = 0.0
        change = lambda m: m.pair[0][1:].add_(1)  # noqa: E731
    change(module)
    assert state_changes(before, module) == (text,)
    assert restore_state(before)
    assert state_changes(before, module) == ()


def test_equal_replacements_are_no_change() -> None:
    """A buffer replaced by an equal tensor, NaN included, is not a change."""
    module = nn.Module()
    module.register_buffer("cache", torch.tensor([1.0, float("nan")]))
    before = snapshot_state(module)
    module.cache = module.cache.clone()
    assert state_changes(before, module) == ()


def test_a_number_in_place_of_nan_is_a_change() -> None:
    """An attribute that starts as NaN, such as a last loss, is state like any other."""
    module: Any = nn.Module()
    module.loss, module.other = float("nan"), float("nan")
    before = snapshot_state(module)
    module.loss, module.other = 0.5, -float("nan")
    assert state_changes(before, module) == ("loss: nan -> 0.5",)


def test_a_resized_buffer_is_put_back() -> None:
    """A buffer whose storage forward replaced gets its old shape and values again."""
    module = nn.Module()
    module.register_buffer("cache", torch.zeros(2))
    before = snapshot_state(module)
    module.cache.data = torch.ones(3)
    assert state_changes(before, module) == ("cache: float32[2] -> float32[3]",)
    assert restore_state(before)
    assert module.cache.tolist() == [0.0, 0.0]


def test_long_containers_are_watched_by_length() -> None:
    """A vocabulary of many entries costs nothing, but its growth is noticed."""
    module: Any = nn.Module()
    module.vocabulary = list(range(20_000))
    before = snapshot_state(module)
    module.vocabulary.append(1)
    assert state_changes(before, module) == ("vocabulary: list of 20000 -> list of 20001",)


def test_uninitialized_and_quantized_weights_do_not_stop_the_snapshot() -> None:
    """Tensors whose values cannot be read are compared by identity."""
    module: Any = nn.Sequential(nn.LazyLinear(2))
    module.quantized = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    module.shape_only = torch.zeros(2, device="meta")
    before = snapshot_state(module)
    assert restore_state(before)
    assert state_changes(before, module) == ()


def test_an_array_that_cannot_be_written_hides_nothing() -> None:
    """What was not changed need not be restored, so a view of a file does not stop the search for randomness."""

    class Tabled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = np.broadcast_to(np.float32(1), (3,))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.dropout(x, 0.5, training=True)

    assert [found.output for found in observe(Tabled().eval()).nondeterministic] == ["output"]
