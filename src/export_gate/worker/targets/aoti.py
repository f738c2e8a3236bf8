"""The program compiled by AOTInductor into a package, loaded and run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from export_gate.wall.contract import Target
from export_gate.worker.model.reference import module_runner
from export_gate.worker.targets.base import Context, Loaded, files

__all__ = ["convert", "files", "load"]

CHECK_INPUTS = "AOTI_RUNTIME_CHECK_INPUTS"


def convert(context: Context, target: Target) -> Path | None:
    """Compile and package the program.

    Raises:
        RuntimeError: there is no C++ compiler.
        Exception: whatever the compilation raises.
    """
    import torch._inductor

    path = context.folder / target.file_name
    if find_compiler() is None:
        raise RuntimeError(
            f"AOTInductor needs a C++ compiler and there is no {' or '.join(compilers())} on PATH; "
            "install one (Debian: `apt-get install g++`) or name one in CXX"
        )
    torch._inductor.aoti_compile_and_package(  # noqa: SLF001 - documented entry
        context.exported.program, package_path=str(path)
    )
    return path


def load(context: Context, target: Target, path: Path | None) -> Loaded:  # noqa: ARG001 - a target's signature
    """Load the package into this process; a bad one can crash it, which the worker's parent records."""
    assert path is not None
    return Loaded(
        run=module_runner(_load(path), context.names),
        run_checked=module_runner(checked(path), context.names),
        facts={"compiler": find_compiler() or "none"},
    )


def checked(path: Path) -> Callable[..., Any]:
    """Calls a second copy of the package with its input checks on, for which it looks at its first call.

    The copy is loaded at that call, so that it is paid for where it is used: in the forked process of the probes.
    """
    package = cache(_load)

    def call(*args: Any, **kwargs: Any) -> Any:
        # The compiled code keeps what it reads there in a static variable, so that only the first call looks.
        before = os.environ.get(CHECK_INPUTS)
        os.environ[CHECK_INPUTS] = "1"
        try:
            return package(path)(*args, **kwargs)
        finally:
            if before is None:
                del os.environ[CHECK_INPUTS]
            else:
                os.environ[CHECK_INPUTS] = before

    return call


def compilers() -> tuple[str, ...]:
    """The C++ compilers that AOTInductor looks for: CXX, or else g++ (clang++ on macOS)."""
    from torch._inductor import config

    return tuple(name for name in config.cpp.cxx if name) or ("compiler in CXX",)


def find_compiler() -> str | None:
    """The C++ compiler that AOTInductor will use; None if there is none."""
    return next((found for name in compilers() if (found := shutil.which(name))), None)


def _load(path: Path) -> Any:
    import torch._inductor

    return torch._inductor.aoti_load_package(str(path))  # noqa: SLF001 - documented entry
