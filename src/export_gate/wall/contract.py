"""What a model promises: its factory, dims, inputs, outputs, controls, tolerances and targets.

Standard-library records only: the driver builds them from `export-gate.yml`, the worker reads them from the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, TypeVar, Union

from export_gate.wall.codec import Pattern
from export_gate.wall.targets import KIND_NAMES, GuardPolicy, OptionValue, kind_named

DTYPES = (
    "float64", "float32", "float16", "bfloat16",
    "int64", "int32", "int16", "int8", "uint8", "bool",
    "complex64", "complex128",
)  # fmt: skip
"""Element types a contract may name, spelled as torch spells them."""

FLOAT_DRAWS = (
    "normal", "uniform", "halves", "constant", "zeros", "low", "high", "offset", "sweep", "large", "ends", "tiny",
    "bands", "nonfinite",
)  # fmt: skip
INTEGER_DRAWS = ("random", "low", "high", "duplicates", "distinct", "ends", "spots")
BOOL_DRAWS = (
    "random", "all-true", "all-false", "sparse", "right-padded", "right-masked", "left-padded", "holed", "row-off",
    "tail-off",
)  # fmt: skip
"""Also those of an integer tensor that holds 0 and 1 only, which is a mask too."""

NAME_OF_TARGET = r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}"
TargetName = Annotated[str, Pattern(NAME_OF_TARGET)]
"""A target's key in the config: also part of file names, of class names in a page, and of keys on the wire."""
CASE_FILE = ".npz"
"""A pattern of control inputs with this ending is a file that holds one, relative to the config's folder."""
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dim:
    """A named size that may vary within [min, max] in steps of `multiple_of`."""

    name: str
    min: int
    max: int
    multiple_of: int = 1
    example: int | None = None
    """Size of the reference input; None leaves the choice to the control set's middle size."""
    separate: tuple[int, ...] = ()
    """Sizes that each get their own export, verified only at that size."""
    mode: Literal["strict", "auto", "static"] = "strict"

    @property
    def steps(self) -> range:
        """The sizes within the range, counted in steps: what torch.export's own symbol stands for."""
        # Rounded inwards (`-(-a // b)` is a ceiling): the ends need not be multiples themselves.
        return range(-(-self.min // self.multiple_of), self.max // self.multiple_of + 1)

    @property
    def sizes(self) -> range:
        """The sizes within the range, in its steps."""
        steps = self.steps
        return range(steps.start * self.multiple_of, steps.stop * self.multiple_of, self.multiple_of)

    @property
    def text(self) -> str:
        """`8..64 in steps of 8`."""
        return f"{self.min}..{self.max}" + (f" in steps of {self.multiple_of}" if self.multiple_of > 1 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A linear expression in dims: `3`, `2*seq+1`, `past + cur`."""

    factors: dict[str, int] = field(default_factory=dict)
    """Dim -> its factor; empty for the constant `offset`."""
    offset: int = 0

    @property
    def dim(self) -> str | None:
        """The dim, where there is exactly one."""
        return next(iter(self.factors)) if len(self.factors) == 1 else None

    def at(self, sizes: Mapping[str, int]) -> int:
        """The value once each dim has a size."""
        return self.offset + sum(factor * sizes[dim] for dim, factor in self.factors.items())

    def fixed(self, sizes: Mapping[str, int]) -> Size:
        """The expression that is left once some dims have a size."""
        left = {dim: factor for dim, factor in self.factors.items() if dim not in sizes}
        known = sum(factor * sizes[dim] for dim, factor in self.factors.items() if dim in sizes)
        return Size(factors=left, offset=self.offset + known)

    def __str__(self) -> str:
        gap = " " if len(self.factors) > 1 else ""
        terms = [(factor, dim if abs(factor) == 1 else f"{abs(factor)}*{dim}") for dim, factor in self.factors.items()]
        if self.offset or not terms:
            terms.append((self.offset, str(abs(self.offset))))
        first, *rest = ((sign < 0, text) for sign, text in terms)
        return f"{'-' * first[0]}{first[1]}" + "".join(f"{gap}{'+-'[negative]}{gap}{text}" for negative, text in rest)


Bound = Union[float, Size]  # evaluated at run time by the decoder, so no `|` on Python 3.10
"""One end of a range of values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """A tensor argument."""

    kind: Literal["tensor"] = "tensor"
    dtype: str
    shape: tuple[Size, ...]
    range: tuple[Bound, Bound] | None = None
    """Inclusive bounds of the finite values; None is undeclared."""
    values: tuple[float, ...] = ()
    """The only values allowed; empty means any in range."""
    positions: tuple[tuple[float, ...], ...] = ()
    """The only values allowed at each position of the last axis; empty where all positions are alike."""
    make: str | None = None
    """`module:function`, called with the shape and a numpy Generator, that draws the values."""
    name: str | None = None
    """The artifact's name for it; None is the contract's own."""
    order: Literal["increasing", "strictly-increasing", "decreasing"] | None = None
    """Of the values along the last axis."""
    nonfinite: tuple[Literal["nan", "inf"], ...] = ()
    """Non-finite values admitted as input; `inf` admits both signs."""
    draws: tuple[str, ...] = ()
    """Draw families to use; empty means all that fit."""
    mask: Literal["keep", "drop", "any"] | None = None
    """What 1 means in a mask: a real position (keep) or padding (drop); any: rows without a position are allowed."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The range as numbers; bounds that name dims have none until `at` gives them one."""
        if self.range is None:
            return None
        low, high = self.range
        if isinstance(low, Size) or isinstance(high, Size):
            raise AssertionError(f"the range {low}..{high} depends on sizes")  # noqa: TRY004 - ours, not the user's
        return low, high

    def at(self, sizes: Mapping[str, int]) -> TensorSpec:
        """The same with numbers as bounds, once each dim has a size."""
        if self.range is None:
            return self
        low, high = (bound.at(sizes) if isinstance(bound, Size) else bound for bound in self.range)
        return replace(self, range=(low, high))

    @property
    def is_mask(self) -> bool:
        """Whether its elements are true or false, as bools or as 0 and 1."""
        if self.positions or self.make:
            return False
        if self.mask is not None:
            return True
        if self.dtype == "bool":
            # A bool tensor that may hold one value only switches nothing off.
            return not self.values or len(set(self.values)) > 1
        is_integer = self.dtype.startswith(("int", "uint"))
        return is_integer and (set(self.values) == {0, 1} or (not self.values and self.range == (0, 1)))


Scalar = Union[bool, int, float, str, None]  # evaluated at run time by the decoder, so no `|` on Python 3.10


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantSpec:
    """A non-tensor argument, baked into the exported program."""

    kind: Literal["constant"] = "constant"
    value: Union[bool, int, float, str, tuple[object, ...], None]
    """Nested lists are a tensor's."""
    dtype: str | None = None
    """Makes a tensor of the value; None passes it on as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceSpec:
    """A list or tuple of arguments."""

    kind: Literal["list", "tuple"]
    items: tuple[Spec, ...]
    build: str | None = None
    """`module:attribute` of what makes forward's argument from the sequence; None passes it on as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DictSpec:
    """A dict of arguments, in declared key order."""

    kind: Literal["dict"] = "dict"
    items: dict[str, Spec]
    build: str | None = None
    """As for a sequence."""


Spec = Union[TensorSpec, ConstantSpec, SequenceSpec, DictSpec]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A promised output leaf; None leaves that property to the eager model."""

    name: str
    dtype: str | None = None
    shape: tuple[Size, ...] | None = None
    leaf: Literal["compare", "none", "ignore"] = "compare"
    """`none`: it is None at every input; `ignore`: it takes no part in the comparison."""
    nonfinite: Literal["match", "forbid", "allow"] = "match"
    where: str | None = None
    """Compare only what this mask input keeps; `all`: also what masks switch off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """`max|P-M| <= atol + rtol * max|M|`; None falls back to the next wider declaration."""

    atol: float | None = None
    rtol: float | None = None
    axis: int | None = None
    """Compute both maxima separately for each index of this axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """Real inputs from a file, sampled by label and group."""

    path: str
    inputs: dict[str, str] = field(default_factory=dict)
    """Input name -> key in the file; empty means that the names are the same."""
    count: int | None = None
    stratify: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenSource:
    """Inputs with their expected outputs, which check the eager model too."""

    path: str
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    tolerance: Tolerance = Tolerance()


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """How the control set is built."""

    # Arbitrary, but another default would change the control set of every project, and its hash.
    seed: int = 20261020
    random: int = 2
    """Seeded draws per random family."""
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Dim name -> sizes to try instead of the default ones."""
    affine_basis: Literal["auto", "always", "never"] = "auto"
    data: tuple[DataSource, ...] = ()
    golden: tuple[GoldenSource, ...] = ()
    function: str | None = None
    make: str | None = None
    """`module:function`, called with the sizes and a numpy Generator, that draws inputs which depend on each other."""
    generated: bool = True
    """Whether the gate's own draws are tried, beside what `make`, data, golden files and the function give."""
    budget_flops: float = 200e9
    """Bound on cases x forward FLOPs per target: work, not time, so that every machine runs the same cases."""
    # A forward of BERT-base at batch 2 takes 0.25 s on two cores: 120 of them with four programs take two minutes.
    limit: int = 120
    """Limit on the number of cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits on the size of all files of an artifact together."""

    max_bytes: int | None = None
    growth: float | None = None
    """Maximum growth over the size in the interface lock, as a share: 0.1 is 10%."""
    exceeded: Literal["violation", "warning"] = "violation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One artifact of a model that is verified; made by `make_target`, which knows the defaults of its kind."""

    name: TargetName
    """Its key in the config."""
    kind: Annotated[str, Pattern("|".join(KIND_NAMES))]
    tolerance: Tolerance
    guards: GuardPolicy
    artifact: str | None
    """An existing file to verify instead of exporting one, relative to the config."""
    budget: Budget
    options: dict[str, OptionValue]
    """Every option of the kind."""

    @property
    def file_name(self) -> str:
        """Name of the file that is made for it."""
        return kind_named(self.kind).file_name(self.name)

    def option_problem(self) -> str:
        """Say how its options are not those of its kind; empty if they are."""
        known = {option.name: option for option in kind_named(self.kind).options}
        if set(known) != set(self.options):
            return f"expected the options {sorted(known)} of {self.kind}, got {sorted(self.options)!r:.80}"
        wrong = (name for name, value in self.options.items() if not known[name].admits(value))
        return next((f"expected another value for {name} of {self.kind}" for name in wrong), "")

    def option(self, name: str, of: type[Value]) -> Value:
        """The value of one of the kind's options that has no other type."""
        value = self.options[name]
        if not isinstance(value, of):
            raise TypeError(f"{name} of {self.kind} is {value!r}")
        return value


def make_target(
    kind: str,
    *,
    name: str | None = None,
    tolerance: Tolerance = Tolerance(),
    guards: GuardPolicy | None = None,
    artifact: str | None = None,
    budget: Budget = Budget(),
    **options: OptionValue,
) -> Target:
    """A target of that kind; what is left out gets the kind's default."""
    entry = kind_named(kind)
    target = Target(
        name=name or kind,
        kind=kind,
        tolerance=tolerance,
        guards=guards or entry.guards,
        artifact=artifact,
        budget=budget,
        options={option.name: option.default for option in entry.options} | options,
    )
    if problem := target.option_problem():
        raise ValueError(problem)
    return target


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """Violations that are accepted up to a date; each field narrows which."""

    rule: str
    reason: str
    until: str
    """ISO date: the last day (UTC) on which it applies."""
    target: str | None = None
    """None is any target, and the model's own findings."""
    output: str = "*"
    """Glob pattern."""
    case: str = "*"
    """Glob pattern of control inputs."""

    def holds_on(self, day: str) -> bool:
        """Whether it still applies on that ISO date."""
        # ISO dates sort as text.
        return day <= self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelContract:
    """Everything that one model promises, and how to check it."""

    name: str
    factory: str
    """`module:attribute` or `path/to/file.py:attribute`, called with `kwargs`, returns an nn.Module."""
    kwargs: dict[str, object] = field(default_factory=dict)
    env: dict[str, str | None] = field(default_factory=dict)
    """Environment variables of the project's code; None takes the value that the caller's environment has."""
    train_mode: Literal["refuse", "force-eval"] = "refuse"
    dims: tuple[Dim, ...] = ()
    inputs: dict[str, Spec]
    """In forward's order."""
    outputs: tuple[Output, ...] = ()
    controls: Controls = Controls()
    tolerance: Tolerance = Tolerance()
    targets: tuple[Target, ...]
    targets_listed: Literal["model", "defaults", "nowhere"] = "model"
    """Where the config lists them: a model that lists its own has only those."""
    strict: bool = False
    """Export in strict mode; the exported-program target sets it for all targets, even if it is not selected itself."""
    timeout_s: float = 600.0
    """Bound on one worker process of this model, in seconds."""
    cache: bool = True
    """Whether its verdict may be reused while nothing that it depends on has changed."""
    paths: tuple[str, ...] = ()
    """Files and folders that the verdict depends on and that Python does not see, relative to the config."""
    waivers: tuple[Waiver, ...] = ()

    def dim(self, name: str) -> Dim:
        """The declared dim of that name."""
        return next(dim for dim in self.dims if dim.name == name)

    def target(self, name: str) -> Target | None:
        """The declared target of that name, if it is declared."""
        return next((target for target in self.targets if target.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One model to observe, as sent over the wall."""

    contract: ModelContract
    base: str
    """Folder of the config; relative paths of the contract start here."""
    pythonpath: tuple[str, ...]
    artifacts: str
    """Folder that receives this model's artifacts: artifacts/MODEL in the report folder."""
    cases: tuple[str, ...] = ()
    """Glob patterns of control inputs to run, and files that hold one; empty means all."""
    variables: dict[str, str] = field(default_factory=dict)
    """What the contract's `env` sets."""
    withheld: tuple[str, ...] = ()
    """Variables that are set for the caller, or that `env` names, and that the project's code does not get."""
    skip: tuple[str, ...] = ()
    """Targets already observed by an earlier worker of this model, which died in one of them."""


def cases_folder(artifacts: Path) -> Path:
    """Where the report folder has a model's smallest failing inputs; its folder of artifacts has nothing else."""
    return artifacts.parent.parent / "cases" / artifacts.name


def target_key(target: str, separate: dict[str, int]) -> str:
    """Names one export of one target: `onnx`, or `onnx@batch=1` for a separate export."""
    if not separate:
        return target
    # Sorted, so that one export has one key whatever the order of the config's dims.
    return f"{target}@{','.join(f'{dim}={size}' for dim, size in sorted(separate.items()))}"
