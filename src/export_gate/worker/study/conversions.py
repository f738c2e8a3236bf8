"""Convert an export's program for its targets: in a forked copy of the process while earlier targets run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from export_gate.wall.contract import Target
from export_gate.worker.nodes.program import prepared
from export_gate.worker.process.children import CAN_FORK
from export_gate.worker.process.collection import uncollected
from export_gate.worker.process.integrity import guarded
from export_gate.worker.process.isolated import Isolated
from export_gate.worker.targets import TARGETS
from export_gate.worker.targets.base import Context
from export_gate.worker.targets.onnx import DECOMPOSED

Convert = Callable[[Context, Target], "Path | None"]
"""Writes a target's artifact; returns None if the target has no file."""
MOST_BYTES = 1 << 30
"""Weights above this are converted in their turn: a copy's conversion would be in memory beside a loaded artifact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How the copy's conversion ended."""

    is_done: bool = False
    has_file: bool = False
    """A path would be the word of a process that ran the project's code: a file has one name only."""


def convert(context: Context, target: Target) -> Path | None:
    """Convert here and now.

    Raises:
        Exception: whatever the conversion raises.
    """
    context.folder.mkdir(parents=True, exist_ok=True)
    with uncollected(), torch.no_grad():  # as the program was exported
        return guarded(TARGETS[target.kind].convert)(context, target)


@contextmanager
def conversions_begun(asked: Sequence[tuple[Context, Target]]) -> Iterator[Convert]:
    """Let a copy of this process convert for all targets but the first; yields what takes the place of `convert`.

    It waits for the copy's file. What the copy could not write is converted once more, so that a failure and its
    traceback are those of this process.

    Args:
        asked: the targets to convert for, in the order in which they will be asked for.
    """
    later = asked[1:]  # the first one is needed at once
    if not later or not _is_worthwhile(later[0][0]):
        yield convert
        return

    def call(number: int) -> Written:
        try:
            return Written(is_done=True, has_file=convert(*later[number]) is not None)
        except BaseException:  # noqa: BLE001 - whatever it is, it is raised and recorded once more
            return Written()

    copy = Isolated(kind=Written, call=call, died=lambda *_: Written(), limit_s=later[0][0].contract.timeout_s)
    with copy.begun(range(len(later))) as records:
        names = [target.name for _, target in later]
        ended = zip(names, records(), strict=True)

        def converted(context: Context, target: Target) -> Path | None:
            if target.name not in names:
                return convert(context, target)
            # Both in the order of `later`, of which each is asked for once.
            written = next(each for name, each in ended if name == target.name)
            if not written.is_done:
                return convert(context, target)
            return context.folder / target.file_name if written.has_file else None

        yield converted


def decomposed(context: Context, target: Target) -> Any:
    """The program as the ONNX exporter decomposed it, whose node names are the file's value names.

    It is decomposed once more if a copy of the process converted it.
    """
    kept = context.kept
    if DECOMPOSED not in kept:
        program = context.exported.program
        kept[DECOMPOSED] = prepared(program.run_decompositions() if target.options.get("decompose") else program)
    return kept[DECOMPOSED]


def _is_worthwhile(context: Context) -> bool:
    weights = context.exported.program.state_dict.values()
    size = sum(weight.numel() * weight.element_size() for weight in weights if isinstance(weight, torch.Tensor))
    return CAN_FORK and len(os.sched_getaffinity(0)) > 1 and size <= MOST_BYTES
