"""A project with one verified model, and the cache that keeps its verdict; nothing of it runs."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import report_samples as samples

from export_gate.cache.folder import CacheFolder
from export_gate.cache.keep import Verdict, keep
from export_gate.cache.recall import Recalled, recall
from export_gate.cache.scene import Scene, make_scene
from export_gate.rules.base import Finding
from export_gate.rules.judge import Terms
from export_gate.wall.contract import Job, ModelContract
from export_gate.wall.dependencies import Dependencies
from export_gate.wall.digest import digest_file
from export_gate.wall.observation import Artifact, ModelObservation

DAY = "2026-11-30"
ENVIRONMENT = {"PATH": "/usr/bin", "HOME": "/home/user", "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}


@dataclass
class World:
    """The project's folder, the cache's and the report's."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: dict(ENVIRONMENT))
    contract: ModelContract = field(default_factory=lambda: samples.contract("m"))
    day: str = DAY
    place: CacheFolder = field(init=False)

    def __post_init__(self) -> None:
        self.place = CacheFolder(path=self.root.parent / "cache")
        files = {
            "export-gate.yml": "version: 1",
            "model.py": "import helper",
            "helper.py": "import deeper",
            "deeper.py": "",
            "data/a.npy": "a",
            "data/b.npy": "b",
            "venv/bin/python": "elf",
            "venv/pyvenv.cfg": "version = 3.11.7",
            "venv/site-packages/torch-2.13.0.dist-info/RECORD": "torch/__init__.py,sha256=1,2\n",
            "venv/site-packages/torch/__init__.py": "",
            "venv/site-packages/setup.pth": "import torch",
            "venv/site-packages/loose.py": "",
        }
        for name, text in files.items():
            self.write(name, text)
        (self.root / ".git").mkdir()
        (self.root / "link.bin").symlink_to("data/a.npy")

    def write(self, name: str, text: str) -> Path:
        """A file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    @property
    def report(self) -> Path:
        """The report folder."""
        return self.root / ".export-gate"

    @property
    def job(self) -> Job:
        """As the plan has it."""
        artifacts = str(self.report / "artifacts" / "m")
        return Job(contract=self.contract, base=str(self.root), pythonpath=(str(self.root),), artifacts=artifacts)

    @property
    def scene(self) -> Scene:
        """The present, looked at anew."""
        python = self.root / "venv" / "bin" / "python"
        return make_scene(self.place, self.root / "export-gate.yml", python, self.environment, self.day)

    def dependencies(self, **changes: Any) -> Dependencies:
        """What the model's process read."""
        names = ("model.py", "helper.py", "deeper.py", "data/a.npy", "link.bin", "missing.json", "venv/pyvenv.cfg")
        found = Dependencies(
            model="m",
            files=tuple(str(self.root / name) for name in names),
            missing=(str(self.root / "missing.json"),),
            folders=(str(self.root / "data"),),
            variables=("CKPT", "HOME"),
            modules=("model", "helper", "deeper", "torch", "speedups"),
            path=(str(self.root), str(self.root / "src")),
            sites={str(self.root / "venv" / "site-packages"): ("torch", "loose.py")},
        )
        return replace(found, **changes)

    def observation(self) -> ModelObservation:
        """Three targets in agreement, one of them with a file, which is written."""
        path = self.write(".export-gate/artifacts/m/model.onnx", "onnx")
        name, digest = "artifacts/m/model.onnx", digest_file(path)
        artifact = Artifact(path=name, sha256=digest, size_bytes=4, files={name: digest})
        *others, last = samples.all_fine()
        return samples.model("m", (*others, replace(last, artifact=artifact)), files=("model.py", "helper.py"))

    def keep(
        self, *findings: Finding, started_ns: int | None = None, scene: Scene | None = None, **changes: Any
    ) -> str:
        """Keep the verdict; why it cannot be."""
        verdict = Verdict(
            job=self.job,
            environment=samples.ENVIRONMENT,
            observation=self.observation(),
            findings=findings,
            dependencies=self.dependencies(**changes),
            commit="1a2b3c4d5e6f7a8b9c0d1a2b3c4d5e6f7a8b9c0d",
            report=self.report,
            started_ns=time.time_ns() + 10**9 if started_ns is None else started_ns,
        )
        return keep(scene or self.scene, verdict).why_not

    def recalled(self, terms: Terms | None = None) -> Recalled:
        """What a run now recalls."""
        (self.report / "artifacts" / "m" / "model.onnx").unlink(missing_ok=True)
        return recall(self.scene, (self.job,), self.report, terms or Terms(today=self.day))

    def holds(self) -> bool:
        """Whether the verdict is reused, with its artifact."""
        found = self.recalled()
        if found.models:
            assert (self.report / "artifacts" / "m" / "model.onnx").read_text() == "onnx"
        return bool(found.models)

    def files(self, kind: str) -> list[Path]:
        """The cache's files below `entries` or `objects`."""
        return sorted(path for path in (self.place.path / kind).glob("*/*") if not path.is_dir())


def touched_back(path: Path, text: str) -> None:
    """Write a file and give it back the time that it had: its size is that of the text."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
