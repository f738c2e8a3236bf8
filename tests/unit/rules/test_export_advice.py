"""Advice on messages that torch really gives: each test exports a tiny model that torch refuses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from rule_samples import LINE, contract
from torch.export import Dim as TorchDim

from export_gate.report.findings import cause_words
from export_gate.rules.contract_broken import check as check_contract
from export_gate.rules.conversion_failed import check as check_conversion
from export_gate.rules.export_advice import export_advice
from export_gate.rules.export_failed import check as check_export
from export_gate.rules.export_failed import essence
from export_gate.rules.measure import measure
from export_gate.wall.contract import Dim
from export_gate.wall.diagnosis import ExportGuard, ExportTrial
from export_gate.wall.observation import Failure, ModelObservation, Stage, TargetObservation
from export_gate.wall.source import SourceLine
from export_gate.worker.nodes.stopped import stopped_node
from export_gate.worker.process.failures import failure_of
from export_gate.worker.study.trial_exports import is_about_sizes

PROJECT = Path(__file__).parent / "refused"


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The user's project, imported as the worker imports it."""
    monkeypatch.syspath_prepend(str(PROJECT))
    import refused_models

    yield refused_models
    sys.modules.pop("refused_models")


def _refusal(model: torch.nn.Module, *args: torch.Tensor, **shapes: Any) -> Failure:
    with pytest.raises(Exception) as caught:
        torch.export.export(model, args, dynamic_shapes=shapes or None)
    return failure_of(caught.value, "export", [PROJECT])


def _advice(failure: Failure, *dims: Dim, recurrent: dict[str, str] | None = None) -> str:
    return export_advice(contract(dims=dims), failure, recurrent or {})


CHUNKED = Failure(
    stage="export",
    kind="raised",
    type="UserError",
    message="Constraints violated (n)!\n  - Not all values of n satisfy the generated guard (n % 8) != 0.",
)


@pytest.mark.parametrize(
    ("trials", "start"),
    [
        (
            (
                ExportTrial(dim="n", declared={"mode": "auto"}, answer="differs"),
                ExportTrial(dim="n", declared={"multiple-of": 3}, answer="exported"),
                ExportTrial(dim="n", declared={"min": 4, "max": 9}, answer="exported"),
            ),
            (
                "If callers send no other sizes, declare `models.glyph-head.dims.n.multiple-of: 3`, which leaves 3, 6, "
                "9, 12, 15 and 18 of the declared 2..20: this was tried, and the program gives eager's results "
                "(`onnx` was not converted: the next run shows whether it needs more). "
                "`models.glyph-head.dims.n: {min: 4, max: 9}` would do as well. "
                "Otherwise "
            ),
        ),
        (
            (
                ExportTrial(dim="n", declared={"mode": "auto"}, answer="exported"),
                ExportTrial(dim="n", declared={"multiple-of": 3}, answer="exported"),
            ),
            "Declare `models.glyph-head.dims.n.mode: auto`: this was tried, and the program has the whole range and",
        ),
        (
            (ExportTrial(dim="n", declared={"example": 6}, answer="refused", constant=6),),
            "torch.export fixes 'n' to the size of its example input, whichever that is (6 was tried as well). ",
        ),
        (
            (ExportTrial(dim="n", declared={"multiple-of": 2}, answer="refused"),),
            "torch.export follows one side of a condition only. Compute the same without it; or give the sizes of ",
        ),
        ((), "Make `models.glyph-head.dims` and the shapes under `inputs` match"),
    ],
)
def test_only_what_a_trial_export_showed_is_advised(trials: tuple[ExportTrial, ...], start: str):
    """What exports with eager's results is advised first; then a constant that follows its example; then the branch."""
    assert export_advice(contract(dims=(Dim(name="n", min=2, max=20),)), CHUNKED, {}, trials).startswith(start)


def test_one_step_and_one_range_are_enough():
    """Each further one leaves out more sizes."""
    steps = [ExportTrial(dim="n", declared={"multiple-of": n, "min": 2 * n}, answer="exported") for n in (3, 4, 5)]
    advice = export_advice(contract(dims=(Dim(name="n", min=2, max=20),)), CHUNKED, {}, steps)
    assert "`models.glyph-head.dims.n: {multiple-of: 3, min: 6}`" in advice
    assert "would do as well" not in advice


def test_an_export_with_other_results_is_told_apart_from_a_refusal():
    """Who declares it would get a program that is silently wrong."""
    trials = (
        ExportTrial(dim="n", declared={"mode": "auto"}, answer="differs"),
        ExportTrial(dim="n", declared={"min": 4, "max": 9}, answer="refused"),
    )
    advice = export_advice(contract(dims=(Dim(name="n", min=2, max=20),)), CHUNKED, {}, trials)
    assert advice.endswith(
        "Tried and refused: `min: 4, max: 9`. Exported, but with other results than eager's: `mode: auto`."
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("if n % 8 == 0:", "the model takes another branch where `n` is 8 or 16"),
        ("parts = cut(x, 3)", "it needs another program where `n` is 8 or 16, for example"),
        ("parts = torch.chunk(x, 3)", "one program cannot have all sizes of `torch.chunk(x, 3)`"),
    ],
)
def test_a_line_without_a_condition_is_not_called_a_branch(text: str, said: str):
    """Then it is torch, or the operator, that tells the sizes apart; a long condition is said by them."""
    broken = "n + -2 * ((n + 2) // 3 + (n + 1) // 2 + n % 4) == 1"
    guard = ExportGuard(
        holds="True", broken=broken, dims=("n",), sizes=(8, 16), source=SourceLine(path="m.py", line=3, text=text)
    )
    seen = ModelObservation(model="glyph-head", failure=CHUNKED, export_guard=guard)
    (found,) = check_export(measure(contract(dims=(Dim(name="n", min=2, max=20),)), seen))
    assert found.message.endswith(said)


def test_a_condition_on_two_dims_is_put_into_the_program():
    """Neither a range nor exports for single sizes of one dim express it."""
    guard = ExportGuard(holds="n <= m", broken="n > m", dims=("m", "n"))
    trials = (ExportTrial(dim="n", declared={"multiple-of": 2}, answer="refused"),)
    dims = (Dim(name="m", min=2, max=20), Dim(name="n", min=2, max=20))
    hint = export_advice(contract(dims=dims), CHUNKED, {}, trials, guard)

    assert "let `torch.cond(n > m, f, g, (...))` choose, or compute both sides and choose with" in hint
    assert "`torch.where(torch.scalar_tensor(n) > m, one_side, other_side)`" in hint
    assert "separate" not in hint


@pytest.mark.parametrize(
    ("guard", "said"),
    [
        (
            ExportGuard(holds="n == 5", broken="n != 5", dims=("n",)),
            "torch.export cannot keep `n` dynamic (declared 2..20): tracing fixed it at 5, its size in the example",
        ),
        (
            ExportGuard(holds="n <= m", broken="n > m", dims=("m", "n")),
            (
                "torch.export cannot keep `m` and `n` dynamic (declared m 4..8 in steps of 4, n 2..20): "
                "the model takes another branch where `n > m`"
            ),
        ),
        (
            ExportGuard(holds="2 * (n // 2) < n + 1", dims=("n",)),
            (
                "torch.export cannot keep `n` dynamic (declared 2..20): "
                "it cannot prove that `2 * (n // 2) < n + 1` for every size"
            ),
        ),
        (
            ExportGuard(holds="n + 1 == n + 1", dims=("n",)),
            (
                "torch.export cannot keep `n` dynamic (declared 2..20): it cannot prove a condition that all declared "
                "sizes meet"
            ),
        ),
    ],
)
def test_a_refused_size_is_said_in_the_contracts_words(guard: ExportGuard, said: str):
    """Not in those of torch's own symbols."""
    dims = (Dim(name="n", min=2, max=20), Dim(name="m", min=4, max=8, multiple_of=4))
    seen = ModelObservation(model="glyph-head", failure=CHUNKED, export_guard=guard)
    (found,) = check_export(measure(contract(dims=dims), seen))
    assert found.message == f"glyph-head: {said}"


def _line(failure: Failure) -> str:
    assert failure.source is not None
    return f"{failure.source.path}:{failure.source.line} `{failure.source.text}`"


@pytest.mark.slow
def test_a_recurrent_layer_is_named_where_its_length_is_the_constant(models: Any):
    """The advice has what works; a layer whose length is another dim is not mentioned."""
    layer = torch.nn.LSTM(3, 4, batch_first=True)
    failure = _refusal(models.Recurrent(layer), torch.ones(2, 5, 3), x={0: TorchDim("batch"), 1: TorchDim("time")})
    dims = (Dim(name="batch", min=2, max=8), Dim(name="time", min=2, max=8))

    assert _advice(failure, *dims, recurrent={"rnn (LSTM)": "time"}) == (
        "torch.export unrolls rnn (LSTM) over its length, which is then a constant (torch 2.13). Export the model with "
        "`torch.onnx.export(..., dynamo=False, dynamic_axes=...)`, which keeps the length dynamic, and verify that "
        "file alone: `models.glyph-head.targets: {onnx: {artifact: dist/model.onnx}}`. If one length is "
        "enough, declare its dim `mode: static`."
    )
    assert "torch.export unrolls" not in _advice(failure, *dims, recurrent={"rnn (LSTM)": "batch"})
    assert "torch.export unrolls" not in _advice(failure, *dims, recurrent={"rnn (LSTM)": "packed"})


@pytest.mark.slow
def test_a_layer_that_is_unrolled_is_the_cause_in_words(models: Any):
    """A condition on sizes is what torch says of it, and no line of the model has one."""
    layer = torch.nn.LSTM(3, 4, batch_first=True)
    failure = _refusal(models.Recurrent(layer), torch.ones(2, 5, 3), x={0: TorchDim("batch"), 1: TorchDim("time")})
    dims = (Dim(name="batch", min=2, max=8), Dim(name="time", min=2, max=8))
    seen = ModelObservation(model="glyph-head", failure=failure, recurrent={"rnn (LSTM)": "time"})
    (found,) = check_export(measure(contract(dims=dims), seen))

    assert cause_words(found) == "a recurrent layer that torch.export unrolls: rnn (LSTM)"


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ("model", "the model cannot be created, so no input was tried"),
        ("controls", "the control inputs cannot be made as the contract declares them"),
        ("eager", "eager refuses these inputs (in the model)"),
    ],
)
def test_eager_is_not_said_to_refuse_what_it_was_never_given(stage: Stage, words: str):
    """A factory that fails has refused no input."""
    seen = ModelObservation(
        model="glyph-head", failure=Failure(stage=stage, kind="exception", type="ValueError", message="no")
    )
    (found,) = check_contract(measure(contract(), seen))
    assert (found.cause, cause_words(found)) == ("eager", words)


def test_a_condition_that_other_sizes_break_is_not_called_a_hard_coded_number():
    """The message says that the model goes another way, and the advice must not say otherwise."""
    fixed = Failure(
        stage="export",
        kind="exception",
        type="UserError",
        message="Constraints violated (n)!\n  - You marked n as dynamic but your code specialized it to be a constant "
        "(3).",
        source=LINE,
    )
    trials = (ExportTrial(dim="n", declared={"multiple-of": 2}, answer="differs"),)
    branch = ExportGuard(holds="n - 2 == 1", broken="n - 2 != 1", dims=("n",))
    dims = (Dim(name="n", min=1, max=8),)

    hint = export_advice(contract(dims=dims), fixed, {}, trials, branch)
    assert hint.startswith(
        "torch.export follows one side of a condition only. Compute the same without it at src/glyphlab"
    )
    assert "hard-coded" not in hint
    assert "pad by" not in hint
    constant = ExportGuard(holds="n == 3", broken="n != 3", dims=("n",))
    assert "hard-coded number" in export_advice(contract(dims=dims), fixed, {}, trials, constant)


@pytest.mark.slow
def test_packed_sequences_are_answered_with_a_file_or_padding(models: Any):
    """A layer that is given packed sequences cannot be exported either."""
    failure = _refusal(models.Packed(), torch.ones(2, 5, 3), torch.tensor([5, 3]))
    advice = _advice(failure, recurrent={"rnn (GRU)": "packed"})
    assert advice.startswith(
        "torch.export cannot capture the packed sequences that rnn (GRU) gets (torch 2.13). Export"
    )
    assert "static" not in advice
    seen = ModelObservation(model="glyph-head", failure=failure, recurrent={"rnn (GRU)": "packed"})
    (found,) = check_export(measure(contract(), seen))
    assert cause_words(found) == "packed sequences, which torch.export cannot capture: rnn (GRU)"


def test_an_operator_that_torch_export_does_not_know_is_named():
    """General advice says less than torch's own message."""
    failure = Failure(
        stage="export", kind="exception", type="UnsupportedOperatorException",
        message="aten.fake_quantize_per_tensor_affine_cachemask.default", source=LINE,
    )  # fmt: skip
    assert _advice(failure).startswith(
        "torch.export cannot trace `aten.fake_quantize_per_tensor_affine_cachemask.default`, of which it does not know "
        "what it returns: write the line at src/glyphlab/model.py:12 `if x.sum() > 0:` with other operators, or,"
    )


def test_a_branch_on_values_is_answered_with_cond_and_where(models: Any):
    """The advice has the user's own line and the two ways to write it."""
    failure = _refusal(models.Branch(), torch.ones(4))

    assert "if x.sum() > 0:" in _line(failure)
    assert _advice(failure) == (
        f"The branch at {_line(failure)} depends on a tensor's values, which torch.export cannot capture: "
        "compute both sides and choose with `torch.where(condition, one_side, other_side)`, "
        "or let `torch.cond(condition, f, g, (x,))` "
        "choose, whose `f` and `g` return new tensors of one shape (`x.clone()`, not `x`); if only one side can "
        "happen, keep that one and say so before it: `torch._assert_async(condition)`."
    )


def test_a_branch_in_torchs_own_layer_is_answered_with_its_switch(models: Any):
    """The project's line only calls it; with the switch that is advised, torch exports the model."""
    x = torch.rand(2, 5, 8)
    shapes = {0: TorchDim("batch", min=1, max=4), 1: TorchDim("seq", min=2, max=9)}
    failure = _refusal(models.Decoding().eval(), x, x=shapes)

    assert failure.foreign is not None
    assert failure.foreign.path == "torch/nn/modules/transformer.py"
    assert "causal_comparison" in failure.foreign.text
    assert failure.source is not None
    assert _advice(failure) == (
        f"torch compares the mask that you pass at {_line(failure)} with a causal one, which needs its "
        "values: say so where you call it, `is_causal=False` for an encoder, `tgt_is_causal=False` (and "
        "`memory_is_causal=False` with a `memory_mask`) for a decoder. The mask counts as before; False only says "
        "that nothing is to be skipped."
    )
    told = models.Decoding(causal=False).eval()
    program = torch.export.export(told, (x,), dynamic_shapes={"x": shapes})
    torch.testing.assert_close(program.module()(x), told(x))


def test_a_refusal_that_torch_fails_to_write_is_one_of_sizes(models: Any):
    """It raises while it writes its suggestions; what it refused are the sizes (torch 2.13)."""
    shapes = {0: TorchDim("batch", min=1, max=3), 2: TorchDim("n", min=5, max=33)}
    failure = _refusal(models.Windows(), torch.rand(2, 3, 11), x=shapes)

    assert "Cannot create Dim with inconsistent" in failure.message
    assert is_about_sizes(failure)
    trial = ExportTrial(dim="n", declared={"mode": "auto"}, answer="exported")
    advice = export_advice(contract(dims=(Dim(name="n", min=5, max=33),)), failure, trials=(trial,))
    assert advice.startswith("Declare `models.glyph-head.dims.n.mode: auto`: this was tried")


def test_a_size_read_from_values_is_answered_with_checks(models: Any):
    """`.item()` in a size needs other advice."""
    failure = _refusal(models.Item(), torch.ones(4))

    assert "int(x.sum().item())" in _line(failure)
    assert _advice(failure) == (
        f"A size or index is read from a tensor's values at {_line(failure)}: write `x.sum().item()` instead of "
        "`int(...)`, and bound it in the next line: `torch._check(n >= 0)` and `torch._check(n <= limit)`, where "
        "`limit` is the length of the axis that it counts. Where it can be, compute it from shapes instead."
    )


@pytest.mark.slow
def test_a_specialized_dim_names_the_size_and_how_to_declare_it(models: Any):
    """A number in the model's code is named as the cause, and a static dim as the solution."""
    failure = _refusal(models.WrittenOut(), torch.ones(4, 3), x={0: TorchDim("batch", min=2, max=8)})

    assert essence(failure).startswith("You marked batch as dynamic but your code specialized it to be a constant (4).")
    assert _advice(failure, Dim(name="batch", min=2, max=8)) == (
        "torch.export fixes 'batch' to 4, the size of its example input: look in the model's code for a loop over that "
        "size, a hard-coded number (reshape, view, expand, a buffer of that size), an `int(...)` of a size, or another "
        "input whose axis is declared constant. If the size is meant to be fixed, declare "
        "`models.glyph-head.dims.batch: {mode: static, min: 4, max: 4}`."
    )


def test_a_line_of_another_package_that_fixes_a_size_is_named(models: Any):
    """Nobody can change somebody else's loop: the advice is what its caller can do."""
    failure = _refusal(models.WrittenOut(), torch.ones(4, 3), x={0: TorchDim("batch", min=2, max=8)})
    loop = SourceLine(path="scans/layers.py", line=7, text="for step in range(length):")
    guard = ExportGuard(holds="batch == 4", dims=("batch",), broken="batch != 4", foreign=loop)

    advice = export_advice(contract(dims=(Dim(name="batch", min=2, max=8),)), failure, guard=guard)
    assert "because scans/layers.py:7 `for step in range(length):` makes a Python number of it" in advice
    assert "with `models.glyph-head.dims.batch.separate`" in advice


def test_a_reference_size_of_one_is_the_configs_matter(models: Any):
    """Size 1 is a constant for torch, whatever the model does."""
    failure = _refusal(models.Identity(), torch.ones(1, 3), x={0: TorchDim("batch", min=1, max=8)})

    assert _advice(failure, Dim(name="batch", min=1, max=8)) == (
        "The reference input has size 1 in 'batch', which torch.export always treats as a constant: set "
        "`models.glyph-head.dims.batch.example` to 2 or more, and verify size 1 with "
        "`models.glyph-head.dims.batch.separate: [1]`."
    )


@pytest.mark.slow
def test_a_size_that_must_be_even_is_answered_with_multiple_of(models: Any):
    """What torch calls `H = 2*_H` is `multiple-of: 2` in the config."""
    failure = _refusal(models.Even(), torch.ones(2, 3, 8, 8), x={2: TorchDim("H", min=4, max=64)})

    assert failure.suggestions == ("_H = Dim('_H', max=32)", "H = 2*_H")
    assert _advice(failure, Dim(name="H", min=4, max=64)) == (
        "Set `models.glyph-head.dims.H.multiple-of` to 2: the model requires it."
    )


@pytest.mark.slow
def test_sizes_that_must_be_equal_are_one_dim(models: Any):
    """Two names for one size are answered with one name."""
    shapes = {"x": {0: TorchDim("a", max=8)}, "y": {0: TorchDim("b", max=8)}}
    failure = _refusal(models.Add(), torch.ones(4, 3), torch.ones(4, 3), **shapes)

    assert _advice(failure, Dim(name="a", min=1, max=8), Dim(name="b", min=1, max=8)) == (
        "Use one dim for both axes: write 'a' wherever a shape under `inputs` has 'b'."
    )


@pytest.mark.slow
def test_a_size_twice_another_is_written_as_an_expression(models: Any):
    """What torch calls `b = 2*a` is the shape `2*a` in the config, with the range that fits both."""
    shapes = {"x": {0: TorchDim("a", max=64)}, "y": {0: TorchDim("b", max=64)}}
    failure = _refusal(models.Twice(), torch.ones(4, 3), torch.ones(8, 3), **shapes)

    assert _advice(failure, Dim(name="a", min=1, max=64), Dim(name="b", min=1, max=64)) == (
        "Set `max` to 32 in `models.glyph-head.dims.a`, the range that the exported code path covers; or remove the "
        "size check in the model that splits the range. "
        "Write \"2*a\" wherever a shape under `inputs` has 'b': the model ties these sizes together."
    )


@pytest.mark.slow
def test_a_size_one_longer_than_another_is_written_as_an_expression(models: Any):
    """What torch calls `a = b + 1` is the shape `b+1` in the config."""
    shapes = {"x": {1: TorchDim("a", min=3, max=9)}, "y": {1: TorchDim("b", min=2, max=8)}}
    failure = _refusal(models.Longer(), torch.ones(3, 6), torch.ones(3, 5), **shapes)

    assert _advice(failure, Dim(name="a", min=3, max=9), Dim(name="b", min=2, max=8)) == (
        "Write \"b+1\" wherever a shape under `inputs` has 'a': the model ties these sizes together."
    )


def test_a_range_that_is_split_by_a_branch_names_the_part_that_was_exported(models: Any):
    """A size check in forward leaves one part of the range."""
    failure = _refusal(models.Split(), torch.ones(6, 3), x={0: TorchDim("batch", min=2, max=8)})

    assert _advice(failure, Dim(name="batch", min=2, max=8)) == (
        "Set `min` to 5 and `max` to 8 in `models.glyph-head.dims.batch`, the range that the exported code path "
        "covers; or remove the size check in the model that splits the range."
    )


def test_a_dim_with_a_name_of_sympy_is_renamed(models: Any):
    """Torch reads dims as formulas, in which S and some other letters are reserved."""
    shapes = {"x": {1: TorchDim("T", min=3, max=9)}, "y": {1: TorchDim("S", min=2, max=8)}}
    failure = _refusal(models.Longer(), torch.ones(3, 6), torch.ones(3, 5), **shapes)

    assert failure.type == "SympifyError"
    assert _advice(failure, Dim(name="T", min=1, max=8), Dim(name="S", min=1, max=8)) == (
        "Give dim 'S' another name under `models.glyph-head.dims`: torch parses dim names as formulas, and sympy "
        "reserves some names (S, N, I, E, Q, O, C, pi)."
    )


def test_an_unknown_output_class_is_answered_with_its_registration(models: Any):
    """A dataclass can be registered, or returned as a tuple."""
    assert _advice(_refusal(models.Unregistered(), torch.ones(3))) == (
        "Return a tensor, or a tuple, list or dict of tensors, instead of Scores; or register the class in the module "
        'that defines it: `torch.export.register_dataclass(Scores, serialized_type_name="Scores")` for a dataclass, '
        "`torch.utils._pytree.register_pytree_node(Scores, ...)` for any other class. pt2 files need the "
        "`serialized_type_name`, which may be any text of your own."
    )


def test_numpy_in_forward_is_named(models: Any):
    """Torch cannot follow values into NumPy."""
    failure = _refusal(models.Numpy(), torch.ones(3))

    assert _advice(failure) == (
        f"Write the NumPy code at {_line(failure)} with torch operators: torch.export cannot trace outside torch."
    )


SUGGESTIONS = {
    "batch = 4": (
        "Declare `models.glyph-head.dims.batch: {mode: static, min: 4, max: 4}` if one size is enough: torch.export "
        "fixes it."
    ),
    "batch = 2*_k + 1": (
        "Declare '_k' under `models.glyph-head.dims` and write \"2*_k+1\" wherever a shape under `inputs` has 'batch': "
        "the model ties these sizes together."
    ),
    "_side = 2*__side": "Set `models.glyph-head.dims.side.multiple-of` to 16: the model requires it.",
    "_side = Dim('_side', max=4)": (
        "Set `max` to 32 in `models.glyph-head.dims.side`, the range that the exported code path covers; or remove the "
        "size check in the model that splits the range."
    ),
    "something new": (
        "Make `models.glyph-head.dims` and the shapes under `inputs` match what the model's code requires; torch's "
        "message is in the details."
    ),
}


@pytest.mark.parametrize(("suggestion", "advice"), SUGGESTIONS.items())
def test_rarer_suggestions_of_torch(suggestion: str, advice: str):
    """Every form of torch's suggestions is translated into the config's words; an unknown one is not guessed at."""
    message = "Constraints violated (batch)!"
    failure = Failure(stage="export", kind="exception", type="UserError", message=message, suggestions=(suggestion,))
    dims = (Dim(name="batch", min=2, max=16), Dim(name="side", min=8, max=64, multiple_of=8))

    assert _advice(failure, *dims) == advice


def test_suggestions_are_found_in_the_message_too():
    """Results of a worker that did not split torch's message are judged the same."""
    message = "Constraints violated (B)!\nSuggested fixes:\n  batch = 4\n\nThe error above occurred when ..."
    failure = Failure(stage="export", kind="exception", type="UserError", message=message)

    assert _advice(failure, Dim(name="batch", min=2, max=16)) == SUGGESTIONS["batch = 4"]


@pytest.mark.slow
def test_an_operator_without_translation_is_named(models: Any):
    """The report names what the user calls and its line, not the converter's step."""
    program = torch.export.export(models.Bessel(), (torch.ones(4, 3),))
    with pytest.raises(Exception) as caught:
        torch.onnx.export(program, dynamo=True, verbose=False)
    failure = failure_of(caught.value, "convert", [PROJECT])
    stopped = stopped_node(caught.value, (PROJECT,))
    seen = TargetObservation(target="onnx", failure=failure, stopped_at=stopped)

    (finding,) = check_conversion(measure(contract(), ModelObservation(model="glyph-head", targets=(seen,))))

    assert "`torch.special.bessel_j0` has no ONNX translation" in finding.message
    assert finding.source is not None
    assert "bessel_j0" in finding.source.text
    assert stopped_node(None, ()) is stopped_node(ValueError(), ()) is None


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (
            "while x.norm() > 1:",
            "Could not guard on data-dependent expression Eq(u0, 1)",
            "make a fixed number of steps",
        ),
        (
            "if rows.shape[0] == 0:",
            "Could not guard on data-dependent expression Eq(u0, 0). (Size-like symbols: u0)",
            "compute for all elements instead and take the result where it counts",
        ),
        (
            "n = int(k.max())",
            "Could not extract specialized integer from data-dependent expression u0",
            "write `k.max().item()` instead of `int(...)`",
        ),
        (
            'assert x.max() < 9, "large"',
            "Could not guard on data-dependent expression Eq(u0, 1)",
            "write `torch._assert_async(x.max() < 9)`",
        ),
        (
            "seen.append(float(x.mean()))",
            "Could not guard on data-dependent expression zuf0",
            "keep it a tensor, without `float(...)`",
        ),
        (
            'name = f"{x.max():.3f}"',
            "unsupported format string passed to FakeTensor.__format__",
            "A tensor is written into a text at m.py:3",
        ),
    ],
)
def test_values_read_in_forward_are_answered_by_what_reads_them(text: str, error: str, said: str):
    """A loop, a size, a number and a text need different ways out."""
    failure = Failure(
        stage="export", kind="exception", type="E", message=error, source=SourceLine(path="m.py", line=3, text=text)
    )
    assert said in _advice(failure)
