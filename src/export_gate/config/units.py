"""Times and amounts of work with units."""

from __future__ import annotations

import re

from export_gate.config.kinds import Measured

_SECONDS = {"h": 3600, "m": 60, "s": 1}
_AMOUNTS = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "MFLOP": 1e6, "GFLOP": 1e9, "TFLOP": 1e12}
"""Powers of 1000, for bytes too."""


def parse_time(text: str) -> float:
    """Seconds of a time such as `1h30m`."""
    return float(sum(int(number) * _SECONDS[unit] for number, unit in re.findall("([0-9]+)([hms])", text)))


def parse_amount(text: str) -> float:
    """Bytes or floating-point operations of a text such as `200 MB` or `1.5 GFLOP`."""
    unit = text.lstrip("0123456789. ")
    return float(text.removesuffix(unit)) * _AMOUNTS[unit]


TIME = Measured(
    expected="a time above 0 and up to 168h such as 90s, 10m or 1h30m, or a number of seconds",
    # The lookahead: each part may be missing, but not all of them.
    pattern=r"(?=[0-9])(?:[0-9]{1,9}h)?(?:[0-9]{1,9}m)?(?:[0-9]{1,9}s)?",
    parse=parse_time,
    maximum=168 * 3600,
)


def parse_percent(text: str) -> float:
    """The share in a text such as `10%`."""
    return float(text[:-1]) / 100


SIZE = Measured(
    expected="a size above 0 such as 200 MB (or kB, GB), or a number of bytes",
    pattern=r"[0-9]{1,12}(?:\.[0-9]{1,12})? ?(?:kB|MB|GB)",
    parse=parse_amount,
    maximum=1e15,
)

GROWTH = Measured(
    expected="a share above 0 such as 10%",
    pattern=r"[0-9]{1,6}(?:\.[0-9]{1,6})? ?%",
    parse=parse_percent,
    maximum=1e4,
    bare=False,
)

WORK = Measured(
    expected="an amount of work above 0 such as 200 GFLOP (or MFLOP, TFLOP), or a number of operations",
    pattern=r"[0-9]{1,15}(?:\.[0-9]{1,15})? ?[MGT]FLOP",
    parse=parse_amount,
    maximum=1e18,
)
