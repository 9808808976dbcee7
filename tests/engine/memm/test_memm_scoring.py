"""Locally normalised models: training rows, exact scores and search, against naive twins."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.boosting import Booster
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.chain.chain import Chain, path_scores
from spacy_treecrf.engine.chain.decoding import viterbi
from spacy_treecrf.engine.memm.label_history import LabelHistory, reversal, turned_round
from spacy_treecrf.engine.memm.memm_scoring import (
    LocalScorer,
    turned_beams,
    turned_chain,
    turned_scores,
)
from spacy_treecrf.engine.sequences import ABSENT, UNKNOWN_LABEL
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, LEAF
from tests.engine.enumeration import context_of, enumerate_paths
from tests.engine.training_data import Training, random_training, sequences_of

ONE = Workers(1)
K = 3
MASKS = (np.zeros(K, np.float32), np.zeros((K, K), np.float32), np.zeros(K, np.float32))
ORDERS = [0, 1, 2, 3]


def booster_of(training: Training, order: int, **settings) -> Booster:
    history = LabelHistory(K, order)
    small = {"leaves": 6, "min_rows": 2, "linear_rounds": 2, **settings}
    return Booster(
        history.rows(training.data),
        history.columns(training.columns),
        K,
        MASKS,
        Settings(family="separate", order=0, **small),
        ONE,
    )


def scorer_of(training: Training, order: int, rounds: int = 5) -> LocalScorer:
    potentials = booster_of(training, order).boost(rounds)
    bin_values = training.columns.bin_values
    return LocalScorer(
        LabelHistory(K, order), potentials.forest, potentials.linear, bin_values, len(bin_values)
    )


def naive_log_p(scorer: LocalScorer, data, row: int, past: list[int]) -> np.ndarray:
    """log P(y | the labels before it, nearest first), by walking the trees."""
    history = scorer.history
    padded = (past + [K] * history.order)[: history.order]
    features = {lag * (K + 1) + y for lag, y in enumerate(padded)}
    features |= {int(c) + history.n_features for c in data.feature_ids[row] if c >= 0}
    total = scorer.linear.categorical[sorted(features)].sum(axis=0, dtype=float)
    bins = scorer.linear.bin_scores(scorer.bin_values)
    for column in range(data.numeric.shape[1]):
        total += bins[column, data.numeric[row, column]]
    forest = scorer.forest
    for tree in range(forest.n_trees):
        first = node = int(forest.tree_first[tree])
        while forest.kind[node] != LEAF:
            test = forest.feature[node]
            if forest.kind[node] == CATEGORICAL:
                holds = test in features
            else:
                holds = data.numeric[row, test] > forest.threshold[node]
            node = first + int((forest.right if holds else forest.left)[node])
        total[forest.tree_class[tree]] += forest.value[node]
    return total - np.logaddexp.reduce(total)


def test_rows_hold_their_annotated_history() -> None:
    data = sequences_of([0, 3, 4], [2, UNKNOWN_LABEL, 1, 0])
    feature_ids = LabelHistory(K, 2).rows(data).feature_ids
    start_1, start_2 = K, (K + 1) + K
    assert feature_ids.tolist() == [
        [start_1, start_2],
        [2, start_2],
        [ABSENT, (K + 1) + 2],
        [start_1, start_2],
    ]


@pytest.mark.parametrize("order", ORDERS)
def test_trees_are_those_of_the_joint_table_with_one_context_a_row(order: int) -> None:
    """The likelihood that boosting climbs is that of the annotated labels, one by one."""
    training = random_training(3)
    booster = booster_of(training, order, linear_rounds=1)
    potentials = booster.boost(5)
    bin_values = training.columns.bin_values
    scorer = LocalScorer(
        LabelHistory(K, order), potentials.forest, potentials.linear, bin_values, len(bin_values)
    )
    data = training.data
    total = 0.0
    for begin, end in itertools.pairwise(data.offsets):
        labels = data.labels[begin:end].tolist()
        for t in range(end - begin):
            past = labels[max(0, t - order) : t][::-1]
            total += naive_log_p(scorer, data, begin + t, past)[labels[t]]
    assert booster.log_likelihood * booster.n_annotated == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("order", ORDERS)
def test_joint_scores_are_log_probabilities_of_each_history(order: int) -> None:
    training = random_training(4, n_sequences=60, noise=0.0)
    scorer = scorer_of(training, order, rounds=8)
    assert order == 0 or scorer.history.tests(scorer.forest).any()
    extra = np.random.default_rng(0).normal(size=(training.data.n_rows, K)).astype(np.float32)
    data = training.data
    scores = scorer.joint(data, extra, ONE)
    without = scorer.joint(data, None, ONE)
    assert scores.shape == (data.n_rows, K**order, K)
    for begin, end in itertools.pairwise(data.offsets[:6]):
        for t in range(end - begin):
            for past in itertools.product(range(K), repeat=min(t, order)):
                c = sum(y * K**lag for lag, y in enumerate(past))
                log_p = naive_log_p(scorer, data, begin + t, list(past))
                np.testing.assert_allclose(without[begin + t, c], log_p, atol=2e-5)
                shifted = log_p + extra[begin + t]
                expected = shifted - np.logaddexp.reduce(shifted)
                np.testing.assert_allclose(scores[begin + t, c], expected, atol=2e-5)


def naive_greedy(scorer: LocalScorer, data, s: int) -> tuple[list[int], float]:
    begin, end = data.offsets[s : s + 2]
    labels: list[int] = []
    total = 0.0
    for row in range(begin, end):
        log_p = naive_log_p(scorer, data, row, labels[::-1][: scorer.history.order])
        labels.append(int(np.argmax(log_p)))
        total += log_p.max()
    return labels, total


@pytest.mark.parametrize("order", ORDERS)
def test_a_beam_of_one_is_greedy(order: int) -> None:
    training = random_training(5, n_sequences=12)
    scorer = scorer_of(training, order)
    data = training.data
    beams = scorer.beams(data, None, Chain.free(K, order), 1, ONE)
    assert beams.labels.shape == (data.n_rows, 1)
    for s in range(data.n_sequences):
        labels, total = naive_greedy(scorer, data, s)
        assert beams.labels[data.offsets[s] : data.offsets[s + 1], 0].tolist() == labels
        assert beams.log_p[s, 0] == pytest.approx(total, abs=1e-5)


def naive_beam(scorer: LocalScorer, data, s: int, chain: Chain, width: int):
    """Label sequences and log probabilities: expand all, keep the best of each history."""
    begin, end = data.offsets[s : s + 2]
    kept: list[tuple[float, list[int]]] = [(0.0, [])]
    order = scorer.history.order
    for row in range(begin, end):
        best: dict[tuple[int, ...], tuple[float, list[int]]] = {}
        for value, path in kept:
            log_p = naive_log_p(scorer, data, row, path[::-1][:order])
            for y in range(K):
                new = value + log_p[y]
                if order:
                    new += chain.trans[path[-1], y] if path else chain.start[y]
                    new += chain.end[y] if row == end - 1 else 0.0
                history = tuple([*path, y][-order:]) if order else ()
                if new > best.get(history, (-np.inf,))[0]:
                    best[history] = (new, [*path, y])
        kept = sorted(best.values(), key=lambda pair: -pair[0])[:width]
    return kept


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_beams_are_those_of_a_naive_search(order: int, width: int) -> None:
    training = random_training(14, n_sequences=15, noise=0.5)
    scorer = scorer_of(training, order)
    data = training.data
    start, trans, end = (mask.copy() for mask in MASKS)
    trans[1, 1] = end[2] = -np.inf
    chain = Chain(order, start, trans, end)
    beams = scorer.beams(data, None, chain, width, ONE)
    for s in range(data.n_sequences):
        kept = naive_beam(scorer, data, s, chain, width)
        assert beams.counts[s] == len(kept)
        rows = slice(data.offsets[s], data.offsets[s + 1])
        for i, (value, path) in enumerate(kept):
            assert beams.labels[rows, i].tolist() == path
            assert beams.log_p[s, i] == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_a_beam_of_full_width_is_exact_decoding(order: int, turned: bool) -> None:
    """With a forbidden transition, start and end; exact decoding sees the presented scores."""
    training = random_training(6, n_sequences=25, longest=6)
    data = training.data
    start, trans, end = (mask.copy() for mask in MASKS)
    start[1] = trans[0, 2] = end[0] = -np.inf
    chain = Chain(order, start, trans, end)
    seen = turned_round(data) if turned else data
    oriented = replace(training, data=seen)
    scorer = scorer_of(oriented, order)
    scores = scorer.joint(seen, None, ONE)
    beams = scorer.beams(seen, None, turned_chain(chain) if turned else chain, K**order, ONE)
    if turned:
        scores = turned_scores(scores, data.offsets, order)
        beams = turned_beams(beams, data.offsets)
    labels, best = viterbi(scores, data.offsets, chain)
    np.testing.assert_array_equal(beams.labels[:, 0], labels)
    np.testing.assert_allclose(beams.log_p[:, 0], best, atol=1e-4)
    # what is behind the first place is a true label sequence with its true probability
    for place in range(int(beams.counts.min())):
        found = path_scores(scores, data.offsets, beams.labels[:, place], chain)
        np.testing.assert_allclose(beams.log_p[:, place], found, atol=1e-4)


@pytest.mark.parametrize("order", [1, 2])
def test_wider_beams_find_no_worse_sequences(order: int) -> None:
    training = random_training(7, n_sequences=40, noise=0.5)
    scorer = scorer_of(training, order, rounds=8)
    best = [
        scorer.beams(training.data, None, Chain.free(K, order), width, ONE).log_p[:, 0].sum()
        for width in (1, 2, K**order)
    ]
    assert best[0] <= best[1] <= best[2]
    assert best[0] < best[2]


@pytest.mark.parametrize("order", ORDERS)
def test_turned_scores_give_every_sequence_its_probability_from_the_right(order: int) -> None:
    training = random_training(8, n_sequences=10, longest=4)
    data = training.data
    seen = turned_round(data)
    scorer = scorer_of(replace(training, data=seen), order)
    scores = scorer.joint(seen, None, ONE)
    turned = turned_scores(scores, data.offsets, order)
    chain = Chain.free(K, order)
    for begin, end in itertools.pairwise(data.offsets):
        truth = enumerate_paths(turned[begin:end], chain)
        assert truth.log_z == pytest.approx(0.0, abs=1e-5)
        for path, score in zip(truth.paths, truth.scores, strict=True):
            back = path[::-1]
            expected = sum(
                float(scores[begin + i, context_of(back, i, order, K), y])
                for i, y in enumerate(back)
            )
            assert score == pytest.approx(expected, abs=1e-5)


def test_turning_round_twice_changes_nothing() -> None:
    training = random_training(9)
    data = training.data
    rows = reversal(data.offsets)
    np.testing.assert_array_equal(rows[rows], np.arange(data.n_rows))
    again = turned_round(turned_round(data))
    np.testing.assert_array_equal(again.feature_ids, data.feature_ids)
    np.testing.assert_array_equal(again.labels, data.labels)


@pytest.mark.parametrize("width", [1, 2])
def test_nodes_of_beams_are_the_mean_of_their_local_probabilities(width: int) -> None:
    training = random_training(10, n_sequences=6, longest=4)
    scorer = scorer_of(training, 2)
    data = training.data
    beams = scorer.beams(data, None, Chain.free(K, 2), width, ONE)
    for s, (begin, end) in enumerate(itertools.pairwise(data.offsets)):
        shares = np.exp(beams.log_p[s, : beams.counts[s]])
        shares /= shares.sum()
        for t in range(end - begin):
            expected = np.zeros(K)
            for i, share in enumerate(shares):
                past = beams.labels[begin : begin + t, i].tolist()[::-1][:2]
                expected += share * np.exp(naive_log_p(scorer, data, begin + t, past))
            np.testing.assert_allclose(beams.nodes[begin + t], expected, atol=1e-5)


def test_a_beam_keeps_to_the_allowed_labels() -> None:
    training = random_training(12, n_sequences=15)
    scorer = scorer_of(training, 1)
    data = training.data
    allowed = np.ones((data.n_rows, K), np.uint8)
    allowed[::2] = np.eye(K, dtype=np.uint8)[np.arange(len(allowed[::2])) % K]
    chain = Chain.free(K, 1)
    beams = scorer.beams(data, None, chain, K, ONE, allowed)
    scores = scorer.joint(data, None, ONE)
    scores[np.repeat(allowed[:, None, :] == 0, K, axis=1)] = -1e4
    np.testing.assert_array_equal(beams.labels[:, 0], viterbi(scores, data.offsets, chain)[0])


def test_a_beam_that_constraints_leave_empty_goes_on_without_them() -> None:
    training = random_training(11, n_sequences=8)
    scorer = scorer_of(training, 1)
    start, trans, end = (mask.copy() for mask in MASKS)
    trans[:] = -np.inf
    beams = scorer.beams(training.data, None, Chain(1, start, trans, end), 4, ONE)
    assert (beams.counts > 0).all()
    assert np.isfinite(beams.log_p[:, 0]).all()
