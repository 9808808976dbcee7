"""Explanations as tables for a terminal, by rich."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from spacy_treecrf.explain.explanation import (
    Contribution,
    SequenceExplanation,
    TokenExplanation,
    Transition,
)

FOR, AGAINST = "green", "red"
BAR = 12  # characters
MOST_PARTS = 12  # contributions and interactions that are shown
MOST_LABELS = 5


def sequence_tables(explained: SequenceExplanation) -> Group:
    """A sequence's labels with their probabilities, and the tables of its explained positions."""
    parts: list[RenderableType] = []
    if explained.spans:
        spans = _table("span", "tokens", "P")
        for span in explained.spans:
            words = " ".join(explained.texts[span.start : span.end])
            _row(spans, f"{span.label} {words}", f"{span.start}:{span.end}", _p(span.probability))
        parts.append(spans)
    else:
        labels = _table("token", "label", "P")
        for t, (label, p) in enumerate(zip(explained.labels, explained.probabilities, strict=True)):
            _row(labels, explained.texts[t] if explained.texts else str(t), str(label), _p(p))
        parts.append(labels)
    return Group(*parts, *(token_tables(token) for token in explained.tokens))


def token_tables(explained: TokenExplanation) -> Group:
    """Why a position got its label, as a few tables."""
    parts: list[RenderableType] = [Text(_headline(explained), style="bold"), _labels(explained)]
    parts.append(_score(explained))
    if explained.interactions:
        parts.append(_interactions(explained))
    if explained.effects:
        parts.append(_effects(explained))
    if explained.context is not None:
        parts.append(_context(explained))
    parts += [Text(sentence, style="italic") for sentence in explained.missing]
    return Group(*parts)


def _headline(explained: TokenExplanation) -> str:
    text = "" if explained.text is None else f" {explained.text!r}"
    rather = "" if explained.against is None else f" rather than {explained.against}"
    return f"Position {explained.position}{text}: why {explained.label}{rather}?"


def _labels(explained: TokenExplanation) -> Table:
    table = _table("label", "P", "")
    for label, p in list(explained.probabilities.items())[:MOST_LABELS]:
        _row(table, str(label), _p(p), "█" * round(BAR * p))
    return table


def _score(explained: TokenExplanation) -> Table:
    """All that the score is a sum of; small contributions are one line."""
    table = _table("score", "by", f"{explained.score:+.3f}", "")
    shown = explained.contributions[:MOST_PARTS]
    sizes = [abs(part.value) for part in shown]
    sizes += [abs(explained.left.value), abs(explained.right.value), abs(explained.base)]
    largest = max(sizes) or 1.0
    for part in shown:
        _row(table, part.feature, part.source, *_signed(part.value, largest))
    rest = explained.contributions[MOST_PARTS:]
    if rest:
        _row(table, f"{len(rest)} others", "", *_signed(_total(rest), largest))
    for side, transition in (("after", explained.left), ("before", explained.right)):
        name = f"{side} {transition.neighbour}{_forbidden(transition)}"
        _row(table, name, "transition", *_signed(transition.value, largest))
    _row(table, "base", "", *_signed(explained.base, largest))
    return table


def _total(parts: tuple[Contribution, ...]) -> float:
    return sum(part.value for part in parts)


def _forbidden(transition: Transition) -> str:
    return " (forbidden)" if transition.forbidden else ""


def _interactions(explained: TokenExplanation) -> Table:
    table = _table("together", "and", "", "")
    largest = abs(explained.interactions[0].value) or 1.0
    for pair in explained.interactions[:MOST_PARTS]:
        _row(table, *pair.features, *_signed(pair.value, largest))
    return table


def _effects(explained: TokenExplanation) -> Table:
    table = _table("without, or replaced", f"P({explained.label})", "then", "best then")
    for effect in explained.effects:
        change = effect.feature
        if effect.replaced_by is not None:
            change += f" -> {effect.replaced_by}"
        _row(table, change, _p(effect.before), _p(effect.after), str(effect.best))
    return table


def _context(explained: TokenExplanation) -> Table:
    assert explained.context is not None
    table = _table("looking at", f"P({explained.label})", "best", "P")
    for name, view in (
        ("the position alone", explained.context.alone),
        ("and what is left of it", explained.context.left),
        ("and what is right of it", explained.context.right),
        ("the whole sequence", explained.context.both),
    ):
        best = str(view.best), _p(view.best_probability)
        _row(table, name, _p(view.probability), *best)
    return table


def _table(*names: str) -> Table:
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="dim")
    for i, name in enumerate(names):
        is_number = name.startswith(("P", "+", "-", "then"))
        table.add_column(Text(name), justify="right" if is_number and i else "left")
    return table


def _row(table: Table, *cells: str | Text) -> None:
    """Add a row; texts are shown as they are, without markup."""
    table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells))


def _signed(value: float, largest: float) -> tuple[str, Text]:
    """A number and a bar, both of which tell by more than colour what speaks for and against."""
    style = FOR if value >= 0 else AGAINST
    sign = "█" if value >= 0 else "░"
    return f"{value:+.3f}", Text(sign * round(BAR * abs(value) / largest), style=style)


def _p(probability: float) -> str:
    return f"{probability:.4f}"
