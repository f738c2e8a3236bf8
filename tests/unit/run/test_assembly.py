"""The worker's events are assembled into observations."""

from __future__ import annotations

from export_gate.run.observe import Assembly
from export_gate.wall.protocol import Event


def assembled(*events: Event) -> Assembly:
    """The assembly after these events."""
    assembly = Assembly()
    for event in events:
        assembly.apply(event)
    return assembly


def test_a_look_back_at_an_earlier_stage_undoes_nothing():
    """A target that ran, and whose file is then checked again, has still run."""
    stages = ("convert", "load", "run", "guards", "load")
    at = [Event(op="at", model="m", target="onnx", field=stage) for stage in stages]
    (model,) = assembled(Event(op="set", model="m", field="affine", value=False), *at).observation().models
    assert model.targets[0].reached == "guards"


def test_a_stage_that_is_none_is_not_reached():
    """An event that names no stage does not change the furthest one."""
    at = [Event(op="at", model="m", field=stage) for stage in ("eager", "anything", "controls")]
    (model,) = assembled(*at).observation().models
    assert model.reached == "eager"
