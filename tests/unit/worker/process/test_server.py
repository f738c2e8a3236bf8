"""How the worker follows its children, and what it does without fork."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from harness.preloaded import fresh_workers

from export_gate.rules import worker_died
from export_gate.rules.measure import measure
from export_gate.run import launch
from export_gate.run.observe import observe
from export_gate.wall.contract import Job, ModelContract, Size, TensorSpec, make_target
from export_gate.wall.errors import GateError, UserError
from export_gate.wall.protocol import Event, event_line
from export_gate.wall.request import PROTOCOL, Request
from export_gate.worker.process import children
from export_gate.worker.process.channel import Channel
from export_gate.worker.process.children import Child, bound_log, remaining_lines
from export_gate.worker.process.server import Attempt, relay

FAULTS = Path(__file__).parents[3] / "models" / "faults"
MAIN = launch.WORKER
WITHOUT_FORK = f"""
import runpy, sys
runpy.run_path({str(MAIN)!r}, run_name="entry")["load_package"]()
from export_gate.worker.process import children
children.CAN_FORK = False
from export_gate.worker import tasks
sys.exit(tasks.main(sys.argv[1:]))
"""
TOKEN = b"token "


def job(name: str, factory: str, folder: Path) -> Job:
    """A job on one of the faulty models."""
    contract = ModelContract(
        name=name,
        factory=factory,
        inputs={"x": TensorSpec(dtype="float32", shape=(Size(offset=3), Size(offset=2)), range=(0.0, 1.0))},
        targets=(make_target("exported-program"), make_target("pt2")),
    )
    return Job(contract=contract, base=str(FAULTS), pythonpath=(str(FAULTS),), artifacts=str(folder / name))


def request(folder: Path, *jobs: Job, protocol: int = PROTOCOL) -> Request:
    """All jobs at once."""
    return Request(protocol=protocol, jobs=jobs, parallel=2, log_folder=str(folder / "logs"))


@pytest.mark.slow
def test_without_fork_each_model_gets_a_fresh_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As on macOS and Windows, sound models are verified next to one that crashes and one that exits silently."""
    entry = tmp_path / "entry.py"
    entry.write_text(WITHOUT_FORK)
    monkeypatch.setattr(launch, "WORKER", entry)
    jobs = (
        job("sound", "healthy:make", tmp_path),
        job("crash", "in_forward:make_segfault", tmp_path),
        job("silent", "in_forward:make_exit", tmp_path),
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_TEST_MARKER": str(tmp_path)}
    seen = observe(request(tmp_path, *jobs), Path(sys.executable), environment).run
    models = {model.model: model for model in seen.models}
    assert seen.environment is not None
    sound = models["sound"]
    assert (sound.problem, sound.failure) == (None, None)
    assert [(target.target, bool(target.cases)) for target in sound.targets] == [
        ("exported-program", True),
        ("pt2", True),
    ]
    ends = {name: failure.type for name, model in models.items() if (failure := model.failure)}
    assert ends == {"crash": "SIGSEGV", "silent": "exit 0"}
    assert (tmp_path / "logs" / "crash.log").exists()


@pytest.mark.slow
def test_fault_of_the_gate_itself_is_called_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An exception in the gate's own code is never mistaken for the model's exit, and is never green."""
    entry = tmp_path / "entry.py"
    broken = "from export_gate.worker import tasks; tasks.work_for = lambda _: lambda *_: 1 / 0"
    entry.write_text(WITHOUT_FORK.replace("children.CAN_FORK = False", broken))
    monkeypatch.setattr(launch, "WORKER", entry)
    asked = request(tmp_path, job("m", "healthy:make", tmp_path))
    (seen,) = observe(asked, Path(sys.executable), dict(os.environ)).run.models
    assert seen.failure is not None
    assert (seen.failure.kind, seen.failure.type) == ("died", "an error of export-gate itself")
    assert seen.failure.trace.rstrip().endswith("ZeroDivisionError: division by zero")
    (found,) = worker_died.RULE.check(measure(asked.jobs[0].contract, seen))
    assert found.message == "m: the worker died with an error of export-gate itself in stage model"
    assert found.hint == (
        "This is a bug in export-gate: please report it with the traceback in the details. The model is not verified."
    )


@pytest.mark.slow
def test_other_protocol_is_refused(tmp_path: Path):
    """A worker of another version says so."""
    with fresh_workers(), pytest.raises(UserError) as raised:
        observe(request(tmp_path, protocol=99), Path(sys.executable), dict(os.environ))
    assert str(raised.value) == f"the worker speaks protocol {PROTOCOL}, the driver 99: reinstall export-gate"


def test_worker_that_dies_is_the_gates_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """If a worker breaks down under a sound Python, there is no verdict, and its output is shown."""
    entry = tmp_path / "entry.py"
    entry.write_text("import sys; sys.stdin.readline(); sys.exit('out of luck')")
    monkeypatch.setattr(launch, "WORKER", entry)
    with pytest.raises(GateError) as raised:
        observe(request(tmp_path), Path(sys.executable), dict(os.environ))
    assert str(raised.value) == (
        f"the worker under {sys.executable} broke down (exit status 1); it printed:\nout of luck"
    )


def test_worker_that_dies_before_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A request that nobody reads is not an error by itself: the worker's end is reported."""
    entry = tmp_path / "entry.py"
    entry.write_text("import os; os.kill(os.getpid(), 9)")
    monkeypatch.setattr(launch, "WORKER", entry)
    large = replace_log_folder(request(tmp_path), "x" * 1_000_000)
    with pytest.raises(GateError) as raised:
        observe(large, Path(sys.executable), dict(os.environ))
    assert str(raised.value).startswith(f"the worker under {sys.executable} broke down (killed by signal 9)")


def replace_log_folder(request: Request, folder: str) -> Request:
    """A request too large for a pipe."""
    return Request(protocol=request.protocol, jobs=request.jobs, parallel=1, log_folder=folder)


def attempt_and_sink(tmp_path: Path) -> tuple[Attempt, Channel, int]:
    """An attempt at a model `m`, and where its events go."""
    reader, writer = os.pipe()
    child = Child(pid=0, descriptor=-1, log=tmp_path / "log")
    attempt = Attempt(job=job("m", "m:f", tmp_path), child=child, token=TOKEN, deadline=0.0)
    return attempt, Channel(descriptor=writer), reader


def numbered(number: int, event: Event) -> bytes:
    """A line as a child writes it."""
    return TOKEN + b"%d " % number + event_line(event)


def test_lost_events_are_counted(tmp_path: Path):
    """Every missing number counts, wherever it is missing."""
    attempt, channel, reader = attempt_and_sink(tmp_path)
    for number in (1, 2, 5):
        relay(
            attempt,
            numbered(number, Event(op="at", model="m", target="onnx", field="run", value=f"c{number}")),
            channel,
        )
    relay(attempt, b"junk\n", channel)
    relay(attempt, numbered(6, Event(op="ended", model="m")), channel)
    assert (attempt.lost, attempt.received, attempt.finished) == (3, 7, True)
    assert (attempt.stage, attempt.target, attempt.case, attempt.done) == ("run", "onnx", "c5", {"onnx"})
    assert os.read(reader, 65536).count(b"\n") == 3


@pytest.mark.parametrize("numbers", [(0, 0), (0, 1, 0, 2), (0, 1, 1, 2, 3)])
def test_repeated_events_are_damage(tmp_path: Path, numbers: tuple[int, ...]):
    """An event that is repeated or out of order is not passed on, and the model is not verified."""
    attempt, channel, reader = attempt_and_sink(tmp_path)
    for number in numbers:
        relay(attempt, numbered(number, Event(op="set", model="m", field="x", value=number)), channel)
    os.close(channel.descriptor)
    assert attempt.lost == 1
    assert os.read(reader, 65536).count(b"\n") == len(numbers) - 1


def test_a_log_that_grows_without_end_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of a log above the limit, the end is kept, and what comes later is added to it."""
    monkeypatch.setattr(children, "LOG_LIMIT_BYTES", 3 << 20)
    child = Child(pid=0, descriptor=-1, log=tmp_path / "log")
    with child.log.open("ab", buffering=0) as stream:
        stream.write(b"x" * (3 << 20))
        bound_log(child)
        assert child.log.stat().st_size == 3 << 20
        stream.write(b"the last words\n")
        bound_log(child)
        stream.write(b"and more\n")
    text = child.log.read_text()
    assert text.startswith("[export-gate cut this log at 3 MiB; its end:]\nxxx")
    assert text.endswith("xxxthe last words\nand more\n")
    assert len(text) < 70_000


@pytest.mark.slow
def test_a_worker_that_hangs_while_it_imports_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The worker has limited time before its first event; then exit 2 with a command that shows where it hangs."""
    entry = tmp_path / "entry.py"
    entry.write_text("import time; time.sleep(3600)")
    monkeypatch.setattr(launch, "WORKER", entry)
    monkeypatch.setattr(launch, "START_S", 1.0)
    with pytest.raises(UserError) as raised:
        observe(request(tmp_path), Path(sys.executable), dict(os.environ))
    python = sys.executable
    assert str(raised.value) == (
        f"{python} (the project's interpreter) did not import torch and its dependencies within 1 s"
    )
    assert raised.value.hint == (
        f'find out where it hangs: `{python} -X faulthandler -c "import torch, torch.export, torch.onnx"`'
    )


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([0, 2], "the worker's events were damaged: expected number 1, got 2"),
        ([0, 1, 1], "the worker's events were damaged: expected number 2, got 1"),
        ([7], "the worker's events were damaged: expected number 0, got 7"),
    ],
)
def test_a_fact_that_is_lost_or_put_in_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[int], message: str
):
    """Between worker and driver each fact comes once and in order, or there is no verdict; other output is harmless."""
    entry = tmp_path / "entry.py"
    said = [f'{number} {{"op":"at","model":"m","field":"eager"}}' for number in lines]
    entry.write_text(f"print('hello'); print({chr(10).join(said)!r}, flush=True)")
    monkeypatch.setattr(launch, "WORKER", entry)
    with pytest.raises(GateError) as raised:
        observe(request(tmp_path), Path(sys.executable), dict(os.environ))
    assert str(raised.value) == message


def test_a_model_that_nobody_told_the_end_of_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A worker that ends well but leaves out a model's end has not reported what was observed."""
    entry = tmp_path / "entry.py"
    entry.write_text("""print('0 {"op":"started","model":"m","value":99999999}')""")
    monkeypatch.setattr(launch, "WORKER", entry)
    with pytest.raises(GateError) as raised:
        observe(request(tmp_path), Path(sys.executable), dict(os.environ))
    assert str(raised.value) == "the worker ended without a report on m"


def test_events_of_another_model_are_dropped(tmp_path: Path):
    """A child speaks only for its own model, and the server alone reports its end."""
    attempt, channel, reader = attempt_and_sink(tmp_path)
    relay(attempt, numbered(0, Event(op="set", model="other", field="failure")), channel)
    relay(attempt, numbered(1, Event(op="ended", model="m")), channel)
    os.close(channel.descriptor)
    assert os.read(reader, 65536) == b""


def test_endless_writer_does_not_keep_an_ended_child(tmp_path: Path):
    """A daemon that floods the pipe of an ended child is read for a while, but not for ever."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    pid = os.fork()
    if pid == 0:
        while True:
            os.write(writer, b"x\n" * 30_000)
    started = time.monotonic()
    try:
        lines = remaining_lines(Child(pid=pid, descriptor=reader, log=tmp_path / "log"))
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(writer)
    assert time.monotonic() - started < 30
    assert len(lines) <= 1 << 19
