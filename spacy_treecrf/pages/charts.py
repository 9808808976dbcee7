"""Pictures as plain SVG: lines, bars, intervals, reliability. Each has a table beside it.

Colours come from the stylesheet, so that pictures follow the theme; lines also differ by dashes,
so that nobody has to tell colours apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spacy_treecrf.pages.axes import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    frame,
    x_at,
    y_at,
)
from spacy_treecrf.pages.markup import Child, Markup, join, table, tag

N_COLOURS = 8  # classes c0 to c7 of the stylesheet
ROW = 24  # height of a bar with its name
LETTER, MOST_LETTERS = 7.2, 30  # width of a letter; letters of a name that are shown
VALUE_WIDTH = 78
FEW = 30  # answers; a bin with fewer has a small dot
MARKERS = 30  # a line of fewer points shows them


@dataclass(frozen=True)
class Line:
    """A line of a chart; points are (x, y)."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Bar:
    """A value with a name and, where they are known, the ends of its interval."""

    name: str
    value: float
    text: str
    low: float | None = None
    high: float | None = None


def figure(picture: Markup, caption: str, alternative: Markup | None = None) -> Markup:
    """A picture with its caption, and its numbers in a table that can be opened."""
    parts: list[Child] = [tag("figcaption", caption), picture]
    if alternative is not None:
        parts.append(tag("details", tag("summary", "The numbers"), alternative))
    return tag("figure", parts)


def line_chart(
    title: str, x: Axis, y: Axis, lines: Sequence[Line], *, mark: tuple[float, str] | None = None
) -> Markup:
    """Lines over common axes. mark: A place on the x axis, and what it is."""
    parts = frame(x, y)
    if mark is not None:
        at = x_at(x, mark[0])
        side = "end" if x.share(mark[0]) > 0.5 else "start"
        shift = -5 if side == "end" else 5
        parts.append(tag("line", x1=at, x2=at, y1=TOP, y2=HEIGHT - BOTTOM, class_="mark"))
        parts.append(tag("text", mark[1], x=at + shift, y=TOP + 10, text_anchor=side))
    for i, line in enumerate(lines):
        places = [(x_at(x, a), y_at(y, b)) for a, b in line.points]
        text = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        parts.append(tag("polyline", points=text, class_=f"line c{i % N_COLOURS}"))
        if len(places) < MARKERS:
            parts += [tag("circle", cx=a, cy=b, r=3, class_=f"dot c{i % N_COLOURS}")
                      for a, b in places]  # fmt: skip
    return join([_legend([line.name for line in lines]), _picture(title, parts)])


def bar_chart(title: str, bars: Sequence[Bar], *, most: float | None = None) -> Markup:
    """Horizontal bars with their values, and whiskers where intervals are known.

    most: The value of a bar over the whole width; by default the largest.
    """
    ends = [max(bar.value, bar.high or 0.0) for bar in bars]
    most = most or max([*ends, 1e-12])
    names = [bar.name if len(bar.name) <= MOST_LETTERS else _cut(bar.name) for bar in bars]
    left = max(map(len, names), default=0) * LETTER + 14
    scale = (WIDTH - left - VALUE_WIDTH) / most
    parts = []
    for i, bar in enumerate(bars):
        top, middle = ROW * i + 4, ROW * i + ROW / 2 + 2
        parts.append(tag("text", names[i], x=left - 8, y=middle + 4, text_anchor="end"))
        width = max(0.0, bar.value) * scale
        parts.append(tag("rect", x=left, y=top, width=width, height=ROW - 6, class_="bar c0"))
        end = bar.value
        if bar.low is not None and bar.high is not None:
            parts += _whiskers(left + bar.low * scale, left + bar.high * scale, middle)
            end = max(bar.value, bar.high)
        parts.append(tag("text", bar.text, x=left + end * scale + 8, y=middle + 4))
    return _picture(title, parts, height=ROW * len(bars) + 4)


def reliability_chart(
    title: str,
    bins: Sequence[tuple[float, float, int, float, float]],
    x: Axis,
    y: Axis,
) -> Markup:
    """A reliability diagram; bins are (low, high, count, mean probability, share right).

    Pale columns show the share of all answers in each bin.
    """
    total = sum(n for _, _, n, _, _ in bins) or 1
    parts = frame(x, y)
    for low, high, n, _, _ in bins:
        top, bottom = y_at(y, n / total), y_at(y, 0.0)
        left, right = x_at(x, low), x_at(x, high)
        parts.append(
            tag(
                "rect",
                x=left + 1,
                y=top,
                width=right - left - 2,
                height=bottom - top,
                class_="pale",
            )
        )
    ends = {"x1": LEFT, "y1": HEIGHT - BOTTOM, "x2": WIDTH - RIGHT, "y2": TOP}
    parts.append(tag("line", **ends, class_="mark"))
    places = [(x_at(x, p), y_at(y, right)) for _, _, _, p, right in bins]
    text = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    parts.append(tag("polyline", points=text, class_="line c0"))
    parts += [
        tag("circle", cx=a, cy=b, r=4 if own[2] >= FEW else 2, class_="dot c0")
        for own, (a, b) in zip(bins, places, strict=True)
    ]
    return _picture(title, parts)


def heat_table(labels: Sequence[str], counts: Sequence[Sequence[int]], caption: str) -> Markup:
    """Counts of gold (rows) and predicted (columns); mistakes are darker the more there are."""
    wrong = [n for i, row in enumerate(counts) for j, n in enumerate(row) if i != j]
    most = max([*wrong, 1])

    def cell(i: int, j: int, n: int) -> Child:
        if not n:
            return tag("span", "·", class_="none")
        level = "right" if i == j else f"h{1 + round(8 * n / most)}"
        return tag("span", f"{n:,}", class_=f"heat {level}")

    rows = [
        [labels[i], *(cell(i, j, n) for j, n in enumerate(row))] for i, row in enumerate(counts)
    ]
    return table(["gold ↓ predicted →", *labels], rows, caption=caption)


def _cut(name: str) -> str:
    """The ends of a long name: features differ at either of them."""
    half = MOST_LETTERS // 2
    return f"{name[: half - 1]}…{name[-half:]}"


def _legend(names: Iterable[str]) -> Markup:
    items = (
        tag(
            "li",
            tag(
                "svg",
                tag("line", x1=0, x2=26, y1=6, y2=6, class_=f"line c{i % N_COLOURS}"),
                viewBox="0 0 26 12",
                width=26,
                height=12,
                aria_hidden="true",
            ),
            name,
        )
        for i, name in enumerate(names)
    )
    return tag("ul", items, class_="legend")


def _whiskers(low: float, high: float, y: float) -> list[Markup]:
    return [
        tag("line", x1=low, x2=high, y1=y, y2=y, class_="whisker"),
        tag("line", x1=low, x2=low, y1=y - 4, y2=y + 4, class_="whisker"),
        tag("line", x1=high, x2=high, y1=y - 4, y2=y + 4, class_="whisker"),
    ]


def _picture(title: str, parts: Iterable[Markup], height: int = HEIGHT) -> Markup:
    box = f"0 0 {WIDTH} {height}"
    return tag("svg", tag("title", title), parts, viewBox=box, role="img", class_="chart")
