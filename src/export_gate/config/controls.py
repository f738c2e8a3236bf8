"""The grammar of the control set and tolerances."""

from __future__ import annotations

from export_gate.config.containers import Field, ListOf, Section, Table
from export_gate.config.dims import SIZES
from export_gate.config.kinds import Choice, Number, Switch, Text
from export_gate.config.names import NAME, OUTPUT_NAME
from export_gate.config.paths import ATTRIBUTE, ONE_LINE, RelativePath
from export_gate.config.units import WORK
from export_gate.wall.contract import (
    Controls,
    DataSource,
    GoldenSource,
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
        Field(
            "budget",
            WORK,
            "Limit on cases times forward operations per target, where each element of an output counts as 1000.",
            to="budget_flops",
        ),
        Field("limit", Number(minimum=1, maximum=1000, whole=True), "Limit on the number of cases."),
    ),
)
