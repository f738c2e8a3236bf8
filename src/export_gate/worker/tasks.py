"""What a model's process does for each kind of request."""

from __future__ import annotations

from export_gate.wall.contract import Job, Request
from export_gate.worker.process.channel import Channel


def work(job: Job, request: Request, channel: Channel) -> None:
    """Do what the request asks for one job."""
    match request.action:
        case "observe":
            from export_gate.worker.study.engine import observe_model

            observe_model(job, channel)
        case "controls":
            from export_gate.worker.study.listing import list_controls

            list_controls(job, request, channel)
        case "describe":
            from export_gate.worker.guess.describe import describe_forward

            describe_forward(job, channel)
        case "kit":
            from export_gate.worker.study.kit_data import write_data

            write_data(job, request, channel)
