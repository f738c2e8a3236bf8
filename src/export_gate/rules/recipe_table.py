"""Other ways to write operators that torch's ONNX exporter lacks or converts wrongly (torch 2.13).

A unit test runs every recipe: it gives the operator's results in eager torch, and in ONNX Runtime after the conversion,
at the sizes of its example and at others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from export_gate.rules.wording import listing

POSITIVE = "> 0"
"""A positive number, or a list with one."""
OF_TWO = "of two"
"""An equation of two tensors: `ij,jk->ik`."""
COMPLEX = "complex"
"""In place of an error, for an operator that has no translation for complex tensors alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One way to write an operator. `{k}` in its texts stands for the argument of that name."""

    names: tuple[str, ...]
    """Operators with or without an overload (`aten.kthvalue`), and functions, of which a part may be guilty."""
    call: str
    """What the user has written, or an equivalent of it."""
    lines: str
    """What to write instead; the result is `out`."""
    when: Mapping[str, str] = field(default_factory=dict)
    """Arguments for which it holds, as Python writes them; or `POSITIVE`, or `OF_TWO`."""
    error: str = ""
    """What a runtime's message must hold, where the operator is wrong for some inputs alone."""

    exception: str = ""
    """Where the results are not those of eager: `-0.0 counts as 0.0`."""
    cost: str = ""
    """What it takes more than the operator does."""
    again: str = ""
    """`line 9` if that has several calls like it, of which each may be the one."""
    place: str = ""
    """`line 9` if the lines are the user's own statement, with the recipe in it."""

    @property
    def words(self) -> str:
        """`Replace line 9 with the line below, which gives the same results in eager and converts`."""
        is_one = "\n" not in self.lines
        below, gives, converts = ("line", "gives", "converts") if is_one else ("lines", "give", "convert")
        what = self.place or f"`{self.call}`"
        free = "" if self.place else f" ({self._legend})"
        but = f" (but {self.exception})" if self.exception else ""
        also = f"; {self.again} has further calls like it, which need the same" if self.again else ""
        same = f"which {gives} the same results in eager{but} and {converts}"
        return f"Replace {what} with the {below} below{free}, {same}{also}{f'. {self.cost}' if self.cost else ''}"

    @property
    def _legend(self) -> str:
        """What names stand for, where they are not the user's."""
        names = re.findall(
            r"(?<![\w.'])(x|y|other|boundaries|index|source|mask|target|weight|repeats)\b(?!=)", self.call
        )
        given = listing([f"`{name}`" for name in dict.fromkeys(names)])
        verb = "stands for its argument" if given.count("`") == 2 else "stand for its arguments"  # noqa: PLR2004
        return f"{given} {verb}, `out` for the result"


PAIRS = "It keeps the difference of every pair of rows in memory at once (rows * rows * columns)"
BOUNDARIES = "It compares every value with every boundary, and takes memory for that"
SQUARE = "It takes memory for the square of the axis"
# From floor(i * length / n) to ceil((i + 1) * length / n), as torch cuts an axis: neighbours may overlap.
POOL = """\
for axis, n in zip({axes}, {sizes}):
    length = x.shape[axis]
    cuts = [(i * length // n, ((i + 1) * length + n - 1) // n) for i in range(n)]
    x = torch.cat([x.narrow(axis, a, b - a).{reduce}(axis, True) for a, b in cuts], axis)
out = x"""
# An element's place is the number of those that come before it; of equal ones, those to its left do.
STABLE = """\
this, other = x.unsqueeze(-1), x.unsqueeze(-2)
place = torch.arange(x.shape[-1], device=x.device)
is_before = (other {later} this) | ((other == this) & (place < place.unsqueeze(-1)))
rank = is_before.sum(-1)
out = torch.zeros_like(rank).scatter(-1, rank, place.expand(x.shape))"""
# Row i keeps the elements up to i, which a cumulative operator has seen there.
KEPT = """\
x = x.transpose({dim}, -1)
kept = torch.ones(x.shape[-1], x.shape[-1], dtype=torch.bool, device=x.device).tril()
"""


def _pool(names: tuple[str, ...], call: str, rank: int, reduce: str, sizes: str = "{output_size}") -> Recipe:
    axes = {1: "(-1,)", 2: "(-2, -1)", 3: "(-3, -2, -1)"}[rank]
    lines = POOL.replace("{axes}", axes).replace("{sizes}", sizes).replace("{reduce}", reduce)
    return Recipe(names=names, call=f"{call}(x, {'{output_size_last}' if rank == 1 else '{output_size}'})", lines=lines)


RECIPES = (
    Recipe(
        names=("aten._cdist_forward", "aten.cdist"),
        call="torch.cdist(x, y)",
        lines="out = (x.unsqueeze(-2) - y.unsqueeze(-3)).square().sum(-1).sqrt()",
        when={"p": "2.0"},
        cost=PAIRS,
    ),
    Recipe(
        names=("aten._cdist_forward", "aten.cdist"),
        call="torch.cdist(x, y, p=1.0)",
        lines="out = (x.unsqueeze(-2) - y.unsqueeze(-3)).abs().sum(-1)",
        when={"p": "1.0"},
        cost=PAIRS,
    ),
    Recipe(
        names=("aten._cdist_forward", "aten.cdist"),
        call="torch.cdist(x, y, p=inf)",
        lines="out = (x.unsqueeze(-2) - y.unsqueeze(-3)).abs().amax(-1)",
        when={"p": "inf"},
        cost=PAIRS,
    ),
    Recipe(
        names=("aten._cdist_forward", "aten.cdist"),
        call="torch.cdist(x, y, p={p})",
        lines="out = (x.unsqueeze(-2) - y.unsqueeze(-3)).abs().pow({p}).sum(-1).pow(1 / {p})",
        cost=PAIRS,
    ),
    Recipe(
        names=("aten.einsum", "torch.einsum"),
        call="torch.einsum({equation}, x, y)",
        lines="""\
real = torch.einsum({equation}, x.real, y.real)
real = real - torch.einsum({equation}, x.imag, y.imag)
imag = torch.einsum({equation}, x.real, y.imag)
imag = imag + torch.einsum({equation}, x.imag, y.real)
out = torch.complex(real, imag)""",
        when={"equation": OF_TWO},
        error=COMPLEX,
    ),
    # Before the one of the operator, to which it becomes with a further axis.
    _pool(("torch.adaptive_max_pool1d",), "F.adaptive_max_pool1d", 1, "amax", "[{output_size_last}]"),
    _pool(("aten.adaptive_max_pool2d", "F.adaptive_max_pool2d"), "F.adaptive_max_pool2d", 2, "amax"),
    _pool(("aten.adaptive_max_pool3d", "F.adaptive_max_pool3d"), "F.adaptive_max_pool3d", 3, "amax"),
    _pool(("torch.adaptive_avg_pool1d",), "F.adaptive_avg_pool1d", 1, "mean", "[{output_size_last}]"),
    _pool(("aten._adaptive_avg_pool2d", "F.adaptive_avg_pool2d"), "F.adaptive_avg_pool2d", 2, "mean"),
    _pool(("aten._adaptive_avg_pool3d", "F.adaptive_avg_pool3d"), "F.adaptive_avg_pool3d", 3, "mean"),
    Recipe(
        names=("aten.remainder", "torch.remainder"),
        call="torch.remainder(x, {other})",
        lines="out = torch.fmod(x, {other})\nout = torch.where(out < 0, out + {other}, out)",
        when={"other": POSITIVE},
    ),
    Recipe(
        names=("aten.remainder", "torch.remainder"),
        call="torch.remainder(x, {other})",
        lines=(
            "out = torch.fmod(x, {other})\n"
            "out = torch.where((out != 0) & ((out < 0) != ({other} < 0)), out + {other}, out)"
        ),
    ),
    Recipe(
        names=("aten.atan2", "torch.atan2", "torch.arctan2"),
        call="torch.atan2(y, x)",
        lines=(
            "out = torch.atan2(y, x)\n"
            "out = torch.where((y == 0) & (x < 0), torch.pi, out)\n"
            "out = torch.where(x == 0, torch.sign(y) * (torch.pi / 2), out)"
        ),
        exception="-0.0 counts as 0.0",
    ),
    Recipe(
        names=("aten.floor_divide",),
        call="x // {other}",
        lines=(
            "rest = torch.fmod(x, {other})\n"
            "out = ((x - rest) / {other}).round()\n"
            "out = torch.where((rest != 0) & ((rest < 0) != ({other} < 0)), out - 1, out)"
        ),
    ),
    Recipe(
        names=("aten.kthvalue",),
        call="x.kthvalue({k}, {dim}).values",
        lines="out = x.topk({k}, dim={dim}, largest=False).values.select({dim}, {k} - 1)",
        when={"keepdim": "False"},
    ),
    Recipe(
        names=("aten.median.default",),
        call="x.median()",
        lines="out = x.flatten().sort().values[(x.numel() - 1) // 2]",
    ),
    Recipe(
        names=("aten.median.dim",),
        call="x.median({dim}).values",
        lines="out = x.sort(dim={dim}).values.select({dim}, (x.shape[{dim}] - 1) // 2)",
        when={"keepdim": "False"},
    ),
    Recipe(
        names=("aten.searchsorted",),
        call="torch.searchsorted(boundaries, x)",
        lines="out = (x.unsqueeze(-1) > boundaries.unsqueeze(-2)).sum(-1)",
        when={"right": "False", "side": "None", "out_int32": "False"},
        cost=BOUNDARIES,
    ),
    Recipe(
        names=("aten.searchsorted",),
        call="torch.searchsorted(boundaries, x, right=True)",
        lines="out = (x.unsqueeze(-1) >= boundaries.unsqueeze(-2)).sum(-1)",
        when={"right": "True", "side": "None", "out_int32": "False"},
        cost=BOUNDARIES,
    ),
    Recipe(
        names=("aten.cummax",),
        call="x.cummax({dim}).values",
        lines=f"{KEPT}out = torch.where(kept, x.unsqueeze(-2), -torch.inf).amax(-1).transpose({{dim}}, -1)",
        cost=SQUARE,
    ),
    Recipe(
        names=("aten.cummin",),
        call="x.cummin({dim}).values",
        lines=f"{KEPT}out = torch.where(kept, x.unsqueeze(-2), torch.inf).amin(-1).transpose({{dim}}, -1)",
        cost=SQUARE,
    ),
    Recipe(
        names=("torch.cumprod",),
        call="x.cumprod({dim})",
        lines=f"{KEPT}out = torch.where(kept, x.unsqueeze(-2), 1).prod(-1).transpose({{dim}}, -1)",
        cost=SQUARE,
    ),
    Recipe(names=("aten.hypot", "torch.hypot"), call="torch.hypot(x, y)", lines="out = (x * x + y * y).sqrt()"),
    Recipe(
        names=("torch.copysign",),
        call="torch.copysign(x, y)",
        lines="out = torch.where(y < 0, -x.abs(), x.abs())",
        exception="a sign of -0.0 counts as that of 0.0",
    ),
    Recipe(
        names=("torch.fmax",),
        call="torch.fmax(x, y)",
        lines="out = torch.where(x.isnan(), y, torch.where(y.isnan(), x, torch.maximum(x, y)))",
    ),
    Recipe(
        names=("torch.fmin",),
        call="torch.fmin(x, y)",
        lines="out = torch.where(x.isnan(), y, torch.where(y.isnan(), x, torch.minimum(x, y)))",
    ),
    Recipe(
        names=("torch.linalg.slogdet", "torch.slogdet"),
        call="torch.linalg.slogdet(x).logabsdet",
        lines="out = torch.linalg.det(x).abs().log()",
    ),
    Recipe(
        names=("aten.put",),
        call="x.put(index, source)",
        lines="out = x.flatten().scatter(0, index, source).reshape(x.shape)",
        when={"accumulate": "False"},
    ),
    Recipe(names=("aten.masked_select",), call="torch.masked_select(x, mask)", lines="out = x[mask]"),
    Recipe(
        names=("aten.scatter_reduce.two",),
        call="x.scatter_reduce({dim}, index, source, 'mean')",
        lines=(
            "count = torch.ones_like(x).scatter_add({dim}, index, torch.ones_like(source))\n"
            "out = x.scatter_add({dim}, index, source) / count"
        ),
        when={"reduce": "'mean'", "include_self": "True"},
    ),
    Recipe(
        names=("aten.scatter_reduce.two",),
        call="x.scatter_reduce({dim}, index, source, 'mean', include_self=False)",
        lines=(
            "count = torch.zeros_like(x).scatter_add({dim}, index, torch.ones_like(source))\n"
            "total = torch.zeros_like(x).scatter_add({dim}, index, source)\n"
            "out = torch.where(count > 0, total / count.clamp(min=1), x)"
        ),
        when={"reduce": "'mean'", "include_self": "False"},
    ),
    Recipe(
        names=("aten.cross_entropy_loss", "F.cross_entropy"),
        call="F.cross_entropy(x, target, ignore_index={ignore_index}, label_smoothing={label_smoothing})",
        lines=(
            "logs, kept = F.log_softmax(x, 1), target != {ignore_index}\n"
            "loss = F.nll_loss(logs, target, ignore_index={ignore_index})\n"
            "smooth = (logs.mean(1) * kept).sum() / kept.sum()\n"
            "out = (1 - {label_smoothing}) * loss - {label_smoothing} * smooth"
        ),
        when={"weight": "None", "reduction": "1", "label_smoothing": POSITIVE},
    ),
    Recipe(
        names=("F.rrelu", "torch.rrelu"),
        call="F.rrelu(x, {lower}, {upper})",
        lines="out = F.leaky_relu(x, ({lower} + {upper}) / 2)",
        when={"training": "False"},
    ),
    Recipe(
        names=("aten.conv_tbc",),
        call="torch.conv_tbc(x, weight, bias, {pad})",
        lines=(
            "x, weight = x.permute(1, 2, 0), weight.permute(2, 1, 0)\n"
            "out = F.conv1d(x, weight, bias, padding={pad}).permute(2, 0, 1)"
        ),
    ),
    # `-0 or None`: a slice up to -0 is empty.
    Recipe(
        names=("aten.conv_transpose2d.input", "torch.conv_transpose2d"),
        call="F.conv_transpose2d(x, weight, bias, ..., output_padding={output_padding})",
        lines=(
            "# ONNX Runtime takes an output padding only below the stride: pad and cut instead.\n"
            "out = F.conv_transpose2d(x, weight, None, {stride}, 0, 0, {groups}, {dilation})\n"
            "out = F.pad(out, (0, {output_padding_last}, 0, {output_padding_first}))\n"
            "out = out[..., {padding_first} : -{padding_first} or None, {padding_last} : -{padding_last} or None]\n"
            "out = out + bias[:, None, None]"
        ),
        when={"output_padding": POSITIVE},
        error="output_padding",
    ),
    Recipe(
        names=("aten.conv_transpose1d.default", "torch.conv_transpose1d"),
        call="F.conv_transpose1d(x, weight, bias, ..., output_padding={output_padding})",
        lines=(
            "# ONNX Runtime takes an output padding only below the stride: pad and cut instead.\n"
            "out = F.conv_transpose1d(x, weight, None, {stride}, 0, 0, {groups}, {dilation})\n"
            "out = F.pad(out, (0, {output_padding_last}))\n"
            "out = out[..., {padding_last} : -{padding_last} or None] + bias[:, None]"
        ),
        when={"output_padding": POSITIVE},
        error="output_padding",
    ),
    Recipe(
        names=("aten.scatter_add",),
        call="x.scatter_add({dim}, index, source)",
        lines=(
            "source = source[tuple(slice(size) for size in index.shape)]  # ONNX Runtime wants one shape\n"
            "out = x.scatter_add({dim}, index, source)"
        ),
        error="Indices vs updates",
    ),
    Recipe(
        names=("aten.sort.stable",),
        call="torch.sort(x, stable=True).indices",
        lines=STABLE.replace("{later}", "<"),
        when={"dim": "-1", "descending": "False"},
        cost=SQUARE,
    ),
    Recipe(
        names=("aten.sort.stable",),
        call="torch.sort(x, descending=True, stable=True).indices",
        lines=STABLE.replace("{later}", ">"),
        when={"dim": "-1", "descending": "True"},
        cost=SQUARE,
    ),
    Recipe(
        names=("aten.repeat_interleave.self_Tensor", "aten.repeat_interleave.Tensor"),
        call="x.repeat_interleave(repeats, {dim}, output_size={output_size})",
        lines=(
            "index = (torch.arange({output_size}).unsqueeze(1) >= repeats.cumsum(0)).sum(1)\n"
            "out = x.index_select({dim}, index)"
        ),
    ),
    Recipe(names=("aten.__lshift__",), call="x << y", lines="out = torch.bitwise_left_shift(x, y)"),
    Recipe(names=("aten.__rshift__",), call="x >> y", lines="out = torch.bitwise_right_shift(x, y)"),
    Recipe(
        names=("aten.mode",),
        call="x.mode(-1).values",
        lines=(
            "count = (x.unsqueeze(-1) == x.unsqueeze(-2)).sum(-1)\n"
            "most = count == count.amax(-1, keepdim=True)\n"
            "out = torch.where(most, x, x.amax(-1, keepdim=True)).amin(-1)"
        ),
        when={"dim": "-1", "keepdim": "False"},
        cost=SQUARE,
    ),
    Recipe(
        names=("aten.nanmedian.dim",),
        call="x.nanmedian({dim}).values",
        lines=(
            "middle = ((~x.isnan()).sum({dim}, keepdim=True) - 1).clamp(min=0) // 2\n"
            "ordered = torch.where(x.isnan(), torch.inf, x).sort(dim={dim}).values\n"
            "out = ordered.gather({dim}, middle).squeeze({dim})\n"
            "out = torch.where(x.isnan().all({dim}), torch.nan, out)"
        ),
        when={"keepdim": "False"},
    ),
)
