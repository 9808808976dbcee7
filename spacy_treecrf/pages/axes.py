"""Axes of pictures: round ticks, and the way from values to places."""

from __future__ import annotations

import math
from dataclasses import dataclass

from spacy_treecrf.pages.markup import Markup, tag

# The picture's size and margins, in its own units, which are about pixels.
WIDTH, HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 54, 22, 12, 44


@dataclass(frozen=True)
class Axis:
    """A range of values along one side of a picture."""

    name: str
    low: float
    high: float
    percent: bool = False

    @property
    def ticks(self) -> list[float]:
        return [t for t in round_ticks(self.low, self.high) if self.low <= t <= self.high]

    def share(self, value: float) -> float:
        """How far along the axis a value lies, from 0 to 1 within its range."""
        return (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5

    def text(self, value: float) -> str:
        if self.percent:
            return f"{100 * value:g} %"
        return f"{value:,.10g}" if abs(value) < 1e6 else f"{value:.3g}"


def round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, about so many, that reach over the range."""
    if not high > low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = max(0, -math.floor(math.log10(step)))
    return [round(i * step, digits) for i in range(first, last + 1)]


def axis_over(name: str, values: list[float], percent: bool = False) -> Axis:
    """An axis whose ends are ticks around the values."""
    low, high = min(values), max(values)
    if low == high:
        low, high = low - abs(low) / 10 - 0.1, high + abs(high) / 10 + 0.1
    ticks = round_ticks(low, high)
    return Axis(name, ticks[0], ticks[-1], percent)


def x_at(axis: Axis, value: float) -> float:
    return LEFT + axis.share(value) * (WIDTH - LEFT - RIGHT)


def y_at(axis: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - axis.share(value) * (HEIGHT - TOP - BOTTOM)


def frame(x: Axis, y: Axis) -> list[Markup]:
    """Grid, ticks and names of both axes."""
    parts = []
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for tick in y.ticks:
        at = y_at(y, tick)
        parts.append(tag("line", x1=LEFT, x2=right, y1=at, y2=at, class_="grid"))
        parts.append(tag("text", y.text(tick), x=LEFT - 6, y=at + 4, text_anchor="end"))
    for tick in x.ticks:
        at = x_at(x, tick)
        parts.append(tag("line", x1=at, x2=at, y1=bottom, y2=bottom + 4, class_="axis"))
        parts.append(tag("text", x.text(tick), x=at, y=bottom + 18, text_anchor="middle"))
    parts.append(tag("line", x1=LEFT, x2=right, y1=bottom, y2=bottom, class_="axis"))
    middle = (LEFT + right) / 2
    parts.append(tag("text", x.name, x=middle, y=HEIGHT - 6, text_anchor="middle", class_="name"))
    up = (TOP + bottom) / 2
    turned = f"rotate(-90 13 {up:g})"
    parts.append(
        tag("text", y.name, x=13, y=up, text_anchor="middle", transform=turned, class_="name")
    )
    return parts
