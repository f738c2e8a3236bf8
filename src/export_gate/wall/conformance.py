"""The records of `kit.json`, a portable conformance kit's manifest, which both sides of the wall read.

A kit is a folder: `model.onnx` with its data files, and `test_data_set_N` folders in the layout of the ONNX backend
tests. Each `separate` export is such a folder inside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from export_gate.wall.contract import TargetName, Tolerance, target_key

KIT_SCHEMA = 1
"""Raised whenever a reader of `kit.json` would misread the new file."""
MANIFEST = "kit.json"
ONNX_FILE = "model.onnx"
# More than a contract may name: a kit holds outputs too, whose dtypes the model chooses.
VALUES_DTYPES = (
    "float64", "float32", "float16", "bfloat16",
    "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool",
    "complex64", "complex128",
)  # fmt: skip
"""Dtypes of tensors that a kit can hold, as torch spells them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KitFile:
    """One file of a kit."""

    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KitOutput:
    """One output leaf of the eager model, in order."""

    name: str
    """The contract's."""
    graph_name: str
    """The ONNX graph's; differs where an input has the contract's name."""
    dtype: str
    """If it is not among `VALUES_DTYPES`, the leaf is not a number and has no file."""
    python: bool = False
    """A Python number, counted as a 0-d tensor; a float of eager's may be float32 in an artifact."""
    tolerance: Tolerance
    """As resolved for the ONNX target when the kit was made."""
    nonfinite: Literal["match", "forbid", "allow"] = "match"
    is_compared: bool = True
    """False where the contract leaves the output out of the comparison."""

    @property
    def is_number(self) -> bool:
        """Whether data sets hold its values."""
        return self.dtype in VALUES_DTYPES


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """One control input with what eager returned for it."""

    folder: str
    """`test_data_set_0`, inside the export's folder. Where only a part of the first output is compared, as a mask says,
    it has `compared_0.pb`, which is true there.
    """
    case: str
    """The control input's name."""
    group: Literal["generated", "data", "golden", "function", "affine"] = "generated"
    sizes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KitExport:
    """One ONNX file and its data sets."""

    folder: str = ""
    """Empty for the main export, `batch=1` for a separate one."""
    separate: dict[str, int] = field(default_factory=dict)
    """Dim sizes this export was made for alone."""
    inputs: tuple[str, ...]
    """The graph's inputs in order; `input_0.pb` holds the first."""
    data_sets: tuple[DataSet, ...]

    @property
    def key(self) -> str:
        """Names the export in events."""
        return target_key("onnx", self.separate)

    def path(self, *names: str) -> str:
        """A path inside the kit of something in this export's folder."""
        return PurePosixPath(self.folder, *names).as_posix()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """A whole `kit.json`."""

    schema_version: int = KIT_SCHEMA
    tool_version: str
    model: str
    target: TargetName = "onnx"
    """Whose file `model.onnx` is."""
    verified: bool
    """False where the kit was forced: the artifact is not known to do what eager does."""
    revision: str | None = None
    """Of the checkout that the model came from."""
    config_sha256: str
    controls_sha256: str
    platform: str
    cpu: str
    """Vector width that eager ran with."""
    python: str
    versions: dict[str, str]
    """Of the packages that made the artifact and the expected outputs."""
    providers: tuple[str, ...]
    """ONNX Runtime's, that the artifact was verified with."""
    optimization: Literal["disable", "basic", "extended", "all"] = "all"
    outputs: tuple[KitOutput, ...]
    exports: tuple[KitExport, ...]
    files: dict[str, KitFile]
    """Every file but kit.json itself, by its path in the kit."""

    @property
    def cases(self) -> int:
        """The number of data sets."""
        return sum(len(export.data_sets) for export in self.exports)

    @property
    def numbers(self) -> tuple[KitOutput, ...]:
        """The outputs that data sets hold; `output_0.pb` is the first."""
        return tuple(output for output in self.outputs if output.is_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class KitData:
    """What the worker wrote of one export: the data sets, and what the graph calls things."""

    export: KitExport
    graph_names: dict[str, str]
    """The contract's output name -> the graph's, where they differ."""
    python: tuple[str, ...]
    """Outputs that are Python numbers."""
