"""A picture before layout: where each tick, shape and word goes, in user units of one SVG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A labelled place on an axis."""

    at: float
    label: str
    line: bool = True
    """Drawn across the panel, on the vertical axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One path; everything of a kind is one shape, so that hundreds of points stay small."""

    kind: str
    """Its class in the page's style sheet."""
    d: str
    """Path data."""
    title: str = ""
    """Told when it is pointed at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Text in the picture."""

    x: float
    y: float
    text: str
    kind: str = ""
    anchor: Anchor = "middle"
    turn: int = 0
    """Degrees clockwise about (x, y)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes."""

    left: float
    top: float
    width: float
    height: float
    x_ticks: tuple[Tick, ...] = ()
    y_ticks: tuple[Tick, ...] = ()
    shapes: tuple[Shape, ...] = ()
    words: tuple[Words, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of the legend: a shape drawn in a box of 20 x 12, and what it means."""

    kind: str
    d: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One picture."""

    title: str
    summary: str
    """What it shows, for those who do not see it."""
    width: float
    height: float
    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    legend: tuple[Entry, ...] = ()
    wide: bool = False
    """Keeps its size and scrolls where the page is narrow."""
