"""Build marks as SVG path data."""

from __future__ import annotations

from collections.abc import Iterable


def coordinate(value: float) -> str:
    """A coordinate with one decimal, which is finer than a screen shows."""
    return f"{value:.1f}".removesuffix(".0")


def at(x: float, y: float) -> str:
    """Start of a path."""
    return f"M{coordinate(x)} {coordinate(y)}"


def dot(x: float, y: float) -> str:
    """A disc as wide as the stroke, whose line caps are round."""
    # The shortest path that draws one: a page may have thousands of them.
    return f"{at(x, y)}h0"


def bar(x: float, y: float, width: float) -> str:
    """A horizontal line about (x, y)."""
    return f"{at(x - width / 2, y)}h{coordinate(width)}"


def box(x: float, y: float, width: float, height: float) -> str:
    """A rectangle with its top left corner at (x, y)."""
    return f"{at(x, y)}h{coordinate(width)}v{coordinate(height)}h{coordinate(-width)}z"


def circle(x: float, y: float, radius: float = 4) -> str:
    """A circle about (x, y)."""
    r = coordinate(radius)
    return f"{at(x - radius, y)}a{r} {r} 0 1 0 {coordinate(2 * radius)} 0a{r} {r} 0 1 0 {coordinate(-2 * radius)} 0z"


def square(x: float, y: float, radius: float = 4) -> str:
    """A square about (x, y)."""
    return box(x - radius, y - radius, 2 * radius, 2 * radius)


def triangle(x: float, y: float, radius: float = 5) -> str:
    """A triangle about (x, y), point up."""
    r = coordinate(radius)
    return f"{at(x, y - radius)}l{r} {coordinate(1.8 * radius)}h{coordinate(-2 * radius)}z"


def diamond(x: float, y: float, radius: float = 5) -> str:
    """A diamond about (x, y)."""
    r, back = coordinate(radius), coordinate(-radius)
    return f"{at(x, y - radius)}l{r} {r}l{back} {r}l{back} {back}z"


def cross(x: float, y: float, radius: float = 4) -> str:
    """Two strokes through (x, y)."""
    side = coordinate(2 * radius)
    return f"{at(x - radius, y - radius)}l{side} {side}{at(x - radius, y + radius)}l{side} -{side}"


def line(points: Iterable[tuple[float, float]]) -> str:
    """Straight from point to point."""
    # The second join puts an M before the path.
    return "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in points).join(("M", ""))
