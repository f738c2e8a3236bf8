"""What `export-gate strength` prints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from export_gate.report.strength import require_answer, strength_json, strength_lines
from export_gate.wall.codec import encode
from export_gate.wall.errors import UserError
from export_gate.wall.observation import ModelObservation
from export_gate.wall.source import SourceLine
from export_gate.wall.strength import Catch, Mutant, Strength

CLIP = Mutant(
    kind="threshold",
    operator="Clip",
    node="node_clamp",
    change="0.5 + 1 ulp",
    outcome="survived",
    module="encoder.act",
    source=SourceLine(path="/work/model.py", line=12, text="return x.clamp(max=0.5)"),
    would_catch=(Catch(family="threshold-rows", caught=12, tried=33, case="threshold-rows-107@batch=3"),),
)
CAUGHT = replace(CLIP, kind="weight", operator="Gemm", outcome="caught", caught_by="normal-1", would_catch=())
FOUND = Strength(
    model="net",
    target="onnx",
    mutants=(CAUGHT, replace(CAUGHT, outcome="refused"), CLIP, replace(CLIP, outcome="equivalent", effect=0.4)),
    planned=10,
    controls=46,
    red=2,
    searched=400,
    families=("normal", "uniform"),
    seed=0,
    duration_s=1.5,
)
TEXT = """\
net, onnx: 66.7% caught, of 3 mutants at 46 control inputs

mutants         caught     refused    survived  equivalent
weight               1           1           0           0
threshold            0           0           1           1
all                  1           1           1           1

Survived: 1
  threshold: Clip node_clamp: 0.5 + 1 ulp
      in encoder.act, model.py:12 `return x.clamp(max=0.5)`
      threshold-rows (12 of 33: threshold-rows-107@batch=3)

Families that would have caught them: threshold-rows 1.
Not in the control set: threshold-rows. Allow them with `draws`, or return such inputs from `controls.function`.

Equivalent: none of 400 random inputs shows a difference that is not allowed; 1 of them change an output by less.
Refused mutants could not be loaded or run; they count as caught.
Not tried: 6 of 10 mutants.
2 control inputs cannot tell: the file itself differs from eager there."""


def test_the_table_names_survivors_and_what_is_left_open():
    """Every count that the share leaves out is printed."""
    assert "\n".join(strength_lines(FOUND, Path("/work"))) == TEXT


def test_families_of_the_control_set_need_more_draws():
    """They are in it already."""
    lines = strength_lines(replace(FOUND, families=("threshold-rows",)), Path("/work"))
    assert (
        "For more draws of the others raise `controls.random`; for other sizes name them in `controls.sizes`." in lines
    )
    assert not any(line.startswith("Not in the control set") for line in lines)


def test_equivalent_mutants_have_no_share():
    """What nothing tells apart is not caught and not missed."""
    none = replace(FOUND, mutants=FOUND.of("equivalent"))
    assert none.share is None
    assert strength_lines(none, Path())[0] == "net, onnx: none can be told apart, of 0 mutants at 46 control inputs"


def test_json_has_every_mutant_and_the_totals():
    """For scripts."""
    found = json.loads(strength_json(FOUND))
    assert found["share"] == pytest.approx(200 / 3)
    assert found["totals"] == {"caught": 1, "refused": 1, "survived": 1, "equivalent": 1}
    assert found["mutants"][2]["would_catch"][0]["family"] == "threshold-rows"


def test_no_file_and_a_red_file_are_the_users_to_mend():
    """Strength says nothing about them."""
    observed = ModelObservation(model="net")
    with pytest.raises(UserError, match="net, onnx: there is no file to plant faults in"):
        require_answer((), observed, "onnx")
    with pytest.raises(UserError, match="the file itself differs from eager at every control input"):
        require_answer((encode(replace(FOUND, controls=0)),), observed, "onnx")
    assert require_answer((encode(FOUND),), observed, "onnx") == FOUND
