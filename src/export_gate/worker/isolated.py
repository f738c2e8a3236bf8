"""Calls that may kill their process, made in forked copies of it: a death becomes an answer."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from export_gate.codec import decode, encode
from export_gate.worker.children import CAN_FORK, signal_name

Record = TypeVar("Record")
Input = TypeVar("Input")


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolated(Generic[Input, Record]):
    """A function from inputs to records, and what stands for the record of an input that it died of."""

    kind: type[Record]
    call: Callable[[Input], Record]
    died: Callable[[Input, str], Record]
    """Told what ended the process: a signal's name or an exit status."""

    def each(self, inputs: Sequence[Input]) -> tuple[Record, ...]:
        """The record of every input, in order.

        One forked copy works through the inputs; where it dies, another one goes on after the input it died of. Where
        there is no fork the calls are made right here.
        """
        if not CAN_FORK:
            return tuple(self.call(given) for given in inputs)
        records: list[Record] = []
        while len(records) < len(inputs):
            found, ending = self._in_copy(inputs[len(records) :])
            records += found
            if len(records) < len(inputs):
                records.append(self.died(inputs[len(records)], ending))
        return tuple(records)

    def _in_copy(self, inputs: Sequence[Input]) -> tuple[list[Record], str]:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(reader)
                self._work(inputs, writer)
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        records: list[Record] = []
        with os.fdopen(reader, "rb") as lines:
            for line in lines:
                record = self._record(line, len(records))
                if record is not None:
                    records.append(record)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return records, signal_name(-code) if code < 0 else f"exit {code}"

    def _work(self, inputs: Sequence[Input], writer: int) -> None:
        with os.fdopen(writer, "wb", buffering=0) as stream:
            for number, given in enumerate(inputs):
                stream.write(json.dumps([number, encode(self.call(given))]).encode() + b"\n")

    def _record(self, line: bytes, wanted: int) -> Record | None:
        """The record of that number; None for another one or for what the call itself wrote to the descriptor.

        Once a record is lost none after it counts, so that each input keeps its own.
        """
        with contextlib.suppress(ValueError, TypeError):
            number, value = json.loads(line)
            return decode(self.kind, value) if number == wanted else None
        return None
