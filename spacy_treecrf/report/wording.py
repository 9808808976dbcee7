"""Numbers of a report as text, and the names of its figures."""

from __future__ import annotations

from spacy_treecrf.evaluation.bootstrap import Interval
from spacy_treecrf.pages.charts import Bar

NAMES = {
    "token_accuracy": "token accuracy",
    "sequence_accuracy": "sequence accuracy",
    "span_precision": "span precision",
    "span_recall": "span recall",
    "span_f1": "span F1",
    "nll_per_token": "negative log-likelihood per token",
    "calibration_error": "calibration error",
}
PLAIN = {"nll_per_token"}  # figures that are no shares


def percent(value: float | None, digits: int = 2) -> str:
    return "–" if value is None or value != value else f"{100 * value:.{digits}f} %"


def number(value: float | None, plain: bool = False) -> str:
    """A share in percent, or a plain number with four digits."""
    if plain:
        return "–" if value is None else f"{value:.4f}"
    return percent(value)


def between(interval: Interval, plain: bool = False) -> str:
    if interval.low is None or interval.high is None:
        return ""
    return f"{number(interval.low, plain)} to {number(interval.high, plain)}"


def share_bar(name: str, interval: Interval) -> Bar:
    value = interval.value or 0.0
    return Bar(name, value, percent(interval.value, 1), interval.low, interval.high)


def p_value(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.4f}" if value >= 0.0001 else f"{value:.1e}"


def signed(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:+.2f}"
