"""How probable spans are as conlleval reads them in labels of any scheme, exactly.

A labelling has a span where rows of one type go on, each with the row before, and the span goes on
neither with the row before it nor in the one behind it (`labels.schemes.conll_spans`). So where
R(i, j) is the probability that all rows from i to j - 1 go on, P(exactly this span) is
R(i, j) - R(i - 1, j) - R(i, j + 1) + R(i - 1, j + 1).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from spacy_treecrf.labels.biluo import OUTSIDE, TokenSpan
from spacy_treecrf.labels.schemes import goes_on, letter_and_type
from spacy_treecrf.models.predictor import ScoredSequences

Doubles = npt.NDArray[np.float64]
LabelIds = dict[tuple[str, str], list[int]]  # by letter out of B, I, E, S, and type
APART = 3  # runs that are so far from each other in their order share no rows


def read_span_probabilities(
    scored: ScoredSequences, spans: Sequence[TokenSpan], labels: Sequence[str]
) -> Doubles:
    """P(exactly this span) of each; a beam prunes nothing of them.

    spans: (first row, past the last one, type), rising, without overlap, each in one sequence.
    labels: By id.
    """
    ids: LabelIds = {}
    for y, label in enumerate(labels):
        ids.setdefault(letter_and_type(label), []).append(y)
    found, first = [np.empty(0)], 0
    firsts = [span[0] for span in spans]
    for rows, part in scored.unpruned().parts():
        past = bisect_left(firsts, rows.stop)
        own = [(a - rows.start, b - rows.start, name) for a, b, name in spans[first:past]]
        found.append(_of_known_scores(part, own, ids))
        first = past
    return np.concatenate(found)


def _of_known_scores(scored: ScoredSequences, spans: Sequence[TokenSpan], ids: LabelIds) -> Doubles:
    """P(exactly this span) of each, which asks for the scores many times."""
    bounds = set(scored.data.offsets.tolist())
    found = np.zeros(len(spans))
    for before, behind in product((0, 1), repeat=2):
        chosen = [
            k
            for k, (first, last, _) in enumerate(spans)
            if not (before and first in bounds) and not (behind and last in bounds)
        ]
        runs = [(spans[k][0] - before, spans[k][1] + behind, spans[k][2]) for k in chosen]
        found[chosen] += (-1) ** (before + behind) * _run_probabilities(scored, runs, ids)
    clipped: Doubles = np.clip(found, 0.0, 1.0)
    return clipped


def expected_spans(scored: ScoredSequences, labels: Sequence[str]) -> Doubles:
    """How many spans are expected to begin at each row. shape: (n_rows,)

    A beam prunes nothing of them. Under rules, which say nothing of pairs of labels, labels count
    that begin spans, or end them.
    """
    scored = scored.unpruned()
    nodes = scored.marginals()
    parts = [letter_and_type(label) for label in labels]
    if scored.ruled is not None:
        begins = any(letter in ("B", "S") for letter, _ in parts)
        counted = ("B", "S") if begins else ("E",)
        return _sum_of(nodes, [letter in counted for letter, _ in parts])
    pairs = np.array([[goes_on(before, part) for part in parts] for before in parts])
    inside = _sum_of(nodes, [letter != OUTSIDE for letter, _ in parts])
    return inside - scored.probability_of_pairs(pairs)


def _sum_of(nodes: Doubles, chosen: Sequence[bool]) -> Doubles:
    total: Doubles = nodes[:, np.array(chosen)].sum(axis=1)
    return total


def _run_probabilities(
    scored: ScoredSequences, runs: Sequence[TokenSpan], ids: LabelIds
) -> Doubles:
    """P(all rows of a run have its type, and each goes on with the one before), of each run.

    A run may reach a row beyond both ends of its span. Around a span of one row, the runs of the
    span before it and of the one behind it share a row.
    """
    ways = [_labels_that_go_on(last - first, name, ids) for first, last, name in runs]
    path = np.zeros(scored.data.n_rows, np.int32)
    found = np.zeros(len(runs))
    for turn in range(APART):
        for way in range(max(map(len, ways), default=0)):
            chosen = [k for k in range(turn, len(runs), APART) if way < len(ways[k])]
            for k in chosen:
                path[runs[k][0] : runs[k][1]] = ways[k][way]
            rows = np.array([runs[k][:2] for k in chosen], np.int64).reshape(-1, 2)
            found[chosen] += scored.span_probabilities(rows, path)
    return found


def _labels_that_go_on(n: int, name: str, ids: LabelIds) -> list[list[int]]:
    """All ways to label n rows of which each goes on with the one before: B or I, I ..., I or E."""

    def of(letters: str) -> list[int]:
        return [y for letter in letters for y in ids.get((letter, name), ())]

    if n == 1:
        return [[y] for y in of("BIES")]
    middles = [[y] * (n - 2) for y in of("I")] if n > 2 else [[]]
    return [
        [*first, *middle, *last]
        for first, middle, last in product(
            ([y] for y in of("BI")), middles, ([y] for y in of("IE"))
        )
    ]
