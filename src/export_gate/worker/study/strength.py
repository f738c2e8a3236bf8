"""Plant small faults in a verified ONNX file, and see which ones the model's own control set notices.

A mutant is caught where the check would be red: by the tolerances, masks and noise that judge the file itself. What
stays unnoticed goes through a search with random inputs: one that nothing tells apart is equivalent, any other is a
gap of the control set.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

from export_gate.wall.codec import encode
from export_gate.wall.contract import Job
from export_gate.wall.protocol import Event
from export_gate.wall.request import MeasureStrength, Observe
from export_gate.wall.strength import Mutant, Strength
from export_gate.worker.mutants.anatomy import Anatomy
from export_gate.worker.mutants.plan import plan_mutations
from export_gate.worker.nodes.file import FileGraph
from export_gate.worker.process.channel import Channel
from export_gate.worker.process.isolated import Isolated
from export_gate.worker.process.stages import Desk
from export_gate.worker.study.engine import observe_model
from export_gate.worker.study.exam import Judge
from export_gate.worker.study.handed_in import existing_artifact
from export_gate.worker.study.mutant_exam import Examiner
from export_gate.worker.study.questions import control_questions, search_questions, sizes_at_reference
from export_gate.worker.study.records import Study
from export_gate.worker.study.verify import Verification, comparable
from export_gate.worker.targets.onnx import load

LIMIT_S, LIMIT_FACTOR = 30.0, 10.0
"""For one mutant, which may loop: that long, and many times what the file itself took at all inputs."""


def measure_strength(question: MeasureStrength, job: Job, channel: Channel) -> None:
    """Observe the job's model, then send what its control set is worth on the main export's file."""
    observe_model(job, channel, each=partial(_measure, question), task=Observe(diagnosis=False))


def _measure(question: MeasureStrength, study: Study, work: Verification, desk: Desk) -> None:
    path = existing_artifact(work.target, work.base) or work.context.folder / work.target.file_name
    if work.target.name != question.target or work.separate or not path.is_file():
        return
    started = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        examiner, red = _examiner(question, study, work, path, desk)
    # By what `_examiner` took, which ran the file at all inputs.
    limit_s = LIMIT_S + LIMIT_FACTOR * (time.monotonic() - started)
    begun = time.monotonic()
    examiner = replace(examiner, deadline=begun + question.budget_s)
    asked = range(len(examiner.mutations))[: question.most]
    exam = Isolated(kind=Mutant, call=examiner.examine, died=examiner.died, limit_s=limit_s)
    tried = tuple(mutant for mutant in exam.each(asked) if mutant.outcome != "untried")
    found = Strength(
        model=study.contract.name,
        target=work.target.name,
        mutants=tried,
        planned=len(examiner.mutations),
        controls=len(examiner.controls),
        red=red,
        searched=len(examiner.searched),
        families=tuple(dict.fromkeys(each.case.family for each in examiner.controls)),
        seed=question.seed,
        duration_s=time.monotonic() - begun,
    )
    desk.channel.send(Event(op="answer", model=study.contract.name, value=encode(found)))


def _examiner(
    question: MeasureStrength, study: Study, work: Verification, path: Path, desk: Desk
) -> tuple[Examiner, int]:
    """What mutants are tried with, and how many control inputs are red for the file itself."""
    graph = FileGraph.read(path)
    anatomy = Anatomy.of(graph.model, path.parent)
    run = comparable(load(work.context, work.target, path), work.context.contract.outputs).run
    judge = Judge.of(work)
    controls, red = control_questions(work, judge, run)
    flops = study.trial.observation.case_flops
    sizes = sizes_at_reference(work, graph, anatomy, controls)
    examiner = Examiner(
        judge=judge,
        graph=graph,
        run=run,
        mutations=plan_mutations(anatomy, question.seed, sizes),
        controls=controls,
        searched=tuple(search_questions(work, run, flops, question.seed)),
        roots=desk.roots,
    )
    return examiner, red
