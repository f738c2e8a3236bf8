"""Real models through real targets: what each artifact is, and what is reported if it cannot be made."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
from torch import nn
from torch.export import Dim

from export_gate.outcome.judging import Outcome
from export_gate.pipeline import run
from export_gate.rules.base import Finding
from export_gate.run.order import Order
from export_gate.wall.observation import ModelObservation, TargetObservation

MODELS_SOURCE = '''\
import torch
from torch import nn


class Counter(nn.Module):
    """Counts its calls in a buffer and adds the count."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls.add_(1)
        return x + self.calls


class Scaled(nn.Module):
    """An affine map."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, -2.0, 0.5]))
        self.register_buffer("mean", torch.tensor([0.25, 0.5, 1.0]))

    def forward(self, x):
        return (x - self.mean) * self.weight


class Head(nn.Module):
    """A small network whose layers decompose."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(nn.functional.silu(self.body(x)))


class Twice(nn.Module):
    def forward(self, x):
        y = x * 2
        return y, y, x


class Named(nn.Module):
    """Outputs called as an input and as a weight are."""

    def __init__(self):
        super().__init__()
        self.mean = nn.Parameter(torch.tensor([0.25, 0.5, 1.0]))

    def forward(self, x):
        return {"mean": x + self.mean, "x": x * 2, "weight": self.mean}


class Constants(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, x):
        return x * 2, self.value, x + 1


class Unused(nn.Module):
    def forward(self, x, unused):
        return x * 2


class Widened(nn.Module):
    """bfloat16 in and out, computed in float32."""

    def forward(self, x):
        return (x.float() * 2 + 1).to(torch.bfloat16)


class Derived(nn.Module):
    """Lengths that hang together, and an output of yet another length."""

    def forward(self, x, y):
        return {"same": x * 2, "odd": y + 1, "both": torch.cat([x, y], 1), "pairs": torch.cat([y, y], 1)}


class Refusing(nn.Module):
    """Computes what the artifacts handed in for it do, and cannot be exported."""

    def forward(self, x):
        return x * 2 if float(x.sum()) < 1e9 else x


class Fixed(nn.Module):
    """Works for one length only, unless each is its own export."""

    def forward(self, x):
        return x.reshape(6, -1).sum(1)


class Branching(nn.Module):
    """A batch of one takes another way."""

    def forward(self, x):
        return x * 2 if x.shape[0] == 1 else x - x.mean(0)


class Convolved(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.convolution = nn.Conv2d(1, 4, 3)

    def forward(self, x):
        return torch.relu(self.convolution(x)).mean((2, 3))


class Misled(Head):
    """Onnx's version converter makes something else of it."""

    def __init__(self):
        super().__init__()
        import onnx.version_converter

        convert = onnx.version_converter.convert_version

        def mislead(proto, opset):
            for tensor in proto.graph.initializer:
                values = onnx.numpy_helper.to_array(tensor)
                tensor.CopyFrom(onnx.numpy_helper.from_array(values * values.dtype.type(2), tensor.name))
            return convert(proto, opset)

        onnx.version_converter.convert_version = mislead


def make(name, **kwargs):
    return globals()[name](**kwargs).eval()
'''

BATCH = "batch: {min: 2, max: 6}"
ROWS = "x: {dtype: float32, shape: [batch, 3], range: [-2, 2]}"
ALL = "exported-program: {}, pt2: {}, onnx: {}"


IMAGES = "x: {dtype: float32, shape: [batch, 1, 8, 8], range: [0, 1]}"
OPSETS = (15, 17, 18, 19, 21, 22, 23)


def entry(
    name: str,
    made: str,
    *,
    targets: str = ALL,
    dims: str = BATCH,
    inputs: str = ROWS,
    outputs: str = "",
    value: str = "",
) -> str:
    """One model of the config."""
    kwargs = f"{{name: {made}{f', value: {value}' if value else ''}}}"
    promised = f"\n    outputs: {{{outputs}}}" if outputs else ""
    return f"""\
  {name}:
    factory: models.py:make
    kwargs: {kwargs}
    dims: {{{dims}}}
    inputs: {{{inputs}}}{promised}
    targets: {{{targets}}}
"""


def check(folder: Path, entries: Sequence[str], **environment: str) -> Outcome:
    """One run over these models, with few control inputs each."""
    (folder / "models.py").write_text(MODELS_SOURCE)
    defaults = "version: 1\ndefaults: {controls: {limit: 12, random: 1, affine-basis: never}}\nmodels:\n"
    (folder / "export-gate.yml").write_text(defaults + "".join(entries))
    order = Order(
        config=folder / "export-gate.yml",
        python=sys.executable,
        parallel=2,
        folder=folder / ".export-gate",
        environment={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        diagnosis=False,
    )
    return run(order, lambda *_: lambda _: None)


def seen(outcome: Outcome, model: str) -> ModelObservation:
    """What was observed of a model."""
    (found,) = [found for found in outcome.results.run.models if found.model == model]
    return found


def target(outcome: Outcome, model: str, name: str) -> TargetObservation:
    """What was observed of a model's target."""
    (found,) = [found for found in seen(outcome, model).targets if found.target == name and not found.separate]
    return found


def violations(outcome: Outcome, model: str) -> list[Finding]:
    """A model's violations."""
    return [f for f in outcome.judgement.findings if f.model == model and f.severity == "violation"]


def told(outcome: Outcome, model: str) -> list[tuple[str, str | None]]:
    """The rules and targets of a model's violations."""
    return [(finding.rule, finding.target) for finding in violations(outcome, model)]


def differences(found: TargetObservation) -> list[float]:
    """Max |P-M| of each control input."""
    return [max(output.max_abs_diff for output in case.outputs) for case in found.cases]


ENTRIES = (
    entry("counter", "Counter"),
    entry("counter-last", "Counter", targets="onnx: {}, pt2: {}, exported-program: {}"),
    entry("strict", "Head", targets="exported-program: {strict: true}, onnx: {}"),
    entry("decomposed", "Head", targets="pt2: {decompose: true}"),
    entry("whole", "Head", targets="pt2: {}"),
    entry("twice", "Twice", outputs="first: {}, second: {}, given: {}"),
    entry("named", "Named"),
    entry("none", "Constants", value="null"),
    entry("integer", "Constants", value="7"),
    entry(
        "unused",
        "Unused",
        inputs=ROWS + ", unused: {dtype: int64, shape: [batch], range: [0, 3]}",
    ),
    entry("bfloat16", "Widened", inputs="x: {dtype: bfloat16, shape: [batch, 3], range: [-2, 2]}"),
    *(entry(f"opset-{opset}", "Head", targets=f"onnx: {{opset: {opset}}}") for opset in OPSETS),
    entry("opset-mean", "Convolved", inputs=IMAGES, targets="onnx: {opset: 14}"),
    entry("opset-too-old", "Convolved", inputs=IMAGES, targets="onnx: {opset: 13}, pt2: {}"),
    entry("opset-misled", "Misled", targets="onnx: {opset: 17}, new: {kind: onnx}"),
    *(
        entry(f"level-{level}", "Head", targets=f"onnx: {{optimization: {level}}}")
        for level in ("disable", "basic", "extended", "all")
    ),
    entry("provider", "Head", targets="onnx: {providers: [MadeUpExecutionProvider]}, pt2: {}"),
    entry(
        "derived",
        "Derived",
        dims=BATCH + ", seq: {min: 2, max: 5}",
        inputs="x: {dtype: float32, shape: [batch, seq], range: [0, 1]}, "
        'y: {dtype: float32, shape: [batch, "2*seq+1"], range: [0, 1]}',
    ),
    entry(
        "odd-name",
        "Derived",
        dims="N: {min: 2, max: 6}, beta: {min: 2, max: 5}",
        inputs="x: {dtype: float32, shape: [N, beta], range: [0, 1]}, "
        'y: {dtype: float32, shape: [N, "2*beta+1"], range: [0, 1]}',
    ),
    entry("auto", "Scaled", dims="batch: {min: 2, max: 6, mode: auto}"),
    entry(
        "auto-fixed", "Fixed", dims="batch: {min: 2, max: 6, mode: auto, example: 6}", targets="exported-program: {}"
    ),
    entry("static", "Fixed", dims="batch: {min: 2, max: 10, mode: static, example: 6}"),
    entry("separate", "Branching", dims="batch: {min: 2, max: 6, separate: [1]}"),
    entry("handed-in", "Refusing", targets="pt2: {artifact: dist/doubled.pt2}, onnx: {artifact: dist/doubled.onnx}"),
    entry("foreign-input", "Scaled", targets="onnx: {artifact: dist/foreign-input.onnx}, pt2: {}"),
    entry("foreign-output", "Scaled", targets="onnx: {artifact: dist/foreign-output.onnx}, pt2: {}"),
    entry("damaged", "Scaled", targets="onnx: {artifact: dist/damaged.onnx}, pt2: {artifact: dist/damaged.pt2}"),
)


class Doubled(nn.Module):
    """What the artifacts handed in compute."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Twice the input."""
        return x * 2


def write_artifacts(folder: Path) -> None:
    """Files that another tool might have written."""
    folder.mkdir()
    given = (torch.ones(3, 3),)
    program = torch.export.export(Doubled(), given, dynamic_shapes={"x": {0: Dim("batch", min=2, max=6)}})
    torch.export.save(program, folder / "doubled.pt2")
    for name, inputs, outputs in (
        ("doubled", ["x"], ["output"]),
        ("foreign-input", ["pixels"], ["output"]),
        ("foreign-output", ["x"], ["logits"]),
    ):
        converted = torch.onnx.export(
            program, given, dynamo=True, input_names=inputs, output_names=outputs, opset_version=20, verbose=False
        )
        assert converted is not None
        converted.save(folder / f"{name}.onnx")
    (folder / "damaged.onnx").write_bytes(b"no model")
    (folder / "damaged.pt2").write_bytes(b"no archive")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project."""
    made = tmp_path_factory.mktemp("targets")
    write_artifacts(made / "dist")
    return made


@pytest.fixture(scope="module")
def outcome(folder: Path) -> Outcome:
    """All models in one run."""
    return check(folder, ENTRIES)


def graph(folder: Path, model: str) -> onnx.ModelProto:
    """A model's ONNX file."""
    return onnx.load(str(folder / ".export-gate" / "artifacts" / model / "model.onnx"))


def shapes(values: Any) -> dict[str, list[str | int]]:
    """Names of a graph's inputs or outputs with their dims."""
    return {v.name: [dim.dim_param or dim.dim_value for dim in v.type.tensor_type.shape.dim] for v in values}


@pytest.mark.slow(seconds=60)
@pytest.mark.parametrize("model", ["counter", "counter-last"])
def test_running_one_target_changes_no_other(outcome: Outcome, model: str):
    """A program with a counter behaves like a fresh eager model in every target, in any order of targets."""
    assert seen(outcome, model).hygiene.state_changed != ()
    for name in ("exported-program", "pt2"):
        assert set(differences(target(outcome, model, name))) == {0.0}, name
    # ONNX has no state: its first call is right, and each later one is a call too low, up to float32 near 20.
    found = differences(target(outcome, model, "onnx"))
    assert found == pytest.approx(range(len(found)), abs=4e-6)
    assert ("value-mismatch", "onnx") in told(outcome, model)


@pytest.mark.slow
def test_strict_export_serves_every_target(outcome: Outcome):
    """`strict: true` is recorded for the exported program, and ONNX is made from the same export."""
    assert told(outcome, "strict") == []
    assert target(outcome, "strict", "exported-program").facts == {"strict": "yes"}


@pytest.mark.slow
def test_decomposed_pt2_has_core_operators_only(outcome: Outcome, folder: Path):
    """With `decompose: true` the file has the decomposed program; without it, the layers' own operators."""
    assert told(outcome, "decomposed") == told(outcome, "whole") == []
    operators = {}
    for model, decomposed in (("decomposed", "yes"), ("whole", "no")):
        assert target(outcome, model, "pt2").facts == {"decomposed": decomposed}
        program = torch.export.load(folder / ".export-gate" / "artifacts" / model / "model.pt2")
        operators[model] = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert "aten.linear.default" in operators["whole"]
    assert "aten.linear.default" not in operators["decomposed"]
    assert "aten.addmm.default" in operators["decomposed"]


@pytest.mark.slow
def test_one_tensor_under_three_names(outcome: Outcome, folder: Path):
    """A tensor returned twice and an input that is returned have an ONNX output each, under the contract's names."""
    assert told(outcome, "twice") == []
    found = graph(folder, "twice").graph
    assert shapes(found.input) == {"x": ["batch", 3]}
    assert shapes(found.output) == {"first": ["batch", 3], "second": ["batch", 3], "given": ["batch", 3]}


@pytest.mark.slow
def test_outputs_called_as_an_input_or_a_weight_are(outcome: Outcome, folder: Path):
    """Outputs get their names before weights; an input keeps its name, and the output is noted and verified."""
    assert told(outcome, "named") == []
    found = graph(folder, "named").graph
    assert list(shapes(found.output)) == ["mean", "x_output", "weight"]
    assert list(shapes(found.input)) == ["x"]
    onnx_target = target(outcome, "named", "onnx")
    assert onnx_target.notes[0] == "output 'x' is 'x_output' in the graph, which has an input of that name"
    assert [output.output for output in onnx_target.cases[0].outputs] == ["mean", "x", "weight"]


@pytest.mark.slow
def test_none_among_the_outputs_has_no_place_in_onnx(outcome: Outcome):
    """The program keeps a None; ONNX drops it with a note, and the others are compared."""
    assert told(outcome, "none") == []
    found = target(outcome, "none", "onnx")
    assert "output 'output.1' is None and is not part of the artifact" in found.notes
    assert [output.output for output in found.cases[0].outputs] == ["output.0", "output.2"]


@pytest.mark.slow
def test_python_number_among_the_outputs_does_not_convert(outcome: Outcome):
    """The program keeps an int; torch's ONNX exporter does not take it."""
    assert told(outcome, "integer") == [("conversion-failed", "onnx")]


@pytest.mark.slow
def test_unused_input_stays_an_input(outcome: Outcome, folder: Path):
    """An input that forward ignores is fed to every target."""
    assert told(outcome, "unused") == []
    assert shapes(graph(folder, "unused").graph.input) == {"x": ["batch", 3], "unused": ["batch"]}


@pytest.mark.slow
def test_bfloat16_goes_in_and_out_of_onnx(outcome: Outcome):
    """ONNX Runtime gets bfloat16 inputs, and its bfloat16 outputs are compared as such, here exactly."""
    assert told(outcome, "bfloat16") == []
    found = target(outcome, "bfloat16", "onnx")
    assert set(differences(found)) == {0.0}
    output = found.cases[0].outputs[0]
    assert (output.expected_dtype, output.actual_dtype) == ("bfloat16", "bfloat16")


@pytest.mark.slow
@pytest.mark.parametrize("opset", OPSETS)
def test_opset_of_choice(outcome: Outcome, folder: Path, opset: int):
    """`opset` is the opset of the file that is written and run."""
    assert told(outcome, f"opset-{opset}") == []
    assert [(o.domain, o.version) for o in graph(folder, f"opset-{opset}").opset_import if not o.domain] == [
        ("", opset)
    ]
    assert target(outcome, f"opset-{opset}", "onnx").facts["opset"].startswith(f"ai.onnx {opset}")


@pytest.mark.slow
def test_opset_below_what_the_exporter_writes(outcome: Outcome, folder: Path):
    """The file has the contract's names, the older IR and its metadata, and its numbers are judged as usual."""
    assert told(outcome, "opset-mean") == []
    old = graph(folder, "opset-mean")
    assert old.ir_version == 7
    assert [value.name for value in (*old.graph.input, *old.graph.output)] == ["x", "output"]
    assert [dim.dim_param or dim.dim_value for dim in old.graph.input[0].type.tensor_type.shape.dim] == [
        "batch",
        1,
        8,
        8,
    ]
    assert "export_gate.dims" in {entry.key for entry in old.metadata_props}
    assert told(outcome, "opset-misled") == [("value-mismatch", "onnx")]


@pytest.mark.slow
def test_opset_that_an_operator_cannot_have(outcome: Outcome):
    """The message names the operator and the lowest opset for the model; other targets are not affected."""
    (found,) = violations(outcome, "opset-too-old")
    assert (found.rule, found.target, found.owner) == ("conversion-failed", "onnx", "converter")
    assert found.message == (
        "opset-too-old, onnx: the conversion failed: operator Relu cannot be converted from opset 18 to 13, and the "
        "lowest opset that onnx's version converter makes of this model is 14: No Adapter From Version $14 for Relu"
    )
    assert found.hint.startswith(
        "Set `models.opset-too-old.targets.onnx.opset` to 14 or higher, replace Relu in the model"
    )


@pytest.mark.slow
@pytest.mark.parametrize("level", ["disable", "basic", "extended", "all"])
def test_optimization_level_of_choice(outcome: Outcome, level: str):
    """Each of ONNX Runtime's levels is accepted, reported and verified."""
    assert told(outcome, f"level-{level}") == []
    assert target(outcome, f"level-{level}", "onnx").facts["optimization"] == level


@pytest.mark.slow
def test_unknown_provider_is_not_run_on_the_cpu_instead(outcome: Outcome):
    """A missing provider is a failure that lists the available ones; ONNX Runtime itself would use the CPU."""
    assert told(outcome, "provider") == [("load-failed", "onnx")]
    (finding,) = violations(outcome, "provider")
    assert finding.message == (
        "provider, onnx: the artifact does not load: ValueError: provider MadeUpExecutionProvider is not available: "
        f"onnxruntime {onnxruntime.__version__} has {', '.join(onnxruntime.get_available_providers())}"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("model", "batch", "seq"), [("derived", "batch", "seq"), ("odd-name", "N", "beta")])
def test_dims_of_the_graph_are_the_contracts(outcome: Outcome, folder: Path, model: str, batch: str, seq: str):
    """Every dim of an input, an output or an inner value has the contract's words, even where torch has symbols."""
    assert told(outcome, model) == []
    found = graph(folder, model).graph
    assert shapes(found.input) == {"x": [batch, seq], "y": [batch, f"2*{seq}+1"]}
    assert shapes(found.output) == {
        "same": [batch, seq],
        "odd": [batch, f"2*{seq}+1"],
        "both": [batch, f"3*{seq}+1"],
        "pairs": [batch, f"4*{seq}+2"],
    }
    between = {str(dim) for dims in shapes(found.value_info).values() for dim in dims}
    assert not any(
        word.startswith("s") and word[1:].isdigit() for dim in between for word in dim.replace("*", " ").split()
    )


@pytest.mark.slow
def test_auto_dim_is_verified_and_named(outcome: Outcome, folder: Path):
    """`mode: auto` keeps the declared range if the model allows it, and the graph has the contract's name."""
    assert told(outcome, "auto") == []
    (axis,) = seen(outcome, "auto").dims
    assert (axis.declared, axis.found, axis.specialized) == ((2, 6), (2, 6), False)
    assert shapes(graph(folder, "auto").graph.input) == {"x": ["batch", 3]}


@pytest.mark.slow
def test_auto_dim_that_torch_fixes_is_told(outcome: Outcome):
    """If torch fixes an auto dim, its other sizes are refused, and a warning gives the reason."""
    (axis,) = seen(outcome, "auto-fixed").dims
    assert (axis.found, axis.specialized) == ((6, 6), True)
    warned = [f.rule for f in outcome.judgement.findings if f.model == "auto-fixed" and f.severity == "warning"]
    assert warned == ["dim-specialized"]
    assert ("contract-broken", None) in told(outcome, "auto-fixed")


@pytest.mark.slow
def test_static_dim_has_one_size(outcome: Outcome, folder: Path):
    """`mode: static` exports and verifies the one size, and nothing is dynamic."""
    assert told(outcome, "static") == []
    assert seen(outcome, "static").dims == ()
    assert shapes(graph(folder, "static").graph.input) == {"x": [6, 3]}
    controls = seen(outcome, "static").controls
    assert controls is not None
    assert {member.sizes["batch"] for member in controls.inputs} == {6}


@pytest.mark.slow
def test_separate_size_is_an_export_of_its_own(outcome: Outcome, folder: Path):
    """`separate: [1]` is exported, written and verified at 1 in addition to the main export, on every target."""
    assert told(outcome, "separate") == []
    found = [t for t in seen(outcome, "separate").targets if t.separate == {"batch": 1}]
    assert [t.target for t in found] == ["exported-program", "pt2", "onnx"]
    assert all(case.case.endswith("@batch=1") and case.outputs for t in found for case in t.cases)
    assert all(t.cases for t in found)
    assert [t.artifact.path for t in found if t.artifact] == [
        "artifacts/separate/batch=1/model.pt2",
        "artifacts/separate/batch=1/model.onnx",
    ]
    alone = onnx.load(str(folder / ".export-gate" / "artifacts" / "separate" / "batch=1" / "model.onnx"))
    assert shapes(alone.graph.input) == {"x": [1, 3]}


@pytest.mark.slow
def test_artifacts_handed_in_are_verified_without_an_export(outcome: Outcome):
    """`artifact:` runs the named file, which is verified even for a model that torch.export refuses."""
    assert told(outcome, "handed-in") == []
    for name in ("pt2", "onnx"):
        found = target(outcome, "handed-in", name)
        assert found.artifact is not None
        assert found.artifact.path == f"dist/doubled.{name}"
        assert set(differences(found)) == {0.0}
        assert any(probe.kind == "above-max" for probe in found.probes)


@pytest.mark.slow
def test_foreign_input_name_does_not_load(outcome: Outcome):
    """For a file with other input names, both lists are shown; the other target is verified."""
    assert told(outcome, "foreign-input") == [("load-failed", "onnx")]
    (finding,) = violations(outcome, "foreign-input")
    assert finding.message == (
        "foreign-input, onnx: the artifact's names are not the contract's: the graph has input 'pixels' that the "
        "contract lacks; the contract has input 'x'"
    )
    assert finding.details[:3] == (
        "          contract  artifact",
        "input 1   x         pixels",
        "output 1  output    output",
    )


@pytest.mark.slow
def test_foreign_output_name_is_told_with_both_sides(outcome: Outcome):
    """For a file with other output names, both lists are shown as well."""
    assert told(outcome, "foreign-output") == [("load-failed", "onnx")]
    (finding,) = violations(outcome, "foreign-output")
    assert finding.message.endswith(
        "the graph has output 'logits' that the contract lacks; the contract has output 'output'"
    )
    assert finding.details[2] == "output 1  output    logits"


@pytest.mark.slow
def test_damaged_files_do_not_load(outcome: Outcome):
    """Files that are not models are reported for each target, without digests."""
    assert sorted(told(outcome, "damaged")) == [("load-failed", "onnx"), ("load-failed", "pt2")]


@pytest.mark.slow
def test_missing_artifact_is_the_users_mistake(tmp_path: Path):
    """A missing file ends the model before anything runs, with its place in the config: exit 2."""
    (tmp_path / "dist").mkdir()
    found = check(
        tmp_path,
        [
            entry("missing", "Scaled", targets="onnx: {artifact: dist/none.onnx}"),
            entry("folder", "Scaled", targets="pt2: {artifact: dist}, exported-program: {}"),
        ],
    )
    assert (found.judgement.verdict, found.judgement.exit_code) == ("problem", 2)
    hint = "write it before the gate runs, or take `artifact` out to verify a program that the gate exports"
    for model, name, path, what in (
        ("missing", "onnx", tmp_path / "dist" / "none.onnx", "there is none"),
        ("folder", "pt2", tmp_path / "dist", "that is a folder"),
    ):
        problem = seen(found, model).problem
        assert problem is not None
        assert problem.message == f"models.{model}.targets.{name}.artifact: expected a file at {path}, {what}"
        assert problem.hint == hint
        assert seen(found, model).targets == ()


AOTI = "aoti: {}, exported-program: {}"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """A package compiled by AOTInductor, and one that is none."""
    made = tmp_path_factory.mktemp("compiled")
    (made / "dist").mkdir()
    (made / "dist" / "damaged.pt2").write_bytes(b"no package")
    convolved = entry(
        "convolved",
        "Convolved",
        targets=AOTI,
        dims="batch: {min: 2, max: 16}",
        inputs="x: {dtype: float32, shape: [batch, 1, 24, 24], range: [0, 1]}",
        outputs="features: {}",
    )
    damaged = entry("damaged", "Scaled", targets="aoti: {artifact: dist/damaged.pt2}, pt2: {}")
    return made, check(made, [convolved, damaged], TORCHINDUCTOR_CACHE_DIR=str(made / "cache"))


@pytest.mark.slow(seconds=40)
def test_compiled_package_is_verified(compiled: tuple[Path, Outcome]):
    """AOTInductor's package gives eager's values within the tolerance, under the contract's names."""
    made, outcome = compiled
    assert told(outcome, "convolved") == []
    found = target(outcome, "convolved", "aoti")
    assert len(found.cases) >= 12
    assert found.cases[0].outputs[0].output == "features"
    assert max(differences(found)) < 1e-5
    assert found.artifact is not None
    assert (made / ".export-gate" / found.artifact.path).stat().st_size == found.artifact.size_bytes
    assert "g++" in found.facts["compiler"]


@pytest.mark.slow
def test_compiled_package_is_probed_with_its_checks_off_and_on(compiled: tuple[Path, Outcome]):
    """As it ships a package takes a wrong static size; with its checks on it refuses that, and its own maximum too.

    Lowering a convolution narrows the range to 15 (torch 2.13), which shows only where the package is made to check.
    """
    probes = target(compiled[1], "convolved", "aoti").probes
    answers = {(p.kind, p.axis, p.checks): p.answer for p in probes}
    assert answers[("wrong-size", "x[2]", "default")].startswith("accepted")
    assert answers[("wrong-size", "x[2]", "runtime-checks")] == "refused"
    assert answers[("at-max", "batch", "default")] == "accepted-equal"
    assert answers[("at-max", "batch", "runtime-checks")] == "refused"
    (refused,) = [p for p in probes if (p.kind, p.checks) == ("at-max", "runtime-checks")]
    assert "15" in refused.message
    warned = [f for f in compiled[1].judgement.findings if f.model == "convolved" and f.severity == "warning"]
    assert {f.target for f in warned} == {"aoti"}


@pytest.mark.slow
def test_damaged_package_costs_its_target_only(compiled: tuple[Path, Outcome]):
    """A file that is not a package does not load or kills its process; the other target is verified."""
    _, outcome = compiled
    assert [(rule, name) for rule, name in told(outcome, "damaged") if rule not in ("load-failed", "worker-died")] == []
    assert {name for _, name in told(outcome, "damaged")} == {"aoti"}
    assert set(differences(target(outcome, "damaged", "pt2"))) == {0.0}


@pytest.mark.slow
def test_no_compiler_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without a C++ compiler on PATH, the conversion ends at once and says what to install."""
    monkeypatch.delenv("CXX", raising=False)
    outcome = check(tmp_path, [entry("scaled", "Scaled", targets=AOTI)], PATH=str(tmp_path))
    (finding,) = violations(outcome, "scaled")
    assert (finding.rule, finding.target) == ("conversion-failed", "aoti")
    assert finding.message == (
        "scaled, aoti: the conversion failed: RuntimeError: AOTInductor needs a C++ compiler and there is no g++ on "
        "PATH; install one (Debian: `apt-get install g++`) or name one in CXX"
    )
    assert set(differences(target(outcome, "scaled", "exported-program"))) == {0.0}


@pytest.mark.slow
def test_metadata_tells_renamed_outputs(outcome: Outcome, folder: Path):
    """Whoever loads the graph can look up which output is which."""
    found = {entry.key: entry.value for entry in graph(folder, "named").metadata_props}
    assert json.loads(found["export_gate.outputs"]) == {"x_output": "x"}
    assert "export_gate.outputs" not in {entry.key for entry in graph(folder, "twice").metadata_props}
