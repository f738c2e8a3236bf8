"""Describe a contract as string properties, for artifacts that carry it with them."""

from __future__ import annotations

import json

import torch

from export_gate import __version__
from export_gate.wall.codec import encode
from export_gate.wall.contract import ModelContract, Size, Tolerance
from export_gate.worker.controls.specs import tensor_leaves


def contract_metadata(contract: ModelContract, controls_sha256: str) -> dict[str, str]:
    """The contract as string properties, for artifacts that cannot enforce it themselves."""
    dims = {dim.name: {"min": dim.min, "max": dim.max, "multiple-of": dim.multiple_of} for dim in contract.dims}
    inputs = {
        spec.name or name: {
            "dtype": spec.dtype,
            "shape": [str(size) for size in spec.shape],
            "range": [str(b) if isinstance(b, Size) else b for b in spec.range] if spec.range else None,
            "values": spec.values,
            "nonfinite": spec.nonfinite,
            **({"order": spec.order} if spec.order else {}),
        }
        for name, spec in tensor_leaves(contract)
    }
    tolerances: dict[str, Tolerance] = {target.name: target.tolerance for target in contract.targets}
    return {
        "export_gate.version": __version__,
        "export_gate.model": contract.name,
        "export_gate.dims": _json(dims),
        "export_gate.inputs": _json(inputs),
        "export_gate.tolerance": _json({**tolerances, "model": contract.tolerance}),
        "export_gate.controls_sha256": controls_sha256,
        "export_gate.torch": torch.__version__,
    }


def _json(value: object) -> str:
    return json.dumps(encode(value), sort_keys=True)
