"""Import everything that a model's process will need, before any operator runs, and describe the environment."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import os
import platform
import sys

from export_gate.wall.observation import Environment
from export_gate.wall.request import Describe, ListControls, Request
from export_gate.wall.targets import KINDS

ALWAYS = ("torch", "numpy")
EXPORT_MODULES = (
    "torch.export",
    "torch.export._trace",
    "torch.export.pt2_archive._package",
    "torch._export.non_strict_utils",
    "torch._export.passes.replace_set_grad_with_hop_pass",
    "torch._export.serde.serialize",
    "torch._functorch.aot_autograd",
    "torch._functorch.partitioners",
    "torch._inductor.codecache",
    "torch._inductor.output_code",
    "torch._subclasses.schema_check_mode",
    "torch.fx.passes._tensorify_python_scalars",
    "torch.utils._runtime_estimation",
    "torch.utils._sympy.reference",
    "torch.utils.flop_counter",
    "networkx",
    "numpy.ma",
    "sympy.tensor.tensor",
    "export_gate.worker.export.operators:list_operators",
)
"""What an export imports on its way, and what it would list in each process (torch 2.13).

One that is not there is imported later, or never.
"""
DISTRIBUTIONS = ("torch", "numpy", *(package for kind in KINDS for package in kind.packages))


def preload(request: Request) -> str | None:
    """Import the project's packages; the reason where the worker is of no use without one of them."""
    # Before torch is imported: OpenMP reads it as it is loaded. One thread, since a fork after a parallel region of
    # more threads leaves a child that waits for them.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    reasons = {name: reason for name in ALWAYS if (reason := _why_not(name)) is not None}
    # A missing package comes first: it may be why the other one does not import.
    if all(reasons.values()) and reasons:
        return broken_packages(reasons)
    if reasons:
        return missing_packages(list(reasons))
    import torch

    torch.set_num_threads(1)
    with contextlib.suppress(RuntimeError):  # already set by the project's sitecustomize
        torch.set_num_interop_threads(1)
    for name in _needed(request):
        # A broken optional one fails later, where it is needed.
        _why_not(name)
    return None


def load(name: str) -> None:
    """Import a module; of `module:function`, call the function as well."""
    module, _, function = name.partition(":")
    imported = importlib.import_module(module)
    if function:
        getattr(imported, function)()


def _needed(request: Request) -> tuple[str, ...]:
    """What the request's work imports: control inputs are listed without an export, and not every model has an ONNX."""
    if isinstance(request.task, ListControls):
        return ()
    if isinstance(request.task, Describe):
        return EXPORT_MODULES
    planned = {target.kind for job in request.jobs for target in job.contract.targets}
    return (*EXPORT_MODULES, *(module for kind in KINDS if kind.name in planned for module in kind.preload))


def missing_packages(names: list[str]) -> str:
    """The message that says what to install, and where."""
    return (
        f"{sys.executable} (the project's interpreter) cannot import {', '.join(names)}: "
        f"install with `{sys.executable} -m pip install {' '.join(names)}`, "
        "or name another interpreter with `--python`, EXPORT_GATE_PYTHON or `python:` in the config"
    )


def broken_packages(reasons: dict[str, str]) -> str:
    """The message that says what is installed but cannot be imported, and why."""
    return (
        f"{sys.executable} (the project's interpreter) has {' and '.join(reasons)}, but cannot import "
        f"{'it' if len(reasons) == 1 else 'them'}: {'; '.join(reasons.values())}; install again, "
        "or name another interpreter with `--python`, EXPORT_GATE_PYTHON or `python:` in the config"
    )


def environment() -> Environment:
    """The interpreter, the machine and the versions that the observations rest on."""
    import torch

    return Environment(
        python=platform.python_version(),
        executable=sys.executable,
        platform=platform.platform(),
        cpu=torch.backends.cpu.get_cpu_capability(),
        versions={name: version for name in DISTRIBUTIONS if (version := _version(name))},
        threads=torch.get_num_threads(),
    )


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _why_not(name: str) -> str | None:
    """Why a module cannot be imported: empty if it is missing, None if it can."""
    try:
        load(name)
    except ModuleNotFoundError as error:
        # Another name is missing inside a module that is there: that one is broken.
        return "" if error.name == name else f"{type(error).__name__}: {error}"
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a package can fail to import in any way
        return f"{type(error).__name__}: {error}"
    return None
