"""The grammar of the control set, tolerances and targets."""

from __future__ import annotations

from typing import Any

from export_gate.config.containers import Field, ListOf, Section, Table
from export_gate.config.dims import SIZES
from export_gate.config.kinds import Choice, Number, Switch, Text
from export_gate.config.paths import ATTRIBUTE, ONE_LINE, RelativePath
from export_gate.config.tensors import NAME, OUTPUT_NAME
from export_gate.config.units import GROWTH, SIZE, WORK
from export_gate.wall.contract import (
    TARGET_NAMES,
    AotiTarget,
    Budget,
    Controls,
    DataSource,
    ExportedProgramTarget,
    GoldenSource,
    OnnxTarget,
    Pt2Target,
    Target,
    Tolerance,
)

_BOUND = Number(minimum=0)
TOLERANCE = Section(
    title="tolerance",
    make=Tolerance,
    expected="a mapping with atol, rtol and axis",
    fields=(
        Field("atol", _BOUND, "Absolute part: max|P-M| <= atol + rtol * max|M|."),
        Field("rtol", _BOUND, "Relative part, of the largest expected magnitude."),
        Field("axis", Number(minimum=-64, maximum=63, whole=True), "Judge each index of this axis separately."),
    ),
)

_KEY_IN_FILE = Text(expected="the name of an array in the file", pattern=ONE_LINE)
_FILES = (".npz", ".npy", ".safetensors", ".pt")
_FILE = RelativePath(must_be="file", suffixes=_FILES)
_FILE_OR_IMAGES = RelativePath(must_be="file or folder", suffixes=_FILES)
_INPUT_PATH = Text(expected="an input name such as x or pyramid.0", pattern=ONE_LINE)
_FROM_FILE = Table(key=_INPUT_PATH, value=_KEY_IN_FILE, expected="a mapping of input name to name in the file")
_OUTPUTS_FROM_FILE = Table(key=OUTPUT_NAME, value=_KEY_IN_FILE, expected="a mapping of output name to name in the file")

DATA = Section(
    make=DataSource,
    expected="a mapping with path",
    fields=(
        Field(
            "path", _FILE_OR_IMAGES, "Real inputs: .npz, .npy, .safetensors, .pt or a folder of images.", required=True
        ),
        Field("inputs", _FROM_FILE, "Input name to name in the file; by default the names are the same."),
        Field("count", Number(minimum=1, maximum=1_000_000, whole=True), "How many inputs to take; by default all."),
        Field("stratify", _KEY_IN_FILE, "Array of labels; each label contributes its share."),
        Field("group", _KEY_IN_FILE, "Array of groups; takes one input from each group before a second from any."),
    ),
)

GOLDEN = Section(
    make=GoldenSource,
    expected="a mapping with path",
    fields=(
        Field("path", _FILE, "File of inputs with their expected outputs.", required=True),
        Field("inputs", _FROM_FILE, "Input name to name in the file; by default the names are the same."),
        Field("outputs", _OUTPUTS_FROM_FILE, "Output name to name in the file; by default the names are the same."),
        Field("tolerance", TOLERANCE, "How far eager may be from the expected outputs."),
    ),
)

CONTROLS = Section(
    title="controls",
    make=Controls,
    fields=(
        Field("seed", Number(minimum=0, maximum=2**63 - 1, whole=True), "Seed of every draw."),
        Field("random", Number(minimum=0, maximum=1000, whole=True), "Seeded draws per random family."),
        Field(
            "sizes",
            Table(key=NAME, value=SIZES, expected="a mapping of dim to list of sizes"),
            "Sizes to try per dim instead of the default ones.",
        ),
        Field(
            "affine-basis",
            Choice(("auto", "always", "never")),
            "Whether a model that is affine in its input is checked on a basis of the whole input space.",
        ),
        Field("data", ListOf(item=DATA, expected="a list of data files"), "Real inputs from files."),
        Field("golden", ListOf(item=GOLDEN, expected="a list of golden files"), "Inputs with expected outputs."),
        Field("function", ATTRIBUTE, "Function that returns named inputs: {name: args tuple or kwargs dict}."),
        Field("make", ATTRIBUTE, "Function (sizes, rng) that draws inputs which depend on each other: {input: array}."),
        Field("generated", Switch(), "Whether the gate's own draws are tried as well."),
        Field("budget", WORK, "Limit on cases times forward operations per target.", to="budget_flops"),
        Field("limit", Number(minimum=1, maximum=1000, whole=True), "Limit on the number of cases."),
    ),
)

_TOLERANCE = Field("tolerance", TOLERANCE, "Tolerance of this target; overrides the model's.")
_GUARDS = Field("guards", Choice(("require", "warn", "ignore")), "How to judge out-of-range input that is accepted.")
_ARTIFACT = Field("artifact", RelativePath(), "An existing file to verify instead of exporting one.")


def _make_budget(*, max_bytes: float | None = None, **values: Any) -> Budget:
    return Budget(max_bytes=None if max_bytes is None else int(max_bytes), **values)


BUDGET = Section(
    title="budget",
    make=_make_budget,
    expected="a mapping with size and growth",
    fields=(
        Field("size", SIZE, "Maximum size of all files of the artifact together.", to="max_bytes"),
        Field("growth", GROWTH, "Maximum growth over the size in the interface lock, such as 10%."),
        Field("exceeded", Choice(("violation", "warning")), "Severity when exceeded: violation (default) or warning."),
    ),
)
_BUDGET = Field("budget", BUDGET, "Limits on the artifact's size.")
_PROVIDER = Text(expected="an execution provider such as CPUExecutionProvider", pattern="[A-Za-z0-9]+ExecutionProvider")

_OPTIONS: dict[type[Target], tuple[Field, ...]] = {
    ExportedProgramTarget: (Field("strict", Switch(), "torch.export.export(strict=...), for every target."),),
    Pt2Target: (Field("decompose", Switch(), "Run run_decompositions() before saving."), _ARTIFACT, _BUDGET),
    OnnxTarget: (
        Field("opset", Number(minimum=18, maximum=25, whole=True), "ONNX opset; by default torch's."),
        Field(
            "providers",
            ListOf(item=_PROVIDER, minimum=1, unique=True, expected="a list of at least one execution provider"),
            "ONNX Runtime execution providers, in order of preference.",
        ),
        Field(
            "optimization",
            Choice(("disable", "basic", "extended", "all")),
            "ONNX Runtime's graph optimization level.",
        ),
        _ARTIFACT,
        _BUDGET,
    ),
    AotiTarget: (
        Field(
            "layouts",
            Choice(("note", "require")),
            "Whether strided and channels-last inputs must be right: note (default) or require.",
        ),
        _ARTIFACT,
        _BUDGET,
    ),
}
_TEXTS = {
    "exported-program": "The ExportedProgram itself.",
    "pt2": "The program saved to .pt2, loaded again and run.",
    "onnx": "The program converted to ONNX and run by ONNX Runtime.",
    "aoti": "The program compiled by AOTInductor and run.",
}


def _make_targets(**targets: Any) -> tuple[Target, ...]:
    """The targets in the order in which the pipeline runs them."""
    return tuple(targets[name.replace("-", "_")] for name in TARGET_NAMES if name.replace("-", "_") in targets)


def _target(record: type[Target], options: tuple[Field, ...]) -> Field:
    name = record().name
    section = Section(title=name, make=record, may_be_null=True, fields=(_TOLERANCE, _GUARDS, *options))
    return Field(name, section, _TEXTS[name])


TARGETS = Section(
    title="targets",
    expected="a mapping of targets",
    make=_make_targets,
    fields=tuple(_target(record, options) for record, options in _OPTIONS.items()),
)
