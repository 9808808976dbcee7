"""Boosting: it can be interrupted, and nothing but data and settings changes the result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.fixed_grid import GRID, to_grid
from spacy_treecrf.engine.sequences import CHUNK_ROWS, UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.contexts import count_lags, list_contexts
from spacy_treecrf.engine.trees.entries import collect
from spacy_treecrf.engine.trees.splitting import LEAF
from spacy_treecrf.engine.trees.tree_input import TreeInput, TreeLimits
from spacy_treecrf.engine.trees.tree_rounds import LEAST_GAIN
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.storage import container
from tests.engine.enumeration import enumerate_paths
from tests.engine.naive_grower import grow_naively
from tests.engine.small_models import (
    FAMILIES,
    ONE,
    as_bytes,
    assert_never_falls,
    climb,
    empty_model,
    families,
    fitted,
    log_likelihood_of,
)
from tests.engine.training_data import Training, random_training

STEPS = ["newton", "gradient", "conjugate"]


@families
@pytest.mark.parametrize("step", STEPS)
def test_no_penalty_at_all_divides_by_nothing(family, order, step):
    """Rows that are certain have a gradient and a hessian of 0."""
    training = random_training(0, 15, noise=0.0)
    crf = fitted(
        training,
        12,
        family=family,
        order=order,
        step=step,
        penalty=0.0,
        max_step=50.0,
        min_rows=1,
        leaves=31,
        linear_rounds=0,
        subsample=0.5,
    )
    assert np.isfinite(crf.potentials.forest.value).all()
    assert np.isfinite(log_likelihood_of(crf, training.data))


@families
@pytest.mark.parametrize("step", STEPS)
def test_models_are_the_same_bit_for_bit_for_any_number_of_threads(family, order, step):
    training = random_training(1, 1300, unknown=0.05, weighted=True)
    assert training.data.n_rows > CHUNK_ROWS
    start = empty_model(
        training,
        family=family,
        order=order,
        step=step,
        gamma="mixing",
        linear_rounds=1,
        pseudo_rounds=1,
        trim=0.05,
        subsample=0.7,
        colsample=0.8,
        node_colsample=0.8,
        unbiased=step == "conjugate",
        seed=5,
    )
    models = []
    for threads in (1, 2, 4):
        with Workers(threads) as workers:
            models.append(as_bytes(start.boosted(training.data, 4, workers)))
    assert models[0] == models[1] == models[2]


def test_trimming_does_not_make_threads_matter():
    """Trimming needs more rows than the other tests have."""
    rng = np.random.default_rng(0)
    n_sequences, length = 15_000, 4
    feature_ids = rng.integers(0, 50, (n_sequences * length, 1)).astype(np.int32)
    columns = fit_columns([[{"w": str(i % 50)} for i in range(5000)]])[0]
    data = Sequences(
        np.arange(0, n_sequences * length + 1, length),
        feature_ids,
        np.zeros((len(feature_ids), 0), np.uint8),
        np.where(rng.random(len(feature_ids)) < 0.9, feature_ids[:, 0] % 3, 0).astype(np.int32),
        np.ones(len(feature_ids), np.float32),
    )
    training = Training(columns, data, ["A", "B", "C"])
    models = {}
    for trim, threads in ((0.3, 1), (0.3, 4), (0.0, 1)):
        start = empty_model(training, linear_rounds=1, trim=trim, subsample=0.95)
        with Workers(threads) as workers:
            crf = start.boosted(data, 4, workers)
        models[trim, threads] = as_bytes(replace(crf, settings=Settings()))
    assert models[0.3, 1] == models[0.3, 4] != models[0.0, 1]


def test_many_features_do_not_make_threads_matter():
    """Sums over more features than numeric libraries add up on one thread."""
    rng = np.random.default_rng(0)
    X = [[[f"f{i}" for i in rng.integers(0, 20_000, 60)] for _ in range(8)] for _ in range(60)]
    columns, offsets, feature_ids, numeric = fit_columns(X)
    assert len(columns.counts) > 10_000
    labels = rng.integers(0, 3, offsets[-1]).astype(np.int32)
    weights = np.ones(len(labels), np.float32)
    training = Training(
        columns, Sequences(offsets, feature_ids, numeric, labels, weights), ["A", "B", "C"]
    )
    start = empty_model(training, linear_rounds=4)
    models = []
    for threads in (1, 2, 4):
        with Workers(threads) as workers:
            models.append(as_bytes(start.boosted(training.data, 5, workers)))
    assert models[0] == models[1] == models[2]


@families
@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"subsample": 0.6, "colsample": 0.7, "gamma": "mixing", "seed": 3},
        {"pseudo_rounds": 2, "line_search": True, "max_step": 30.0},
        {"step": "gradient", "constraints": "observed"},
        {"step": "conjugate", "unbiased": True, "shrinkage": 0.3},
        {"step": "conjugate", "line_search": True, "pseudo_rounds": 4},
        {"unbiased": True, "unbiased_rate": 0.1},
    ],
    ids=["plain", "subsample", "pseudo", "gradient", "conjugate", "line search", "unbiased"],
)
def test_going_on_from_a_stored_model_equals_training_in_one_go(family, order, k, options):
    """Rounds 0 to 2 are linear: the model is stored inside, at the end of and after them."""
    training = random_training(2, 20, unknown=0.1, weighted=True)
    start = empty_model(training, family=family, order=order, linear_rounds=3, **options)
    at_once = start.boosted(training.data, 2 * k, ONE)
    half = start.boosted(training.data, k, ONE)
    loaded = CRF.from_state(container.parse(as_bytes(half)))
    assert loaded.potentials.rounds == k
    assert as_bytes(loaded.boosted(training.data, 2 * k, ONE)) == as_bytes(at_once)


def test_the_seed_matters_only_where_something_is_drawn():
    training = random_training(3)
    for options, differs in (({}, False), ({"subsample": 0.5}, True), ({"colsample": 0.5}, True)):
        first, second = (
            fitted(training, 3, linear_rounds=1, seed=seed, **options).potentials.forest
            for seed in (1, 2)
        )
        same = first.n_trees == second.n_trees and np.array_equal(first.value, second.value)
        assert same != differs


@pytest.mark.parametrize("monitor", ["log_likelihood", "accuracy"])
@pytest.mark.parametrize("family", ["separate", "joint"])
def test_early_stopping_returns_the_best_round(monitor, family):
    training = random_training(4, 25, noise=0.5)
    held_out = training.data.subset(np.arange(15, 25))
    training = replace(training, data=training.data.subset(np.arange(15)))
    infos = []
    settings = {"family": family, "monitor": monitor, "linear_rounds": 1, "min_rows": 1}
    stopped = fitted(training, 40, held_out=held_out, callback=infos.append, patience=3, **settings)
    values = [getattr(info, f"held_out_{monitor}") for info in infos]
    best = int(np.argmax(values)) + 1
    assert stopped.potentials.rounds == best
    assert len(infos) == best + 3 < 40
    # the same model as one that was never trained any further
    plain = fitted(training, best, patience=3, **settings)
    assert as_bytes(stopped) == as_bytes(plain)
    # and the first rounds of one that was
    further = fitted(training, best + 2, **settings).potentials.forest
    further = further.select(further.tree_round < best)
    for name, array in further.to_state().items():
        np.testing.assert_array_equal(array, getattr(stopped.potentials.forest, name))
    per_row = log_likelihood_of(stopped, held_out) / held_out.n_rows
    assert infos[best - 1].held_out_log_likelihood == pytest.approx(per_row, rel=1e-9)
    right = (Predictor(stopped, ONE).labels(held_out) == held_out.labels).mean()
    assert infos[best - 1].held_out_accuracy == pytest.approx(right)


def test_no_patience_runs_to_the_end_and_still_keeps_the_best_round():
    training = random_training(4, 25, noise=0.5)
    held_out = training.data.subset(np.arange(15, 25))
    training = replace(training, data=training.data.subset(np.arange(15)))
    infos = []
    crf = fitted(
        training, 12, held_out=held_out, callback=infos.append, patience=0, linear_rounds=1
    )
    assert len(infos) == 12
    best = int(np.argmax([info.held_out_log_likelihood for info in infos])) + 1
    assert crf.potentials.rounds == best < 12


def test_held_out_labels_that_constraints_forbid_do_not_end_the_training():
    """One transition of the held-out data that training never saw has probability 0."""
    training = random_training(5, 20, noise=0.0)
    held_out = training.data.subset(np.arange(10))
    training.data.labels[:] = np.arange(training.data.n_rows) % 3  # 0 is never followed by 0
    held_out.labels[:] = 0
    crf = fitted(training, 6, held_out=held_out, constraints="observed", patience=2)
    assert crf.potentials.rounds > 0


def test_callback_hears_of_every_round():
    training = random_training(6)
    infos = []
    crf = fitted(training, 5, callback=infos.append, linear_rounds=2)
    assert [info.round for info in infos] == [1, 2, 3, 4, 5]
    assert [info.trees for info in infos] == [0, 0, 3, 6, 9]
    assert (np.diff([info.seconds for info in infos]) >= 0.0).all()
    assert all(info.held_out_accuracy is None for info in infos)
    expected = log_likelihood_of(crf, training.data) / training.data.n_rows
    assert infos[-1].log_likelihood == pytest.approx(expected, rel=1e-9)
    crf.boosted(training.data, 7, ONE, callback=infos.append)
    assert [info.round for info in infos[5:]] == [6, 7]
    crf.boosted(training.data, 5, ONE, callback=infos.append)
    assert len(infos) == 7


@pytest.mark.parametrize("order", [1, 2])
def test_gradient_step_of_the_joint_family_is_treecrf(order):
    """Trees equal those grown on the table of I(context, label) - P(context, label)."""
    training = random_training(7, 12, n_labels=2, longest=5)
    data = training.data
    crf = empty_model(
        training, family="joint", order=order, step="gradient", linear_rounds=0, trim=0.0, leaves=6
    )
    before = crf.boosted(data, 1, ONE)
    after = before.boosted(data, 2, ONE)
    contexts = list_contexts(2, order)
    lags = count_lags(data.offsets, order)
    table = TreeInput(
        data.feature_ids,
        np.ascontiguousarray(data.feature_ids.T),
        data.numeric,
        int((training.columns.counts >= 2).sum()),
        training.columns.slot_range,
        training.columns.column_of,
        len(training.columns.column_names),
        lags,
        contexts.first,
        contexts.labels,
        2,
    )
    scores = Predictor(before, ONE).scores(data)
    deltas = np.zeros((2, data.n_rows, 2**order), np.float32)
    for s in range(data.n_sequences):
        rows = data.rows_of((s, s + 1))
        gold = tuple(data.labels[rows].tolist())
        truth = enumerate_paths(scores[rows], before.chain)
        observed = replace(truth, paths=[gold], scores=np.zeros(1)).pair_marginals(len(gold))
        delta = observed - truth.pair_marginals(len(gold))
        deltas[:, rows] = delta.transpose(2, 0, 1)
    limits = TreeLimits(6, 0, 2, 1.0, LEAST_GAIN, 1.0, 1.0)
    forest = after.potentials.forest
    new = forest.select(forest.tree_round == 1)
    assert new.n_trees == 2
    for k in range(2):
        no_hessian = np.zeros((0, 0), np.float32)
        entries = collect(deltas[k], no_hessian, lags, 2, 0.0, 1.0, np.uint64(0))
        nodes = grow_naively(table, entries, limits)
        tree = new.select(np.arange(2) == k)
        assert tree.tree_class.tolist() == [k]
        assert tree.kind.tolist() == [node["kind"] for node in nodes]
        inner = np.flatnonzero(tree.kind != LEAF)
        for name in ("feature", "threshold", "left", "right"):
            expected = [nodes[i][name] for i in inner]
            assert getattr(tree, name)[inner].tolist() == expected
        values = np.array([node["value"] for node in nodes])
        np.testing.assert_allclose(tree.value, to_grid(values), atol=1.5 / GRID)
    np.testing.assert_array_equal(after.potentials.edges, 0.0)


@pytest.mark.parametrize("family", ["separate", "joint"])
def test_order_zero_is_independent_softmax(family):
    training = random_training(9, weighted=True)
    data = training.data
    options = {"family": family, "order": 0, "linear_rounds": 1}
    crf = fitted(training, 4, **options)
    apart = replace(data, offsets=np.arange(data.n_rows + 1))
    alone = fitted(replace(training, data=apart), 4, **options)
    assert as_bytes(crf) == as_bytes(alone)
    np.testing.assert_array_equal(crf.potentials.edges, 0.0)
    scores = Predictor(crf, ONE).scores(data)[:, 0].astype(np.float64)
    p = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    np.testing.assert_allclose(Predictor(crf, ONE).marginals(data), p, rtol=1e-9)
    np.testing.assert_array_equal(Predictor(crf, ONE).labels(data), p.argmax(axis=1))
    gold = np.log(p[np.arange(data.n_rows), data.labels])
    assert log_likelihood_of(crf, data) == pytest.approx(data.weights @ gold, rel=1e-6)


def test_first_round_of_single_leaves_is_the_newton_step_of_the_label_counts():
    training = random_training(10)
    labels = training.data.labels
    crf = fitted(training, 1, order=0, linear_rounds=0, leaves=1, penalty=1.0)
    p = 1.0 / 3.0
    for k in range(3):
        residual = (labels == k) - p
        hessian = np.maximum(2.0 * p * (1.0 - p), np.abs(residual) / 3.0)
        expected = residual.sum() / (hessian.sum() + 1.0)
        assert crf.potentials.forest.value[k] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("family", "order"), [*FAMILIES, ("joint", 4)])
@pytest.mark.parametrize("step", STEPS)
def test_a_single_label_is_learned_and_predicted(family, order, step):
    training = random_training(11, 8, n_labels=1)
    crf = fitted(
        training, 4, family=family, order=order, step=step, linear_rounds=1, pseudo_rounds=1
    )
    predictor = Predictor(crf, ONE)
    assert not predictor.labels(training.data).any()
    np.testing.assert_array_equal(predictor.marginals(training.data), 1.0)


@pytest.mark.parametrize(("family", "order"), [("separate", 1), ("joint", 1)])
def test_a_sequence_of_100_000_positions(family, order):
    length = 100_000
    rng = np.random.default_rng(12)
    feature_ids = rng.integers(0, 6, (length, 1)).astype(np.int32)
    labels = ((feature_ids[:, 0] + rng.integers(0, 2, length)) % 2).astype(np.int32)
    columns = fit_columns([[{"w": str(i % 6)} for i in range(600)]])[0]
    data = Sequences(
        np.array([0, length]),
        feature_ids,
        np.zeros((length, 0), np.uint8),
        labels,
        np.ones(length, np.float32),
    )
    training = Training(columns, data, ["A", "B"])
    values = climb(training, 3, family=family, order=order, gamma="mixing", linear_rounds=1)
    assert_never_falls(values)
    predictor = Predictor(
        fitted(training, 3, family=family, order=order, gamma="mixing", linear_rounds=1), ONE
    )
    assert np.isfinite(predictor.scores(data)).all()
    np.testing.assert_allclose(predictor.marginals(data).sum(axis=1), 1.0, atol=1e-6)
    assert (predictor.labels(data) == labels).mean() > 0.49


def with_zero_weights(training: Training) -> tuple[Training, Training]:
    """A training whose last ten sequences have weight 0, and the same without them."""
    data = training.data
    n = data.n_sequences - 10
    weights = data.weights.copy()
    weights[data.offsets[n] :] = 0.0
    ignored = replace(training, data=replace(data, weights=weights))
    return ignored, replace(training, data=data.subset(np.arange(n)))


@families
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"trim": 0.0},
        {"trim": 0.0, "min_rows": 8},
        {"gamma": "mixing"},
        {"step": "gradient", "linear_rounds": 0},
        {"step": "conjugate", "unbiased": True, "linear_rounds": 0},
        {"pseudo_rounds": 2},
    ],
    ids=lambda options: "-".join(map(str, options.values())) or "plain",
)
def test_sequences_of_weight_zero_change_nothing(family, order, options):
    ignored, without = with_zero_weights(random_training(13, 30, weighted=True))
    options = {"linear_rounds": 1, "family": family, "order": order, **options}
    assert as_bytes(fitted(ignored, 3, **options)) == as_bytes(fitted(without, 3, **options))


def test_an_impossible_sequence_of_weight_zero_changes_nothing():
    ignored, without = with_zero_weights(random_training(14, 30, n_labels=3))
    names = ["O", "B-X", "I-X"]
    possible = np.array([0, 1])  # nothing but O and B-X, in all that counts
    for training in (ignored, without):
        training.data.labels[:] = possible[training.data.labels % 2]
    ignored.data.labels[-5:] = 2
    ignored.data.labels[ignored.data.offsets[-2]] = 2
    options = {"linear_rounds": 1, "constraints": "bio"}
    models = [fitted(replace(t, labels=names), 3, **options) for t in (ignored, without)]
    assert as_bytes(models[0]) == as_bytes(models[1])


@families
@pytest.mark.parametrize("step", STEPS)
def test_whole_weights_equal_repeated_sequences(family, order, step):
    """But for min_rows, which counts rows."""
    training = random_training(16, 12)
    data = training.data
    times = np.arange(data.n_sequences) % 3 + 1
    repeated = data.subset(np.repeat(np.arange(data.n_sequences), times))
    weights = np.repeat(times, np.diff(data.offsets)).astype(np.float32)
    options = {"family": family, "order": order, "linear_rounds": 1, "min_rows": 1, "trim": 0.0}
    options["step"] = step
    likelihoods = [
        log_likelihood_of(fitted(replace(training, data=some), 4, **options), repeated)
        for some in (repeated, replace(data, weights=weights))
    ]
    assert likelihoods[0] == pytest.approx(likelihoods[1], rel=1e-3)


@families
@pytest.mark.parametrize("max_step", [0.3, 2.0])
@pytest.mark.parametrize("pseudo_rounds", [0, 3])
def test_no_leaf_exceeds_the_largest_step(family, order, max_step, pseudo_rounds):
    training = random_training(17, 20, weighted=True)
    training.data.weights[:] *= 8.0
    crf = fitted(
        training,
        6,
        family=family,
        order=order,
        linear_rounds=0,
        pseudo_rounds=pseudo_rounds,
        max_step=max_step,
        penalty=1e-3,
        min_rows=1,
        leaves=31,
    )
    assert np.abs(crf.potentials.forest.value).max() <= max_step + 2.0 / GRID


def test_unannotated_sequences_alone_teach_nothing():
    training = random_training(19, 6)
    training.data.labels[:] = UNKNOWN_LABEL
    crf = fitted(training, 3, linear_rounds=1)
    np.testing.assert_allclose(crf.potentials.forest.value, 0.0, atol=1e-5)
    np.testing.assert_allclose(crf.potentials.edges, 0.0, atol=1e-5)


@pytest.mark.parametrize("family", ["separate", "joint"])
@pytest.mark.parametrize("predictor", ["viterbi", "marginal"])
def test_learned_probabilities_equal_enumeration(family, predictor):
    training = random_training(20, 15, longest=5)
    data = training.data
    crf = fitted(training, 4, family=family, linear_rounds=2, predictor=predictor)
    prepared = Predictor(crf, ONE)
    scores, marginals, labels = (
        prepared.scores(data),
        prepared.marginals(data),
        prepared.labels(data),
    )
    for s, (paths, log_p) in enumerate(prepared.nbest(data, 4)):
        rows = data.rows_of((s, s + 1))
        truth = enumerate_paths(scores[rows], crf.chain)
        expected = truth.pair_marginals(rows.stop - rows.start).sum(axis=1)
        np.testing.assert_allclose(marginals[rows], expected, rtol=1e-6, atol=1e-9)
        best = np.argsort(-truth.scores)[: len(paths)]
        assert len(paths) == min(4, len(truth.paths))
        np.testing.assert_allclose(log_p, truth.scores[best] - truth.log_z, atol=1e-6)
        if predictor == "viterbi":
            assert tuple(labels[rows].tolist()) == truth.paths[best[0]]
        else:
            np.testing.assert_array_equal(labels[rows], expected.argmax(axis=1))
