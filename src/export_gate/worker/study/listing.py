"""Answers that stop before the check: the control set listed, one input shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from export_gate.wall.contract import Job
from export_gate.wall.protocol import Event
from export_gate.wall.request import ListControls
from export_gate.worker.controls.files import save_arrays
from export_gate.worker.controls.made import with_makers
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.leaves.values import to_numpy
from export_gate.worker.process.channel import Channel
from export_gate.worker.process.stages import at_desk
from export_gate.worker.study.engine import load_subject
from export_gate.worker.study.tables import with_table_ranges
from export_gate.worker.study.trial import Trial, choose_trial, matching

ELEMENTS_SHOWN = 64


def list_controls(question: ListControls, job: Job, channel: Channel) -> None:
    """Send the control set; with `show`, one input's values too, written to `save` where given."""
    with at_desk(job, channel) as desk:
        job = replace(job, contract=with_makers(job.contract, Path(job.base)))
        subject = load_subject(job.contract, Path(job.base), desk)
        if subject is None:
            return
        with desk.stage("controls"):
            subject, notes = with_table_ranges(subject, desk)
            trial = choose_trial(replace(job, contract=subject.contract), subject, desk, notes)
            channel.set("controls", trial.observation)
            if question.show is not None:
                _show(trial, question.show, question.save, channel)


def _show(trial: Trial, name: str, save: str | None, channel: Channel) -> None:
    case = matching(trial.cases, (name,))[0]
    arrays = {name: array for name, value in case.make().items() for name, array in _arrays(name, value)}
    if save is not None:
        # Constants are objects here, and not inputs in a file.
        save_arrays(Path(save), {name: array for name, array in arrays.items() if array.dtype != object})
    channel.send(Event(op="answer", model=channel.model, value=_texts(case, arrays)))


def _texts(case: ControlCase, arrays: dict[str, Any]) -> dict[str, Any]:
    with np.printoptions(threshold=ELEMENTS_SHOWN, edgeitems=3, linewidth=100):
        return {
            "name": case.name,
            "inputs": {
                name: {"dtype": str(array.dtype), "shape": list(array.shape), "text": str(array)}
                for name, array in arrays.items()
            },
        }


def _arrays(name: str, value: Any) -> list[tuple[str, Any]]:
    """Tensor leaves of one input as arrays, constants as 0-d object arrays."""
    if isinstance(value, torch.Tensor):
        return [(name, to_numpy(value))]
    if isinstance(value, dict):
        return [pair for key, item in value.items() for pair in _arrays(f"{name}.{key}", item)]
    if isinstance(value, (list, tuple)):
        return [pair for index, item in enumerate(value) for pair in _arrays(f"{name}.{index}", item)]
    return [(name, np.asarray(value, dtype=object))]
