"""Pictures: round ticks, places in proportion, names for readers of screens."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.pages.axes import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    axis_over,
    round_ticks,
)
from spacy_treecrf.pages.charts import (
    Bar,
    Line,
    bar_chart,
    figure,
    heat_table,
    line_chart,
    reliability_chart,
)
from spacy_treecrf.pages.markup import Markup, tag

numbers = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6)


def picture(markup: str) -> ElementTree.Element:
    """The picture of a chart, read as XML; a legend may stand before it."""
    return ElementTree.fromstring(markup.rpartition("</ul>")[2])


@given(numbers, numbers)
def test_ticks_are_evenly_spaced_and_reach_over_the_range(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    ticks = round_ticks(low, high)
    if high - low < 1e-9 * max(1.0, abs(low), abs(high)):
        return
    assert ticks[0] <= low + 1e-6 * (high - low)
    assert ticks[-1] >= high - 1e-6 * (high - low)
    assert 2 <= len(ticks) <= 12
    steps = [y - x for x, y in pairwise(ticks)]
    assert max(steps) == pytest.approx(min(steps), rel=1e-3)
    mantissa = steps[0] / 10 ** math.floor(math.log10(steps[0]) + 1e-6)
    assert min(abs(mantissa - m) for m in (1, 2, 5, 10)) < 1e-2


@given(st.lists(numbers, min_size=1, max_size=5))
def test_an_axis_holds_its_values(values: list[float]) -> None:
    axis = axis_over("x", values)
    for value in values:
        assert -1e-6 <= axis.share(value) <= 1 + 1e-6


def test_points_are_where_their_values_are() -> None:
    x, y = Axis("a", 0.0, 10.0), Axis("b", 0.0, 1.0)
    chart = line_chart("t", x, y, [Line("one", [(0.0, 0.0), (5.0, 0.5), (10.0, 1.0)])])
    (line,) = (e for e in picture(chart) if e.tag == "polyline")
    places = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    middle = ((LEFT + right) / 2, (TOP + bottom) / 2)
    assert places == [(LEFT, bottom), middle, (right, TOP)]
    assert re.sub(r"<svg.*?</svg>", "", chart, flags=re.S) == '<ul class="legend"><li>one</li></ul>'


def test_bars_are_in_proportion_and_have_whiskers_where_intervals_are_known() -> None:
    chart = bar_chart("t", [Bar("a", 0.5, "50 %", 0.4, 0.6), Bar("b", 0.25, "25 %")], most=1.0)
    bars = [float(e.attrib["width"]) for e in picture(chart) if e.tag == "rect"]
    assert bars[0] == pytest.approx(2 * bars[1], rel=1e-3)
    whiskers = [e for e in picture(chart) if e.attrib.get("class") == "whisker"]
    assert len(whiskers) == 3
    span = float(whiskers[0].attrib["x2"]) - float(whiskers[0].attrib["x1"])
    assert span == pytest.approx(0.4 * bars[0], rel=1e-3)  # 0.2 of 0.5


def test_reliability_shows_the_share_of_answers_and_how_many_are_right() -> None:
    x, y = Axis("p", 0.0, 1.0), Axis("right", 0.0, 1.0)
    chart = picture(
        reliability_chart("t", [(0.0, 0.5, 25, 0.25, 0.5), (0.5, 1.0, 75, 0.75, 1.0)], x, y)
    )
    columns = [float(e.attrib["height"]) for e in chart if e.attrib.get("class") == "pale"]
    assert columns[1] == pytest.approx(3 * columns[0], rel=1e-3)
    dots = [e.attrib for e in chart if e.tag == "circle"]
    assert [float(dot["cy"]) for dot in dots] == [(HEIGHT - BOTTOM + TOP) / 2, TOP]
    assert [float(dot["r"]) for dot in dots] == [2.0, 4.0]  # few answers, many


def test_pictures_have_names_and_numbers_beside_them() -> None:
    chart = bar_chart("Scores <by> type", [Bar("<x>", 1.0, "1")])
    whole = picture(chart)
    assert whole.attrib["role"] == "img"
    assert whole[0].tag == "title"
    assert whole[0].text == "Scores <by> type"
    shown = figure(chart, "caption", tag("table"))
    assert "<figcaption>caption</figcaption>" in shown
    assert "<summary>The numbers</summary><table></table>" in shown


def test_mistakes_are_darker_the_more_there_are() -> None:
    shown = heat_table(["A", "<B>"], [[100, 8], [2, 0]], "caption")
    assert isinstance(shown, Markup)
    assert '<span class="heat right">100</span>' in shown
    assert '<span class="heat h9">8</span>' in shown
    assert '<span class="heat h3">2</span>' in shown
    assert "&lt;B&gt;" in shown
