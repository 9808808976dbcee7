"""Spans that serve F1 best, where a model may be so weak that spans above its threshold overlap.

The F1 that a model expects of some spans S is 2 sum_S P / (|S| + N), where N is the number of spans
that it expects in all. To make a ratio of two sums as high as it can be is to find the number F at
which sum_S (P - F / 2) - F N / 2 is 0 for the best S (Dinkelbach 1967, section 3): that F is the
F1, and half of it is the threshold (Lipton et al. 2014, theorem 1). The best S for a given F are
the spans without overlap whose probabilities, less the threshold, have the highest sum.

`engine.chain.span_choice` finds the same for a given F in one kernel, where labels are BILUO and
there is one model. Here are spans of all schemes, and means of several models.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from numbers import Real

from spacy_treecrf.models.predictor import ScoredSequences
from spacy_treecrf.models.spans.probable_spans import (
    NO_OVERLAPS,
    ProbableSpan,
    Spelling,
    expected_number,
    probable_spans,
)

# Lower thresholds serve no model: of the spans above it 99 in 100 are wrong.
LOWEST_THRESHOLD = 0.01
# Dinkelbach's F rises at each step, and ends after a few.
MAX_STEPS = 100
CLOSE = 1e-9

FOR_F1 = "f1"  # instead of a threshold: the one that serves F1 best


def check_threshold(threshold: float | str) -> None:
    """Refuse what is no threshold of `predict_spans`."""
    if isinstance(threshold, str):
        is_possible = threshold == FOR_F1
    else:
        is_possible = isinstance(threshold, Real) and LOWEST_THRESHOLD <= threshold < 1.0
    if not is_possible:
        raise ValueError(
            f"treecrf: threshold is {threshold!r}; use {LOWEST_THRESHOLD} or more, and less than "
            f"1, or {FOR_F1!r} for the one that serves F1 best"
        )


def best_spans(spans: Sequence[ProbableSpan], threshold: float) -> list[ProbableSpan]:
    """The spans without overlap whose probabilities, less a threshold, have the highest sum.

    spans: Those of one sequence.
    """
    able = sorted((span for span in spans if span.probability > threshold), key=lambda s: s.end)
    if threshold >= NO_OVERLAPS:
        return sorted(able)
    ends = [span.end for span in able]
    gain = [0.0]  # of the first i spans, at best
    before: list[int] = []  # how many of the first i spans end where span i begins, or earlier
    for i, span in enumerate(able):
        before.append(bisect_right(ends, span.start, hi=i))
        gain.append(max(gain[i], gain[before[i]] + span.probability - threshold))
    found = []
    i = len(able)
    while i:
        if gain[i] > gain[i - 1]:
            found.append(able[i - 1])
            i = before[i - 1]
        else:
            i -= 1
    return found[::-1]


def highest_f1(spans: Sequence[Sequence[ProbableSpan]], n_expected: float) -> float:
    """The F1 that is expected of the spans that serve it best, from 0 to 1.

    spans: All those of each sequence that are above LOWEST_THRESHOLD. n_expected: How many spans
    there are, by what the model says.
    """
    f1 = 0.0
    for _ in range(MAX_STEPS):
        threshold = max(f1 / 2.0, LOWEST_THRESHOLD)
        chosen = [span.probability for own in spans for span in best_spans(own, threshold)]
        total = len(chosen) + n_expected
        higher = 2.0 * sum(chosen) / total if total else 0.0
        if higher <= f1 + CLOSE:
            break
        f1 = higher
    return min(f1, 1.0)


def expected_f1_of(scored: Iterable[ScoredSequences], labels: Sequence[str]) -> float:
    """The F1 that models of the same labels expect of the spans that serve it best."""
    spelling = Spelling.of(labels)
    spans: list[list[ProbableSpan]] = []
    n_expected = 0.0
    for own in (each.unpruned() for each in scored):  # all of them are of one distribution
        spans += probable_spans([own], [spelling], LOWEST_THRESHOLD)
        n_expected += expected_number(own, spelling)
    return highest_f1(spans, n_expected)
