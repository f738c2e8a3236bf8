"""Format facts for a message: places, numbers, indices, lists."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from export_gate.wall.contract import ModelContract
from export_gate.wall.source import SourceLine
from export_gate.wall.words import rounded

ESCAPE_SEQUENCES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
POINTER = re.compile(r"\s*[~^]+\s*$")
LOGGING = re.compile(r"\s*(?:Set|For|If) .*\b(?:TORCH_LOGS|TORCHDYNAMO_(?:VERBOSE|EXTENDED_DEBUG))")
"""`Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace (please do this especially if ...)`."""
RUNTIME = re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ")
RUNTIME_NODE = re.compile(r"Non-zero status code returned while running (\w+) node\. Name:'([^']*)' Status Message: ")
RUNTIME_PLACE = re.compile(r"/\S+\.(?:h|cc|cpp):\d+ [^\s(]+(?:\([^)]*\)(?: const)?)? ")
"""ONNX Runtime's own file, line and function in its messages (1.20 to 1.32)."""
LONGEST_LINE = 240
"""Characters of another program's message that fit in one sentence; the rest is in the details."""


def place(
    model: str, target: str | None = None, output: str | None = None, case: str | None = None, at: str | None = None
) -> str:
    """`glyph-head, onnx, output 'logits', case normal-1@batch=16`; `at` adds anything else about the place."""
    parts = [model, target, at, output and f"output '{output}'", case and f"case {case}"]
    return ", ".join(part for part in parts if part)


def targets_key(contract: ModelContract, *rest: str) -> str:
    """`` `models.glyph-head.targets.onnx.guards` ``, where the config lists the model's targets.

    A model that lists its own targets has only those, so a hint to add the key must say that all must be listed.
    """
    listed = "defaults" if contract.targets_listed == "defaults" else f"models.{contract.name}"
    key = f"`{'.'.join((listed, 'targets', *rest))}`"
    if contract.targets_listed != "nowhere":
        return key
    return f"{key} (which must then list all targets: {', '.join(target.name for target in contract.targets)})"


def apart(measured: float, allowed: float) -> tuple[str, str]:
    """Both numbers, with enough digits to distinguish them."""
    for digits in range(1, 17):
        texts = rounded(measured, digits), rounded(allowed, digits)
        if texts[0] != texts[1]:
            return texts
    return rounded(measured), rounded(allowed)


def exact(value: float | None, *, is_float: bool = False) -> str:
    """A tensor's entry with all digits that float32 has; `4.0` if it is known to be a float."""
    if value is None:
        return "unknown"
    # Nine digits distinguish any two float32 numbers.
    text = f"{value:.9g}"
    return f"{text}.0" if is_float and text.lstrip("-").isdigit() else text


def round_up(value: float) -> float:
    """A number with two significant digits just above `value`, which is positive; never below it by rounding."""
    if not math.isfinite(value):
        return value  # a difference beyond float64
    # Far below, float64 has no tenth of the value, and nobody needs such a tolerance.
    padded = max(value * (1 + 1e-9), 1e-300)
    step = 10.0 ** (math.floor(math.log10(padded)) - 1)
    return float(f"{math.ceil(padded / step) * step:.1e}")


def index(where: Sequence[int] | None) -> str:
    """`[0, 2]`; `[]` is the only entry of a 0-d tensor."""
    return "an unrecorded index" if where is None else f"[{', '.join(map(str, where))}]"


def shape(sizes: Sequence[int]) -> str:
    """`(2, 3)`, as torch writes sizes."""
    return str(tuple(sizes))


def listing(names: Sequence[str], limit: int = 5, joint: str = "and") -> str:
    """`a, b and c`; names beyond `limit` become a count."""
    if len(names) > limit:
        return f"{', '.join(names[:limit])} {joint} {len(names) - limit} more"
    if len(names) < 2:  # noqa: PLR2004 - one name needs no joint
        return "".join(names)
    return f"{', '.join(names[:-1])} {joint} {names[-1]}"


def capital(text: str) -> str:
    """The text as the beginning of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def first_line(text: str) -> str:
    """The first line that is not empty, without terminal colours, cut to the length of a sentence."""
    lines = [line.strip() for line in plain(text).splitlines() if line.strip()]
    line = lines[0] if lines else "(no message)"
    if RUNTIME.match(line):
        return _last_words(line)
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}..."


def _last_words(line: str) -> str:
    """ONNX Runtime's message without its codes; it begins with where it is, and what is wrong comes last."""
    line = RUNTIME_PLACE.sub("", RUNTIME_NODE.sub(r"\1 node '\2': ", RUNTIME.sub("", line)))
    return line if len(line) <= LONGEST_LINE else f"...{line[-LONGEST_LINE:].partition(' ')[2]}"


def plain(text: str) -> str:
    """Text without terminal escape sequences."""
    return ESCAPE_SEQUENCES.sub("", text)


def source_place(source: SourceLine | None) -> str:
    """``src/model.py:12 `if x.sum() > 0:` ``, or nothing."""
    return "" if source is None else f"{source.path}:{source.line} `{source.text.strip()}`"


def at_source(source: SourceLine | None) -> str:
    """The same after a verb: ` at src/model.py:12 ...`."""
    return f" at {source_place(source)}" if source else ""


def made_at(source: SourceLine | None) -> str:
    """``, made at src/model.py:9 `seen = {}` ``, or nothing."""
    return f", made{at_source(source)}" if source else ""


def paragraph(text: str) -> tuple[str, ...]:
    """Lines for the folded details, without pointers into a line (`    ^^^^^`) and hints for the authors of torch."""
    lines = plain(text).rstrip().splitlines()
    return tuple(line for line in lines if not POINTER.match(line) and not LOGGING.match(line))
