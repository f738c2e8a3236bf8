"""Calls in forked copies: however a copy ends is an answer, and the others continue."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from export_gate.worker.process import isolated
from export_gate.worker.process.isolated import Isolated

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An answer."""

    text: str
    pid: int = 0


Action = Callable[[], object]


def ask(*actions: Action) -> list[str]:
    """What each action says, or how it ended."""
    runner = Isolated(
        kind=Said,
        call=lambda action: Said(text=str(action()), pid=os.getpid()),
        died=lambda _, ending: Said(text=f"died: {ending}"),
    )
    return [said.text for said in runner.each(actions)]


def segfault() -> None:
    """Read address 0."""
    ctypes.string_at(0)


def say(text: str) -> Action:
    """A call that works."""
    return lambda: text


@pytest.mark.parametrize(
    ("deadly", "ending"),
    [
        (segfault, "SIGSEGV"),
        (os.abort, "SIGABRT"),
        (lambda: os._exit(0), "exit 0"),
        (lambda: os._exit(7), "exit 7"),
        (lambda: sys.exit(3), "exit 1"),
        (lambda: 1 / 0, "exit 1"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
    ],
)
def test_a_death_is_an_answer_and_the_rest_go_on(deadly: Action, ending: str):
    """A crash, an abort, an exit or an exception at one input affects only that input."""
    assert ask(say("first"), deadly, say("last")) == ["first", f"died: {ending}", "last"]


def test_every_input_may_be_deadly():
    """A death at the first, at the last and at each input is reported for each."""
    assert ask(os.abort, os.abort, say("third"), segfault) == [
        "died: SIGABRT",
        "died: SIGABRT",
        "third",
        "died: SIGSEGV",
    ]


@pytest.mark.slow
def test_a_hang_is_an_answer_and_the_rest_go_on():
    """An input that takes longer than the limit is abandoned; each has the whole limit for itself."""
    runner = Isolated(
        kind=Said,
        call=lambda wait_s: Said(text=str(time.sleep(wait_s))),
        died=lambda _, ending: Said(text=f"died: {ending}"),
        limit_s=1.0,
    )
    started = time.monotonic()
    assert [said.text for said in runner.each((0.6, 60, 0.6, 0.6))] == [
        "None",
        "died: still running after 1 s",
        "None",
        "None",
    ]
    assert time.monotonic() - started < 30


def test_no_inputs_no_copies():
    """Without inputs nothing is forked."""
    assert ask() == []


def test_one_copy_works_through_all_inputs():
    """State that a call leaves is there at the next one, and not in this process."""
    state: list[str] = []

    def note(text: str) -> Action:
        return lambda: (state.append(text), "".join(state))[1]

    assert ask(note("a"), note("b"), note("c")) == ["a", "ab", "abc"]
    assert state == []


def test_calls_are_made_elsewhere():
    """The calls run in another process than this one."""
    runner = Isolated(kind=Said, call=lambda _: Said(text="", pid=os.getpid()), died=lambda *_: Said(text="died"))
    (first, second) = runner.each((1, 2))
    assert first.pid == second.pid != os.getpid()


def scribble(text: bytes) -> Action:
    """Writes to every descriptor that the copy has and this process has not."""
    mine = {entry.name for entry in Path("/dev/fd").iterdir()}

    def write() -> str:
        for name in {entry.name for entry in Path("/dev/fd").iterdir()} - mine:
            with contextlib.suppress(OSError):
                os.write(int(name), text)
        return "wrote"

    return write


def test_junk_on_the_copys_descriptors_is_dropped():
    """A call that writes to every descriptor it finds moves no answer to another input."""
    assert ask(say("first"), scribble(b"[0, {}] junk\n"), say("third")) == ["first", "wrote", "third"]


def test_what_a_call_writes_before_its_answer_loses_nothing():
    """Bytes that a call leaves on the descriptor come before its answer's token, which is still found."""
    assert ask(say("first"), scribble(b"no newline"), say("third")) == ["first", "wrote", "third"]


def test_long_answers_arrive_whole():
    """An answer larger than a pipe arrives completely."""
    assert [len(text) for text in ask(lambda: "x" * 300_000, lambda: "y" * 300_000)] == [300_000, 300_000]


def test_no_zombie_is_left(monkeypatch: pytest.MonkeyPatch):
    """Every copy is waited for."""
    copies: list[int] = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: copies.append(pid := fork()) or pid)
    ask(os.abort, say("x"))
    assert len(copies) == 2
    for pid in copies:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def test_a_copy_begins_at_once_and_is_ended_with_its_use():
    """A copy works while its process continues; if nobody asks for its records any more, it is killed and awaited."""
    began = os.pipe()

    def call(_: int) -> Said:
        os.write(began[1], str(os.getpid()).encode())
        time.sleep(60)
        return Said(text="too late", pid=0)

    runner = Isolated(kind=Said, call=call, died=lambda *_: Said(text="died"))
    with runner.begun((1,)):
        assert select.select([began[0]], [], [], 30)[0]
        pid = int(os.read(began[0], 100))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_without_fork_the_calls_are_made_here(monkeypatch: pytest.MonkeyPatch):
    """If forking is unsafe (macOS) or missing (Windows), the calls are made in this process, and a death ends it."""
    monkeypatch.setattr(isolated, "CAN_FORK", False)
    runner = Isolated(kind=Said, call=lambda _: Said(text="", pid=os.getpid()), died=lambda *_: Said(text="died"))
    assert runner.each((1,))[0].pid == os.getpid()


def test_a_copy_does_not_wait_for_threads_that_are_not_in_it():
    """A model may have started torch's threads; a copy has only one, and continues alone."""
    torch.set_num_threads(2)
    try:
        torch.rand(600, 600) @ torch.rand(600, 600)
        (said,) = ask(lambda: str((torch.rand(600, 600) @ torch.rand(600, 600)).shape))
        assert said == "torch.Size([600, 600])"
    finally:
        torch.set_num_threads(1)


def test_a_copy_takes_little_time():
    """Twenty inputs cost one fork, well below a second."""
    started = time.perf_counter()
    ask(*[say("x")] * 20)
    assert time.perf_counter() - started < 5


def test_a_model_that_ignores_its_children_loses_no_answer():
    """Under SIG_IGN the system forgets children at once: their answers count, but their exit status is unknown."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert ask(say("first"), os.abort, say("last")) == ["first", "died: an unknown status", "last"]
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_record_is_there_before_the_next_call_ends():
    """Who waits for one does not wait for all."""
    reader, writer = os.pipe()
    runner = Isolated(kind=Said, call=lambda action: Said(text=str(action())), died=lambda *_: Said(text="died"))
    with runner.begun([say("first"), lambda: os.read(reader, 5)]) as records:
        found = records()
        assert next(found).text == "first"
        os.write(writer, b"ended")
        assert [said.text for said in found] == ["b'ended'"]


def test_what_the_reader_does_between_two_records_is_not_the_copys_time():
    """The limit is for each call."""
    reader, writer = os.pipe()
    runner = Isolated(
        kind=Said, call=lambda action: Said(text=str(action())), died=lambda *_: Said(text="died"), limit_s=0.4
    )
    with runner.begun([say("first"), lambda: os.read(reader, 5)]) as records:
        found = records()
        next(found)
        time.sleep(0.5)
        # The copy has not answered, and is asked only now.
        os.write(writer, b"ended")
        assert next(found).text == "b'ended'"


def test_a_copy_whose_records_nobody_takes_is_killed():
    """Also one of which some were taken."""
    pids = []
    runner = Isolated(kind=Said, call=lambda action: Said(text="", pid=int(action())), died=lambda *_: Said(text=""))
    with runner.begun([os.getpid, lambda: time.sleep(60)]) as records:
        pids.append(next(records()).pid)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


@pytest.mark.slow
def test_a_large_answer_takes_time_in_proportion():
    """96 MB come within seconds; joined to what came before at each read, they would take a minute."""
    isolated = Isolated(kind=str, call=lambda size: "x" * size, died=lambda _, ending: ending)
    started = time.monotonic()
    assert [len(text) for text in isolated.each([96_000_000, 3])] == [96_000_000, 3]
    assert time.monotonic() - started < 12
