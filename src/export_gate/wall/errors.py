"""Errors by their cause: the user's mistake, or a check that could not run."""

from __future__ import annotations


class UserError(Exception):
    """The user's mistake: a config, an option or a file. Exit code 2.

    The message is one or more lines, each saying what, where, expected against actual; `hint` is the next step.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    @property
    def text(self) -> str:
        """The message and, below it, the next step."""
        return f"{self}\n{self.hint}" if self.hint else str(self)


class GateError(Exception):
    """The gate itself could not do its work (no worker, a full disk). Exit code 3."""
