"""Whether eager's answer depends on its surroundings: one input, in copies of the process that each have others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from export_gate.wall.observation import AmbientEffect, Surrounding
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.specs import total_elements
from export_gate.worker.model.reference import module_runner
from export_gate.worker.model.surroundings import CHANGES
from export_gate.worker.process.children import CAN_FORK
from export_gate.worker.process.failures import describe
from export_gate.worker.process.isolated import Isolated
from export_gate.worker.study.chance import Said, differences, said_of
from export_gate.worker.study.subject import Subject

LIMIT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer of one copy."""

    said: Said = field(default_factory=Said)
    raised: str = ""
    ended: bool = False
    """The copy died."""


def observe_ambience(cases: Sequence[ControlCase], subject: Subject) -> tuple[AmbientEffect, ...]:
    """What changes eager's answer at the smallest input; nothing if there is no fork, or eager refuses the input.

    Each copy is of the process as it is now, so that no call affects another.
    """
    case = _smallest(cases, subject)
    if not CAN_FORK or case is None:
        return ()
    together: tuple[Surrounding, ...] = tuple(CHANGES)
    # Together first: mostly nothing changes, which saves a copy for each.
    plain, all_changed = _replies(subject, case, [(), together])
    if plain.ended or plain.raised or not _is_other(plain, all_changed):
        return ()
    apart = _replies(subject, case, [(what,) for what in CHANGES])
    return tuple(
        AmbientEffect(
            surrounding=what, case=case.name, outputs=differences(plain.said, reply.said), raised=reply.raised
        )
        for what, reply in zip(CHANGES, apart, strict=True)
        if _is_other(plain, reply)
    )


def _smallest(cases: Sequence[ControlCase], subject: Subject) -> ControlCase | None:
    """The smallest generated input with elements, else the first one."""
    counts = [(total_elements(subject.contract, case.sizes), case) for case in cases]
    sized = [(count, case) for count, case in counts if count and case.group == "generated"]
    return min(sized, key=lambda pair: pair[0])[1] if sized else next(iter(cases), None)


def _replies(subject: Subject, case: ControlCase, changes: Sequence[tuple[Surrounding, ...]]) -> list[Reply]:
    """The answers of copies with these surroundings changed, which work at the same time."""
    copies = _copies(subject, case)
    with ExitStack() as stack:
        begun = [stack.enter_context(copies.begun([some])) for some in changes]
        return [next(answers()) for answers in begun]


def _is_other(plain: Reply, reply: Reply) -> bool:
    return not reply.ended and (bool(reply.raised) or bool(differences(plain.said, reply.said)))


def _copies(subject: Subject, case: ControlCase) -> Isolated[tuple[Surrounding, ...], Reply]:
    run = module_runner(subject.module, {})

    def call(changed: tuple[Surrounding, ...]) -> Reply:
        for what in changed:
            CHANGES[what](subject.contract.env)
        try:
            return Reply(said=said_of(run(subject.call(case))))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever forward raises
            return Reply(raised=f"{type(error).__name__}: {describe(error)}")

    return Isolated(kind=Reply, call=call, died=lambda *_: Reply(ended=True), limit_s=LIMIT_S)
