"""The gate's own control inputs of one model as a file, and the plan that `by_hand.py` follows.

`gate_inputs.py CONFIG MODEL FOLDER` writes FOLDER/inputs.pt and FOLDER/plan.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from export_gate.config import load_config
from export_gate.wall.contract import Job
from export_gate.wall.observation import HygieneObservation
from export_gate.worker.controls.build import reference_sizes
from export_gate.worker.controls.specs import tensor_leaves
from export_gate.worker.model.factory import forward_parameters, load_factory
from export_gate.worker.process.channel import Channel
from export_gate.worker.process.stages import Desk
from export_gate.worker.study.subject import Subject
from export_gate.worker.study.trial import choose_trial


def main(config_path: Path, model: str, folder: Path) -> None:
    """Write both files."""
    config = load_config(config_path)
    contract = next(c for c in config.models if c.name == model)
    base = config_path.resolve().parent
    sys.path[:0] = config.pythonpath
    factory = load_factory(contract, base)
    module = factory()
    subject = Subject(
        contract=contract,
        factory=factory,
        module=module,
        parameters=forward_parameters(module),
        hygiene=HygieneObservation(),
    )
    job = Job(contract=contract, base=str(base), pythonpath=config.pythonpath, artifacts=str(folder))
    with (folder / "events").open("wb") as events:
        trial = choose_trial(job, subject, Desk(channel=Channel(descriptor=events.fileno()), roots=()))
    torch.save([case.make() for case in trial.cases], folder / "inputs.pt")
    sizes = reference_sizes(contract)
    axes = {n: {i: s.dim for i, s in enumerate(spec.shape) if s.dim} for n, spec in tensor_leaves(contract)}
    place = contract.factory.partition(":")[0]
    plan = {
        "inputs": str(folder / "inputs.pt"),
        "factory": contract.factory,
        "folder": str(
            base if place.endswith(".py") else Path(sys.modules[place].__file__ or "").parents[place.count(".")]
        ),
        "dims": {dim.name: (dim.min, dim.max) for dim in contract.dims},
        "axes": axes,
        "weights": sum(p.numel() * p.element_size() for p in module.parameters()),
        "example": next(i for i, case in enumerate(trial.cases) if case.sizes == sizes),
        "cases": len(trial.cases),
    }
    (folder / "plan.json").write_text(json.dumps(plan))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
