"""How unsure models are of sequences, exactly: entropy, confidence, wrong spans, disagreement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spacy_treecrf.labels.biluo import TokenSpan
from spacy_treecrf.labels.schemes import are_span_labels, conll_spans, letter_and_type
from spacy_treecrf.models.predictor import ScoredSequences

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
    """
    nodes, predicted = scored.marginals(), scored.labels()
    offsets = scored.data.offsets
    if not are_span_labels(labels):
        chosen = np.take_along_axis(nodes, predicted[:, None].astype(np.int64), axis=1)[:, 0]
        return sums(1.0 - chosen, offsets)
    opens = np.array([letter_and_type(label)[0] in ("B", "S") for label in labels])
    expected = sums(nodes[:, opens].sum(axis=1), offsets)
    spans = [
        (first + start, first + end, name)
        for first, last in pairwise(offsets.tolist())
        for start, end, name in conll_spans([labels[y] for y in predicted[first:last]])
    ]
    chances = exact_span_probabilities(scored, spans, predicted, labels)
    owners = np.searchsorted(offsets, [first for first, _, _ in spans], side="right") - 1
    right = np.bincount(owners, chances, len(expected))
    found = np.bincount(owners, minlength=len(expected))
    errors: Doubles = np.maximum(0.0, found - right) + np.maximum(0.0, expected - right)
    return errors


def exact_span_probabilities(
    scored: ScoredSequences,
    spans: Sequence[TokenSpan],
    predicted: npt.NDArray[np.int32],
    labels: list[str],
) -> Doubles:
    """P(exactly this span) of each predicted span, also in schemes that do not mark its end.

    spans: (first row, past the last one, type), in their order. In BIO, what goes on behind the
    span is taken off: P(B I) - P(B I I).
    """
    rows = np.array([span[:2] for span in spans], np.int64).reshape(-1, 2)
    found = scored.span_probabilities(rows, predicted)
    ends = set(scored.data.offsets.tolist())
    for label, y in ((label, y) for y, label in enumerate(labels)):
        letter, name = letter_and_type(label)
        if letter not in ("I", "E"):
            continue
        # Neighbours may share a row, the first of one and the one behind the other: by turns.
        for turn in (0, 1):
            chosen = [
                k
                for k in range(turn, len(spans), 2)
                if spans[k][2] == name
                and spans[k][1] not in ends
                and letter_and_type(labels[predicted[spans[k][1] - 1]])[0] in ("B", "I")
            ]
            longer = rows[chosen] + np.array([0, 1])
            continued = predicted.copy()
            continued[longer[:, 1] - 1] = y
            found[chosen] -= scored.span_probabilities(longer, continued)
    return np.maximum(0.0, found)


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
