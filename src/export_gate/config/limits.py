"""Checks of a config that depend on the day, which its text alone does not decide."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from export_gate.config.record import Config, Position
from export_gate.wall.errors import UserError


def require_short_waivers(config: Config, today: date, most_days: int) -> None:
    """Check that no waiver ends more than `most_days` after today, whether it is new or old.

    The same limit every day is also the limit from the day on which a waiver appears: one that is valid then only
    becomes shorter.

    Raises:
        UserError: one line for each waiver that lasts longer.
    """
    lines = list(_too_long(config, today, most_days))
    if lines:
        raise UserError("\n".join(lines))


def _too_long(config: Config, today: date, most_days: int) -> Iterator[str]:
    last = (today + timedelta(days=most_days)).isoformat()
    for contract in config.models:
        for number, waiver in enumerate(contract.waivers):
            key = f"models.{contract.name}.waivers[{number}].until"
            at = config.positions.get(key, Position(line=1, column=1))
            if waiver.until > last:
                yield (
                    f"{config.path}:{at.line}:{at.column}: {key}: expected a day up to {last}, {most_days} days from "
                    f"today (waivers-max-days), got '{waiver.until}'"
                )
