"""Boosting with future features: its parts against naive twins, and what must hold of a run."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from scripts.reproduce.future_bits import FutureBits, bit_features
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.future.detector_growth import DetectorGrower
from spacy_treecrf.engine.future.detectors import N_BITS, DetectorScorer, thermometer
from spacy_treecrf.engine.future.future_boosting import FutureBooster
from spacy_treecrf.engine.future.future_parts import Field, Part
from spacy_treecrf.engine.future.future_potentials import FuturePotentials
from spacy_treecrf.engine.future.local_steps import log_likelihood, residuals
from spacy_treecrf.engine.limits import TO_THE_END
from spacy_treecrf.engine.memm.label_history import LabelHistory
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, LEAF
from spacy_treecrf.engine.trees.tree_rounds import grow_trees, tree_input
from spacy_treecrf.models.memm.settings import FutureSettings
from tests.engine.training_data import random_training

ONE = Workers(1)
SETTINGS = FutureSettings(min_rows=1)


def bits(problem: str, n: int, stream: str, columns: Columns | None = None):
    records = FutureBits(problem, length=12, bag=3, seed=1).sample(n, stream)
    X = [bit_features(record) for record in records]
    if columns is None:
        columns, offsets, feature_ids, numeric = fit_columns(X)
    else:
        offsets, feature_ids, numeric = columns.encode(X)
    y = np.array([int(label) for r in records for label in r.labels["label"]], np.int32)
    return columns, Sequences(offsets, feature_ids, numeric, y, np.ones(len(y), np.float32))


def booster_of(problem: str = "or", order: int = 0, workers: Workers = ONE, **settings):
    columns, train = bits(problem, 150, "train")
    _, dev = bits(problem, 50, "dev", columns)
    settings = replace(SETTINGS, **settings)
    return FutureBooster(train, columns, LabelHistory(2, order), 3, settings, workers, None, dev)


def field_of(training, label: int, bag: int) -> Field:
    history = LabelHistory(len(training.labels), 1)
    part = Part(training.data, history, ONE)
    scores = np.random.default_rng(0).normal(size=part.scores.shape)
    others = np.logaddexp.reduce(np.delete(scores, label, axis=1), axis=1)
    return Field(part, bag, ONE, scores[:, label], others, part.labels == label)


@pytest.mark.parametrize("bag", [2, TO_THE_END])
@pytest.mark.parametrize("label", [0, 2])
def test_slopes_are_the_derivative_by_the_score_of_a_bag(label: int, bag: int) -> None:
    """d value / d G_i = sum over bags with i of slopes[t] * p_i (proposition 5.2)."""
    training = random_training(1, n_sequences=8, unknown=0.2, weighted=True)
    field = field_of(training, label, bag)
    rng = np.random.default_rng(2)
    scores = rng.normal(-1.0, 1.0, training.data.n_rows)
    eta, step = 1.7, 1e-5
    slopes = field.slopes(scores, eta)
    for begin, end in itertools.pairwise(training.data.offsets):
        for i in range(begin, end):
            first = max(begin, i - bag)
            expected = slopes[first:i].sum() / (1 + np.exp(-scores[i]))
            moved = [scores.copy(), scores.copy()]
            moved[0][i] += step
            moved[1][i] -= step
            slope = (field.value(moved[0], eta) - field.value(moved[1], eta)) / (2 * step)
            assert slope == pytest.approx(expected, rel=1e-4, abs=1e-7)


def test_a_tree_of_rows_weighted_by_bags_is_that_of_one_example_for_each_bag() -> None:
    """Hao fits trees to one example for each instance of each bag; rows are their sums."""
    training = random_training(3, n_sequences=25)
    data, bag = training.data, 3
    rng = np.random.default_rng(0)
    rows, g = [], []
    for begin, end in itertools.pairwise(data.offsets):
        for t in range(begin, end):
            for i in range(t + 1, min(end, t + 1 + bag)):
                rows.append(i)
                g.append(np.float32(np.round(rng.normal() * 1024) / 1024))
    rows, g = np.array(rows), np.array(g, np.float32)
    summed, bags = np.zeros((data.n_rows, 1), np.float32), np.zeros((data.n_rows, 1), np.float32)
    np.add.at(summed[:, 0], rows, g)
    np.add.at(bags[:, 0], rows, 1.0)
    table = Sequences(
        np.array([0, len(rows)]),
        data.feature_ids[rows],
        data.numeric[rows],
        data.labels[rows],
        np.ones(len(rows), np.float32),
    )
    settings = replace(SETTINGS, leaves=6, trim=0.0, subsample=1.0)
    columns = training.columns

    def grown(part, gradient):
        rows = tree_input(part, columns, 1)
        (tree,) = grow_trees(rows, lambda _: gradient, [0], settings, np.uint64(0), ONE)
        return tree

    one = grown(data, (summed, bags))
    other = grown(table, (g[:, None], np.ones((len(g), 1), np.float32)))
    assert len(one.kind) > 5
    for name in ("kind", "feature", "threshold", "left", "right"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_allclose(one.value, other.value, rtol=1e-6)


@pytest.mark.parametrize("newton", [False, True])
def test_residuals_and_likelihood_of_independent_rows(newton: bool) -> None:
    rng = np.random.default_rng(4)
    n, k, step = 50, 4, 0.7
    scores = rng.normal(size=(n, k)).astype(np.float32)
    direction = rng.normal(size=(n, k)).astype(np.float32)
    labels = rng.integers(0, k, n).astype(np.int32)
    weights = rng.choice([0.0, 1.0, 2.0], n).astype(np.float32)
    data = Sequences(
        np.array([0, 20, 50]),
        np.zeros((n, 0), np.int32),
        np.zeros((n, 0), np.uint8),
        labels,
        weights,
    )
    moved = scores.astype(float) + step * direction
    log_p = moved - np.logaddexp.reduce(moved, axis=1, keepdims=True)
    expected = float(np.sum(weights * log_p[np.arange(n), labels]))
    found = log_likelihood(data, weights, scores, direction, step, ONE)
    assert found == pytest.approx(expected, rel=1e-6)
    g, h = np.zeros((k, n, 1), np.float32), np.zeros((k, n, 1), np.float32)
    residuals(scores, labels, weights, 2.0 if newton else 0.0, 0, n, g, h)
    p = np.exp(scores - np.logaddexp.reduce(scores.astype(float), axis=1, keepdims=True))
    expected_g = np.eye(k)[labels] - p
    expected_h = (
        np.maximum(2 * p * (1 - p), np.abs(expected_g) / 2.0) if newton else np.ones((n, k))
    )
    np.testing.assert_allclose(g[:, :, 0].T, weights[:, None] * expected_g, atol=1e-6)
    np.testing.assert_allclose(h[:, :, 0].T, weights[:, None] * expected_h, atol=1e-6)


def test_thermometer_has_twenty_even_bins() -> None:
    edges = np.arange(N_BITS + 1) / N_BITS
    assert thermometer(np.array([0.0, 0.05, 0.0501, 0.5, 0.51, 0.95, 0.951, 1.0])).tolist() == [
        1, 1, 2, 10, 11, 19, 20, 20,
    ]  # fmt: skip
    middle = (edges[1:] + edges[:-1]) / 2
    assert thermometer(middle).tolist() == list(range(1, N_BITS + 1))


def naive_instance_scores(detector, data: Sequences) -> np.ndarray:
    forest = detector.forest
    out = np.full(data.n_rows, detector.start)
    for row in range(data.n_rows):
        for tree in range(forest.n_trees):
            first = node = int(forest.tree_first[tree])
            while forest.kind[node] != LEAF:
                test = forest.feature[node]
                if forest.kind[node] == CATEGORICAL:
                    holds = test in data.feature_ids[row]
                else:
                    holds = data.numeric[row, test] > forest.threshold[node]
                node = first + int((forest.right if holds else forest.left)[node])
            out[row] += forest.value[node]
    return out


def test_the_bag_label_is_found() -> None:
    booster = booster_of("or")
    potentials = booster.boost(80)
    assert potentials.detectors
    assert booster.held_out.accuracy(booster.held_out.scores) > 0.99
    data = booster.held_out.data
    scorer = DetectorScorer(potentials.detectors, len(booster.columns.counts), 0, 3)
    scores = scorer.instance_scores(data, ONE)
    for own, detector in zip(scores, potentials.detectors, strict=True):
        np.testing.assert_allclose(own, naive_instance_scores(detector, data), atol=1e-3)
    q = scorer.bag_probabilities(data, ONE)
    for own, g in zip(q, scores, strict=True):
        p = 1 / (1 + np.exp(-g))
        for begin, end in itertools.pairwise(data.offsets):
            expected = [1 - np.prod(1 - p[t + 1 : min(end, t + 4)]) for t in range(begin, end)]
            np.testing.assert_allclose(own[begin:end], expected, atol=1e-9)
            assert own[end - 1] == 0.0  # no position follows


@pytest.mark.parametrize("order", [0, 2])
@pytest.mark.parametrize("problem", ["or", "xor"])
def test_scores_that_were_added_up_are_those_of_the_potentials(problem: str, order: int) -> None:
    booster = booster_of(problem, order)
    booster.boost(60)
    for part in booster.parts:
        again = FutureBooster(
            part.data, booster.columns, booster.history, 3, booster.settings, ONE, booster.learned
        )
        np.testing.assert_array_equal(
            again._with_pushes(0), booster._with_pushes(booster.parts.index(part))
        )


def test_the_training_likelihood_falls_only_where_a_phase_goes_back_to_its_best() -> None:
    booster = booster_of("extra")
    values, growing = [booster.log_likelihood], [0]
    booster.boost(
        60, lambda info: (values.append(info.log_likelihood), growing.append(len(booster._growing)))
    )
    falls = [i for i in range(1, len(values)) if values[i] < values[i - 1] - 1e-9]
    # a top-level phase ends, and its rounds that did not help the held-out part are taken back
    assert all(growing[i] > growing[i - 1] or booster.finished for i in falls)
    assert values[-1] > values[0]


class Recorded(FutureBooster):
    """Writes down which level each round was of."""

    levels = ""

    def _top_round(self) -> None:
        self.levels += "t"
        super()._top_round()

    def _lower_round(self) -> None:
        self.levels += "l"
        super()._lower_round()


@pytest.mark.parametrize("most", [1, 2, 10])
@pytest.mark.parametrize("problem", ["or", "xor"])
def test_lower_level_rounds_in_a_row_are_limited(problem: str, most: int) -> None:
    columns, train = bits(problem, 150, "train")
    _, dev = bits(problem, 50, "dev", columns)
    settings = replace(SETTINGS, detector_rounds=most)
    booster = Recorded(train, columns, LabelHistory(2, 0), 3, settings, ONE, None, dev)
    potentials = booster.boost(80)
    runs = [len(run) for run in booster.levels.split("t") if run]
    assert 1 <= max(runs) <= most
    assert len(booster.levels) == booster.potentials.rounds
    trees = [detector.forest.n_trees for detector in potentials.detectors]
    assert trees
    assert max(trees) <= most


def test_threads_change_nothing() -> None:
    with Workers(3) as three:
        results = [booster_of("xor", 1, workers).boost(30) for workers in (ONE, three)]
    one, other = results
    assert len(one.detectors) == len(other.detectors)
    assert one.rounds == other.rounds
    for name in ("kind", "feature", "threshold", "value"):
        np.testing.assert_array_equal(getattr(one.forest, name), getattr(other.forest, name))
    for a, b in zip(one.detectors, other.detectors, strict=True):
        assert (a.label, a.start, a.eta) == (b.label, b.start, b.eta)
        np.testing.assert_array_equal(a.forest.value, b.forest.value)


@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_three_labels_have_detectors_of_their_own(unknown: float) -> None:
    """The label is that of the largest word which follows within 2, else the first one."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(120):
        words = rng.integers(0, 6, 8)
        X.append([{"word": str(word)} for word in words])
        after = [words[t + 1 : t + 3] for t in range(8)]
        y += [2 if 5 in few else 1 if 4 in few else 0 for few in after]
    columns, offsets, feature_ids, numeric = fit_columns(X)
    labels = np.array(y, np.int32)
    labels[rng.random(len(labels)) < unknown] = UNKNOWN_LABEL
    data = Sequences(offsets, feature_ids, numeric, labels, np.ones(len(labels), np.float32))
    train, dev = data.subset(np.arange(80)), data.subset(np.arange(80, 120))
    booster = FutureBooster(train, columns, LabelHistory(3, 0), 2, SETTINGS, ONE, None, dev)
    potentials = booster.boost(100)
    assert {detector.label for detector in potentials.detectors} >= {1, 2}
    assert booster.held_out.accuracy(booster.held_out.scores) > 0.99


def test_one_label_leaves_nothing_to_learn() -> None:
    training = random_training(5, n_labels=1)
    booster = FutureBooster(training.data, training.columns, LabelHistory(1, 1), 2, SETTINGS, ONE)
    potentials = booster.boost(10)
    assert potentials == FuturePotentials((), (), 0)
    assert booster.log_likelihood == 0.0


def test_without_held_out_data_the_training_data_decide() -> None:
    columns, train = bits("or", 60, "train")
    booster = FutureBooster(train, columns, LabelHistory(2, 0), 3, SETTINGS, ONE)
    booster.boost(400)
    assert booster.finished
    assert booster.potentials.detectors
    assert booster.train.accuracy(booster.train.scores) > 0.99


def test_a_detector_without_a_gradient_is_closed() -> None:
    """In sequences of one position no bag holds anything."""
    training = random_training(6, longest=1)
    part = Part(training.data, LabelHistory(3, 0), ONE)
    grower = DetectorGrower(training.columns, 2, SETTINGS, [part], ONE)
    growing = grower.started(0)
    field = Field(
        part, 2, ONE, np.zeros(part.data.n_rows), np.zeros(part.data.n_rows), part.labels == 0
    )
    grown = grower.grown(growing, [field], 0, np.uint64(0))
    assert not grown.open
    assert grown.rounds == 0
