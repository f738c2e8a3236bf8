"""What a trial export says of the sizes at which its program was run."""

from __future__ import annotations

from typing import Any

import pytest

from export_gate.wall.contract import Dim
from export_gate.wall.diagnosis import ExportTrial
from export_gate.worker.study.trial_exports import _answer, _without_refused_ends

DIM = Dim(name="n", min=4, max=16, multiple_of=4)
TRIAL = ExportTrial(dim="n", declared={"multiple-of": 4})


@pytest.mark.parametrize(
    ("answers", "answer", "declared"),
    [
        ({4: "agrees", 8: "agrees"}, "exported", None),
        ({4: "refuses", 8: "agrees", 12: "agrees"}, "narrowed", {"multiple-of": 4, "min": 8}),
        ({4: "refuses", 8: "agrees", 12: "agrees", 16: "refuses"}, "narrowed", {"multiple-of": 4, "min": 8, "max": 12}),
        ({4: "agrees", 8: "refuses", 12: "agrees"}, "narrowed", None),
        ({4: "refuses", 8: "agrees", 12: "refuses"}, "narrowed", None),
        ({4: "refuses", 8: "agrees", 12: "differs"}, "differs", None),
        ({4: "refuses", 8: "refuses"}, "narrowed", None),
    ],
)
def test_a_program_that_refuses_an_end_is_tried_without_it(answers: Any, answer: str, declared: Any):
    """A refusal is no other result, and the sizes between the ends may be all that callers send."""
    assert _answer(answers) == answer
    shorter = _without_refused_ends(TRIAL, DIM, answers)
    assert (shorter and shorter.declared) == declared
