"""Find out whether an output differs only where masks switch something off."""

from __future__ import annotations

from collections.abc import Sequence

from export_gate.wall.diagnosis import Inspection
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.model.factory import bind
from export_gate.worker.study.excuses import switched_off
from export_gate.worker.study.laboratory import attempt
from export_gate.worker.study.masks import Masks, unmasked
from export_gate.worker.study.trials import Bench, apart, array_of


def mask_trial(bench: Bench, masks: Masks, cases: Sequence[ControlCase], output: str) -> Inspection:
    """The masks, if every element that differs at these inputs is one that they switch off."""
    found = [_masks_at(bench, masks, case, output) for case in cases]
    names = dict.fromkeys(name for each in found for name in each)
    return Inspection(output=output, case=cases[0].name, masks=tuple(names) if all(found) else ())


def _masks_at(bench: Bench, masks: Masks, case: ControlCase, output: str) -> tuple[str, ...]:
    expected = array_of(attempt(lambda: bench.laboratory.again(case.make())), output)
    actual = array_of(attempt(lambda: bench.run(bind(case.make(), bench.laboratory.parameters))), output)
    if expected is None or actual is None or expected.shape != actual.shape:
        return ()
    found = switched_off(output, expected.shape, case, masks)
    if found is None or (apart(expected, actual, bench.tolerance(str(expected.dtype))) & ~found.dropped).any():
        return ()
    # An artifact that takes the mask in another way may differ there too, and does so where nothing is switched off.
    kept = unmasked(case.make(), masks)
    again = None if kept is None else bench.compared(lambda: kept, output)
    return () if again is None or bench.differs(again) else found.masks
