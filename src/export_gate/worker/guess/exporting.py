"""Turn guesses that run in eager into guesses that export too: sizes that torch.export fixes become constants."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from export_gate.worker.controls.build import reference_sizes
from export_gate.worker.export.program import export_program
from export_gate.worker.guess.bench import Bench, renewed
from export_gate.worker.guess.edits import fixed
from export_gate.worker.guess.outputs import FIRST, SECOND
from export_gate.worker.guess.tryout import FIXED, Trial, groups_to_fix, measured, sentence_of

SLOW_S = 5.0
"""A model whose forward takes longer is not exported here, in seconds."""


def try_export(bench: Bench, trial: Trial) -> Trial:
    """The trial with as many of its dims as torch.export takes, and a note on what it does not take."""
    if not trial.works or _is_slow(bench, trial):
        return trial
    problem = _problem(bench, trial)
    if not problem:
        return trial
    for names in groups_to_fix([dim.name for dim in trial.dims]):
        # The patience is spent on guesses by now, and what is fixed is measured anew.
        settled = _with_fixed(renewed(bench), trial, names)
        if settled is not None and not _problem(bench, settled):
            return replace(settled, notes=(*_fixed_notes(names), problem))
    return replace(
        trial, notes=("torch.export does not take the model yet, and `export-gate run` shows where:", problem)
    )


def _with_fixed(bench: Bench, trial: Trial, names: Sequence[str]) -> Trial | None:
    """The trial with constants for these dims; None if forward does not take them."""
    options = fixed(trial.options, {name: FIXED[name] for name in names})
    return measured(bench, options, trial.tried) if bench.runs(options, FIRST) and bench.runs(options, SECOND) else None


def _is_slow(bench: Bench, trial: Trial) -> bool:
    started = time.monotonic()
    bench.run(trial.options, FIRST)
    return time.monotonic() - started > SLOW_S


def _problem(bench: Bench, trial: Trial) -> str:
    """Why the export fails; empty if it does not."""
    contract = bench.contract(trial.options, trial.dims)
    call = bench.call(contract, reference_sizes(contract))
    try:
        export_program(bench.module, call, contract, bench.parameters, {})
    except Exception as error:  # noqa: BLE001 - whatever torch.export raises is the answer
        return sentence_of(error)
    return ""


def _fixed_notes(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{name} is fixed at {FIXED[name]}, since torch.export does not let it vary:" for name in names)
