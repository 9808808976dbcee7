"""Precision and recall over min_prob, against counting by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.evaluation.judging import Judged
from spacy_treecrf.evaluation.observing import Observed
from spacy_treecrf.evaluation.spans import SpanScore, span_scores, total_score
from spacy_treecrf.evaluation.thresholds import (
    THRESHOLDS,
    operating_points,
    span_answers,
    token_answers,
)
from spacy_treecrf.labels.schemes import conll_spans

LABELS = ["O", "B-PER", "I-PER", "B-LOC"]
tokens = st.tuples(st.sampled_from([*LABELS, None]), st.sampled_from(LABELS), st.floats(0.0, 1.0))


def observed_of(rows: list[list[tuple[str | None, str, float]]]) -> Observed:
    """Each span has the probability of its first token."""
    judged = Judged()
    judged.gold = [[gold for gold, _, _ in own] for own in rows]
    judged.predicted = [[label for _, label, _ in own] for own in rows]
    judged.probabilities = [np.array([p for _, _, p in own], np.float64) for own in rows]
    chances = [
        np.array([own[start][2] for start, _, _ in conll_spans(labels)], np.float64)
        for own, labels in zip(rows, judged.predicted, strict=True)
    ]
    return Observed(judged, [["word"] * len(own) for own in rows], chances, [], has_spans=True)


@given(st.lists(st.lists(tokens, min_size=1, max_size=6), min_size=1, max_size=5))
def test_spans_below_the_threshold_are_dropped(
    rows: list[list[tuple[str | None, str, float]]],
) -> None:
    observed = observed_of(rows)
    judged = observed.judged
    for point in operating_points(span_answers(observed)):
        kept = []
        for own, labels in zip(rows, judged.predicted, strict=True):
            left = list(labels)
            for start, end, _ in conll_spans(labels):
                if own[start][2] < point.min_prob:
                    left[start:end] = ["O"] * (end - start)
            kept.append(left)
        assert point.score == total_score(span_scores(judged.gold, kept))


@given(st.lists(st.lists(tokens, min_size=1, max_size=6), min_size=1, max_size=5))
def test_tokens_below_the_threshold_do_not_count(
    rows: list[list[tuple[str | None, str, float]]],
) -> None:
    flat = [token for own in rows for token in own if token[0] is not None]
    for point in operating_points(token_answers(observed_of(rows))):
        kept = [(gold, label) for gold, label, p in flat if p >= point.min_prob]
        assert point.score == SpanScore(sum(a == b for a, b in kept), len(kept), len(flat))


def test_without_a_threshold_the_scores_are_those_of_all_and_unknown_probabilities_count() -> None:
    observed = observed_of([[("B-PER", "B-PER", float("nan")), ("O", "B-LOC", 0.4)]])
    points = operating_points(span_answers(observed))
    assert [point.min_prob for point in points] == list(THRESHOLDS)
    assert points[0].score == SpanScore(1, 2, 1)
    assert points[1].score == SpanScore(0, 1, 1)
    assert points[-1].score == SpanScore(0, 0, 1)
