"""A chart before layout: the position of each tick, shape and text, in user units of one SVG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A labelled position on an axis."""

    at: float
    label: str
    line: bool = True
    """Whether a line is drawn across the panel; only on the vertical axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One path; all marks of a kind are one shape, so that hundreds of points stay small."""

    kind: str
    """Its class in the page's style sheet."""
    d: str
    """Path data."""
    title: str = ""
    """Shown as a tooltip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Text in the chart."""

    x: float
    y: float
    text: str
    kind: str = ""
    anchor: Anchor = "middle"
    turn: int = 0
    """Rotation about (x, y) in degrees, clockwise."""


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
    """A line of the legend: a shape in a box of 20 x 12 units, and its meaning."""

    kind: str
    d: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One picture."""

    title: str
    summary: str
    """What the chart shows, for screen readers."""
    width: float
    height: float
    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    legend: tuple[Entry, ...] = ()
    wide: bool = False
    """Whether the chart keeps its size and scrolls on a narrow page."""
