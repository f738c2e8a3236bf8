"""Observations made by hand: for each rule one that trips it and one that nearly does.

A sample's name is the rule's, with `-nearly` where the rule must stay silent; further samples say what they are about.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from export_gate.wall.contract import (
    Controls,
    Dim,
    GoldenSource,
    ModelContract,
    Output,
    Size,
    Target,
    TensorSpec,
    Tolerance,
    make_target,
)
from export_gate.wall.diagnosis import ConversionTrial, WeightsCompared
from export_gate.wall.nodes import GuiltyNode
from export_gate.wall.noise import Noise
from export_gate.wall.observation import (
    AmbientEffect,
    AxisNorms,
    Branch,
    CaseResult,
    Comparison,
    Contrast,
    ControlInput,
    ControlSetObservation,
    DimFound,
    Environment,
    Failure,
    HygieneObservation,
    MaskedComparison,
    MaskReason,
    MissingRelation,
    ModelObservation,
    NonfiniteCount,
    OutputLeaf,
    Probe,
    PromiseBroken,
    RowsDiffering,
    RunObservation,
    SentinelNorms,
    SizeNoise,
    SourceLine,
    Structure,
    TableRead,
    TargetObservation,
)

BATCH = Dim(name="batch", min=2, max=16)
SIDE = Dim(name="side", min=8, max=64, multiple_of=8)
LINE = SourceLine(path="src/glyphlab/model.py", line=12, text="if x.sum() > 0:")
CASES = ("normal-1@batch=2", "normal-1@batch=16")
ENVIRONMENT = Environment(python="3.11.7", executable="/srv/project/.venv/bin/python", platform="linux", cpu="AVX512")

FIRST = Comparison(
    output="logits",
    expected_dtype="float32",
    actual_dtype="float32",
    expected_shape=(2, 3),
    actual_shape=(2, 3),
    elements=6,
    max_abs_diff=1e-7,
    expected_max_abs=2.4,
    where=(1, 0),
    expected_at=2.4,
    actual_at=2.4000001,
    mismatched_elements=2,
    error_quantiles=(0.0, 5e-8, 1e-7, 1e-7, 1e-7),
    top1_agreement=1.0,
)
"""An agreement within every target's default tolerance."""


def contract(**fields: Any) -> ModelContract:
    """`glyph-head`: one float input and one output on onnx, with what `fields` replace."""
    batch, fixed = Size(factors={"batch": 1}), Size(offset=3)
    base = ModelContract(
        name="glyph-head",
        factory="glyphlab.model:make_model",
        dims=(BATCH,),
        inputs={"x": TensorSpec(dtype="float32", shape=(batch, fixed), range=(0.0, 1.0))},
        outputs=(Output(name="logits"),),
        targets=(make_target("onnx"),),
    )
    return replace(base, **fields)


def leaf(**fields: Any) -> Comparison:
    """A comparison that agrees, with what `fields` replace."""
    return replace(FIRST, **fields)


def case(name: str = CASES[0], *outputs: Comparison, **fields: Any) -> CaseResult:
    """A control input's result; without outputs, one that agrees."""
    return CaseResult(case=name, outputs=outputs or (FIRST,), **fields)


def failed(name: str = CASES[0], **fields: Any) -> CaseResult:
    """A control input at which the artifact raised."""
    return CaseResult(case=name, failure=failure(stage="run", case=name, **fields))


def target(*cases: CaseResult, name: str = "onnx", **fields: Any) -> TargetObservation:
    """A target with these results first and agreement at every other control input."""
    given = {result.case for result in cases}
    rest = tuple(case(other) for other in CASES if other not in given)
    return TargetObservation(target=name, cases=cases + rest, reached="guards", **fields)


def ended(stage: str, kind: str = "exception", *, name: str = "onnx", **fields: Any) -> TargetObservation:
    """A target that ended early."""
    return TargetObservation(target=name, failure=failure(stage=stage, kind=kind, **fields), reached=stage)


def _stopped(operator: str, function: str, **arguments: str) -> TargetObservation:
    """A target whose conversion stopped at an operator without a translation."""
    message = (
        f"No ONNX function found for <OpOverload(op='{operator}', overload='default')>. Failure message: No "
        "decompositions registered for the real-valued input"
    )
    node = GuiltyNode(
        name="n", operator=f"{operator}.default", function=function, arguments=tuple(arguments.items()), source=LINE
    )
    return replace(ended("convert", type="ConversionError", message=message), stopped_at=node)


def failure(**fields: Any) -> Failure:
    """An exception in the run stage, with what `fields` replace."""
    base = Failure(
        stage="run",
        kind="exception",
        type="RuntimeError",
        message="the kernel cannot do this\nsecond line",
        trace="Traceback (most recent call last):\n  ...\nRuntimeError: the kernel cannot do this",
    )
    return replace(base, **fields)


PAD = TensorSpec(dtype="bool", shape=(Size(factors={"batch": 1}), Size(offset=3)))


def refused_at(flat: dict[str, int]) -> ModelObservation:
    """Eager raises at the second case, at which these masks have one value."""
    promise = PromiseBroken(case=CASES[1], message="RuntimeError: to_padded_tensor: at least one", flat_masks=flat)
    return observed(TargetObservation(target="onnx", cases=(case(CASES[0]),)), broken=(promise,))


def observed(*targets: TargetObservation, **fields: Any) -> ModelObservation:
    """A model observed without fault, with these targets; without any, onnx agrees everywhere."""
    base = ModelObservation(
        model="glyph-head",
        reached="guards",
        controls=ControlSetObservation(
            sha256="0" * 64,
            inputs=tuple(ControlInput(name=name, family="normal") for name in CASES),
        ),
        outputs=(OutputLeaf(name="logits", dtype="float32", shape=(2, 3)),),
        targets=targets or (target(),),
    )
    return replace(base, **fields)


def run(*models: ModelObservation) -> RunObservation:
    """A run in which the worker came up."""
    return RunObservation(environment=ENVIRONMENT, models=models)


def probe(kind: str, answer: str, tried: str = "17", **fields: Any) -> Probe:
    """A probe of `batch`, declared 2..16."""
    return Probe(kind=kind, axis=fields.pop("axis", "batch"), declared="2..16", tried=tried, answer=answer, **fields)


def hygiene(**fields: Any) -> ModelObservation:
    """A model whose targets agree and whose behaviour is as `fields` say."""
    return observed(hygiene=HygieneObservation(**fields))


def dim_found(found: tuple[int, int], **fields: Any) -> DimFound:
    """`batch` on axis 0 of `x`, declared 2..16."""
    return DimFound(axis="x[0]", dim="batch", declared=(2, 16), found=found, **fields)


GOLDEN_CONTRACT = contract(controls=Controls(golden=(GoldenSource(path="data/golden.npz"),)))


def golden(*outputs: Comparison) -> ModelObservation:
    """A model with one golden, compared as `outputs` say."""
    name = "golden.golden-1@batch=2"
    members = (ControlInput(name=name, family="golden", group="golden"),)
    controls = ControlSetObservation(sha256="0" * 64, inputs=members)
    return observed(
        TargetObservation(target="onnx", cases=(case(name),)), controls=controls, golden=(case(name, *outputs),)
    )


@dataclass(frozen=True)
class Sample:
    """A contract and what was seen of its model."""

    observation: ModelObservation
    contract: ModelContract = field(default_factory=contract)


def on(planned: Any, *targets: TargetObservation, **fields: Any) -> Sample:
    """A sample whose contract has this target alone."""
    return Sample(observed(*targets, **fields), contract(targets=(planned,)))


def laid_out(*refused: str) -> ModelObservation:
    """A model one of whose control inputs is channels-last; eager refuses some."""
    layout = ControlInput(name="channels-last-1@batch=2", family="channels-last", sizes={"batch": 2, "side": 32})
    plain = observed(target(*(case(name) for name in CASES if name not in refused)))
    assert plain.controls is not None
    message = "RuntimeError: view size is not compatible with input tensor's size and stride"
    return replace(
        plain,
        controls=replace(plain.controls, inputs=(*plain.controls.inputs, layout)),
        broken=tuple(PromiseBroken(case=name, message=message, source=LINE) for name in refused),
    )


GUARD = "Guard failed: x.size()[0] <= 15"
NAN = NonfiniteCount(nan=1)


def _strided(planned: Target) -> Sample:
    """A package that is right on dense inputs and misreads a strided one."""
    strided = ControlInput(name="noncontiguous-1@batch=2", family="noncontiguous", sizes={"batch": 2})
    seen = observed(target(case(strided.name, leaf(**FAR)), name="aoti"))
    assert seen.controls is not None
    controls = replace(seen.controls, inputs=(*seen.controls.inputs, strided))
    return Sample(replace(seen, controls=controls), contract(targets=(planned,)))


APART = SentinelNorms(count=4, max_abs_diff=0.0, expected_max_abs=1.0)
"""Values far above the others, which agree."""
FAR = {"max_abs_diff": 3.1e-3, "actual_at": 2.4031, "mismatched_elements": 6}


def rounding(**fields: Any) -> Noise:
    """Eager is as far from the float64 result as it is from the artifact, with what `fields` replace."""
    return replace(Noise(output="logits", case=CASES[0], distance=2e-6, f64=3.1e-3), **fields)


def masked(reason: MaskReason, **fields: Any) -> MaskedComparison:
    """Two of six elements are left out, with what `fields` replace in the comparison of the rest."""
    return MaskedComparison(
        case=CASES[0], masks=("attention_mask",), reasons=(reason,), dropped=2, kept=leaf(elements=4, **fields)
    )


SAMPLES: dict[str, Sample] = {
    "verified": Sample(observed()),
    "torchscript-model": Sample(hygiene(scripted=True)),
    "torchscript-model-nearly": Sample(hygiene(scripted=False)),
    "train-mode": Sample(hygiene(train_modules=("drop (Dropout)", "norm (BatchNorm2d)"), train_module_count=4)),
    "train-mode-without-effect": Sample(hygiene(train_module_count=1)),
    "train-mode-forced": Sample(
        hygiene(train_modules=("drop (Dropout)",), train_module_count=4, forced_eval=True),
        contract(train_mode="force-eval"),
    ),
    "train-mode-nearly": Sample(hygiene(train_module_count=0)),
    "contract-broken": Sample(
        observed(
            TargetObservation(target="onnx", cases=(case(CASES[1]),)),
            broken=(PromiseBroken(case=CASES[0], message="raised IndexError: index 3 is out of bounds", source=LINE),),
        )
    ),
    "contract-broken-at-start": Sample(
        ModelObservation(
            model="glyph-head", failure=failure(stage="eager", type="IndexError", message="index 3", case=CASES[0])
        )
    ),
    "contract-broken-layout": Sample(laid_out("channels-last-1@batch=2")),
    "contract-broken-layout-and-more": Sample(laid_out("channels-last-1@batch=2", CASES[0])),
    "contract-broken-layout-alone": Sample(
        replace(laid_out("channels-last-1@batch=2", *CASES), targets=()),
    ),
    "contract-broken-nested": Sample(
        observed(
            target(case(CASES[0], leaf(**FAR))),
            broken=(PromiseBroken(case=CASES[1], message="RuntimeError: to_padded_tensor: at least one constituent"),),
        )
    ),
    "contract-broken-relation": Sample(
        observed(
            broken=(PromiseBroken(case=CASES[1], message="IndexError: index out of range in self"),),
            relations=(
                MissingRelation(
                    words="`x` >= `batch`",
                    declare="`range: [0, batch-1]`",
                    key="inputs.x",
                    refused=1,
                    accepted=2,
                    tried=1,
                ),
            ),
        )
    ),
    "contract-broken-nearly": Sample(observed(broken=())),
    "nondeterministic-model": Sample(
        hygiene(repeats=3, nondeterministic=(leaf(max_abs_diff=0.5, mismatched_elements=6),))
    ),
    "nondeterministic-model-rows": Sample(
        observed(
            hygiene=HygieneObservation(
                repeats=6,
                nondeterministic=(
                    leaf(max_abs_diff=0.5, mismatched_elements=3, rows=RowsDiffering(whole=1, partly=0, total=2)),
                ),
            ),
            random_operators=("aten.rand.default",),
            random_source=LINE,
        )
    ),
    "nondeterministic-model-dropout": Sample(
        observed(
            hygiene=HygieneObservation(
                repeats=6,
                nondeterministic=(
                    leaf(max_abs_diff=0.5, mismatched_elements=3, rows=RowsDiffering(whole=0, partly=2, total=2)),
                ),
            ),
            random_operators=("aten.dropout.default",),
        )
    ),
    "nondeterministic-model-weights": Sample(hygiene(repeats=3, factory_differs=("head.weight", "head.bias"))),
    "nondeterministic-model-and-values": Sample(
        observed(
            target(case(CASES[0], leaf(**FAR))),
            hygiene=HygieneObservation(repeats=3, nondeterministic=(leaf(max_abs_diff=0.5),)),
        )
    ),
    "nondeterministic-model-unseen": Sample(
        observed(
            hygiene=HygieneObservation(repeats=3, draws=True),
            random_operators=("aten.rand_like.default", "aten.dropout.default"),
        )
    ),
    "nondeterministic-model-own-seed": Sample(
        observed(hygiene=HygieneObservation(repeats=3), random_operators=("aten.rand_like.default",))
    ),
    "nondeterministic-model-nearly": Sample(hygiene(repeats=3)),
    "input-mutated": Sample(hygiene(mutated_inputs=("x",))),
    "input-mutated-nearly": Sample(hygiene(mutated_inputs=())),
    "state-carried": Sample(
        hygiene(state_changed=("calls: 0 -> 1",), state_effects=(leaf(max_abs_diff=1.0, mismatched_elements=6),))
    ),
    "state-carried-without-effect": Sample(hygiene(state_changed=("calls: 0 -> 1",))),
    "state-carried-nearly": Sample(hygiene(state_changed=(), state_effects=())),
    "ambient": Sample(
        observed(
            ambient=(
                AmbientEffect(
                    surrounding="clock", case=CASES[0], outputs=(leaf(max_abs_diff=1.0, mismatched_elements=2),)
                ),
                AmbientEffect(
                    surrounding="working directory",
                    case=CASES[0],
                    raised="FileNotFoundError: [Errno 2] No such file or directory: 'vocabulary.txt'",
                ),
            )
        )
    ),
    "ambient-nearly": Sample(observed()),
    "golden-mismatch": Sample(golden(leaf(**FAR)), GOLDEN_CONTRACT),
    "golden-mismatch-nearly": Sample(golden(leaf(max_abs_diff=3.4e-5)), GOLDEN_CONTRACT),
    "worker-died": Sample(observed(ended("run", "died", type="SIGKILL", message="", trace="", case=CASES[1]))),
    "worker-died-nearly": Sample(observed(target(failed(message="Killed")))),
    "timed-out": Sample(observed(ended("convert", "timed-out", type="timeout", message="", trace=""))),
    "timed-out-nearly": Sample(observed(ended("convert", type="TimeoutError", message="no answer"))),
    "export-failed": Sample(
        ModelObservation(
            model="glyph-head",
            failure=failure(
                stage="export",
                type="GuardOnDataDependentSymNode",
                message="Could not guard on data-dependent expression Eq(u0, 1) (unhinted: Eq(u0, 1)).",
                source=LINE,
            ),
        )
    ),
    "export-failed-separate": Sample(
        observed(
            target(),
            TargetObservation(target="onnx", separate={"batch": 1}, failure=failure(stage="export")),
        )
    ),
    "export-failed-nearly": Sample(observed(ended("convert"))),
    "dim-specialized": Sample(observed(dims=(dim_found((2, 2), specialized=True),))),
    "dim-specialized-auto": Sample(
        observed(dims=(dim_found((2, 2), specialized=True),)), contract(dims=(replace(BATCH, mode="auto"),))
    ),
    "dim-specialized-nearly": Sample(
        observed(dims=(dim_found((2, 2), specialized=True),)), contract(dims=(replace(BATCH, mode="static"),))
    ),
    "conversion-failed": Sample(
        observed(
            ended(
                "convert",
                type="ConversionError",
                message=(
                    "Failed to convert the exported program to an ONNX model. \x1b[96mThis is step 3/3\x1b[0m\n"
                    "<class 'torch.onnx._internal.exporter._errors.DispatchError'>: No ONNX function found for "
                    "<OpOverload(op='prims.bessel_j0', overload='default')>. Failure message: No decompositions "
                    "registered for the real-valued input"
                ),
            )
        )
    ),
    "conversion-failed-with-recipe": Sample(observed(_stopped("aten._cdist_forward", "torch.cdist", p="2.0"))),
    "conversion-failed-without-recipe": Sample(observed(_stopped("aten._linalg_svd", "torch.linalg.svd"))),
    "conversion-failed-at-node": Sample(
        observed(
            replace(
                ended(
                    "convert",
                    type="ConversionError",
                    message="## Exception summary\n\n<class 'AssertionError'>: only 4D query, key, and value",
                ),
                stopped_at=GuiltyNode(
                    name="n",
                    operator="aten.scaled_dot_product_attention.default",
                    source=LINE,
                    function="F.scaled_dot_product_attention",
                ),
            )
        )
    ),
    "conversion-failed-tried": Sample(
        observed(
            replace(
                ended("convert", type="ConversionError", message="Failed to convert the exported program"),
                conversion_trials=(ConversionTrial(option="decompose", value=True, answer="agrees", inputs=8),),
            )
        )
    ),
    "conversion-failed-tried-attention": Sample(
        observed(
            replace(
                ended("convert", type="ConversionError", message="Failed to convert the exported program"),
                conversion_trials=(
                    ConversionTrial(option="decompose", value=True, answer="refused"),
                    ConversionTrial(option="attn_implementation", value="eager", answer="agrees", inputs=8),
                ),
            )
        )
    ),
    "conversion-failed-tried-without-success": Sample(
        observed(
            replace(
                ended("convert", type="ConversionError", message="Failed to convert the exported program"),
                conversion_trials=(
                    ConversionTrial(option="decompose", value=True, answer="differs", inputs=8),
                    ConversionTrial(option="optimize", value=False, answer="refused"),
                ),
            )
        )
    ),
    "conversion-failed-package": Sample(
        observed(
            ended(
                "convert",
                "missing-package",
                type="ModuleNotFoundError",
                message="/srv/project/.venv/bin/python has no onnxscript; install it:\n  pip install onnxscript",
            )
        )
    ),
    "conversion-failed-nearly": Sample(observed(ended("load"))),
    "load-failed": Sample(observed(ended("load", type="Fail", message="bad magic number"))),
    "load-failed-nearly": Sample(observed(target(failed(message="bad magic number")))),
    "range-narrowed": on(
        make_target("exported-program"),
        target(failed(CASES[1], type="AssertionError", message=GUARD), name="exported-program"),
    ),
    "range-narrowed-probe": on(
        make_target("aoti"),
        target(
            name="aoti",
            probes=(
                probe("at-max", "refused", "16", checks="runtime-checks", message="dim value is too large at 0, <= 15"),
            ),
        ),
    ),
    "range-narrowed-dim": Sample(observed(dims=(dim_found((5, 16)),))),
    "range-narrowed-nearly": Sample(observed(target(probes=(probe("at-max", "accepted-equal", "16"),)))),
    "range-narrowed-nearly-by-torch": Sample(
        observed(dims=(DimFound(axis="x[0]", dim="batch", declared=(0, 16), found=(2, 16)),)),
        contract(dims=(Dim(name="batch", min=0, max=16),)),
    ),
    "run-failed": Sample(observed(target(failed(), failed(CASES[1])))),
    "run-failed-with-recipe": Sample(
        observed(
            replace(
                target(failed(message="output_padding (1) may be too large"), failed(CASES[1])),
                stopped_at=GuiltyNode(
                    name="n",
                    operator="aten.convolution.default",
                    function="torch.conv_transpose1d",
                    arguments=(
                        ("stride", "[1]"),
                        ("padding", "[3]"),
                        ("dilation", "[2]"),
                        ("output_padding", "[1]"),
                        ("groups", "1"),
                    ),
                    source=LINE,
                ),
            )
        )
    ),
    "run-failed-nearly": Sample(observed(target())),
    "nothing-compared": Sample(observed(TargetObservation(target="onnx", cases=(case(CASES[0]),)))),
    "nothing-compared-target": on(make_target("pt2"), target(name="onnx")),
    "nothing-compared-elements": Sample(
        observed(target(*(case(name, leaf(elements=0, expected_shape=(0, 3), actual_shape=(0, 3))) for name in CASES)))
    ),
    "nothing-compared-nearly": Sample(
        observed(target(case(CASES[0], leaf(elements=0, expected_shape=(0, 3), actual_shape=(0, 3)))))
    ),
    "nothing-compared-nearly-separate": Sample(
        observed(
            TargetObservation(target="onnx", cases=(case(CASES[1]),)),
            TargetObservation(target="onnx", cases=(case(CASES[0]),), separate={"batch": 2}),
        )
    ),
    "structure-mismatch": Sample(
        observed(
            target(
                CaseResult(case=CASES[0], structure=Structure(expected=("logits", "hidden:None"), actual=("logits",)))
            )
        )
    ),
    "structure-mismatch-nearly": Sample(observed(target(case(CASES[0], FIRST, leaf(output="hidden"))))),
    "dtype-mismatch": Sample(observed(target(case(CASES[0], leaf(actual_dtype="float64"))))),
    "dtype-mismatch-nearly": Sample(
        observed(target(case(CASES[0], leaf(actual_dtype="float64", expected_dtype="float64", max_abs_diff=1e-12))))
    ),
    "shape-mismatch": Sample(observed(target(case(CASES[0], leaf(actual_shape=(2, 1, 3)))))),
    "shape-mismatch-nearly": Sample(observed(target(case(CASES[0], leaf(actual_shape=(1,), expected_shape=(1,)))))),
    "nonfinite-mismatch": Sample(
        observed(target(case(CASES[0], leaf(nonfinite_mismatched=1, nonfinite_where=(0, 2), actual_nonfinite=NAN))))
    ),
    "nonfinite-mismatch-forbidden": Sample(
        observed(target(case(CASES[0], leaf(expected_nonfinite=NAN, actual_nonfinite=NAN)))),
        contract(outputs=(Output(name="logits", nonfinite="forbid"),)),
    ),
    "nonfinite-mismatch-nearly": Sample(
        observed(target(case(CASES[0], leaf(expected_nonfinite=NAN, actual_nonfinite=NAN))))
    ),
    "nonfinite-mismatch-allowed": Sample(
        observed(target(case(CASES[0], leaf(nonfinite_mismatched=1, actual_nonfinite=NAN)))),
        contract(outputs=(Output(name="logits", nonfinite="allow"),)),
    ),
    "value-mismatch": Sample(observed(target(case(CASES[0], leaf(max_abs_diff=9e-5)), case(CASES[1], leaf(**FAR))))),
    "value-mismatch-integers": Sample(
        observed(
            target(
                case(
                    CASES[0],
                    leaf(
                        expected_dtype="int64",
                        actual_dtype="int64",
                        mismatched_elements=1,
                        max_abs_diff=3.0,
                        expected_at=5,
                        actual_at=8,
                    ),
                )
            )
        )
    ),
    "value-mismatch-nearly": Sample(observed(target(case(CASES[0], leaf(max_abs_diff=3.4e-5))))),
    "value-mismatch-nearly-tolerated": Sample(
        observed(target(case(CASES[0], leaf(**FAR)))), contract(tolerance=Tolerance(atol=3.1e-3))
    ),
    "ill-conditioned": Sample(observed(target(case(CASES[0], leaf(**FAR)), noise=(rounding(),)))),
    "ill-conditioned-as-large-as-the-output": Sample(
        observed(target(case(CASES[0], leaf(**{**FAR, "max_abs_diff": 2.2})), noise=(rounding(f64=2.2),)))
    ),
    "ill-conditioned-own-input": Sample(
        observed(
            target(case(CASES[0], leaf(**FAR)), noise=(rounding(),)),
            controls=ControlSetObservation(
                sha256="0" * 64,
                inputs=tuple(
                    ControlInput(name=name, family="normal", group="data" if name == CASES[0] else "generated")
                    for name in CASES
                ),
            ),
        )
    ),
    "ill-conditioned-at-every-input-of-a-size": Sample(
        observed(
            target(
                case(CASES[0], leaf(**FAR)),
                noise=(rounding(),),
                size_noise=(SizeNoise(output="logits", sizes={}, draws=4, exceeding=4),),
            )
        )
    ),
    "ill-conditioned-nothing-tells": Sample(
        observed(
            target(
                *(case(name, leaf(**FAR)) for name in CASES),
                noise=tuple(rounding(case=name) for name in CASES),
            )
        )
    ),
    "ill-conditioned-one-step-of-a-quantiser": Sample(
        observed(
            target(
                *(case(name, leaf(**FAR)) for name in CASES),
                noise=tuple(rounding(case=name) for name in CASES),
            ),
            contrasts=(Contrast(output="logits", case=CASES[0], zeros=1.0, other=1.0, rolled=1.0, step=3.1e-3),),
        )
    ),
    "ill-conditioned-nothing-tells-at-any-range": Sample(
        observed(
            target(
                *(case(name, leaf(**FAR)) for name in CASES),
                noise=tuple(rounding(case=name) for name in CASES),
            ),
            controls=ControlSetObservation(
                sha256="0" * 64,
                inputs=tuple(ControlInput(name=name, family="normal") for name in CASES),
                undeclared_range=("x",),
            ),
        )
    ),
    "ill-conditioned-nearly": Sample(
        observed(target(case(CASES[0], leaf(**FAR)), noise=(rounding(distance=3.1e-3, f64=1e-3),)))
    ),
    "masked-positions": Sample(
        observed(target(case(CASES[0], leaf(**FAR)), masked=(masked("off-position"),))),
    ),
    "masked-positions-empty-rows": Sample(
        observed(
            target(case(CASES[0], leaf(nonfinite_mismatched=3, nonfinite_where=(0, 0))), masked=(masked("empty-row"),))
        )
    ),
    "masked-positions-refused": Sample(refused_at({"pad": 1}), contract(inputs={**contract().inputs, "pad": PAD})),
    "masked-positions-refused-where-declared": Sample(
        refused_at({"pad": 1}), contract(inputs={**contract().inputs, "pad": replace(PAD, mask="any")})
    ),
    "masked-positions-refused-nearly": Sample(refused_at({}), contract(inputs={**contract().inputs, "pad": PAD})),
    "masked-positions-nearly": Sample(
        observed(target(case(CASES[0], leaf(**FAR)), masked=(masked("off-position", **FAR),))),
    ),
    "tolerance-vacuous": Sample(
        observed(target(*(case(name, leaf(max_abs_diff=8e-7, expected_max_abs=1e-6)) for name in CASES)))
    ),
    "tolerance-vacuous-nearly": Sample(
        observed(target(*(case(name, leaf(max_abs_diff=9e-10, expected_max_abs=1e-6)) for name in CASES)))
    ),
    "tolerance-vacuous-of-other-weights": Sample(
        observed(
            target(
                *(case(name, leaf(max_abs_diff=0.05, expected_max_abs=2.0)) for name in CASES),
                weights=WeightsCompared(found=3, differing=("b.weight by 1.5e-01",), differing_count=1),
            )
        ),
        contract(tolerance=Tolerance(atol=0.0, rtol=0.5), targets=(make_target("onnx", artifact="old.onnx"),)),
    ),
    "tolerance-vacuous-of-equal-weights": Sample(
        observed(
            target(
                *(case(name, leaf(max_abs_diff=0.05, expected_max_abs=2.0)) for name in CASES),
                weights=WeightsCompared(found=3),
            )
        ),
        contract(tolerance=Tolerance(atol=0.0, rtol=0.5), targets=(make_target("onnx", artifact="old.onnx"),)),
    ),
    "tolerance-lax": Sample(
        observed(target(*(case(name, leaf(max_abs_diff=9e-10, expected_max_abs=1e-6)) for name in CASES)))
    ),
    "tolerance-lax-beside-placeholders": Sample(
        observed(
            target(*(case(name, leaf(max_abs_diff=9e-10, expected_max_abs=1e-6, sentinels=APART)) for name in CASES))
        )
    ),
    "tolerance-lax-by-rtol": Sample(
        observed(target(*(case(name, leaf(max_abs_diff=1e-6, expected_max_abs=1.0)) for name in CASES))),
        contract(tolerance=Tolerance(atol=0.0, rtol=0.5)),
    ),
    "tolerance-lax-nearly": Sample(
        observed(target(*(case(name, leaf(max_abs_diff=9e-10, expected_max_abs=1.0)) for name in CASES)))
    ),
    "guard-missing": on(
        make_target("exported-program"),
        target(
            name="exported-program",
            probes=(
                probe("below-min", "accepted-differs", "1", message="max |P-M| 0.5"),
                probe("above-max", "refused"),
                probe("wrong-dtype", "accepted-eager-refuses", "float64", axis="x"),
            ),
        ),
    ),
    "guard-missing-warning": Sample(
        observed(
            target(
                probes=(
                    probe("above-max", "accepted-differs", message="max |P-M| 0.5"),
                    probe("below-min", "accepted-equal", "1"),
                )
            )
        )
    ),
    "guard-missing-equal": on(
        make_target("pt2"), target(name="pt2", probes=(probe("below-min", "accepted-equal", "1"),))
    ),
    "guard-missing-lower-bound": on(
        make_target("exported-program"),
        target(name="exported-program", probes=(probe("below-min", "accepted-differs", "1", message="max |P-M| 0.5"),)),
    ),
    "guard-missing-empty": on(
        make_target("pt2"), target(name="pt2", probes=(probe("below-min", "accepted-differs", "0", empty=True),))
    ),
    "guard-missing-beside-a-difference": on(
        make_target("exported-program"),
        target(
            case("normal-1@batch=2", leaf(**FAR)),
            name="exported-program",
            probes=(probe("above-max", "accepted-differs", message="max |P-M| 0.5"),),
        ),
    ),
    "range-narrowed-probe-eager-refuses": on(
        make_target("pt2"), target(name="pt2", probes=(probe("at-max", "refused", "16", eager_refuses=True),))
    ),
    "value-mismatch-layout": _strided(make_target("aoti")),
    "value-mismatch-layout-required": _strided(make_target("aoti", layouts="require")),
    "guard-missing-ignored": on(
        make_target("onnx", guards="ignore"), target(probes=(probe("above-max", "accepted-differs"),))
    ),
    "guard-missing-nearly": on(
        make_target("exported-program"), target(name="exported-program", probes=(probe("above-max", "refused"),))
    ),
    "variable-not-passed": Sample(observed(variables_missed=("HIFIGAN_CKPT",))),
    "variable-not-passed-two": Sample(observed(variables_missed=("HIFIGAN_CKPT", "VOCODER"))),
    "variable-not-passed-credential": Sample(observed(variables_missed=("GITHUB_SHA", "HF_TOKEN"))),
    "variable-not-passed-unset": Sample(
        observed(variables_missed=("HIFIGAN_CKPT",)), contract(env={"HIFIGAN_CKPT": None})
    ),
    "variable-not-passed-nearly": Sample(observed(), contract(env={"HIFIGAN_CKPT": None})),
    "table-unread": Sample(
        observed(target(tables=(TableRead(table="words.weight", input="ids", rows=30522, read=1310),)))
    ),
    "table-unread-nearly": Sample(observed(target())),
    "range-undeclared": Sample(
        observed(
            controls=ControlSetObservation(
                sha256="0" * 64,
                inputs=tuple(ControlInput(name=name, family="normal") for name in CASES),
                undeclared_range=("x",),
            )
        )
    ),
    "range-undeclared-integers": Sample(
        observed(
            controls=ControlSetObservation(
                sha256="0" * 64,
                inputs=tuple(ControlInput(name=name, family="normal") for name in CASES),
                undeclared_integers=("ids",),
            )
        )
    ),
    "range-undeclared-nearly": Sample(observed()),
    # Further wordings of the same rules.
    "contract-broken-factory": Sample(
        ModelObservation(
            model="glyph-head", failure=failure(stage="model", type="KeyError", message="'head'", source=LINE)
        )
    ),
    "contract-broken-twice": Sample(
        ModelObservation(
            model="glyph-head",
            failure=failure(stage="eager", message="index 3", case=CASES[1]),
            broken=(PromiseBroken(case=CASES[0], message="output 'logits' is float64, declared float32"),),
        )
    ),
    "contract-broken-everywhere": Sample(
        replace(
            observed(broken=tuple(PromiseBroken(case=name, message="IndexError: index 3") for name in CASES)),
            targets=(),
        )
    ),
    "torchscript-model-alone": Sample(ModelObservation(model="glyph-head", hygiene=HygieneObservation(scripted=True))),
    "nondeterministic-model-shape": Sample(
        hygiene(
            repeats=2,
            nondeterministic=(
                leaf(actual_shape=(1, 3), elements=0),
                leaf(output="ids", actual_dtype="int64", elements=0),
            ),
        )
    ),
    "input-mutated-two": Sample(hygiene(mutated_inputs=("x", "mask"))),
    "state-carried-hidden": Sample(hygiene(state_effects=(leaf(max_abs_diff=1.0, mismatched_elements=6),))),
    "golden-mismatch-kinds": Sample(
        golden(
            leaf(output="a", actual_dtype="float64", elements=0),
            leaf(output="b", actual_shape=(2, 4), elements=0),
            leaf(output="c", nonfinite_mismatched=1, nonfinite_where=(0, 0), actual_nonfinite=NAN),
            leaf(output="d", expected_dtype="int64", actual_dtype="int64", mismatched_elements=2, max_abs_diff=1.0),
        ),
        GOLDEN_CONTRACT,
    ),
    "golden-mismatch-structure": Sample(
        replace(
            golden(),
            golden=(
                CaseResult(case="golden.golden-1@batch=2", structure=Structure(expected=("a", "b"), actual=("a",))),
            ),
        ),
        GOLDEN_CONTRACT,
    ),
    "golden-mismatch-failure": Sample(replace(golden(), golden=(failed("golden.golden-1@batch=2"),)), GOLDEN_CONTRACT),
    **{
        f"worker-died-{ending.lower().replace(' ', '-')}": Sample(
            observed(ended("run", "died", type=ending, message="", trace=""), printed="loading\nlast words")
        )
        for ending in ("SIGSEGV", "SIGABRT", "SIGILL", "SIGBUS", "SIGTERM", "SIGFPE", "SIGUSR1", "exit 3")
    },
    "worker-died-empty": Sample(
        observed(
            ended("run", "died", type="SIGABRT", message="", trace="", case="empty"),
            controls=ControlSetObservation(
                sha256="0" * 64,
                inputs=(
                    ControlInput(name=CASES[0], family="normal", sizes={"batch": 2}),
                    ControlInput(name="empty", family="normal", sizes={"batch": 0}),
                ),
            ),
        )
    ),
    "worker-died-convert": Sample(observed(ended("convert", "died", type="SIGABRT", message="", trace=""))),
    "worker-died-before-targets": Sample(
        ModelObservation(model="glyph-head", failure=failure(stage="eager", kind="died", type="SIGKILL", message=""))
    ),
    "timed-out-run": Sample(observed(ended("run", "timed-out", type="timeout", message="", trace="", case=CASES[0]))),
    "timed-out-late": Sample(observed(ended("run", "timed-out", type="timeout", message="", trace="", case=CASES[1]))),
    "dim-specialized-one": Sample(observed(dims=(dim_found((1, 1), specialized=True),))),
    "dim-specialized-derived": Sample(
        observed(dims=(DimFound(axis="x[1]", dim="batch", declared=(5, 33), found=(9, 9), specialized=True),))
    ),
    "dim-specialized-and-narrowed": Sample(
        observed(
            dims=(
                dim_found((2, 2), specialized=True),
                DimFound(axis="y[0]", dim="batch", declared=(2, 16), found=(5, 16)),
            )
        )
    ),
    "dim-specialized-sum": Sample(
        observed(dims=(DimFound(axis="mask[1]", dim="batch + cur", declared=(3, 24), found=(9, 9), specialized=True),)),
        contract(dims=(BATCH, Dim(name="cur", min=1, max=8))),
    ),
    "range-narrowed-sum": Sample(
        observed(dims=(DimFound(axis="mask[1]", dim="batch + cur", declared=(3, 24), found=(5, 20)),)),
        contract(dims=(BATCH, Dim(name="cur", min=1, max=8, mode="auto"))),
    ),
    "range-narrowed-sum-nearly": Sample(
        observed(dims=(DimFound(axis="mask[1]", dim="batch + cur", declared=(3, 24), found=(4, 24)),)),
        contract(dims=(BATCH, Dim(name="cur", min=1, max=8))),
    ),
    "load-failed-names": Sample(
        observed(
            ended(
                "load",
                type="ValueError",
                message=(
                    "the graph has input 'images' that the contract lacks; the contract has input 'x'\n"
                    "          contract  artifact\n"
                    "input 1   x         images\n"
                    "output 1  logits    logits"
                ),
            )
        )
    ),
    "load-failed-dtypes": Sample(
        observed(
            ended(
                "load",
                type="ValueError",
                message=(
                    "the graph takes 'x' as int32 instead of int64, the dtype in the contract\n"
                    "   contract  artifact\n"
                    "x  int64     int32"
                ),
            )
        )
    ),
    "conversion-failed-namedtuple": Sample(
        observed(
            ended(
                "convert",
                message=(
                    "Can't serialize TreeSpec of namedtuple class <class 'lab.model.Out'> because we didn't register a "
                    "serializated_type_name. Please register using `_register_namedtuple`."
                ),
            )
        )
    ),
    "conversion-failed-opset": Sample(
        observed(
            ended(
                "convert",
                type="ValueError",
                message=(
                    "operator Relu cannot be converted from opset 18 to 13, and the lowest opset that onnx's version "
                    "converter makes of this model is 14: No Adapter From Version $14 for Relu"
                ),
            )
        )
    ),
    "conversion-failed-int": Sample(
        observed(
            ended(
                "convert",
                message=(
                    "output 'count' is the Python int 3, which ONNX cannot return: return a tensor, such as "
                    "torch.tensor(3)"
                ),
            )
        )
    ),
    "conversion-failed-complex": Sample(
        observed(
            ended(
                "convert",
                message=(
                    "No ONNX function found for <OpOverload(op='aten.angle', overload='out')>. Failure message: "
                    "No decompositions registered for the complex-valued input"
                ),
                source=LINE,
            )
        )
    ),
    "load-failed-dtype": Sample(
        observed(
            ended(
                "load",
                type="InvalidGraph",
                message=(
                    "This is an invalid model. Type Error: Type 'tensor(int16)' of input parameter (x) of operator "
                    "(ReduceSum) in node (node_sum) is invalid."
                ),
            )
        )
    ),
    "load-failed-data": Sample(
        observed(
            ended("load", type="FileNotFoundError", message="[Errno 2] No such file or directory: 'dist/m.onnx.data'")
        )
    ),
    "load-failed-kernel": Sample(
        observed(ended("load", type="NotImplemented", message="NOT_IMPLEMENTED : no kernel for Conv(11)"))
    ),
    "load-failed-package": Sample(
        observed(
            ended("load", "missing-package", message="/usr/bin/python3 has no onnxruntime; pip install onnxruntime")
        )
    ),
    "range-narrowed-everywhere": Sample(
        observed(
            target(
                failed(CASES[0], message="Got invalid dimensions for input: x"),
                failed(CASES[1], message="Got invalid dimensions for input: x"),
                probes=(probe("at-min", "refused", "2", message="no"),),
            )
        )
    ),
    "range-narrowed-branch": Sample(
        observed(
            target(failed(CASES[0], message="Guard failed: x.size()[0] != 7"), name="onnx"),
            branches=(Branch(words="batch == 7", cases=(CASES[0],), dims=("batch",)),),
        )
    ),
    "range-narrowed-auto": Sample(observed(dims=(dim_found((2, 15)),)), contract(dims=(replace(BATCH, mode="auto"),))),
    "range-narrowed-multiple": on(
        make_target("pt2"),
        target(failed(message="Guard failed: 4 * (x.size()[2] // 4) == x.size()[2]"), name="pt2"),
    ),
    "range-narrowed-nearly-by-steps": Sample(
        observed(dims=(DimFound(axis="x[2]", dim="side", declared=(8, 60), found=(16, 56)),)),
        contract(dims=(BATCH, replace(SIDE, max=60))),
    ),
    "range-narrowed-nearly-derived": Sample(
        observed(dims=(DimFound(axis="x[1]", dim="batch", declared=(3, 33), found=(5, 33)),)),
        contract(dims=(replace(BATCH, min=1),)),
    ),
    "run-failed-guards": Sample(observed(ended("guards"))),
    "nothing-compared-controls": Sample(observed(controls=None)),
    "nothing-compared-no-target": Sample(observed(), contract(targets=())),
    "nothing-compared-all-ignored": Sample(
        observed(outputs=(OutputLeaf(name="output", dtype="float32", shape=(2, 3)),)),
        contract(outputs=(Output(name="output", leaf="ignore"),)),
    ),
    "nothing-compared-golden": Sample(replace(golden(), golden=()), GOLDEN_CONTRACT),
    "structure-mismatch-order": Sample(
        observed(target(CaseResult(case=CASES[0], structure=Structure(expected=("b", "a"), actual=("a", "b")))))
    ),
    "structure-mismatch-number": Sample(
        observed(target(CaseResult(case=CASES[0], structure=Structure(expected=("a", "n:int"), actual=("a",)))))
    ),
    "structure-mismatch-twice": Sample(
        observed(
            target(
                CaseResult(case=CASES[0], structure=Structure(expected=("a",), actual=("a", "b"))),
                CaseResult(case=CASES[1], structure=Structure(expected=("a", "a"), actual=("a",))),
            )
        )
    ),
    "structure-mismatch-alone": Sample(
        observed(
            target(case(CASES[0], leaf(**FAR), structure=Structure(expected=("logits", "hidden"), actual=("logits",))))
        )
    ),
    "train-mode-judged-again": Sample(hygiene(train_module_count=4, forced_eval=True)),
    "nonfinite-mismatch-allowed-for-another": Sample(
        observed(target(case(CASES[0], leaf(nonfinite_mismatched=1, actual_nonfinite=NAN)))),
        contract(outputs=(Output(name="hidden", nonfinite="allow"), Output(name="logits"))),
    ),
    "nonfinite-mismatch-forbidden-by-position": Sample(
        observed(target(case(CASES[0], leaf(actual_nonfinite=NAN, expected_nonfinite=NAN)))),
        contract(outputs=(Output(name="scores", nonfinite="forbid"),)),
    ),
    "nonfinite-mismatch-forbidden-by-name": Sample(
        observed(
            target(case(CASES[0], leaf(actual_nonfinite=NAN, expected_nonfinite=NAN))),
            outputs=tuple(OutputLeaf(name=name, dtype="float32", shape=(2, 3)) for name in ("logits", "hidden")),
        ),
        contract(outputs=(Output(name="hidden"), Output(name="logits", nonfinite="forbid"))),
    ),
    "range-narrowed-probes": on(
        make_target("aoti"),
        target(
            name="aoti",
            probes=(
                probe("at-min", "refused", "2", checks="runtime-checks"),
                probe("at-max", "refused", "16", message="dim value is too large"),
            ),
        ),
    ),
    "shape-mismatch-axis": Sample(observed(target(case(CASES[0], leaf(actual_shape=(2, 4)))))),
    "value-mismatch-small": Sample(observed(target(case(CASES[0], leaf(max_abs_diff=3.4000001e-5))))),
    "value-mismatch-rare": Sample(
        observed(target(case(CASES[0], leaf(elements=60, max_abs_diff=0.5, mismatched_elements=2))))
    ),
    "value-mismatch-nan": Sample(observed(target(case(CASES[0], leaf(max_abs_diff=float("nan")))))),
    "value-mismatch-axis": Sample(
        observed(
            target(
                *(
                    case(
                        name,
                        leaf(
                            max_abs_diff=2e-5,
                            per_axis=(
                                AxisNorms(index=0, max_abs_diff=2e-5, expected_max_abs=2.4),
                                AxisNorms(index=1, max_abs_diff=small, expected_max_abs=1e-3),
                            ),
                        ),
                    )
                    for name, small in zip(CASES, (1e-6, 1.5e-5), strict=True)
                )
            )
        ),
        contract(tolerance=Tolerance(axis=1)),
    ),
    "value-mismatch-axis-unobserved": Sample(
        observed(target(case(CASES[0], leaf(max_abs_diff=1.1e-5)))), contract(tolerance=Tolerance(axis=1))
    ),
    "guard-missing-many": on(
        make_target("pt2"),
        target(
            name="pt2",
            probes=(
                *(probe("above-max", "accepted-differs", str(size)) for size in (17, 18, 19, 20)),
                probe("wrong-rank", "accepted-equal", "3 axes", axis="x"),
                probe("below-min", "accepted-differs", "1", checks="runtime-checks"),
            ),
        ),
    ),
    "range-undeclared-two": Sample(
        observed(
            controls=ControlSetObservation(
                sha256="0" * 64,
                inputs=tuple(ControlInput(name=name, family="normal") for name in CASES),
                undeclared_range=("x", "scale"),
            )
        )
    ),
}
