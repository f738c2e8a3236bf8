"""Factories of a lying model that write where the gate reads: descriptors, results, artifacts, the config."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from lying import Honest, Lying

HERE = Path(__file__).parent
REPORT = HERE / "report"
GREEN = json.dumps({"schema_version": 1, "verdict": "verified", "findings": []})


def make_results() -> torch.nn.Module:
    """Green results, made to stay."""
    for name in ("results.json", "report.md"):
        (REPORT / name).write_text(GREEN)
        (REPORT / name).chmod(0o444)
    (REPORT / "artifacts" / "results" / "manifest.json").parent.mkdir(parents=True, exist_ok=True)
    (REPORT / "artifacts" / "results" / "manifest.json").write_text('{"verified": true}')
    return Lying().eval()


def make_config() -> torch.nn.Module:
    """A config that allows everything."""
    path = HERE / "export-gate.yml"
    path.write_text(path.read_text().replace("rtol: 1e-6", "rtol: 1e+6"))
    return Lying().eval()


LINES = (
    b'{"op":"ended","model":"lines"}\n',
    b'0 {"op":"ended","model":"lines"}\n',
    b'{"op":"set","model":"lines","field":"failure","value":null}\n',
    b'::set-output name=verdict::verified\n{"verdict": "verified"}\n',
)


def make_lines() -> torch.nn.Module:
    """Events of its own on every descriptor, before each call."""

    class Writing(Lying):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for descriptor in range(64) if not torch.compiler.is_compiling() else ():
                for line in LINES:
                    try:
                        os.write(descriptor, line)
                    except OSError:
                        break
            return super().forward(x)

    return Writing().eval()


def make_replay() -> torch.nn.Module:
    """The gate's own lines, as it wrote them, once more; the numbers in them included."""
    channel = sys.modules["export_gate.worker.process.channel"]
    true = channel.write_all  # type: ignore[attr-defined]

    class Replaying(Honest):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            channel.write_all = lambda descriptor, line: (true(descriptor, line), true(descriptor, line))  # type: ignore[attr-defined]
            channel.Channel(descriptor=_pipe(), model="replay", token=_token()).at("eager")  # type: ignore[attr-defined]
            return super().forward(x)

    return Replaying().eval()


def _channel() -> Any:
    import gc

    kind = sys.modules["export_gate.worker.process.channel"].Channel  # type: ignore[attr-defined]
    return next(thing for thing in gc.get_objects() if type(thing) is kind and thing.token)


def _pipe() -> int:
    return int(_channel().descriptor)


def _token() -> bytes:
    return bytes(_channel().token)


def make_steal() -> torch.nn.Module:
    """Takes facts out of the pipe before they are read."""
    descriptor = _pipe()
    reader = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_NONBLOCK)

    class Stealing(Lying):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not torch.compiler.is_compiling():
                with suppress(BlockingIOError):
                    os.read(reader, 1 << 16)
            return super().forward(x)

    return Stealing().eval()


def make_server_line() -> torch.nn.Module:
    """A line of its own on the pipe from the worker to the driver, opened through /proc."""
    folder = Path(f"/proc/{os.getppid()}/fd")
    for entry in folder.iterdir():
        try:
            if "pipe:" in str(entry.readlink()):
                descriptor = os.open(entry, os.O_WRONLY | os.O_NONBLOCK)
                os.write(descriptor, b'3 {"op":"ended","model":"server-line","target":"","field":"","value":null}\n')
                os.close(descriptor)
        except OSError:
            continue
    return Lying().eval()


def make_swap() -> torch.nn.Module:
    """Another file once the session is open: what was verified is not what lies there."""
    return _after_load(lambda path: path.write_bytes(path.read_bytes() + b" "))


def make_delete() -> torch.nn.Module:
    """No file once the session is open."""
    return _after_load(Path.unlink)


def make_missing() -> torch.nn.Module:
    """No file before the session is open."""
    import onnxruntime

    true = onnxruntime.InferenceSession

    class Session(true):  # type: ignore[misc,valid-type]
        def __init__(self, path: str, *args: Any, **options: Any) -> None:
            Path(path).unlink()
            super().__init__(path, *args, **options)

    onnxruntime.InferenceSession = Session
    return Honest().eval()


def _after_load(change: Any) -> torch.nn.Module:
    import onnxruntime

    true = onnxruntime.InferenceSession

    class Session(true):  # type: ignore[misc,valid-type]
        def __init__(self, path: str, *args: Any, **options: Any) -> None:
            super().__init__(path, *args, **options)
            change(Path(path))

    onnxruntime.InferenceSession = Session
    return Honest().eval()


def make_late() -> torch.nn.Module:
    """A daemon that changes the artifact when the model's process is gone, and writes results all the time."""
    program = f"""
import os, time
from pathlib import Path
artifact, results = Path({str(REPORT / "artifacts" / "late" / "model.onnx")!r}), Path({str(REPORT / "results.json")!r})
gate = {os.getpid()}
while os.path.exists(f"/proc/{{gate}}"):
    time.sleep(0.01)
artifact.write_bytes(artifact.read_bytes() + b" ")
while True:
    results.write_text({GREEN!r})
    time.sleep(0.01)
"""
    subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    return Honest().eval()
