"""Runs as they happen, written down by hand: observations are the input, the judge makes the findings."""

from __future__ import annotations

from dataclasses import replace

from export_gate.report.results import Results
from export_gate.rules.judge import Terms, judge
from export_gate.wall.contract import Dim, ModelContract, Output, Size, TargetName, TensorSpec, make_target
from export_gate.wall.diagnosis import Inspection
from export_gate.wall.nodes import GuiltyNode, NodePoint, NodeTrace
from export_gate.wall.observation import (
    Artifact,
    CaseResult,
    Comparison,
    ControlInput,
    ControlSetObservation,
    Environment,
    ErrorPicture,
    Failure,
    HygieneObservation,
    ModelObservation,
    OutputLeaf,
    Probe,
    Problem,
    Reused,
    RunObservation,
    TargetObservation,
)
from export_gate.wall.smallest import SmallestInput, SmallTensor
from export_gate.wall.source import SourceLine

BATCH = Dim(name="batch", min=2, max=16)
TARGETS = (make_target("exported-program"), make_target("pt2"), make_target("onnx"))
FAMILIES = ("normal", "uniform", "halves", "constant", "zeros", "low", "high", "offset", "sweep", "large")
CASES = tuple(f"{family}-1@batch={size}" for size in (2, 8, 16) for family in FAMILIES)

ENVIRONMENT = Environment(
    python="3.11.7",
    executable="/home/runner/work/glyphlab/.venv/bin/python",
    platform="Linux-6.8-x86_64",
    cpu="AVX2",
    versions={
        "torch": "2.13.0+cpu",
        "numpy": "2.4.1",
        "onnx": "1.23.0",
        "onnxscript": "0.7.2",
        "onnxruntime": "1.32.0",
    },
)


def results(contracts: tuple[ModelContract, ...], run: RunObservation) -> Results:
    """A judged run."""
    judgement = judge(contracts, run, Terms(today="2026-03-02"))
    return Results(
        tool_version="0.1.0",
        config_path="export-gate.yml",
        config_sha256="5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
        started="2026-03-02T09:14:07Z",
        duration_s=41.3,
        contracts=contracts,
        run=run,
        findings=judgement.findings,
        verdict=judgement.verdict,
        head="9c1185a5c5e9fc54612808977ee8f548b2258d31",
    )


def contract(name: str, dtype: str = "float32", **changes: object) -> ModelContract:
    """An image classifier with a dynamic batch."""
    shape = (Size(factors={"batch": 1}), Size(offset=1), Size(offset=24), Size(offset=24))
    plain = ModelContract(
        name=name,
        factory="glyphlab.model:make_model",
        dims=(BATCH,),
        inputs={"x": TensorSpec(dtype=dtype, shape=shape, range=(0.0, 1.0))},
        outputs=(Output(name="logits", dtype="float32", shape=(Size(factors={"batch": 1}), Size(offset=3))),),
        targets=TARGETS,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def controls(cases: tuple[str, ...] = CASES, **changes: object) -> ControlSetObservation:
    """The control set of these cases."""
    inputs = tuple(
        ControlInput(name=case, family=case.split("-")[0], sizes={"batch": int(case.rsplit("=", 1)[1])})
        for case in cases
    )
    sha256 = "ab12f09c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8"
    return replace(ControlSetObservation(sha256=sha256, inputs=inputs), **changes)  # type: ignore[arg-type]


def comparison(max_abs_diff: float = 0.0, **changes: object) -> Comparison:
    """Logits of eight images, off by that much at one place."""
    plain = Comparison(
        output="logits",
        expected_dtype="float32",
        actual_dtype="float32",
        expected_shape=(8, 3),
        actual_shape=(8, 3),
        elements=24,
        max_abs_diff=max_abs_diff,
        expected_max_abs=2.4,
        where=(5, 1),
        expected_at=1.75,
        actual_at=1.75 + max_abs_diff,
        mismatched_elements=7 if max_abs_diff else 0,
        error_quantiles=(0.0, max_abs_diff / 9, max_abs_diff / 2, max_abs_diff, max_abs_diff),
        top1_agreement=1.0,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def target(name: TargetName, diffs: dict[str, float] | float, **changes: object) -> TargetObservation:
    """A target that went all the way; `diffs` is its error at each case, or at all of them."""
    errors = dict.fromkeys(CASES, diffs) if isinstance(diffs, float) else {**dict.fromkeys(CASES, 0.0), **diffs}
    suffix = {"pt2": "pt2", "onnx": "onnx"}.get(name)
    facts = {"opset": "20", "providers": "CPUExecutionProvider"} if name == "onnx" else {}
    artifact = Artifact(path=f"artifacts/model.{suffix}", sha256=f"{len(name):02x}" * 32, size_bytes=1_312_774)
    plain = TargetObservation(
        target=name,
        guards="warn" if name == "onnx" else "require",
        artifact=artifact if suffix else None,
        reached="guards",
        cases=tuple(CaseResult(case=case, outputs=(comparison(error),)) for case, error in errors.items()),
        probes=(Probe(kind="above-max", axis="batch", declared="2..16", tried="17", answer="refused"),),
        duration_s=1.2,
        facts=facts,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def model(name: str, targets: tuple[TargetObservation, ...], **changes: object) -> ModelObservation:
    """A model whose eager side gave no trouble."""
    plain = ModelObservation(
        model=name,
        reached="guards",
        parameters=84_131,
        weights_bytes=336_524,
        hygiene=HygieneObservation(repeats=2),
        controls=controls(),
        outputs=(OutputLeaf(name="logits", dtype="float32", shape=(8, 3)),),
        targets=targets,
        duration_s=6.4,
        peak_memory_bytes=412_000_000,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def all_fine(error: float = 2.1e-6) -> tuple[TargetObservation, ...]:
    """Three targets in agreement."""
    return target("exported-program", 0.0), target("pt2", 0.0), target("onnx", error)


def green() -> Results:
    """Three models, all verified; one of them affine, so that its basis points settle it."""
    affine = tuple(replace(seen, affine=True) for seen in all_fine(0.0))
    basis = replace(controls(), inputs=(*controls().inputs, ControlInput(name="basis", family="basis", group="affine")))
    seen_basis = tuple(replace(t, cases=(*t.cases, CaseResult(case="basis", outputs=(comparison(),)))) for t in affine)
    models = (
        model("glyph-head", all_fine()),
        model("affine-map", seen_basis, affine=True, controls=basis),
        model("sentence-encoder", all_fine(2.9e-5), controls=controls(left_out=12, left_out_reason=FLOP_BUDGET)),
    )
    return results(
        tuple(contract(seen.model) for seen in models), RunObservation(environment=ENVIRONMENT, models=models)
    )


FLOP_BUDGET = "the budget of 200 GFLOP for each target"
ROUNDED = {
    "halves-1@batch=16": 3.1e-3,
    "halves-1@batch=8": 3.0e-3,
    "constant-1@batch=8": 1.1e-3,
    "normal-1@batch=8": 9.0e-4,
}
EXPORT_TRACE = """Traceback (most recent call last):
  File ".venv/lib/python3.11/site-packages/torch/export/__init__.py", line 311, in export
    raise e
  File "src/glyphlab/encoder.py", line 41, in forward
    if mask.sum() > 0:
torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode: Could not guard on data-dependent Eq(u0, 1)"""


def export_failure() -> Failure:
    """Control flow that depends on data."""
    return Failure(
        stage="export",
        kind="exception",
        type="GuardOnDataDependentSymNode",
        message="Could not guard on data-dependent expression Eq(u0, 1) (unhinted: Eq(u0, 1)).  (Size-like: none)",
        source=SourceLine(path="src/glyphlab/encoder.py", line=41, text="        if mask.sum() > 0:"),
        suggestions=("torch._check(mask.sum() > 0)",),
        trace=EXPORT_TRACE,
    )


def died() -> Failure:
    """A crash in native code."""
    return Failure(
        stage="run", kind="died", type="SIGSEGV", message="killed by signal 11 (SIGSEGV)", case="high-1@batch=16"
    )


def picture() -> ErrorPicture:
    """How the logits of eight images differ: one class of one image by much, others by little."""
    grid = [0.0, 0.0, 2.8e-5, *[0.0] * 11, 3e-6, 3e-6, 3.1e-3, 3e-6, 3e-6, 0.0, 1.5e-3, *[0.0] * 3]
    return ErrorPicture(
        output="logits",
        case="halves-1@batch=16",
        unequal=(1, 1, *[0] * 6, 1, *[0] * 3, 4, *[0] * 11),
        equal=17,
        where=(5, 1),
        axes=(0, 1),
        columns=3,
        grid=tuple(grid),
    )


def guard_probes() -> tuple[Probe, ...]:
    """ONNX Runtime enforces no range."""
    return (
        Probe(
            kind="below-min",
            axis="batch",
            declared="2..16",
            tried="1",
            answer="accepted-eager-refuses",
            message="eager refuses: expected more than one row",
        ),
        Probe(kind="above-max", axis="batch", declared="2..16", tried="17", answer="accepted-equal"),
    )


def inspection() -> Inspection:
    """A head whose bias is another one in the file, and the smallest image that shows it."""
    errors = (0.0, 2e-7, 3e-7, 2.5e-7, 4e-7, 2.1e-3, 2.2e-3)
    names = ("conv2d", "relu", "max_pool2d", "view", "linear", "linear_1", "softmax")
    guilty = GuiltyNode(
        name="linear_1",
        operator="aten.linear.default",
        module="head.out",
        module_class="Linear",
        file_nodes=("Gemm node_linear_1",),
        source=SourceLine(path="src/glyphlab/model.py", line=41, text="return self.out(hidden)"),
        max_abs_diff=3.1e-3,
        expected_max_abs=1.4,
        own_max_abs_diff=3.1e-3,
    )
    return Inspection(
        output="logits",
        case="halves-1@batch=16",
        trace=NodeTrace(
            beside="program",
            origin="introduced",
            guilty=guilty,
            mapped=7,
            unmapped=2,
            points=tuple(NodePoint(name=name, error=error) for name, error in zip(names, errors, strict=True)),
        ),
        smallest=SmallestInput(
            sizes="batch=2",
            tensors=(SmallTensor(path="x", dtype="float32", shape=(2, 1, 24, 24)),),
            elements=1152,
            elements_before=9216,
            tried=23,
            is_finished=False,
            expected_at=0.25,
            actual_at=0.2531,
            file="cases/glyph-head/onnx.smallest-logits.npz",
        ),
    )


def wrong_target() -> TargetObservation:
    """ONNX with other values at four control inputs."""
    return target("onnx", ROUNDED, probes=guard_probes(), pictures=(picture(),), inspections=(inspection(),))


def red() -> Results:
    """A wrong value, an export that fails, a worker that dies, and a range that ONNX does not enforce."""
    models = (
        model(
            "glyph-head",
            (target("exported-program", 0.0), target("pt2", 0.0), wrong_target()),
        ),
        model("sentence-encoder", (), reached="export", failure=export_failure()),
        model(
            "detector",
            (
                target("exported-program", 4e-7),
                target("pt2", 4e-7, notes=("saved without `run_decompositions()`",)),
                target("onnx", 0.0, cases=(), probes=(), reached="run", failure=died()),
            ),
            printed="loading detector head\nsegmentation fault in libonnxruntime.so",
        ),
        model("affine-map", all_fine(0.0)),
    )
    return results(
        tuple(contract(seen.model) for seen in models), RunObservation(environment=ENVIRONMENT, models=models)
    )


def with_recipe() -> Results:
    """The same, with lines to paste."""
    run = red()
    first = replace(run.findings[0], recipe="for a in x:\n    out = a")
    return replace(run, findings=(first, *run.findings[1:]))


def problem() -> Results:
    """One model whose factory is not there: exit code 2."""
    missing = Problem(
        message="glyph-head: factory glyphlab.model:make_modle: module 'glyphlab.model' has no attribute 'make_modle'",
        hint="Did you mean `glyphlab.model:make_model`? Set `models.glyph-head.factory` in export-gate.yml.",
    )
    models = (
        ModelObservation(model="glyph-head", problem=missing, duration_s=0.2),
        model("affine-map", all_fine(0.0)),
    )
    return results(
        tuple(contract(seen.model) for seen in models), RunObservation(environment=ENVIRONMENT, models=models)
    )


def broken() -> Results:
    """The worker did not come up: exit code 3."""
    return results((contract("glyph-head"), contract("affine-map")), RunObservation())


def crowd(number: int, trace_lines: int = 60) -> Results:
    """So many models with a wrong value each, and as many that are fine."""
    wrong = tuple(
        model(
            f"model-{index:03d}",
            (target("onnx", {"halves-1@batch=16": 1e-3 * (index + 1)}, cases=_one_case(1e-3 * (index + 1))),),
            controls=controls(("halves-1@batch=16",)),
        )
        for index in range(number)
    )
    fine = tuple(
        model(
            f"fine-{index:03d}",
            (target("onnx", 0.0, cases=_one_case(0.0)),),
            controls=controls(("halves-1@batch=16",)),
        )
        for index in range(number)
    )
    contracts = tuple(contract(seen.model, targets=(make_target("onnx"),)) for seen in (*fine, *wrong))
    made = results(contracts, RunObservation(environment=ENVIRONMENT, models=(*fine, *wrong)))
    trace = tuple(f"line {line} of a long explanation" for line in range(trace_lines))
    return replace(made, findings=tuple(replace(finding, details=trace) for finding in made.findings))


def _one_case(error: float) -> tuple[CaseResult, ...]:
    return (CaseResult(case="halves-1@batch=16", outputs=(comparison(error),)),)


def unchanged() -> Results:
    """Three models, one of which was verified in this run."""
    run = green().run
    commits = ("9c1185a5c5e9fc54612808977ee8f548b2258d31", "0b7e1f5d5e0c7a2f3b4c5d6e7f8091a2b3c4d5e6-dirty")
    reused = [
        replace(model, reused=Reused(commit=commit, day="2026-02-27"))
        for model, commit in zip(run.models, commits, strict=False)
    ]
    return results(green().contracts, replace(run, models=(*reused, run.models[-1])))


RUNS = {
    "green": green,
    "unchanged": unchanged,
    "red": red,
    "problem": problem,
    "broken": broken,
    "nothing": lambda: results((), RunObservation(environment=ENVIRONMENT)),
}
"""Each kind of run by name."""
