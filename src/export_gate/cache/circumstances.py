"""What every verdict depends on beside its own files: the gate, the machine and the environment."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from export_gate.run.environment import worker_environment

PACKAGE = Path(__file__).parents[1]
ONLY_IF_ASKED = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "PWD", "TMPDIR", "TMP", "TEMP", "VIRTUAL_ENV", "CONDA_PREFIX",
    "CI", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROMPT", "WINDIR", "SYSTEMROOT",
    "SYSTEMDRIVE", "COMSPEC", "PATHEXT",
})  # fmt: skip
"""Variables that nothing but the code that asks for them depends on; native code may read any other."""
_VECTOR = ("avx", "amx", "sse", "fma", "asimd", "sve", "neon", "f16c", "vnni", "bf16")
"""Beginnings of the names of those CPU features that change results."""


def circumstances(python: str, environment: Mapping[str, str]) -> dict[str, str]:
    """What must be equal, by name.

    Args:
        python: the interpreter, from the root of the checkout if it is inside.
        environment: the caller's.
    """
    given = {"OMP_NUM_THREADS": "1", **worker_environment(environment)}  # the worker's own default
    # Native code reads variables (`MKL_...`, `KMP_...`) without Python's knowledge: all that it might read count.
    always = {name: value for name, value in given.items() if not _only_if_asked(name)}
    return {
        "export-gate": _own_digest(),
        "interpreter": python,
        "machine": _machine(),
        "environment": digest_of(sorted(f"{name}={value}" for name, value in always.items())),
    }


def digest_of(lines: Iterable[str]) -> str:
    """A sha256 over lines of text."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _only_if_asked(name: str) -> bool:
    return name.upper() in ONLY_IF_ASKED or name.upper().startswith("XDG_")


@cache
def _own_digest() -> str:
    """A sha256 over the gate's sources: two versions may have the same number, as two commits of a branch do."""
    digest, start = hashlib.sha256(), len(str(PACKAGE))
    for folder, inner, files in os.walk(PACKAGE):
        inner[:] = sorted(name for name in inner if name != "__pycache__")
        for name in sorted(files):
            if name.endswith(".py"):
                digest.update(f"{folder[start:]}/{name}\0".encode())
                with open(f"{folder}/{name}", "rb", buffering=0) as file:  # noqa: PTH123 - called for hundreds of files
                    digest.update(file.read())
    return digest.hexdigest()


def _processor() -> str:
    # Not platform.machine(), whose import takes milliseconds of a hook that has nothing to do.
    return os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "")


@cache
def _machine() -> str:
    """What native code computes differently on: the system, the C library and the CPU's vector units."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    # Those of the first core are enough; on ARM the line is called Features.
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features"))), [])
    vector = sorted(flag for flag in flags if flag.startswith(_VECTOR))
    return " ".join(filter(None, (sys.platform, _processor(), _library(), *vector)))


def _library() -> str:
    # AttributeError: Windows. ValueError: macOS does not know the name. OSError: musl knows it, and has no value.
    with suppress(AttributeError, ValueError, OSError):
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    return ""
