"""The identity of what a verdict is about."""

from __future__ import annotations

import json

from export_gate.cache.circumstances import digest_of
from export_gate.cache.present import Present
from export_gate.wall.codec import encode
from export_gate.wall.contract import Job


def contract_digest(job: Job, present: Present) -> str:
    """A digest of the contract with the selected targets, and of where its code is searched for."""
    folders = [present.named(folder) for folder in job.pythonpath]
    return digest_of([json.dumps([encode(job.contract), folders], sort_keys=True)])
