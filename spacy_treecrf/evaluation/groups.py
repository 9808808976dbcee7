"""Scores of groups of spans or tokens, with bootstrap intervals over sequences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spacy_treecrf.evaluation.bootstrap import Interval, Statistic, Sums, intervals
from spacy_treecrf.evaluation.judging import Judged
from spacy_treecrf.evaluation.spans import SpanScore
from spacy_treecrf.labels.biluo import TokenSpan

# Columns that hold the word itself, of pipelines and of models for column files.
_WORD_FEATURE = re.compile(r"(?:\d+\.)?(orth|text|word|lower|norm)\[0\]=(.*)", re.DOTALL)
_LOWERED = ("lower", "norm")
LENGTHS = (1, 2, 3)  # of spans; longer ones are one group
SEQUENCE_LENGTHS = ((1, 9), (10, 19), (20, 29), (30, 49))  # longer ones are one group

# The group of a span or token: a name; None: it is in no group.
SpanGroup = Callable[[int, TokenSpan], str | None]  # sequence, span
TokenGroup = Callable[[int, int], str | None]  # sequence, position


@dataclass(frozen=True)
class GroupScore:
    """The score of one group. Of tokens, precision, recall and F1 are all the accuracy."""

    name: str
    score: SpanScore
    precision: Interval
    recall: Interval
    f1: Interval


def span_groups(
    judged: Judged, group_of: SpanGroup, names: Sequence[str], **options: Any
) -> list[GroupScore]:
    """Scores of spans by group, each span by its own: gold and predicted ones may differ.

    options: Those of `bootstrap.intervals`.
    """
    number = {name: i for i, name in enumerate(names)}
    rows = np.zeros((len(judged.gold), 3 * len(names)))
    for s, (wanted, found) in enumerate(judged.spans()):
        for at, spans in enumerate((set(wanted) & set(found), found, wanted)):
            for span in spans:
                name = group_of(s, span)
                if name is not None:
                    rows[s, 3 * number[name] + at] += 1
    return _scores(rows, names, **options)


def token_groups(
    judged: Judged, group_of: TokenGroup, names: Sequence[str], **options: Any
) -> list[GroupScore]:
    """Accuracy of tokens by group. options: Those of `bootstrap.intervals`."""
    number = {name: i for i, name in enumerate(names)}
    rows = np.zeros((len(judged.gold), 3 * len(names)))
    for s, (gold, predicted) in enumerate(zip(judged.gold, judged.predicted, strict=True)):
        for i, (wanted, found) in enumerate(zip(gold, predicted, strict=True)):
            name = group_of(s, i) if wanted is not None else None
            if name is not None:
                rows[s, 3 * number[name] : 3 * number[name] + 3] += wanted == found, 1, 1
    return _scores(rows, names, **options)


def label_groups(judged: Judged, names: Sequence[str], **options: Any) -> list[GroupScore]:
    """Precision and recall of the labels of tokens. options: Those of `bootstrap.intervals`."""
    number = {name: i for i, name in enumerate(names)}
    rows = np.zeros((len(judged.gold), 3 * len(names)))
    for s, (gold, predicted) in enumerate(zip(judged.gold, judged.predicted, strict=True)):
        for wanted, found in zip(gold, predicted, strict=True):
            if wanted is None:
                continue
            for at, name in ((0, wanted if wanted == found else None), (1, found), (2, wanted)):
                if name in number:
                    rows[s, 3 * number[name] + at] += 1
    return _scores(rows, names, **options)


def _scores(rows: Sums, names: Sequence[str], **options: Any) -> list[GroupScore]:
    statistics: dict[str, Statistic] = {}
    for i, _ in enumerate(names):
        for measure in ("precision", "recall", "f1"):
            statistics[f"{measure}{i}"] = _statistic(i, measure)
    found = intervals(rows, statistics, **options)
    total = rows.sum(axis=0).astype(int).tolist()
    return [
        GroupScore(
            name,
            SpanScore(*total[3 * i : 3 * i + 3]),
            found[f"precision{i}"],
            found[f"recall{i}"],
            found[f"f1{i}"],
        )
        for i, name in enumerate(names)
    ]


def _statistic(group: int, measure: str) -> Statistic:
    """A measure of a group from the sums of rows; nan where it has nothing to measure."""
    first = 3 * group

    def value(sums: Sums) -> float:
        right, predicted, gold = sums[first : first + 3]
        below = {"precision": predicted, "recall": gold, "f1": (predicted + gold) / 2}[measure]
        return float(right / below) if below else float("nan")

    return value


def word_is_known(feature_names: Iterable[str]) -> Callable[[str], bool] | None:
    """Whether the model has a feature of the word itself; None: it has no features of words.

    Training gives a feature to the words that it sees `min_count` times or more often.
    """
    exact: set[str] = set()
    lowered: set[str] = set()
    for name in feature_names:
        if match := _WORD_FEATURE.fullmatch(name):
            (lowered if match[1] in _LOWERED else exact).add(match[2])
    if not exact and not lowered:
        return None
    return lambda word: word in exact or word.lower() in lowered


def length_group(length: int) -> str:
    return str(length) if length in LENGTHS else f"{LENGTHS[-1] + 1} or more"


LENGTH_GROUPS = [*map(str, LENGTHS), length_group(LENGTHS[-1] + 1)]


def sequence_length_group(length: int) -> str:
    for low, high in SEQUENCE_LENGTHS:
        if length <= high:
            return f"{low} to {high}"
    return f"{SEQUENCE_LENGTHS[-1][1] + 1} or more"


SEQUENCE_LENGTH_GROUPS = [sequence_length_group(low) for low, _ in SEQUENCE_LENGTHS]
SEQUENCE_LENGTH_GROUPS.append(sequence_length_group(SEQUENCE_LENGTHS[-1][1] + 1))
