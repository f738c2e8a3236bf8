"""Turn exceptions into Failure records: the message, the user's own source line and torch's suggested fixes."""

from __future__ import annotations

import itertools
import linecache
import re
import traceback
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from export_gate.wall.observation import Failure, Stage
from export_gate.wall.source import SourceLine
from export_gate.worker.process.places import GATE, SITES
from export_gate.worker.process.preload import DISTRIBUTIONS, missing_packages
from export_gate.worker.process.statements import statement_at

MESSAGE_LIMIT = 4000
TRACE_LINES = 30
LIBRARY_FRAMES = 3
"""Frames that are shown if none is the project's."""
CAUSES, CAUSE_LENGTH = 8, 400
"""Causes that are kept of an exception, and characters of each."""
TOOLCHAIN = ("torch", "onnxscript", "onnx_ir", "onnx", "onnxruntime", "sympy", "numpy", "torchgen")
"""Packages whose frames are the tool's, not the model's."""
LAYERS = (("torch", "nn"), ("torch", "distributions"))
"""Parts of torch that are written in Python like a model."""
_CONDITION = re.compile(r"\b(?:if|while|assert)\b|\bbool\(")
_ADDRESS = re.compile(r" object at 0x[0-9a-fA-F]+")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_SUGGESTED = re.compile(r"Suggested fixes:\s*\n((?:[ \t]+\S.*\n?)+)")
_QUOTED_FRAME = re.compile(r'File "([^"]+)", line (\d+), in ')


def failure_of(error: BaseException, stage: Stage, roots: Iterable[Path], case: str | None = None) -> Failure:
    """The record of an exception; `roots` are the folders that hold the project's own code."""
    folders = tuple(roots)
    message = describe(error)
    # In other stages the import is the project's own, and its message says more than ours would.
    missing = _missing_package(error) if stage in ("convert", "load") else None
    return Failure(
        stage=stage,
        kind="exception" if missing is None else "missing-package",
        type=type(error).__name__,
        message=message if missing is None else missing_packages([missing]),
        case=case,
        source=source_line(error, folders),
        foreign=foreign_line(error, folders),
        causes=tuple(f"{type(raised).__name__}: {_short(raised)}" for raised in chain_of(error)[:-1])[:CAUSES],
        suggestions=suggested_fixes(message),
        trace=last_lines(error, folders),
    )


def _missing_package(error: BaseException) -> str | None:
    """The package to install if a target's own package is missing: named by the exception or by its cause."""
    names = {
        str(raised.name).partition(".")[0] for raised in chain_of(error) if isinstance(raised, ModuleNotFoundError)
    }
    return next((name for name in DISTRIBUTIONS if name in names), None)


def describe(error: BaseException) -> str:
    """The exception's text, without colour codes, bounded; safe for exceptions whose own text cannot be made."""
    try:
        text = str(error)
    except BaseException as broken:  # noqa: BLE001 - the model's exception class is not ours to trust
        text = f"(its text cannot be shown: {type(broken).__name__})"
    text = _ANSI.sub("", text).strip()
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 3] + "..."


def suggested_fixes(message: str) -> tuple[str, ...]:
    """The lines below torch's `Suggested fixes:`."""
    found = _SUGGESTED.search(message + "\n")
    return tuple(line.strip() for line in found.group(1).splitlines()) if found else ()


def source_line(error: BaseException, roots: tuple[Path, ...]) -> SourceLine | None:
    """The innermost line of the project's own code that the exception passed, or that its text quotes."""
    own = [(path, line) for path, line in _places(error, roots) if is_own(path, roots)]
    return quoted_line(*own[-1]) if own else None


def foreign_line(error: BaseException, roots: tuple[Path, ...]) -> SourceLine | None:
    """The innermost line of somebody else's package that the project's code calls.

    Of torch only conditions in its layers and distributions count, which a caller meets like those of a package.
    """
    places = _places(error, roots)
    lines = [place for place in places if is_own(place[0], roots) or is_foreign_code(place[0])]
    if lines and is_own(lines[-1][0], roots):
        # After the last time that the stack passes that line: a message quotes lines without those of torch.
        inner = list(itertools.takewhile(lambda place: place != lines[-1], reversed(_frames_of(error))))
        lines += [place for place in reversed(inner) if _is_condition_of_torch(*place)]
    return package_line(*lines[-1]) if lines and not is_own(lines[-1][0], roots) else None


def lines_of_trace(trace: str, roots: tuple[Path, ...]) -> tuple[SourceLine | None, SourceLine | None]:
    """The innermost line of the project's own code in a quoted stack, and the line of a package that it leads to."""
    places = [(_absolute(path, roots), int(line), path) for path, line in _QUOTED_FRAME.findall(trace)]
    own = [place for place in places if is_own(place[0], roots)]
    inner = [place for place in places if is_own(place[0], roots) or _is_package(place[2])]
    foreign = inner[-1] if inner and inner[-1] not in own else None
    return quoted_line(*own[-1][:2]) if own else None, _quoted_by(foreign, trace) if foreign else None


def _is_package(path: str) -> bool:
    """Whether a path, which may have lost its folder, is in somebody else's package; torch does not count."""
    return is_foreign_code(path) if Path(path).is_absolute() else Path(path).parts[0] not in TOOLCHAIN


def _quoted_by(place: tuple[str, int, str], trace: str) -> SourceLine:
    """A line whose text the stack itself quotes, because its file may no longer be found."""
    _, line, path = place
    quoted = re.search(rf'File "{re.escape(path)}", line {line}, in [^\n]*\n([^\n]*)', trace)
    return SourceLine(path=path, line=line, text=quoted[1].strip() if quoted else "")


def _places(error: BaseException, roots: tuple[Path, ...]) -> list[tuple[str, int]]:
    return _frames_of(error) + [
        (_absolute(path, roots), int(line)) for path, line in _QUOTED_FRAME.findall(describe(error))
    ]


def _frames_of(error: BaseException) -> list[tuple[str, int]]:
    return [place for raised in chain_of(error) for place in _frames(raised.__traceback__)]


def quoted_line(path: str, line: int) -> SourceLine:
    """A line of a file with the text of its statement, which is empty where the file cannot be read."""
    rows = linecache.getlines(path)
    return SourceLine(path=path, line=line, text=statement_at(tuple(rows), line))


def package_line(path: str, line: int) -> SourceLine:
    """A line of an installed package, whose path begins with the package: where it is installed says nothing."""
    inside = _inside_site(path)
    return replace(quoted_line(path, line), path="/".join(inside) if inside else path)


def is_foreign_code(path: str) -> bool:
    """Whether the file belongs to an installed package that is no part of the export's own toolchain."""
    inside = _inside_site(path)
    # A package of one file is `name.py`, so the suffix goes.
    return bool(inside) and inside[0].partition(".")[0] not in TOOLCHAIN


def _is_condition_of_torch(path: str, line: int) -> bool:
    inside = _inside_site(path)
    return inside[:2] in LAYERS and _CONDITION.search(quoted_line(path, line).text) is not None


def _inside_site(path: str) -> tuple[str, ...]:
    """The path from the folder of installed packages on; the last such folder counts, as environments may be nested."""
    parts = Path(path).parts
    installed = [index for index, part in enumerate(parts) if part in SITES]
    return parts[installed[-1] + 1 :] if installed else ()


def _short(error: BaseException) -> str:
    """The first line that says something, without addresses of objects."""
    lines = [line.strip() for line in _ADDRESS.sub("", describe(error)).splitlines() if line.strip()]
    return (lines[0] if lines else "(no message)")[:CAUSE_LENGTH]


def _absolute(path: str, roots: tuple[Path, ...]) -> str:
    """A quoted path as a file of the project, where it is relative to one of its folders."""
    return next((str(root / path) for root in roots if not Path(path).is_absolute() and (root / path).is_file()), path)


def is_own(path: str, roots: tuple[Path, ...]) -> bool:
    """Whether the file lies in the project and is not an installed package."""
    # The gate's frames are not the project's, even where its checkout is (the gate's own tests, an editable install).
    file = Path(path)
    if not set(SITES).isdisjoint(file.parts) or _PACKAGE in file.parents:
        return False
    return any(root in file.parents for root in roots)


_PACKAGE = Path(__file__).resolve().parents[2]


def chain_of(error: BaseException) -> list[BaseException]:
    """The exception's causes first, itself last."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    # Contexts can form a ring.
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return chain[::-1]


def _frames(trace: TracebackType | None) -> list[tuple[str, int]]:
    return [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(trace)]


def last_lines(error: BaseException, roots: tuple[Path, ...]) -> str:
    """The traceback for the project's reader: its own frames whole, runs of frames in libraries counted.

    If no frame is the project's own, the last frames stay. What the gate raises on purpose has none: its message
    says it all.
    """
    frames = [frame for raised in chain_of(error) for frame in traceback.extract_tb(raised.__traceback__)]
    own = [frame for frame in frames if is_own(frame.filename, roots)]
    if not own and frames and _is_raised_by_gate(frames[-1]):
        return ""
    lines = _abridged(frames, roots) if own else _formatted(frames[-LIBRARY_FRAMES:])
    text = f"{type(error).__name__}: {describe(error)}"
    return "\n".join([*lines, *text.splitlines()][-TRACE_LINES:])[-2 * MESSAGE_LIMIT :]


def _is_raised_by_gate(frame: traceback.FrameSummary) -> bool:
    # On purpose: a line of the gate's that fails is a fault of ours, which its frames explain.
    return frame.filename.startswith(GATE) and (frame.line or "").startswith("raise ")


def _abridged(frames: list[traceback.FrameSummary], roots: tuple[Path, ...]) -> list[str]:
    lines: list[str] = []
    for is_kept, run in itertools.groupby(frames, lambda frame: is_own(frame.filename, roots)):
        group = list(run)
        lines += _formatted(group) if is_kept else [f"  ... {len(group)} frames in libraries"]
    return lines


def _formatted(frames: list[traceback.FrameSummary]) -> list[str]:
    return [line for text in traceback.format_list(frames) for line in text.rstrip().splitlines()]
