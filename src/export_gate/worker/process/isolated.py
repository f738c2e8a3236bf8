"""Make calls that may kill their process in forked copies of it, so that a death becomes an answer."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch

from export_gate.wall.codec import decode, encode
from export_gate.wall.words import signal_name
from export_gate.worker.process.channel import write_all
from export_gate.worker.process.children import CAN_FORK, READ_BYTES

Record = TypeVar("Record")
Input = TypeVar("Input")


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A forked copy of this process and where its records come from."""

    pid: int
    reader: int
    token: bytes
    """Stands before each record."""

    def kill(self) -> None:
        """Kill it, whatever it does, and wait for it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.ended()

    def ended(self) -> str:
        """Wait for its end; what ended it: a signal's name or an exit status."""
        os.close(self.reader)
        try:
            code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:  # the model ignores SIGCHLD, so the system has forgotten it
            return "an unknown status"
        return signal_name(-code) if code < 0 else f"exit {code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolated(Generic[Input, Record]):
    """A function from inputs to records, and what stands for the record of an input that it died of."""

    kind: type[Record]
    call: Callable[[Input], Record]
    died: Callable[[Input, str], Record]
    """Its text says what ended the process: a signal's name, an exit status or the time limit."""
    limit_s: float = 60.0
    """Bound on each input, in seconds."""

    def each(self, inputs: Sequence[Input]) -> tuple[Record, ...]:
        """The record of every input, in order."""
        with self.begun(inputs) as records:
            return tuple(records())

    @contextmanager
    def begun(self, inputs: Sequence[Input]) -> Iterator[Callable[[], Iterator[Record]]]:
        """Let a forked copy of this process, as it is now, begin with the inputs; yields what waits for the records.

        The copy works through the inputs; where it dies, another one goes on after the input it died of. Where there
        is no fork the calls are made right here, once the records are asked for.
        """
        copies: list[Copy] = []
        if inputs and CAN_FORK:
            with contextlib.suppress(OSError):  # no process available now: try again when the records are requested
                copies.append(self._copy(inputs))

        def records() -> Iterator[Record]:
            if not CAN_FORK:
                yield from map(self.call, inputs)
                return
            count = 0
            while count < len(inputs):
                if not copies:
                    copies.append(self._copy(inputs[count:]))
                try:
                    for record in self._read(copies[0]):
                        count += 1
                        yield record
                    ending = copies.pop().ended()
                except TimeoutError:
                    copies.pop().kill()
                    ending = f"still running after {self.limit_s:g} s"
                if count < len(inputs):
                    count += 1
                    yield self.died(inputs[count - 1], ending)

        try:
            yield records
        finally:
            for copy in copies:
                copy.kill()

    def _copy(self, inputs: Sequence[Input]) -> Copy:
        reader, writer = os.pipe()
        token = secrets.token_hex(8).encode()  # what the call itself writes to the descriptor stands before it
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(reader)
                # The model's threads are not in the copy, which would wait for them.
                torch.set_num_threads(1)
                self._work(inputs, writer, token)
                status = 0
            finally:
                # The model's exit handlers belong to the process that was copied.
                os._exit(status)
        os.close(writer)
        return Copy(pid=pid, reader=reader, token=token)

    def _read(self, copy: Copy) -> Iterator[Record]:
        """The copy's records up to its end.

        Raises:
            TimeoutError: it works on one input for too long.
        """
        number = 0
        for line in _lines_within(copy.reader, self.limit_s):
            record = self._record(line.partition(copy.token)[2], number)
            if record is not None:
                number += 1
                yield record

    def _work(self, inputs: Sequence[Input], writer: int, token: bytes) -> None:
        # At once and whole: the next call may kill the process, and a signal may cut a write short.
        for number, given in enumerate(inputs):
            write_all(writer, token + json.dumps([number, encode(self.call(given))]).encode() + b"\n")

    def _record(self, line: bytes, wanted: int) -> Record | None:
        """The record of that number; None for another one or for what the call itself wrote to the descriptor.

        Once a record is lost, none after it counts, so that each input keeps its own.
        """
        with contextlib.suppress(ValueError, TypeError):
            number, value = json.loads(line)
            return decode(self.kind, value) if number == wanted else None
        return None


def _lines_within(reader: int, limit_s: float) -> Iterator[bytes]:
    """Lines of a pipe up to its end.

    Raises:
        TimeoutError: the next one did not come in time.
    """
    pending: list[bytes] = []  # joined once: to add to a text of many megabytes chunk by chunk takes minutes
    deadline = time.monotonic() + limit_s
    while True:
        if not select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError
        chunk = os.read(reader, READ_BYTES)
        if not chunk:
            return
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield b"".join((*pending, end))
            pending.clear()
            # Each line is the answer to one input, and the limit is for each input: what the caller did is not counted.
            deadline = time.monotonic() + limit_s
        pending.append(rest)
