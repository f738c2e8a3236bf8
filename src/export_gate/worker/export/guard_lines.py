"""The user's line behind each guard on sizes, which torch knows while it traces and leaves out of its errors."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from torch.fx.experimental.symbolic_shapes import ShapeEnv

HOOK = "_log_guard"
"""The method that torch calls for each guard, as `draft_export` reads it (private, torch 2.13 and 2.14)."""
FUNCTIONS = ("torch/nn/functional.py", "torch/functional.py", "torch/_tensor.py")
"""Where torch's functions are that are written in Python."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardLine:
    """One guard, and the frames in which torch came to need it."""

    text: str
    """As the program's own guards are written, over `L['x'].size()[i]`."""
    frames: tuple[tuple[str, int], ...]
    """Path and line of each Python frame, the innermost first; all of them, as only the caller knows the project."""
    function: str = ""
    """torch's own function that users call, such as `interpolate`, in which it was needed."""


@contextmanager
def noted_guards(found: list[GuardLine]) -> Iterator[None]:
    """Append each guard that torch adds meanwhile; with a torch that has no such method, nothing is appended."""
    original = getattr(ShapeEnv, HOOK, None)
    if original is None:
        yield
        return

    def note(env: Any, prefix: str, guard: Any, *rest: Any, **named: Any) -> Any:
        # torch also logs what it asks of its own stand-ins for tensors, and calls those guards suppressed. The rest is
        # a comfort: a private API that changed must not make an export fail.
        with suppress(Exception):
            if "suppressed" not in prefix:
                found.append(
                    GuardLine(text=_text(env, guard), frames=(*_traced_frames(), *_frames()), function=_function())
                )
        return original(env, prefix, guard, *rest, **named)

    setattr(ShapeEnv, HOOK, note)
    try:
        yield
    finally:
        setattr(ShapeEnv, HOOK, original)


def _text(env: Any, guard: Any) -> str:
    import sympy  # type: ignore[import-untyped] # it has no stubs
    from torch.utils._sympy.printers import PythonPrinter

    # A symbol such as s77 means nothing outside of this export; the axis that it stands for does.
    axes = {symbol: sympy.Symbol(name, integer=True) for name, symbol in env.source_to_var.items()}
    return str(PythonPrinter().doprint(guard.xreplace(axes)))


def _frames() -> Iterator[tuple[str, int]]:
    return ((frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(None))


def _function() -> str:
    """The outermost function of torch's that users call; of a layer what it calls."""
    names = [f.f_code.co_name for f, _ in traceback.walk_stack(None) if f.f_code.co_filename.endswith(FUNCTIONS)]
    return names[-1] if names else ""


def _traced_frames() -> list[tuple[str, int]]:
    """Strict export interprets the user's code instead of running it, so its lines are on no Python stack."""
    from torch._guards import TracingContext

    return [(frame.filename, frame.lineno or 0) for frame in reversed(TracingContext.extract_stack())]
