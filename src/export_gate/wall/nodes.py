"""Where along the graph an artifact departs from what it should compute: the guilty node, and each value's error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from export_gate.wall.source import SourceLine

Origin = Literal["introduced", "gradual", "untested"]
"""The node is wrong with the expected inputs too; or no node adds more than rounding; or this could not be tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePoint:
    """The error of one value."""

    name: str
    error: float
    """The largest |P-M| as a share of the largest |M|; infinite if shapes or non-finite places differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuiltyNode:
    """The first node whose value differs although its inputs agree, or at which a converter stopped."""

    name: str
    """Of the program's node."""
    operator: str
    """`aten.linear.default`."""
    function: str = ""
    """What the user's code calls: `torch.cdist`, of which `operator` may be a part; empty if that is not known."""
    arguments: tuple[tuple[str, str], ...] = ()
    """Names and values of the operator's arguments that are not computed, as Python writes them."""
    module: str = ""
    """Path of the submodule that runs it; empty for the model itself."""
    module_class: str = ""
    point: str = ""
    """The name under which its value was compared; another node's if the converter has merged the two."""
    scale_factors: tuple[float, ...] = ()
    """By which it resizes the last axes; empty if it does not, or to sizes."""
    file_nodes: tuple[str, ...] = ()
    """The file's nodes that compute it from values that agree, as `MatMul node_MatMul_2`; at most sixteen."""
    dtype: str = ""
    """Of its first tensor, as torch writes it, where a runtime stopped at it; else empty."""
    dtype_lines: tuple[SourceLine, ...] = ()
    """The project's lines that name that dtype, if it is one of fewer bits than float32."""
    absent: tuple[str, ...] = ()
    """Operators of the program whose results it takes, and that have no counterpart in the file; at most four."""
    source: SourceLine | None = None
    """The innermost line of the project's own code that leads to it."""
    foreign: SourceLine | None = None
    """The line of another package that `source` calls, if it is one; None for torch's own."""
    max_abs_diff: float | None = None
    """None without numbers."""
    expected_max_abs: float = 0.0
    expected_at: int | None = None
    """The integer at the largest difference; None for other dtypes."""
    actual_at: int | None = None
    own_max_abs_diff: float | None = None
    """With the expected inputs; None if that could not be tried."""
    words: str = ""
    """What differs if not finite values: `shape [2, 3], expected [2, 4]`."""
    is_tie: bool = False
    """Whether both sides are indices of equal values, with the expected inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTrace:
    """An artifact's values along its graph beside those of what it was made from, at one control input."""

    beside: Literal["program", "eager"]
    """What the values are compared with: the exported program's nodes, or eager's own operators."""
    origin: Origin
    guilty: GuiltyNode | None
    """None if no single node is."""
    mapped: int
    """Nodes whose values were compared."""
    unmapped: int
    """Nodes that have no counterpart on the other side."""
    points: tuple[NodePoint, ...] = ()
    """In the graph's order; of long graphs the largest error in each part."""
