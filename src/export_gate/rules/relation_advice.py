"""Say which relation a contract lacks: what is declared now beside what eager takes, and the key that says it."""

from __future__ import annotations

import ast
import re

from export_gate.rules.user_lines import names_in, user_line
from export_gate.rules.wording import capital, listing
from export_gate.wall.contract import ModelContract
from export_gate.wall.inputs import tensors
from export_gate.wall.observation import MissingRelation
from export_gate.wall.source import SourceLine
from export_gate.wall.words import number_text

HIGHEST = re.compile(r"range: \[[^,]+, ([^\]]+)\]")
"""The largest value that a relation leaves: `T-1`."""
REACHES = re.compile(r"`[^`]+` >=? ")
"""Words of a relation that is about a largest value."""


def relation_words(contract: ModelContract, found: MissingRelation, source: SourceLine | None) -> str:
    """`` `ids` is declared 0..8 whatever `T` is, but `torch.gather` takes at most `T-1` ``; else what is refused."""
    path = found.key.removeprefix("inputs.")
    highest = HIGHEST.search(found.declare)
    if path == found.key or highest is None or not REACHES.match(found.words):
        declared = _declared_dim(contract, found.key.removeprefix("dims."))
        return f"the contract allows what eager refuses: {found.words}{declared}"
    spec = dict(tensors(contract.inputs)).get(path)
    bounds = spec.range if spec else None
    texts = [number_text(end) if isinstance(end, (int, float)) else str(end) for end in bounds or ()]
    declared = f"declared {'..'.join(texts)}" if texts else "declared without a `range`"
    dims = [dim.name for dim in contract.dims if re.search(rf"\b{re.escape(dim.name)}\b", highest[1])]
    whatever = (
        f" whatever {listing([f'`{name}`' for name in dims])} {'is' if len(dims) == 1 else 'are'}" if dims else ""
    )
    length = f" ({found.words.partition(', ')[2]})" if ", the length of" in found.words else ""
    return f"`{path}` is {declared}{whatever}, but {_taker(path, source)} takes at most `{highest[1]}`{length}"


def relation_hint(contract: ModelContract, found: MissingRelation) -> str:
    """The next step, with what came of trying it."""
    # A key and its value in backticks; what takes more than one key is a sentence.
    is_key = found.declare.startswith("`")
    declare = f"Declare {found.declare} at `models.{contract.name}.{found.key}`" if is_key else capital(found.declare)
    is_index = HIGHEST.search(found.declare) and REACHES.match(found.words)
    otherwise = "clamp it in the model" if is_index else "make the model take such inputs"
    return f"{declare}, or {otherwise}.{_tried(found)}"


def _tried(found: MissingRelation) -> str:
    if not found.tried:
        return ""
    if found.tried == found.refused:
        drawn, them = ("the refused input was", "it") if found.tried == 1 else ("all refused inputs were", "them")
        return f" This was tried: {drawn} drawn again like that, and eager takes {them}."
    if found.tried < found.refused:
        return (
            f" This was tried: {found.tried} of the {found.refused} refused inputs (no more are tried) were drawn "
            f"again like that, and eager takes all {found.tried}."
        )
    return f" This was tried: eager takes {found.tried} inputs drawn like that."


def _declared_dim(contract: ModelContract, name: str) -> str:
    dim = next((dim for dim in contract.dims if dim.name == name), None)
    return f" (`{dim.name}` is declared {dim.text})" if dim else ""


def _taker(path: str, source: SourceLine | None) -> str:
    """What in the line takes the input: `` `torch.gather` ``, or eager where that is not to be seen."""
    line, name = user_line(source), path.rpartition(".")[2]
    for node in ast.walk(line.tree) if line else ():
        if isinstance(node, ast.Subscript) and name in names_in(node.slice):
            return f"the index of `{ast.unparse(node.value)}`"
        arguments = [*node.args, *(each.value for each in node.keywords)] if isinstance(node, ast.Call) else []
        if isinstance(node, ast.Call) and any(isinstance(a, ast.Name) and a.id == name for a in arguments):
            return f"`{ast.unparse(node.func)}`"
    return "eager"
