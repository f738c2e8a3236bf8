"""The program compiled by AOTInductor into a package, loaded and run."""

from __future__ import annotations

import shutil
from pathlib import Path

from export_gate.contract import AotiTarget
from export_gate.worker.reference import module_runner
from export_gate.worker.targets.base import Context, Loaded

COMPILERS = ("g++", "clang++", "c++")


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
    return Loaded(run=module_runner(package, context.names), facts={"compiler": find_compiler() or "none"})


def find_compiler() -> str | None:
    """The C++ compiler that AOTInductor would find."""
    import os

    candidates = (os.environ.get("CXX", ""), *COMPILERS)
    return next((found for name in candidates if name and (found := shutil.which(name))), None)
