"""Tables and numbers as text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spacy_treecrf.evaluation.bootstrap import Interval

# What counts as a number: also intervals, and an empty cell.
_NUMBER = re.compile(r"[-+\d.,e]*( to [-+\d.,e]+)?")


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows as text in columns of equal width; numbers are set right, the rest left."""
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    right = [all(_NUMBER.fullmatch(row[i]) for row in cells[1:]) for i in range(len(header))]
    lines = []
    for row in cells:
        aligned = (
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, right, strict=True)
        )
        lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines)


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"


def with_interval(interval: Interval, as_percent: bool) -> tuple[str, str]:
    """A figure and its interval as text."""
    show = percent if as_percent else _plain
    if interval.low is None or interval.high is None:
        return show(interval.value), ""
    return show(interval.value), f"{show(interval.low)} to {show(interval.high)}"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def signed_percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.2f}"


def p_value(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if value >= 0.0001 else f"{value:.1e}"
