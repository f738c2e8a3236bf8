"""Name the operator of torch that asks for a condition on sizes at a line of the user that has none."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from export_gate.rules.branch_advice import is_written
from export_gate.rules.user_lines import UserLine, arguments_of, is_plain, name_of, user_line
from export_gate.rules.wording import listing
from export_gate.wall.diagnosis import ExportGuard

WINDOWS = "the window around each output depends on {dims}"
POOLS = "the number of its windows is rounded from {dims}"
ASKS: dict[str, str] = {
    "chunk": "the sizes of its chunks, and perhaps their number, depend on {dims}",
    "tensor_split": "the sizes of its parts depend on {dims}",
    "hsplit": "the sizes of its parts depend on {dims}",
    "vsplit": "the sizes of its parts depend on {dims}",
    "split": "the number of its parts and the size of the last depend on {dims}",
    "unbind": "the number of its results depends on {dims}",
    "unfold": "the number of its windows depends on {dims}",
    "stft": "the number of its frames depends on {dims}",
    "istft": "the number of its samples depends on {dims}",
    "pixel_shuffle": "it needs sizes that its factor divides",
    "pixel_unshuffle": "it needs sizes that its factor divides",
    "channel_shuffle": "it needs sizes that its groups divide",
    "adaptive_avg_pool1d": WINDOWS,
    "adaptive_avg_pool2d": WINDOWS,
    "adaptive_avg_pool3d": WINDOWS,
    "adaptive_max_pool1d": WINDOWS,
    "adaptive_max_pool2d": WINDOWS,
    "adaptive_max_pool3d": WINDOWS,
    "avg_pool1d": POOLS,
    "avg_pool2d": POOLS,
    "avg_pool3d": POOLS,
    "max_pool1d": POOLS,
    "max_pool2d": POOLS,
    "max_pool3d": POOLS,
    "interpolate": "the size that it returns depends on {dims}",
}
"""Function or method -> what it asks by its nature, of the dims that its condition reads."""
ALSO_ASKS: dict[str, str] = {
    "unflatten": "it asks whether {dims} can be cut like that",
    "reshape": "it asks whether the numbers of all {dims} fit",
    "view": "it asks whether the numbers of all {dims} fit",
    "expand": "it asks whether a size is 1, which it can repeat",
    "narrow": "it asks whether what it cuts out lies within {dims}",
    "cat": "it asks whether the other sizes are equal",
    "stack": "it asks whether the sizes are equal",
    "pad": "it asks whether a size is left for every {dims}",
    "roll": "it asks whether {dims} is 0",
}
"""The same of those that seldom ask anything, so that another call on the line is the likelier one."""


@dataclass(frozen=True, slots=True)
class Asking:
    """An operator with a condition of its own."""

    called: str
    """`` `torch.chunk(x, 3)` ``."""
    what: str
    """`` the sizes of its chunks, and perhaps their number, depend on `steps` ``."""
    lines: str = ""
    """What to write where each part is only reduced: it was exported with every size; empty for none."""


def asking(guard: ExportGuard | None) -> Asking | None:
    """The operator that the guard's line calls and that asks for it; None for a condition that the user has written."""
    if guard is None or guard.foreign is not None or guard.source is None or is_written(guard.source):
        return None
    line, dims = user_line(guard.source), listing([f"`{name}`" for name in guard.dims])
    for kinds in (ASKS, ALSO_ASKS):
        calls = [call for call in (line.calls() if line else ()) if name_of(call) in kinds]
        # Of several such calls nothing says which one asks.
        if line and len({ast.unparse(call) for call in calls}) == 1 and guard.function in ("", name_of(calls[0])):
            what = kinds[name_of(calls[0])].format(dims=dims)
            return Asking(f"`{line.segment(calls[0])}`", what, _masked(line, calls[0]))
        if guard.function in kinds:
            what = kinds[guard.function].format(dims=dims)
            return Asking(f"`{guard.function}`, which line {guard.source.line} calls", what)
    return None


def _masked(line: UserLine, call: ast.Call) -> str:
    """The parts of `chunk` and `tensor_split` as masks, whose sizes do not depend on where the parts end."""
    given = arguments_of(call)
    settings = {each.arg: each.value for each in call.keywords}
    name, number = name_of(call), _whole(settings.get("chunks") or settings.get("sections") or _at(given, 1))
    axis = _whole(settings.get("dim") or _at(given, 2) or ast.Constant(0))
    if name not in ("chunk", "tensor_split") or not given or number is None or axis is None:
        return ""
    x, first = line.segment(given[0]), ""
    if not is_plain(given[0]):
        x, first = "x_", f"x_ = {x}\n"
    numbered = {
        "chunk": f"part = torch.arange(n, device={x}.device) // ((n + {number - 1}) // {number})",
        "tensor_split": (
            f"ends = [sum((n + {number - 1} - j) // {number} for j in range(i + 1)) for i in range({number - 1})]\n"
            f"part = sum((torch.arange(n, device={x}.device) >= end).long() for end in ends)"
        ),
    }
    return (
        f"{first}n = {x}.shape[{axis}]\n"
        f"{numbered[name]}\n"
        f"sums = [torch.where(part == i, {x}.movedim({axis}, -1), 0).sum(-1) for i in range({number})]\n"
        f"means = [total / (part == i).sum() for i, total in enumerate(sums)]"
    )


def _at(given: Sequence[ast.expr] | None, place: int) -> ast.expr | None:
    return given[place] if given is not None and len(given) > place else None


def _whole(node: ast.expr | None) -> int | None:
    try:
        value = None if node is None else ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, int) else None
