"""Images that forward itself scales from 0..255: their range, and bytes where it casts them."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace

from torch import nn

from export_gate.worker.guess.bench import Bench
from export_gate.worker.guess.edits import leaves_of, put
from export_gate.worker.guess.layers import UNIT
from export_gate.worker.guess.tryout import Trial, measured

SCALES = re.compile(r"\b255\b")
CASTS = re.compile(r"\.(float|half|double|type|to)\(")
IMAGE_AXES = 4
BYTES = (0.0, 255.0)


def as_stored(bench: Bench, trial: Trial) -> Trial:
    """The trial with images of 0 to 255 where forward divides by 255; the same trial otherwise."""
    source = _source(bench.module)
    images = {
        path: spec
        for path, spec in leaves_of(trial.options).items()
        if spec.range == UNIT and len(spec.shape) >= IMAGE_AXES
    }
    if not trial.works or not images or not SCALES.search(source):
        return trial
    options = trial.options
    for path, spec in images.items():
        # Without a cast, bytes would reach a layer that wants floats.
        dtype = "uint8" if CASTS.search(source) else spec.dtype
        options = put(options, path, replace(spec, dtype=dtype, range=BYTES), "forward scales it by 255")
    return trial if bench.problem(options) else measured(bench, options, trial.tried)


def _source(module: nn.Module) -> str:
    try:
        return inspect.getsource(type(module).forward)
    except (OSError, TypeError):
        return ""
