"""Let torch list its operators again only where there are others than the last time."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch


def list_operators() -> None:
    """List them, and let torch do so again only where libraries have registered others since.

    Each decomposition, and so each conversion to ONNX, lists all operators that consist of others, once for every
    namespace: fifty times. A fifth of a small model's conversion went into looking them up again (torch 2.13).
    """
    from torch._export import utils

    if not hasattr(utils._materialize_cpp_cia_ops, "__wrapped__"):  # noqa: SLF001 - there is no other way
        utils._materialize_cpp_cia_ops = _listing(utils._materialize_cpp_cia_ops)  # noqa: SLF001
    utils._materialize_cpp_cia_ops()  # noqa: SLF001


def _listing(list_all: Callable[[], None]) -> Callable[[], None]:
    listed: list[str] = []

    @functools.wraps(list_all)
    def list_others() -> None:
        there = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")  # noqa: SLF001
        if there != listed:
            list_all()
            listed[:] = there

    return list_others
