"""Read the project's sources for what no event reports: names of files, readings of the clock, native readers."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

READERS: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "safetensors": (frozenset({"load_file", "load_model", "safe_open"}), (".safetensors",)),
    "h5py": (frozenset({"File"}), (".h5", ".hdf5")),
    "lmdb": (frozenset({"open", "Environment"}), (".mdb",)),
    "cv2": (frozenset({"imread", "imreadmulti", "VideoCapture"}), ()),
    "torchvision": (frozenset({"read_file", "read_image", "read_video"}), ()),
    "tokenizers": (frozenset({"from_file"}), (".json",)),
    "torch": (frozenset({"from_file", "PyTorchFileReader"}), ()),
    "sentencepiece": (frozenset({"Load", "LoadFromFile", "SentencePieceProcessor"}), (".model",)),
    "onnxruntime": (frozenset({"InferenceSession"}), (".onnx", ".ort")),
}
"""Package -> its functions that open files in native code, and how the files' names end."""
_CLOCK = frozenset({"now", "utcnow", "today"})
MOST_CHARACTERS = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What one source says."""

    texts: frozenset[str] = frozenset()
    """Constants that may name a file."""
    clock: int = 0
    """The first line of a function that asks `datetime` for the time; 0 if none does."""
    readers: tuple[str, ...] = field(default=())
    """Packages by which it opens files in native code."""


def scan(path: Path) -> Scanned:
    """What the source says; nothing if it cannot be compiled, so that none of it has run."""
    try:
        module = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError):
        return Scanned()
    # The names that the code uses, not its text: a comment or a message with such a word is no use of it.
    codes = list(codes_of(module))
    names = {name for code in codes for name in code.co_names}
    clock = [code.co_firstlineno for code in codes if _CLOCK.intersection(code.co_names)]
    imported = {name.partition(".")[0] for name in names}
    return Scanned(
        texts=frozenset(text for code in codes for text in _texts(code.co_consts) if _may_name_a_file(text)),
        clock=min(clock, default=0) if "datetime" in imported else 0,
        readers=tuple(name for name, (functions, _) in READERS.items() if name in imported and functions & names),
    )


def codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code, and that of the functions and classes inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_of(constant)


def _texts(constants: Iterable[object]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, (tuple, frozenset)):
            yield from _texts(constant)


def _may_name_a_file(text: str) -> bool:
    return 0 < len(text) <= MOST_CHARACTERS and ("." in text or "/" in text) and text.isprintable()
