"""How unsure models are of sequences, exactly: entropy, confidence, wrong spans, disagreement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spacy_treecrf.labels.biluo import TokenSpan
from spacy_treecrf.labels.schemes import are_span_labels, conll_spans
from spacy_treecrf.models.predictor import ScoredSequences
from spacy_treecrf.models.spans.read_spans import expected_spans, read_span_probabilities

Doubles = npt.NDArray[np.float64]

ENTROPY, CONFIDENCE, WRONG, COMMITTEE = STRATEGIES = (
    "entropy",
    "confidence",
    "wrong",
    "committee",
)


def uncertainties(
    strategy: str, scored: ScoredSequences, labels: list[str], others: Sequence[Doubles] = ()
) -> Doubles:
    """How unsure a model is of each sequence; the larger, the more there is to learn from it.

    entropy: The entropy of the label sequence, in nats. confidence: -log P(best labels). wrong: How
    many predicted or overlooked spans are expected to be wrong; without spans, how many labels.
    committee: How far models disagree, see `disagreement`.
    labels: By id. others: Of a committee, marginals of its other members.
    """
    if strategy == ENTROPY:
        return scored.entropies()
    if strategy == CONFIDENCE:
        return -scored.log_probability_of(scored.labels())
    if strategy == WRONG:
        return expected_errors(scored, labels)
    if strategy == COMMITTEE:
        per_row = disagreement([scored.marginals(), *others])
        return sums(per_row, scored.data.offsets)
    raise ValueError(
        f"treecrf: there is no strategy {strategy!r}; use one of {', '.join(STRATEGIES)}"
    )


def doubt(scored: ScoredSequences) -> Doubles:
    """1 - P(most probable label) of every position."""
    found: Doubles = 1.0 - scored.marginals().max(axis=1)
    return found


def expected_errors(scored: ScoredSequences, labels: list[str]) -> Doubles:
    """The expected number of wrong and of overlooked spans of each sequence, or of wrong labels.

    Of the predicted spans, E[wrong] = sum of 1 - P(span). Of all spans, E[overlooked] =
    E[number of spans] - sum of P(predicted span): expectations add up, whatever depends on what.
    All of them are of one distribution, that of the chain without a beam.
    """
    predicted, exact = scored.labels(), scored.unpruned()
    offsets = scored.data.offsets
    if not are_span_labels(labels):
        nodes, chosen = exact.marginals(), predicted[:, None].astype(np.int64)
        return sums(1.0 - np.take_along_axis(nodes, chosen, axis=1)[:, 0], offsets)
    expected = sums(expected_spans(exact, labels), offsets)
    spans = predicted_spans(scored, labels)
    chances = read_span_probabilities(exact, spans, labels)
    owners = np.searchsorted(offsets, [first for first, _, _ in spans], side="right") - 1
    right = np.bincount(owners, chances, len(expected))
    found = np.bincount(owners, minlength=len(expected))
    errors: Doubles = np.maximum(0.0, found - right) + np.maximum(0.0, expected - right)
    return errors


def predicted_spans(scored: ScoredSequences, labels: list[str]) -> list[TokenSpan]:
    """The spans of the predicted labels: first row, past the last one, type."""
    predicted = scored.labels()
    return [
        (first + start, first + end, name)
        for first, last in pairwise(scored.data.offsets.tolist())
        for start, end, name in conll_spans([labels[y] for y in predicted[first:last]])
    ]


def disagreement(marginals: Sequence[Doubles]) -> Doubles:
    """The Jensen-Shannon divergence of the members' labels at every position, in nats.

    H(mean of the members' distributions) - mean of their entropies. shape: (n_rows,)
    """
    if len(marginals) < 2:
        raise ValueError("treecrf: a committee needs two models or more")
    mean = np.mean(np.stack(marginals), axis=0)
    own = np.mean([_entropy(one) for one in marginals], axis=0)
    found: Doubles = np.maximum(0.0, _entropy(mean) - own)
    return found


def sums(values: Doubles, offsets: npt.NDArray[np.int64]) -> Doubles:
    """The sum of the values of each sequence."""
    totals = np.concatenate([[0.0], np.cumsum(values)])
    found: Doubles = totals[offsets[1:]] - totals[offsets[:-1]]
    return found


def _entropy(p: Doubles) -> Doubles:
    log_p = np.log(p, out=np.zeros_like(p), where=p > 0.0)
    found: Doubles = -(p * log_p).sum(axis=1)
    return found
