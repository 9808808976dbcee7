"""What parts of a sequence say, against the enumeration of all label sequences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.explain.messages import Messages
from tests.engine.enumeration import enumerate_paths, random_problem


def naive_view(scores, chain: Chain, t: int, left: bool, right: bool):
    """P(label at t) from the scores of t and of the rows before or after it, label by label.

    Labels of rows that are left out are summed over, with the same weight for each; so are
    transitions from them and to them.
    """
    length, n_labels, order = len(scores), chain.n_labels, chain.order
    first = 0 if left else max(0, t - order)
    last = length if right else t + 1
    found = np.zeros(n_labels)
    for labels in itertools.product(range(n_labels), repeat=last - first):
        y = dict(zip(range(first, last), labels, strict=True))
        total = 0.0
        for s in range(0 if left else t, last):
            context = sum(
                y[s - lag] * n_labels ** (lag - 1) for lag in range(1, order + 1) if s >= lag
            )
            total += float(scores[s, context if scores.shape[1] > 1 else 0, y[s]])
            if order and s == 0 and left:
                total += float(chain.start[y[s]])
            if order and s > 0 and (left or s > t):
                total += float(chain.trans[y[s - 1], y[s]])
            if order and s == length - 1 and right:
                total += float(chain.end[y[s]])
        found[y[t]] += np.exp(total)
    return found / found.sum()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    order=st.integers(0, 3),
    n_labels=st.integers(2, 3),
    length=st.integers(1, 5),
    joint=st.booleans(),
)
def test_views_equal_enumeration(seed, order, n_labels, length, joint):
    problem = random_problem(seed, order, n_labels, [length], joint=joint)
    scores, chain = problem.scores, problem.chain
    messages = Messages(scores, chain)
    marginals = enumerate_paths(scores, chain).pair_marginals(length).sum(axis=1)
    for t in range(length):
        views = messages.views(t)
        np.testing.assert_allclose(views.both, marginals[t], atol=1e-9)
        np.testing.assert_allclose(views.both, naive_view(scores, chain, t, True, True), atol=1e-9)
        alone = naive_view(scores, chain, t, False, False)
        np.testing.assert_allclose(views.alone, alone, atol=1e-9)
        np.testing.assert_allclose(views.left, naive_view(scores, chain, t, True, False), atol=1e-9)
        right = naive_view(scores, chain, t, False, True)
        np.testing.assert_allclose(views.right, right, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    order=st.integers(0, 2),
    length=st.integers(1, 5),
    joint=st.booleans(),
    forbidden=st.sampled_from([0.0, 0.3]),
)
def test_other_scores_of_a_position_give_the_marginals_of_the_changed_sequence(
    seed, order, length, joint, forbidden
):
    problem = random_problem(seed, order, 3, [length], joint=joint, forbidden=forbidden)
    scores, chain = problem.scores, problem.chain
    rng = np.random.default_rng(seed)
    t = int(rng.integers(length))
    others = rng.normal(size=(4, *scores.shape[1:])).astype(np.float32)
    found = Messages(scores, chain).probabilities(t, others)
    for other, probabilities in zip(others, found, strict=True):
        changed = scores.copy()
        changed[t] = other
        expected = enumerate_paths(changed, chain).pair_marginals(length).sum(axis=1)[t]
        np.testing.assert_allclose(probabilities, expected, atol=1e-9)


@pytest.mark.parametrize("scale", [1e3, 1e-3])
def test_long_sequences_and_huge_scores_neither_overflow_nor_vanish(scale):
    rng = np.random.default_rng(0)
    scores = (scale * rng.normal(size=(3000, 1, 3))).astype(np.float32)
    chain = Chain(1, *(rng.normal(size=shape).astype(np.float32) for shape in (3, (3, 3), 3)))
    views = Messages(scores, chain).views(1500)
    for view in (views.alone, views.left, views.right, views.both):
        assert np.isfinite(view).all()
        assert view.sum() == pytest.approx(1.0)
