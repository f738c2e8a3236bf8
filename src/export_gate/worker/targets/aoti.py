"""The program compiled by AOTInductor into a package, loaded and run."""

from __future__ import annotations

import os
import shutil
from functools import cache, partial
from pathlib import Path
from typing import Any

from export_gate.contract import AotiTarget
from export_gate.worker.reference import module_runner
from export_gate.worker.targets.base import Context, Loaded

COMPILERS = ("g++", "clang++", "c++")
CHECK_INPUTS = "AOTI_RUNTIME_CHECK_INPUTS"


def convert(context: Context, options: AotiTarget) -> Path | None:  # noqa: ARG001 - a target's signature
    """Compile and package the program; needs a C++ compiler."""
    import torch._inductor

    if find_compiler() is None:
        raise RuntimeError(
            f"AOTInductor needs a C++ compiler and none of {', '.join(COMPILERS)} is on PATH; "
            "install one (Debian: `apt-get install g++`) or set CXX"
        )
    path = context.folder / "model.aoti.pt2"
    torch._inductor.aoti_compile_and_package(context.program, package_path=str(path))  # noqa: SLF001 - documented entry
    return path


def load(context: Context, options: AotiTarget, path: Path | None) -> Loaded:  # noqa: ARG001 - as above
    """Load the package into this process; a bad one can crash it, which the worker's parent records."""
    import torch._inductor

    if path is None:
        raise AssertionError("aoti always has a file")
    package = torch._inductor.aoti_load_package(str(path))  # noqa: SLF001 - documented entry
    return Loaded(
        run=module_runner(package, context.names),
        run_checked=module_runner(partial(_call_checked, path), context.names),
        facts={"compiler": find_compiler() or "none"},
    )


@cache
def _load_once(path: Path) -> Any:
    import torch._inductor

    return torch._inductor.aoti_load_package(str(path))  # noqa: SLF001 - documented entry


def _call_checked(path: Path, *args: Any, **kwargs: Any) -> Any:
    """Call a second copy of the package with its input checks on; it reads the switch at its first call."""
    before = os.environ.get(CHECK_INPUTS)
    os.environ[CHECK_INPUTS] = "1"
    try:
        return _load_once(path)(*args, **kwargs)
    finally:
        if before is None:
            del os.environ[CHECK_INPUTS]
        else:
            os.environ[CHECK_INPUTS] = before


def find_compiler() -> str | None:
    """The C++ compiler that AOTInductor would find."""
    candidates = (os.environ.get("CXX", ""), *COMPILERS)
    return next((found for name in candidates if name and (found := shutil.which(name))), None)
