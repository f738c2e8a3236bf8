"""Write `manifest.json` next to each model's artifacts: it names the verified files, which are those that may ship."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from export_gate.report.results import Results
from export_gate.wall.codec import encode
from export_gate.wall.observation import ModelObservation


def write_manifests(results: Results, folder: Path) -> None:
    """Write `artifacts/<model>/manifest.json` for every model that has artifacts there."""
    for model in results.run.models:
        place = folder / "artifacts" / model.model
        if place.is_dir():
            text = json.dumps(manifest(model, results), indent=1, sort_keys=True)
            (place / "manifest.json").write_text(text + "\n", encoding="utf-8")


def manifest(model: ModelObservation, results: Results) -> dict[str, Any]:
    """Digests of the verified files, with the contract and the environment of their verification."""
    environment = results.run.environment
    mine = [finding for finding in results.findings if finding.model == model.model]
    return {
        "export-gate": results.tool_version,
        "model": model.model,
        "revision": results.head,
        # The verdict as well: a problem, or a run that broke down, leaves no finding.
        "verified": not any(f.severity == "violation" or f.waiver for f in mine)
        and results.verdict in ("verified", "violations"),
        "waived": [f"{f.rule} until {f.waiver.until}: {f.waiver.reason}" for f in mine if f.waiver],
        "config-sha256": results.config_sha256,
        "controls-sha256": model.controls.sha256 if model.controls else None,
        "started": results.started,
        "reused": encode(model.reused) if model.reused else None,
        "environment": encode(environment) if environment else None,
        "artifacts": [
            {
                "target": target.target,
                "separate": target.separate,
                "path": target.artifact.path,
                "sha256": target.artifact.sha256,
                "size-bytes": target.artifact.size_bytes,
                "files": target.artifact.files,
            }
            for target in model.targets
            if target.artifact is not None
        ],
    }
