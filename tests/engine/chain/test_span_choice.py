"""The spans that serve F1 best, against all sets of spans that do not overlap."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.chain.chain import Chain, node_marginals
from spacy_treecrf.engine.chain.constraints import constrain
from spacy_treecrf.engine.chain.decoding import viterbi
from spacy_treecrf.engine.chain.span_choice import SpanLabels, choose_spans
from spacy_treecrf.labels.biluo import biluo_spans

LABELS = ["B-X", "O", "U-Y", "L-X", "I-X", "U-X", "B-Y", "L-Y"]  # no I-Y
SPANS: SpanLabels = (
    1,
    np.array([[0, 4, 3, 5], [6, -1, 7, 2]], np.int64),
    np.array([label[0] in "BOU" for label in LABELS]),
)
OFFSETS = np.array([0, 4, 4, 5, 8], np.int64)

Span = tuple[int, int, str]


def chain_of(
    start: np.ndarray | float = 0.0, trans: np.ndarray | float = 0.0, end: np.ndarray | float = 0.0
) -> Chain:
    """A chain of order 1 with these potentials, and no labellings but those of spans."""
    allowed = constrain("biluo", LABELS, order=1)
    return Chain(1, *(a + b for a, b in zip(allowed, (start, trans, end), strict=True)))


def random_case(seed: int, joint: bool, scale: float) -> tuple[np.ndarray, Chain, np.ndarray]:
    """Scores, their chain, and marginals."""
    rng = np.random.default_rng(seed)
    n = len(LABELS)
    size = OFFSETS[-1], n if joint else 1, n
    scores = (scale * rng.normal(size=size)).astype(np.float32)
    chain = chain_of(rng.normal(size=n), rng.normal(size=(n, n)), rng.normal(size=n))
    return scores, chain, node_marginals(scores, OFFSETS, chain)[0]


def chosen(
    scores: np.ndarray,
    chain: Chain,
    nodes: np.ndarray,
    threshold: float,
    spans: SpanLabels = SPANS,
) -> tuple[list[int], int]:
    labels = viterbi(scores, OFFSETS, chain)[0].astype(np.int32)
    moves = chain.scaled_moves.factors, chain.steps.end
    rows = scores, OFFSETS, nodes
    n_looked_at = choose_spans(rows, (0, len(OFFSETS) - 1), moves, spans, threshold, labels)
    return labels.tolist(), n_looked_at


def span_probabilities_naive(scores: np.ndarray, chain: Chain) -> dict[Span, float]:
    """The probability of every span, from all labellings of a sequence."""
    weights: dict[tuple[int, ...], float] = {}
    steps = chain.steps
    for path in product(range(len(LABELS)), repeat=len(scores)):
        total = 0.0
        for t, label in enumerate(path):
            table = path[t - 1] if t and scores.shape[1] > 1 else 0
            total += float(scores[t, table, label])
            total += steps.moves[path[t - 1] if t else len(LABELS), label]
        weights[path] = total + (steps.end[path[-1]] if path else 0.0)
    top = max(weights.values())
    z = sum(np.exp(weight - top) for weight in weights.values())
    found: dict[Span, float] = {}
    for path, weight in weights.items():
        names = [LABELS[y] for y in path]
        for span in biluo_spans(names):
            found[span] = found.get(span, 0.0) + float(np.exp(weight - top) / z)
    return found


def sets_of(spans: list[Span], first: int) -> Iterator[list[Span]]:
    """All sets of spans that do not overlap and do not begin before `first`."""
    yield []
    for span in spans:
        if span[0] >= first:
            for rest in sets_of(spans, span[1]):
                yield [span, *rest]


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    joint=st.booleans(),
    scale=st.sampled_from([0.3, 1.0, 2.0, 4.0]),
    threshold=st.sampled_from([0.05, 0.2, 0.45, 0.5]),
)
def test_no_other_spans_gain_more(seed: int, joint: bool, scale: float, threshold: float) -> None:
    scores, chain, nodes = random_case(seed, joint, scale)
    labels, _ = chosen(scores, chain, nodes, threshold)
    for begin, stop in pairwise(OFFSETS.tolist()):
        if begin == stop:
            continue
        p = span_probabilities_naive(scores[begin:stop], chain)
        names = [LABELS[y] for y in labels[begin:stop]]
        found = biluo_spans(names)
        best = max(sets_of(sorted(p), 0), key=lambda some: sum(p[s] - threshold for s in some))
        assert sum(p[s] - threshold for s in found) == pytest.approx(
            sum(p[s] - threshold for s in best), abs=1e-5
        )


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10_000), scale=st.sampled_from([1.0, 3.0, 10.0]))
def test_sequences_that_are_not_looked_at_would_keep_their_labels(seed: int, scale: float) -> None:
    scores, chain, nodes = random_case(seed, False, scale)
    labels, n_looked_at = chosen(scores, chain, nodes, 0.4)
    # Where no label opens a span, a sequence is hardly ever clear.
    never = np.zeros(len(LABELS), np.bool_)
    every, n_more = chosen(scores, chain, nodes, 0.4, (*SPANS[:2], never))
    assert n_looked_at <= n_more
    assert every == labels


def test_scores_that_are_far_apart_are_clear() -> None:
    scores, chain, nodes = random_case(3, False, 400.0)
    labels, n_looked_at = chosen(scores, chain, nodes, 0.45)
    assert n_looked_at == 0
    assert labels == viterbi(scores, OFFSETS, chain)[0].tolist()


def test_labellings_that_share_a_span_add_up() -> None:
    """Of three labellings, two have the span X; the third is the most probable one."""
    x, o, y = (LABELS.index(label) for label in ("U-X", "O", "U-Y"))
    scores = np.full((2, 1, len(LABELS)), -50.0, np.float32)
    scores[0, 0, [x, o]] = scores[1, 0, [o, y]] = 0.0
    trans = np.zeros((len(LABELS), len(LABELS)))
    trans[o, o], trans[o, y] = np.log(4), -20.0
    trans[x, [o, y]] = np.log(3)
    chain = chain_of(trans=trans)
    offsets = np.array([0, 2], np.int64)
    nodes, _ = node_marginals(scores, offsets, chain)
    labels = viterbi(scores, offsets, chain)[0].astype(np.int32)
    assert [LABELS[k] for k in labels] == ["O", "O"]
    moves = chain.scaled_moves.factors, chain.steps.end
    choose_spans((scores, offsets, nodes), (0, 1), moves, SPANS, 0.45, labels)
    assert nodes[0, x] == pytest.approx(0.6, abs=1e-3)
    assert [LABELS[k] for k in labels] == ["U-X", "O"]
