"""Advise what to do about a condition on sizes of which torch.export followed one side only."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from export_gate.rules.wording import at_source, listing
from export_gate.wall.contract import ModelContract
from export_gate.wall.diagnosis import Inspection
from export_gate.wall.observation import Branch
from export_gate.wall.source import SourceLine

READABLE = 40
"""Characters of a condition that people read; sizes say more than a longer one."""
FEW = 4
"""Sizes that fit into a line of the config."""
CONDITION = re.compile(r"\b(?:if|while|assert)\b")
RESHAPES = re.compile(r"\.(?:reshape|view)\(")
SHORT_WAYS = ("choose between them with `torch.cond`", "compute both and choose with `torch.where`")


def condition_of(branch: Branch) -> str:
    """The condition that sizes meet, or the sizes themselves where it is too long to read."""
    return said_readably(branch.words, branch.dims, branch.sizes)


def branch_words(branch: Branch) -> str:
    """What is the matter at those sizes: a way of the model's own, or one that torch asks for by itself."""
    if is_written(branch.source):
        return f"the model takes the other branch where {condition_of(branch)}"
    return f"the exported program leaves out the sizes at which {condition_of(branch)}"


def said_readably(words: str, dims: Sequence[str], sizes: Sequence[int], most: int = READABLE) -> str:
    """The same of a condition of at most so many characters, its dims, and the sizes of its one dim that meet it."""
    if len(words) <= most or not sizes:
        return f"`{words}`"
    return f"`{dims[0]}` is {listing(list(map(str, sizes)), limit=4, joint='or')}"


def is_written(source: SourceLine | None) -> bool:
    """Whether the line itself asks for a condition; else torch or an operator does."""
    return source is None or CONDITION.search(source.text) is not None


def without_remainder(words: str) -> str:
    """What to pad by instead of asking whether a size is a multiple; empty for other conditions."""
    found = re.search(r"\b([A-Za-z_]\w*) % (\d+) [!=]= 0$", words)
    return f"pad by `-{found[1]} % {found[2]}`, which is 0 where nothing is missing" if found else ""


def guard_advice(contract: ModelContract, branch: Branch | None, *, is_separate: bool) -> str:
    """The same for a difference; less can be said where the condition is not known."""
    if branch is not None:
        return branch_advice(contract, branch, is_separate=is_separate)
    apart = "" if is_separate else "give those sizes an export of their own with `separate`, "
    return (
        "torch.export took one side of a condition on sizes: write the model without it (pad or slice always, by "
        f"amounts computed from `x.shape`), {apart}or leave them out of `models.{contract.name}.dims`."
    )


def single_advice(contract: ModelContract, dim: str, line: SourceLine | None) -> str:
    """The same where a dim of size 1 takes another way, of which torch.export notes nothing.

    Args:
        contract: what is declared.
        dim: the dim.
        line: the condition at which eager goes the other way, if it is one of Python's.
    """
    key, declared = f"models.{contract.name}.dims.{dim}", contract.dim(dim)
    without = f"the condition{at_source(line)}" if line else "what depends on it (such as `squeeze()` without a dim)"
    least = next((size for size in declared.sizes if size > 1), None)
    narrowed = f"declare no size 1 (`{key}.min: {least}`)" if least else f"leave it out of `{key}`"
    return (
        f"torch.export takes `{dim}` to be 2 or more, so that size 1 has no way of its own in the program. If the "
        f"model is meant to differ there, give size 1 an export of its own (`{key}.separate: [1]`), which makes two "
        f"files, of which callers choose; if callers never send it, {narrowed}; or write the model without {without}."
    )


def parting_line(inspection: Inspection | None) -> SourceLine | None:
    """The line with the condition at which eager goes another way at the inputs that differ."""
    line = inspection.forked_at if inspection else None
    return line if line and is_written(line) else None


def branch_advice(contract: ModelContract, branch: Branch, *, is_separate: bool) -> str:
    """Ways that keep the sizes dynamic, and, where it is about one dim, an export of its own.

    Args:
        contract: what is declared.
        branch: the condition that the sizes meet.
        is_separate: whether the export that lacks this branch is for single sizes already.
    """
    if len(branch.dims) == 1 and not is_separate and _is_torchs_own(branch):
        dims = f"models.{contract.name}.dims.{branch.dims[0]}"
        return (
            "torch.export takes sizes of 0 and 1 for constants, since they broadcast: give the sizes at which "
            f"`{branch.words}` exports of their own ({_separate(branch, dims)}), or leave them out of `{dims}`."
        )
    is_long = condition_of(branch) != f"`{branch.words}`"
    reshapes = RESHAPES.search(branch.source.text) if branch.source and not is_written(branch.source) else None
    if reshapes:
        dims = ", ".join(f"`models.{contract.name}.dims.{name}`" for name in branch.dims)
        return (
            f"The line has no condition: torch asks by itself whether `{reshapes[0]}...)` moves numbers. Writing it in "
            f"two steps may spare that, `.flatten(){reshapes[0]}...)`; or leave the sizes at which "
            f"{condition_of(branch)} out of {dims}."
        )
    ways = [
        *(SHORT_WAYS if is_long else dynamic_ways(branch.words)),
        *([] if len(branch.dims) != 1 else _of_one_dim(contract, branch, is_separate=is_separate)),
    ]
    apart = f"; or {', or '.join(ways[2:])}" if ways[2:] else ""
    padding = without_remainder(branch.words)
    if padding:
        return f"If the model pads there, {padding}, without the condition; or {', or '.join([*ways[2:], ways[0]])}."
    at = at_source(branch.source) if is_long else ""
    names = listing([f"`{name}`" for name in branch.dims])
    read = (
        "" if is_long else f" Write {names} as the model reads {'it' if len(branch.dims) == 1 else 'them'} from shapes."
    )
    return f"Keep both sides of the condition{at} in the program: {', or '.join(ways[:2])}{apart}.{read}"


def dynamic_ways(words: str) -> tuple[str, str]:
    """Both sides in one program, whatever number of dims the condition reads."""
    return f"let `torch.cond({words}, f, g, (...))` choose", _both(words)


def _both(words: str) -> str:
    """Both sides computed; torch.where takes a tensor as condition."""
    condition = _parsed(words)
    if not isinstance(condition, ast.Compare) or len(condition.ops) != 1:
        return "compute both sides and choose with `torch.where`"
    # A size is a Python number in forward, and torch.where takes tensors alone as its condition.
    condition.left = ast.Call(func=ast.Name(id="torch.scalar_tensor"), args=[condition.left], keywords=[])
    return f"compute both sides and choose with `torch.where({ast.unparse(condition)}, one_side, other_side)`"


def _is_torchs_own(branch: Branch) -> bool:
    """Whether a size is compared with 0 or 1 at a line that has no condition, so that torch does it by itself."""
    if is_written(branch.source) or "%" in branch.words:
        return False
    condition = _parsed(branch.words)
    if not isinstance(condition, ast.Compare) or not isinstance(condition.ops[0], ast.Eq) or len(condition.ops) > 1:
        return False
    sides = (condition.left, condition.comparators[0])
    return any(isinstance(side, ast.Constant) and side.value in (0, 1) for side in sides)


def _of_one_dim(contract: ModelContract, branch: Branch, *, is_separate: bool) -> list[str]:
    dims = f"models.{contract.name}.dims.{branch.dims[0]}"
    own = f"give the sizes at which it holds exports of their own ({_separate(branch, dims)})"
    apart = [] if is_separate else [own]
    return [*apart, f"leave those sizes out of `{dims}`"]


def _separate(branch: Branch, dims: str) -> str:
    few = f": {list(branch.sizes)}" if 0 < len(branch.sizes) <= FEW else ""
    return f"`{dims}.separate{few}`"


def _parsed(words: str) -> ast.expr | None:
    try:
        return ast.parse(words, mode="eval").body
    except SyntaxError:
        return None
