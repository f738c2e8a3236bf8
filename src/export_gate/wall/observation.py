"""What the worker observed: facts without judgement, as standard-library records.

Rules turn them into findings. Everything a verdict rests on is here, so results can be judged again without exporting.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from export_gate.wall.contract import TargetName
from export_gate.wall.diagnosis import ConversionTrial, ExportGuard, ExportTrial, Inspection, WeightsCompared
from export_gate.wall.nodes import GuiltyNode
from export_gate.wall.noise import Noise
from export_gate.wall.source import SourceLine
from export_gate.wall.targets import GuardPolicy, is_run_on

Stage = Literal["model", "controls", "eager", "export", "convert", "load", "run", "compare", "guards"]
STAGES: tuple[Stage, ...] = ("model", "controls", "eager", "export", "convert", "load", "run", "compare", "guards")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where the observations were made."""

    python: str
    """Version, e.g. 3.11.7."""
    executable: str
    platform: str
    cpu: str
    """Vector width in use, e.g. AVX512; eager results differ between widths as much as a runtime's do."""
    versions: dict[str, str] = field(default_factory=dict)
    """Distribution name -> version of torch, numpy, onnx, onnxscript, onnxruntime where installed."""
    threads: int = 1


LAZY_LAYERS = "LazyLayers"
"""The type of the failure to create a model with layers that have no weights before their first call."""
ARTIFACT_CHANGED = "ArtifactChanged"
"""The type of a load failure whose file is no longer the one that was verified."""
UNWRITTEN_SIZES = "Cannot create Dim with inconsistent"
"""How torch.export fails to write which sizes it refuses, in place of that message (torch 2.13)."""
OWN_FAULT = "an error of export-gate itself"
"""The type of a failure of the gate's own code, which says nothing about the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Something did not complete: an exception, a death or a timeout."""

    stage: Stage
    kind: Literal["exception", "died", "timed-out", "missing-package"]
    type: str
    """Exception class, signal name (`SIGSEGV`) or exit status (`exit 3`)."""
    message: str
    case: str | None = None
    source: SourceLine | None = None
    """Innermost frame that belongs to the project."""
    foreign: SourceLine | None = None
    """The line of another package that `source` calls and at which it failed; None for torch's own, or without one."""
    causes: tuple[str, ...] = ()
    """`type: message` of the exceptions that led to it, the first one first."""
    suggestions: tuple[str, ...] = ()
    """Torch's own suggested fixes, one per line."""
    trace: str = ""
    """The last lines of the traceback or of what the worker printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The user's mistake, found on the worker's side: the model could not be checked as declared."""

    message: str
    """What, where, expected against actual."""
    hint: str
    """The next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NonfiniteCount:
    """Counts of non-finite elements."""

    nan: int = 0
    posinf: int = 0
    neginf: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisNorms:
    """One index of the tolerance axis, judged apart."""

    index: int
    max_abs_diff: float
    expected_max_abs: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelNorms:
    """Entries far larger than the rest (-1e9 in a masked logit), judged apart: they say nothing about the scale."""

    count: int
    max_abs_diff: float
    expected_max_abs: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsDiffering:
    """Along the first axis: rows of which all elements differ, rows of which some do, and all rows."""

    whole: int
    partly: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One output leaf of one control input: eager (expected) against an artifact (actual).

    The numeric fields are over entries finite on both sides, computed in float64 (integers exactly), and are zero
    where dtype or shape differ.
    """

    output: str
    expected_dtype: str
    actual_dtype: str
    expected_shape: tuple[int, ...]
    actual_shape: tuple[int, ...]
    elements: int = 0
    """Elements compared, non-finite included."""
    max_abs_diff: float = 0.0
    expected_max_abs: float = 0.0
    where: tuple[int, ...] | None = None
    """Index of the largest difference."""
    expected_at: float | None = None
    actual_at: float | None = None
    mismatched_elements: int = 0
    """Entries whose values are not equal (non-finite disagreement included)."""
    nonfinite_mismatched: int = 0
    """Positions where the NaN, +inf or -inf masks differ."""
    nonfinite_where: tuple[int, ...] | None = None
    """First of those positions."""
    expected_nonfinite: NonfiniteCount = NonfiniteCount()
    actual_nonfinite: NonfiniteCount = NonfiniteCount()
    error_quantiles: tuple[float, ...] = ()
    """Of |P-M| over finite entries at 0.5, 0.9, 0.99, 0.999 and 1."""
    top1_agreement: float | None = None
    """Share of rows whose argmax along the last axis agrees; None where that axis is shorter than 2."""
    per_axis: tuple[AxisNorms, ...] = ()
    """Filled if the contract sets `tolerance.axis`."""
    sentinels: SentinelNorms | None = None
    """Placeholders among the expected entries, which the other norms leave out; None if there are none."""
    rows: RowsDiffering | None = None
    """Between two runs of eager, of an output with rows; else None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPicture:
    """How the error of one output is spread, at the control input where it is worst. No verdict rests on it."""

    output: str
    case: str
    unequal: tuple[int, ...] = ()
    """Entries by |P-M|, in quarters of a decade below the largest one: count k is of the entries in
    (largest * 10**(-(k+1)/4), largest * 10**(-k/4)], the last one of all smaller ones. Complex entries are two each.
    """
    equal: int = 0
    """Entries without a difference."""
    where: tuple[int, ...] = ()
    """Index of the largest difference, or of the first entry that is finite on one side only."""
    axes: tuple[int, ...] = ()
    """Axes that `grid` lays out (rows and columns, or columns alone); the other indices are those of `where`."""
    columns: int = 1
    """Cells in a row of `grid`."""
    grid: tuple[float, ...] = ()
    """The largest |P-M| in each of at most 32 x 32 cells, row by row; infinite where masks of NaN or inf differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """Leaf names in order, where expected and actual disagree; `name:None` and `name:int` mark non-tensor leaves."""

    expected: tuple[str, ...]
    actual: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One control input on one artifact."""

    case: str
    structure: Structure | None = None
    """None if the structures agree."""
    outputs: tuple[Comparison, ...] = ()
    failure: Failure | None = None


MaskReason = Literal["empty-row", "off-position", "moving"]
"""A sample whose mask row is empty, a switched-off position, or an element that moves with switched-off input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedComparison:
    """One output of one control input that differs, compared again without the elements that masks excuse."""

    case: str
    masks: tuple[str, ...]
    """The mask inputs that excuse elements."""
    reasons: tuple[MaskReason, ...]
    dropped: int
    """Elements left out."""
    kept: Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeNoise:
    """An output that rounding would excuse at every input of one size, tried at further inputs of that size."""

    output: str
    sizes: dict[str, int]
    draws: int
    exceeding: int
    """Further inputs that exceed the tolerance. If all do, the cause is arithmetic on sizes, not rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One call outside (or at the edge of) the declared contract and how the artifact answered."""

    kind: Literal["below-min", "above-max", "at-min", "at-max", "wrong-size", "wrong-dtype", "wrong-rank"]
    axis: str
    """What was varied: a dim name or `input[axis]`."""
    declared: str
    """The contract's words, e.g. `2..16` or `float32`."""
    tried: str
    answer: Literal["refused", "accepted-equal", "accepted-differs", "accepted-eager-refuses"]
    message: str = ""
    """The refusal's first line, or the difference."""
    checks: Literal["default", "runtime-checks"] = "default"
    """`runtime-checks`: AOTInductor with AOTI_RUNTIME_CHECK_INPUTS=1."""
    empty: bool = False
    """The artifact accepted it, and none of its outputs has an element."""
    eager_refuses: bool = False
    """Eager raises there, whatever the artifact does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DimFound:
    """A declared dim as the exported program has it."""

    axis: str
    """`input[axis]`, e.g. `x[0]`."""
    dim: str
    declared: tuple[int, int]
    """Range of the axis (not of the dim): for `2*seq+1` with seq in [1, 8] this is (3, 17)."""
    found: tuple[int, int]
    """torch.export treats a lower bound of 2 and below alike, so 1..2 is found as 2..2."""
    specialized: bool = False
    """The axis is a constant of the program: its length has no symbol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Control inputs whose sizes break a condition under which an export was traced."""

    words: str
    """The condition that they meet instead, in the contract's dims, e.g. `dst == src + 1`."""
    cases: tuple[str, ...]
    swept: tuple[str, ...] = ()
    """Inputs of the sweep over sizes that meet it as well."""
    dims: tuple[str, ...] = ()
    """Declared dims that the condition reads."""
    source: SourceLine | None = None
    """The user's line that asks for the condition."""
    sizes: tuple[int, ...] = ()
    """The declared sizes that meet a condition on one dim, as far as they were looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that was verified."""

    path: str
    """Relative to the report folder, or to the config where it was handed in."""
    sha256: str
    size_bytes: int
    """All files of the artifact, external data included."""
    files: dict[str, str] = field(default_factory=dict)
    """Every file of the artifact with its own sha256; `sha256` above is the main file's where it is the only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRead:
    """A table of an artifact that is not the program's in every bit, and that an input indexes."""

    table: str
    """Its name in the artifact."""
    input: str
    """Path of the input whose values are the numbers of its rows."""
    rows: int
    read: int
    """Rows that any control input read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetObservation:
    """One target of one model."""

    target: TargetName
    guards: GuardPolicy = "require"
    artifact: Artifact | None = None
    failure: Failure | None = None
    """Why the target ended early, if it did."""
    reached: Stage = "export"
    """Furthest stage begun."""
    cases: tuple[CaseResult, ...] = ()
    probes: tuple[Probe, ...] = ()
    masked: tuple[MaskedComparison, ...] = ()
    """Of outputs that differ and have elements that masks excuse."""
    noise: tuple[Noise, ...] = ()
    """Of outputs that exceed their tolerance, the worst first, until one is not excused."""
    size_noise: tuple[SizeNoise, ...] = ()
    inspections: tuple[Inspection, ...] = ()
    """Experiments after a failure: one for each output that differs, as far as time allowed."""
    weights: WeightsCompared | None = None
    """Of a file that was handed in and differs."""
    tables: tuple[TableRead, ...] = ()
    """Tables that differ from the program's and were not read in full."""
    pictures: tuple[ErrorPicture, ...] = ()
    """One of each output that differs anywhere."""
    facts: dict[str, str] = field(default_factory=dict)
    """Opset, providers, loader and the like, for the report."""
    notes: tuple[str, ...] = ()
    affine: bool = False
    """Every operator of the artifact's graph is affine in the input."""
    duration_s: float = 0.0
    separate: dict[str, int] = field(default_factory=dict)
    """Dim sizes this export was made for alone; empty for the main export."""
    conversion_trials: tuple[ConversionTrial, ...] = ()
    """After a conversion that failed or made a wrong file: other ways that were tried."""
    stopped_at: GuiltyNode | None = None
    """The node that the converter could not translate, or at which the runtime stops; None if neither says."""
    swept: int = 0
    """Further sizes that were run; of those only the ones that differ most are among `cases`."""

    @property
    def export(self) -> str:
        """`batch=1, side=8` for a separate export; empty for the main one."""
        return ", ".join(f"{dim}={size}" for dim, size in sorted(self.separate.items()))


OWN_GROUPS = ("data", "golden", "function")
"""Groups of control inputs that the project hands in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlInput:
    """One member of the control set."""

    name: str
    family: str
    sizes: dict[str, int] = field(default_factory=dict)
    group: Literal["generated", "data", "golden", "function", "affine"] = "generated"
    golden: int | None = None
    """Index of its source among `controls.golden`; None for the other groups, and in results of older versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSetObservation:
    """The control set as it was used."""

    sha256: str
    """Over names, dtypes, shapes and bytes of the control inputs that are made before the export, in order."""
    inputs: tuple[ControlInput, ...]
    """Those, then the ones that the exported programs asked for."""
    left_out: int = 0
    """Cases dropped by the limit on their number or by the FLOP budget."""
    left_out_reason: str = ""
    unselected: int = 0
    """Control inputs that the patterns of the command line left out."""
    case_flops: float | None = None
    """Forward floating-point operations of the reference case."""
    undeclared_range: tuple[str, ...] = ()
    """Floating-point tensor inputs without `range` or `values`: wide inputs were not tried."""
    undeclared_integers: tuple[str, ...] = ()
    """Integer tensor inputs without `range` or `values` that index no table of weights: only 0 and 1 were tried."""
    notes: tuple[str, ...] = ()

    def run_on(self, kind: str) -> tuple[ControlInput, ...]:
        """The inputs on which a target of that kind is run: all, if it were none otherwise."""
        return tuple(each for each in self.inputs if is_run_on(kind, each.family)) or self.inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLeaf:
    """An output leaf of the eager model at the reference input."""

    name: str
    dtype: str
    """`float32` and the like; `None` and `str` for leaves that are not numbers."""
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """How far eager's output at one control input is from answers that are wrong."""

    output: str
    case: str
    zeros: float
    """max |M|."""
    other: float
    """max |M - M'|, M' the output at another control input of the same shape."""
    rolled: float
    """max |M - M'|, M' the output with its rows rolled by one."""
    step: float = 0.0
    """The distance between neighbouring values of an output that takes few, as a quantiser's do; else 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseBroken:
    """Eager itself did not keep the declared contract at one control input."""

    case: str
    message: str
    source: SourceLine | None = None
    flat_masks: dict[str, int] = field(default_factory=dict)
    """Inputs of this case that may be masks and have one value everywhere -> that value."""
    of_training: bool = False
    """Whether it is an input that eager takes in eval mode, and refuses as the factory returns it."""


Surrounding = Literal["clock", "environment", "locale", "working directory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AmbientEffect:
    """Eager answered otherwise at one control input once its surroundings were others."""

    surrounding: Surrounding
    """What was changed."""
    case: str
    outputs: tuple[Comparison, ...] = ()
    """Outputs that differ, the worst each; empty if it raised."""
    raised: str = ""
    """The exception, if it raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRelation:
    """What tells the inputs that eager refuses from those that it takes, and is not in the contract."""

    words: str
    """When eager refuses: `` `pos` >= `seq` ``."""
    declare: str
    """What the config may say: `` `range: [0, seq-1]` `` at the key, or a sentence that says more than one key."""
    key: str
    """Its key below the model's."""
    refused: int
    """Inputs that eager refused, all of which break the relation."""
    accepted: int
    """Inputs that it took, all of which keep it."""
    tried: int
    """Refused inputs that it took once they were drawn with the relation kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateHome:
    """What holds state that forward changes."""

    name: str
    kind: Literal["attribute", "buffer", "class", "closure", "default", "global"]
    source: SourceLine | None = None
    """The line that makes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HygieneObservation:
    """How the eager model behaves apart from its values."""

    train_modules: tuple[str, ...] = ()
    """Submodules in train mode that act differently there (dropout, batch norm, ...), as `name (Class)`."""
    train_module_count: int = 0
    """All modules in train mode."""
    forced_eval: bool = False
    scripted: bool = False
    """A TorchScript module, of which a target is to be exported."""
    repeats: int = 0
    """How often eager was run on the same input."""
    nondeterministic: tuple[Comparison, ...] = ()
    """Outputs that differed between repeats, the worst pair each."""
    factory_differs: tuple[str, ...] = ()
    """Parameters or buffers that differ between two calls of the factory with the same seeds."""
    mutated_inputs: tuple[str, ...] = ()
    mutating: SourceLine | None = None
    """The first line of the project that writes to one of them."""
    state_changed: tuple[str, ...] = ()
    """Buffers, parameters and attributes that forward changed, as `name: before -> after`."""
    state_writing: SourceLine | None = None
    """The first line of the project that changes some of it."""
    state_home: StateHome | None = None
    """What holds the first of it; None if that was not found out."""
    state_effects: tuple[Comparison, ...] = ()
    """Outputs that depended on earlier calls (a used instance against a fresh one), the worst each."""
    draws: bool = False
    """Forward draws from torch's global generator without seeding it."""
    drawing: SourceLine | None = None
    """Where runs differ: the project's line that draws, or reads the clock."""
    drawn_with: str = ""
    """What it calls there: `random.uniform`, `torch.randn_like`, `time.time`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reused:
    """Where observations come from that an earlier run made, since when nothing has changed."""

    commit: str
    """Of the earlier run, with `-dirty` if files were not as they are in it; empty outside of git."""
    day: str
    """ISO date (UTC) of the earlier run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelObservation:
    """All observations of one model."""

    model: str
    problem: Problem | None = None
    failure: Failure | None = None
    """Why the model ended before its targets (model, controls, eager and export stages)."""
    reached: Stage = "model"
    parameters: int = 0
    """Number of parameter elements."""
    weights_bytes: int = 0
    recurrent: dict[str, str] = field(default_factory=dict)
    """Where torch.export failed: layers such as `encoder.rnn (LSTM)` -> the dim of their length, or `packed`."""
    export_trials: tuple[ExportTrial, ...] = ()
    """Where torch.export failed over sizes: other declarations of the dims, as they were tried."""
    export_guard: ExportGuard | None = None
    """Where torch.export failed over sizes: the condition because of which it did, if torch noted one."""
    hygiene: HygieneObservation = HygieneObservation()
    controls: ControlSetObservation | None = None
    outputs: tuple[OutputLeaf, ...] = ()
    broken: tuple[PromiseBroken, ...] = ()
    ambient: tuple[AmbientEffect, ...] = ()
    """What eager's answer depends on besides its inputs and weights."""
    relations: tuple[MissingRelation, ...] = ()
    """Of the most frequent refusal."""
    contrasts: tuple[Contrast, ...] = ()
    """Of each floating output at a few control inputs."""
    golden: tuple[CaseResult, ...] = ()
    """Golden outputs (expected) against eager (actual)."""
    dims: tuple[DimFound, ...] = ()
    branches: tuple[Branch, ...] = ()
    """Sizes that torch.export did not prove alike, at which control inputs were run."""
    random_operators: tuple[str, ...] = ()
    """Operators of the exported programs that draw random numbers."""
    random_source: SourceLine | None = None
    """The project's own line that leads to the first of them."""
    affine: bool = False
    """Every operator of the exported graph is affine in the input and the basis points are in the control set."""
    targets: tuple[TargetObservation, ...] = ()
    duration_s: float = 0.0
    peak_memory_bytes: int = 0
    printed: str = ""
    """The last lines that the model printed."""
    files: tuple[str, ...] = ()
    """Files that its process read, from the root of the checkout."""
    variables_missed: tuple[str, ...] = ()
    """Environment variables that the project's code looked for and did not get, though the caller or `env` has them."""
    reused: Reused | None = None
    """None if the model was observed in this run."""

    @property
    def control_inputs(self) -> tuple[ControlInput, ...]:
        """The inputs of the control set; none if the model ended before it was generated."""
        return self.controls.inputs if self.controls else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObservation:
    """One run of the worker."""

    environment: Environment | None = None
    """None if the worker did not start."""
    models: tuple[ModelObservation, ...] = ()
