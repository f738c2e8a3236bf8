"""Eager to references, broken promises, goldens and facts about its behaviour."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from worker_samples import Recorder, contract, subject, tensor

from export_gate.wall.contract import Controls, Dim, GoldenSource, ModelContract, Output, Size, Tolerance, make_target
from export_gate.wall.observation import HygieneObservation, ModelObservation, OutputLeaf
from export_gate.worker.controls.build import build_control_set
from export_gate.worker.model.reference_file import ReferenceFile
from export_gate.worker.study.eager import Eager, observe_behaviour, observe_eager

BATCH = Dim(name="batch", min=1, max=8)
ROWS = tensor("batch", 3, range=(-10.0, 10.0))
FEW = Controls(random=1, limit=6)


class Halves(nn.Module):
    """Two outputs; raises at a batch of 8."""

    limit = 7

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """float32[batch, 3] to float32[batch] and float32[batch, 3]."""
        if len(x) > self.limit:
            raise ValueError(f"at most {self.limit} rows")
        return x.sum(1), x / 2


def run(module: nn.Module, promised: ModelContract, folder: Path) -> tuple[Eager, ModelObservation]:
    """What eager said, and what was told of it."""
    recorder = Recorder(folder)
    cases = build_control_set(promised, folder).cases
    return observe_eager(
        cases, subject(module, promised), ReferenceFile(folder=folder), recorder.desk
    ), recorder.observation()


def promise(**fields: Any) -> ModelContract:
    """A contract for Halves."""
    return contract({"x": ROWS}, BATCH, **{"controls": FEW, **fields})


def test_references_are_eagers_outputs_by_case(tmp_path: Path):
    """Every control input has eager's leaves, in order, and the model's outputs are described."""
    eager, seen = run(Halves(), promise(), tmp_path)
    cases = build_control_set(promise(), tmp_path).cases
    accepted = [case for case in cases if case.sizes["batch"] <= 7]
    assert list(eager.references) == [case.name for case in accepted]
    for case in accepted:
        total, half = eager.references[case.name].leaves
        given = case.make()["x"]
        assert np.array_equal(total.value, given.sum(1).numpy())
        assert np.array_equal(half.value, given.numpy() / 2)
    assert seen.outputs == eager.outputs
    assert [(leaf.name, leaf.dtype) for leaf in seen.outputs] == [("output.0", "float32"), ("output.1", "float32")]
    assert (seen.reached, seen.hygiene.state_changed) == ("eager", ())


def test_a_refused_control_input_is_a_broken_promise(tmp_path: Path):
    """Eager that raises inside its declared range breaks the contract; the words and the line are the model's."""
    _, seen = run(Halves(), promise(), tmp_path)
    assert {broken.message for broken in seen.broken} == {"ValueError: at most 7 rows"}
    assert all(broken.case.endswith("batch=8") for broken in seen.broken)
    source = seen.broken[0].source
    assert source is not None
    assert source.text == 'raise ValueError(f"at most {self.limit} rows")'


class Norming(Halves):
    """Refuses a single row in train mode, and more than `limit` rows in any."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.limit = limit

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """float32[batch, 3] to float32[batch] and float32[batch, 3]."""
        return super().forward(self.norm(x))


@pytest.mark.parametrize(("limit", "of_training"), [(8, {True}), (7, {False, True})])
def test_what_train_mode_alone_refuses_is_marked(tmp_path: Path, limit: int, of_training: set[bool]):
    """Eval mode takes a single row, of which a batch norm in train mode has no variance, but not too many rows."""
    module = Norming(limit).train()
    hygiene = HygieneObservation(train_modules=("norm (BatchNorm1d)",), train_module_count=2)
    asked = replace(subject(module, promise()), hygiene=hygiene)
    cases = build_control_set(promise(), tmp_path).cases
    broken = observe_eager(cases, asked, ReferenceFile(folder=tmp_path), Recorder(tmp_path).desk).broken
    assert {each.of_training for each in broken} == of_training
    assert all(each.of_training == each.case.endswith("batch=1") for each in broken)
    assert module.training


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), RecursionError("deep")])
def test_whatever_forward_raises_is_a_broken_promise(tmp_path: Path, error: BaseException):
    """An exit or an interrupt in forward is observed like any exception."""

    class Raising(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise error

    eager, seen = run(Raising(), promise(), tmp_path)
    assert eager.references == {}
    assert eager.outputs == ()
    assert len(seen.broken) == 6
    assert seen.broken[0].message.startswith(f"{type(error).__name__}: ")


def test_outputs_have_the_declared_names(tmp_path: Path):
    """Positions are renamed as declared, in references and in the description, and kept promises are silent."""
    outputs = (Output(name="total", dtype="float32", shape=(Size(factors={"batch": 1}),)), Output(name="half"))
    eager, seen = run(Halves(), promise(outputs=outputs), tmp_path)
    assert eager.names == {"output.0": "total", "output.1": "half"}
    assert seen.outputs[0] == OutputLeaf(name="total", dtype="float32", shape=eager.outputs[0].shape)
    assert [leaf.name for leaf in next(iter(eager.references.values())).leaves] == ["total", "half"]
    assert {broken.message for broken in seen.broken} == {"ValueError: at most 7 rows"}


def test_broken_promises_have_full_sentences(tmp_path: Path):
    """Dtype and shape are reported, returned and declared, at each control input."""
    outputs = (
        Output(name="total", dtype="float64"),
        Output(name="half", shape=(Size(factors={"batch": 1}), Size(offset=4))),
    )
    _, seen = run(Halves(), promise(outputs=outputs, controls=Controls(random=1, limit=1)), tmp_path)
    assert [broken.message for broken in seen.broken] == [
        "output 'total' is float32, declared float64",
        "output 'half' has shape [4, 3], declared [4, 4]",
    ]


def test_another_number_of_outputs_is_told_once_per_case(tmp_path: Path):
    """Another number of outputs is one sentence with both lists, and nothing is renamed."""
    promised = promise(outputs=(Output(name="total"),), controls=Controls(random=1, limit=1))
    eager, seen = run(Halves(), promised, tmp_path)
    assert [broken.message for broken in seen.broken] == [
        "eager returned 2 outputs (output.0, output.1), the contract declares 1 (total)"
    ]
    assert eager.names == {}


def golden(folder: Path, **arrays: np.ndarray) -> GoldenSource:
    """A golden file with two rows of input."""
    np.savez(folder / "golden.npz", x=np.arange(6, dtype=np.float32).reshape(2, 3), **arrays)
    return GoldenSource(path="golden.npz", outputs={name: name for name in arrays})


def test_goldens_check_eager_itself(tmp_path: Path):
    """The file's outputs are expected and eager's are actual, whatever the order of the file."""
    named = (Output(name="total"), Output(name="half"))
    source = golden(tmp_path, half=np.zeros((2, 3), np.float32), total=np.array([3, 12.5], np.float32))
    _, seen = run(Halves(), promise(outputs=named, controls=Controls(limit=9, golden=(source,))), tmp_path)
    (result,) = seen.golden
    found = {output.output: output for output in result.outputs}
    assert found["half"].max_abs_diff == 2.5
    assert (found["total"].max_abs_diff, found["total"].expected_at, found["total"].actual_at) == (0.5, 12.5, 12.0)


def test_a_golden_of_some_outputs_checks_those(tmp_path: Path):
    """A golden file need not have all outputs."""
    named = (Output(name="total"), Output(name="half"))
    source = golden(tmp_path, total=np.array([3, 12], np.float32))
    _, seen = run(Halves(), promise(outputs=named, controls=Controls(limit=9, golden=(source,))), tmp_path)
    (result,) = seen.golden
    assert [output.output for output in result.outputs] == ["total"]
    assert result.structure is None


def test_a_golden_that_eager_refuses_is_a_broken_promise(tmp_path: Path):
    """If eager raises at a golden input, there is nothing to compare with it."""
    module = Halves()
    module.limit = 0
    source = golden(tmp_path, total=np.zeros(2, np.float32))
    named = (Output(name="total"), Output(name="half"))
    _, seen = run(module, promise(outputs=named, controls=Controls(limit=9, golden=(source,))), tmp_path)
    assert seen.golden == ()
    assert any(broken.case.startswith("golden.") for broken in seen.broken)


@pytest.mark.parametrize(("own", "axis"), [(Tolerance(axis=1), 1), (Tolerance(), 0)])
def test_goldens_are_judged_along_their_own_axis(tmp_path: Path, own: Tolerance, axis: int):
    """A golden's tolerance axis takes precedence over the model's."""
    source = golden(tmp_path, half=np.zeros((2, 3), np.float32))
    source = replace(source, tolerance=own)
    named = (Output(name="total"), Output(name="half"))
    promised = promise(outputs=named, controls=Controls(limit=9, golden=(source,)), tolerance=Tolerance(axis=0))
    _, seen = run(Halves(), promised, tmp_path)
    assert len(seen.golden[0].outputs[0].per_axis) == (2, 3)[axis]


class Remembering(nn.Module):
    """Adds the number of calls."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The input and the number of earlier calls."""
        self.calls += 1
        return x + self.calls


@pytest.mark.slow
def test_behaviour_is_observed_on_an_instance_that_stays_fresh(tmp_path: Path):
    """State is found, and the references are those of a fresh instance nevertheless."""
    module, recorder = Remembering(), Recorder(tmp_path)
    promised = promise()
    cases = build_control_set(promised, tmp_path).cases
    facts, unknown = observe_behaviour(cases, subject(module, promised), recorder.desk)
    assert unknown is None
    assert facts.state_changed == ("calls: 0 -> 10",)
    assert recorder.observation().hygiene == facts
    assert module.calls == 0


class Sprinkled(nn.Module):
    """Noise from a generator that it seeds once."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, 3] to the same shape."""
        return x + torch.randn(3, generator=self.generator)

    def __deepcopy__(self, memo: dict[int, Any]) -> Sprinkled:
        """As a factory makes it: generators have no copies."""
        return Sprinkled()


def test_a_generator_that_forward_keeps_is_chance(tmp_path: Path):
    """Two copies draw the same numbers, as two counters count alike, and yet what changes is drawn."""
    recorder, promised = Recorder(tmp_path), promise()
    cases = build_control_set(promised, tmp_path).cases
    facts, _ = observe_behaviour(cases, subject(Sprinkled(), promised), recorder.desk)

    assert facts.state_effects == ()
    assert [found.output for found in facts.nondeterministic] == ["output"]
    assert facts.drawn_with == "torch.randn"


GENERATOR = np.random.default_rng(5)


class Numbered(nn.Module):
    """Noise from a generator of NumPy's that nothing seeds again, beside one that is not used."""

    def __init__(self, generator: Any) -> None:
        super().__init__()
        self.generator, self.unused = generator, np.random.default_rng(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, 3] to the same shape."""
        return x + float((self.generator or GENERATOR).normal())


@pytest.mark.slow
@pytest.mark.parametrize("generator", [np.random.default_rng(3), np.random.RandomState(3), None])
def test_a_generator_of_numpys_is_chance_too(generator: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In an attribute or a global variable; a counter stays state, as above."""
    # Made now, as a project's is: what was there when this module was imported is hidden from the collector.
    monkeypatch.setitem(globals(), "GENERATOR", np.random.default_rng(5))
    recorder, promised = Recorder(tmp_path), promise()
    cases = build_control_set(promised, tmp_path).cases
    facts, _ = observe_behaviour(cases, subject(Numbered(generator), promised), recorder.desk)

    assert facts.state_effects == ()
    assert [found.output for found in facts.nondeterministic] == ["output"]
    assert facts.drawn_with == "numpy.random"
    assert facts.drawing is not None
    assert "normal()" in facts.drawing.text


def test_behaviour_of_a_model_that_raises_is_left_to_its_references(tmp_path: Path):
    """If forward raises, only what was known before is recorded."""
    module, recorder = Halves(), Recorder(tmp_path)
    module.limit = 0
    given = subject(module, promise())
    cases = build_control_set(promise(), tmp_path).cases
    facts, unknown = observe_behaviour(cases, given, recorder.desk)
    assert facts == given.hygiene
    assert str(unknown) == "at most 0 rows"


def test_references_follow_one_instances_history(tmp_path: Path):
    """The control inputs are run in order on one instance, so that state shows as it does in an artifact."""
    promised = contract({"x": tensor(1, range=(0.0, 0.0))}, controls=FEW, targets=(make_target("exported-program"),))
    eager, _ = run(Remembering(), promised, tmp_path)
    values = [float(reference.leaves[0].value[0]) for reference in eager.references.values()]
    assert values == [float(number + 1) for number in range(len(values))]
    assert len(values) > 1
