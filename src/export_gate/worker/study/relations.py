"""Find a relation that the contract does not declare, where eager refuses some inputs and takes others.

A relation is offered if every refused input breaks it and every accepted one keeps it. What the relation says for the
draws is then tried: eager must take inputs that keep it, at the sizes and of the kinds that it refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from export_gate.wall.observation import MissingRelation, PromiseBroken
from export_gate.wall.targets import LAYOUT_FAMILIES
from export_gate.worker.controls.generate import redrawn
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.leaves.values import flatten
from export_gate.worker.model.factory import bind
from export_gate.worker.model.reference import module_runner
from export_gate.worker.process.isolated import Isolated
from export_gate.worker.process.stages import Desk
from export_gate.worker.study.eager import Eager
from export_gate.worker.study.proposals import Facts, Proposal, proposals
from export_gate.worker.study.subject import Subject

TRIED = 12
"""Refused inputs that are drawn again as a relation has it."""
FEWEST_ACCEPTED, FEWEST_UNTRIED = 2, 4
"""Accepted inputs that must keep a relation: one that can be tried, and one that rests on them alone."""
MOST_PROPOSALS = 12
"""Relations to look at: each costs a copy of the process and some forwards."""
LIMIT_S = 20.0

EMBEDDINGS = (torch.nn.Embedding, torch.nn.EmbeddingBag)

Kind = tuple[str, str, int]
"""Class of the exception, and the project's line that raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """How eager ended at one input; empty if it returned."""

    raised: str = ""
    path: str = ""
    line: int = 0


def missing_relations(
    cases: Sequence[ControlCase], eager: Eager, subject: Subject, desk: Desk
) -> tuple[MissingRelation, ...]:
    """The relation of the most frequent refusal, if the inputs show one; none if eager takes all or none."""
    accepted = [case for case in cases if case.name in eager.references]
    refused = _refused(cases, eager.broken)
    if not refused or len(accepted) < FEWEST_ACCEPTED:
        return ()
    # One relation explains one kind of refusal.
    kind, _ = Counter(refused.values()).most_common(1)[0]
    failing = [case for case in cases if refused.get(case.name) == kind]
    weights = _tables(subject.module)
    facts = [_facts(case) for case in failing], [_facts(case) for case in accepted]
    for proposal in islice(proposals(subject.contract, weights, *facts), MOST_PROPOSALS):
        tried = _again(proposal, failing)
        if len(accepted) >= (FEWEST_ACCEPTED if tried else FEWEST_UNTRIED) and _all_taken(tried, kind, subject, desk):
            return (
                MissingRelation(
                    words=proposal.words,
                    declare=proposal.declare,
                    key=proposal.key,
                    refused=len(failing),
                    accepted=len(accepted),
                    tried=len(tried),
                ),
            )
    return ()


def _tables(module: torch.nn.Module) -> dict[str, tuple[int, ...]]:
    """Name -> shape of what may be read by position: embeddings, and tensors that the project made itself.

    Of a linear layer or a norm no length limits an index.
    """
    found: dict[str, tuple[int, ...]] = {}
    for path, part in module.named_modules():
        is_layer = type(part).__module__.startswith("torch.nn.") and not isinstance(part, EMBEDDINGS)
        own = (
            () if is_layer else (*part.named_parameters(path, recurse=False), *part.named_buffers(path, recurse=False))
        )
        found |= {name: tuple(tensor.shape) for name, tensor in own if tensor.dim()}
    return found


def _refused(cases: Sequence[ControlCase], broken: Sequence[PromiseBroken]) -> dict[str, Kind]:
    """The inputs at which eager raised, and how; an input of another memory layout is another matter."""
    families = {case.name: case.family for case in cases}
    return {
        promise.case: (promise.message.partition(":")[0], promise.source.path, promise.source.line)
        for promise in broken
        if promise.source is not None and families.get(promise.case) not in LAYOUT_FAMILIES
    }


def _facts(case: ControlCase) -> Facts:
    values = {leaf.name: np.asarray(leaf.value) for leaf in flatten(case.make()) if leaf.value is not None}
    return Facts(sizes=case.sizes, values=values)


def _again(proposal: Proposal, failing: Sequence[ControlCase]) -> tuple[ControlCase, ...]:
    """Refused inputs drawn again as the contract would have them; none if it cannot say the relation."""
    if proposal.contract is None:
        return ()
    generated = [case for case in failing if case.group == "generated"]
    places = [(case, sizes) for case in generated for sizes in proposal.sizes or (case.sizes,)]
    return tuple(redrawn(proposal.contract, case, sizes) for case, sizes in places[:TRIED])


def _all_taken(tried: Sequence[ControlCase], kind: Kind, subject: Subject, desk: Desk) -> bool:
    run = module_runner(subject.twin(), {})

    def call(case: ControlCase) -> Said:
        try:
            run(bind(case.make(), subject.parameters))
        except BaseException as error:  # noqa: BLE001 - whatever forward raises
            failure = desk.failure(error, "eager")
            source = failure.source
            return Said(raised=failure.type, path=source.path if source else "", line=source.line if source else 0)
        return Said()

    answers = Isolated(kind=Said, call=call, died=lambda *_: Said(raised="died"), limit_s=LIMIT_S).each(tried)
    # Another refusal may have another reason; this one must be gone.
    return all((said.raised, said.path, said.line) != kind and said.raised != "died" for said in answers)
