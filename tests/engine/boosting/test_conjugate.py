"""Conjugate directions: their coefficients, what a step adds, and where a direction ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.boosting import Booster
from spacy_treecrf.engine.boosting.conjugate import (
    LEAST_SHARE,
    Direction,
    inner_product,
    polak_ribiere,
)
from spacy_treecrf.engine.fixed_grid import GRID, to_grid
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.storage import container
from tests.engine.random_forest import walk
from tests.engine.small_models import ONE, as_bytes, climb, empty_model, families, fitted
from tests.engine.training_data import random_training

OPTIONS = {"step": "conjugate", "linear_rounds": 1, "shrinkage": 0.5}


def values_of(forest: Forest, training, order: int) -> np.ndarray:
    """What the trees say of every row, context and label, one walk at a time."""
    data, n_labels = training.data, len(training.labels)
    values = np.zeros((data.n_rows, n_labels**order, n_labels))
    for s in range(data.n_sequences):
        for t, row in enumerate(range(data.offsets[s], data.offsets[s + 1])):
            known = min(t, order)
            for c in range(n_labels**known):
                previous = [c // n_labels**lag % n_labels for lag in range(known)]
                previous += [n_labels] * (order - known)
                for tree in range(forest.n_trees):
                    leaf = walk(forest, tree, data.feature_ids[row], data.numeric[row], previous)
                    values[row, c, forest.tree_class[tree]] += forest.value[leaf]
    return values


def boosters_after(training, rounds, **settings):
    """A booster after each of the rounds."""
    crf = empty_model(training, **settings)
    for n in range(rounds + 1):
        booster = Booster(training.data, crf.columns, len(crf.labels), crf.masks, crf.settings, ONE)
        booster.boost(n)
        yield booster


def explicit_product(data, first, second) -> float:
    """<f, f'> as the sum over every example; f is (trees' values, edges)."""
    total = 0.0
    for s in range(data.n_sequences):
        for row in range(data.offsets[s], data.offsets[s + 1]):
            weight = float(data.weights[row])
            total += weight * float((first[0][row] * second[0][row]).sum())
            at = slice(-1, None) if row == data.offsets[s] else slice(0, -1)
            total += weight * float((first[1][at] * second[1][at]).sum())
    return total


@families
@pytest.mark.parametrize("unbiased", [False, True])
def test_coefficients_and_scores_equal_explicit_sums(family, order, unbiased):
    """Algorithm 1, followed with whole functions on all examples."""
    training = random_training(31, 12, weighted=True, longest=5)
    data = training.data
    depth = order if family == "joint" else 0
    settings = {**OPTIONS, "family": family, "order": order, "unbiased": unbiased}
    after = list(boosters_after(training, 6, **settings))
    betas = []
    last = direction = None
    trees = after[1].train.scores - after[1].train.linear[:, None, :]
    np.testing.assert_array_equal(trees, 0.0)
    expected = trees.astype(float)
    for m in range(2, 7):
        potentials = after[m].potentials
        forest = potentials.as_grown
        new = forest.select(forest.tree_round == m - 1)
        residuals = after[m - 1]._residuals()
        edges = np.zeros_like(residuals.edge_g)
        if order and family == "separate":
            edges = residuals.edge_g / (residuals.edge_h + 1.0)
        gradient = values_of(new, training, depth), edges
        beta = 0.0
        if last is not None:
            products = [
                explicit_product(data, *pair)
                for pair in ((gradient, gradient), (gradient, last), (last, last))
            ]
            beta = max(0.0, (products[0] - products[1]) / products[2])
            previous = after[m - 1].potentials.direction.share
            shares = potentials.direction.share[: len(previous)]
            kept = np.abs(previous * beta) >= LEAST_SHARE * 1.001
            np.testing.assert_allclose(shares[kept], previous[kept] * beta, rtol=1e-5)
            betas.append(beta)
        if direction is None:
            direction = gradient
        else:
            direction = tuple(g + beta * d for g, d in zip(gradient, direction, strict=True))
        last = gradient
        expected += 0.5 * direction[0]
        valid = after[m].train
        trees = valid.scores - valid.linear[:, None, :]
        # a tree's values are rounded to the grid, and shares below LEAST_SHARE are dropped
        slack = 0.5 * forest.n_trees / GRID + m * LEAST_SHARE
        np.testing.assert_allclose(trees, expected, atol=slack)
        step = potentials.edges - after[m - 1].potentials.edges
        np.testing.assert_allclose(step, 0.5 * direction[1], atol=2 / GRID)
    assert max(betas) > 0.01


def test_inner_product_counts_rows_by_weight_and_edges_by_position():
    training = random_training(32, 9, weighted=True)
    data = training.data
    rng = np.random.default_rng(0)
    shape = (data.n_rows, 3, 3)
    f, other = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    f_edges, other_edges = rng.normal(size=(2, 4, 3))
    starts = data.offsets[:-1]
    total, first = float(data.weights.sum(dtype=float)), float(data.weights[starts].sum())
    rows = np.full((4, 3), total - first)
    rows[3] = first
    product = inner_product(data, f, other, f_edges, other_edges, rows)
    expected = explicit_product(data, (f.astype(float), f_edges), (other, other_edges))
    assert product == pytest.approx(expected, rel=1e-6)


def test_polak_ribiere_begins_anew_where_the_formula_is_negative_or_undefined():
    assert polak_ribiere(5.0, 1.0, 8.0) == 0.5
    assert polak_ribiere(1.0, 5.0, 8.0) == 0.0
    assert polak_ribiere(1.0, 0.0, 0.0) == 0.0


def test_shares_are_products_of_the_coefficients_and_small_ones_are_forgotten():
    direction = Direction.start(1, 2).turned(0.0, 1, np.ones((3, 2))).stepped(1.0)
    assert direction.share.tolist() == [0.0, 1.0]
    for beta in (0.5, 0.25):
        direction = direction.turned(beta, 1, np.ones((3, 2))).stepped(2.0)
    assert direction.share.tolist() == [0.0, 0.125, 0.25, 1.0]
    assert direction.scale.tolist() == [1.0, 1.0 + 2 * 0.5 + 2 * 0.125, 2.0 + 2 * 0.25, 2.0]
    assert direction.n_active == 3
    np.testing.assert_array_equal(direction.edges, 1.0 + 0.25 * 1.5)
    direction = direction.turned(1.5 * LEAST_SHARE, 1, np.zeros((3, 2)))
    assert direction.share.tolist() == [0.0, 0.0, 0.0, 1.5 * LEAST_SHARE, 1.0]
    assert direction.n_active == 2


@families
@pytest.mark.parametrize("line_search", [False, True])
def test_cached_scores_are_those_of_the_stored_model(family, order, line_search):
    training = random_training(33, 25, weighted=True)
    settings = {**OPTIONS, "family": family, "order": order, "line_search": line_search}
    crf = empty_model(training, **settings)
    booster = Booster(
        training.data, crf.columns, 3, crf.masks, crf.settings, ONE, held_out=training.data
    )
    booster.boost(8)
    crf = replace(crf, potentials=booster.potentials)
    loaded = CRF.from_state(container.parse(as_bytes(crf)))
    for model in (crf, loaded):
        scores = Predictor(model, ONE).scores(training.data)
        np.testing.assert_array_equal(scores, booster.train.scores)
        np.testing.assert_array_equal(scores, booster.held_out.scores)


def test_a_line_search_never_lowers_the_likelihood():
    training = random_training(34)
    values = climb(training, 10, **OPTIONS | {"line_search": True, "shrinkage": 1.0})
    assert (np.diff(values) >= 0.0).all()


def test_a_round_of_another_kind_ends_the_direction():
    training = random_training(35)
    crf = fitted(training, 3, **OPTIONS)
    assert crf.potentials.direction.n_active > 3
    scale = crf.potentials.direction.scale
    gradient = replace(crf, settings=replace(crf.settings, step="gradient"))
    gradient = gradient.boosted(training.data, 4, ONE)
    assert gradient.potentials.direction.n_active == 0
    assert gradient.potentials.direction.scale.tolist() == [*scale.tolist(), 1.0, 1.0, 1.0]
    again = replace(gradient, settings=crf.settings).boosted(training.data, 5, ONE)
    assert again.potentials.direction.n_active == 3
    loaded = CRF.from_state(container.parse(as_bytes(again)))
    expected = Predictor(again, ONE).scores(training.data)
    np.testing.assert_array_equal(Predictor(loaded, ONE).scores(training.data), expected)


def test_models_of_other_steps_hold_no_direction():
    training = random_training(36)
    for step in ("gradient", "newton"):
        crf = fitted(training, 3, linear_rounds=1, step=step)
        assert crf.potentials.direction is None
        assert crf.to_state()["direction"] == {}
        assert crf.potentials.forest is crf.potentials.as_grown


def test_new_labels_leave_the_old_scores_alone():
    training = random_training(37)
    crf = fitted(training, 5, family="separate", **OPTIONS)
    wider = crf.with_labels(["new"])
    scores = Predictor(wider, ONE).scores(training.data)
    np.testing.assert_array_equal(scores[:, :, :3], Predictor(crf, ONE).scores(training.data))
    training.data.labels[::5] = 3
    further = wider.boosted(training.data, 7, ONE)
    assert further.potentials.direction.n_active >= 4
    assert CRF.from_state(container.parse(as_bytes(further))).labels[-1] == "new"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("scale", lambda d: d["scale"].fill(np.nan)),
        ("scale", lambda d: d.update(scale=d["scale"][:-1])),
        ("share", lambda d: d["share"].fill(1e9)),
        ("share", lambda d: d["share"].fill(0.5)),
        ("edges", lambda d: d.update(edges=d["edges"].T.copy())),
        ("edge_gradient", lambda d: d.pop("edge_gradient")),
        ("more", lambda d: d.update(more=1)),
    ],
)
def test_a_damaged_direction_is_refused_by_name(name, change):
    state = container.parse(as_bytes(fitted(random_training(38), 4, **OPTIONS)))
    change(state["direction"])
    with pytest.raises(ValueError, match=rf"^treecrf: .*'direction.{name}'"):
        CRF.from_state(state)


def test_factors_are_applied_to_whole_trees():
    forest = fitted(random_training(39), 3, linear_rounds=1, step="gradient").potentials.forest
    factors = np.arange(forest.n_trees, dtype=float)
    scaled = forest.scaled_by(factors)
    for tree in range(forest.n_trees):
        nodes = slice(forest.tree_first[tree], forest.tree_first[tree + 1])
        expected = to_grid(forest.value[nodes] * factors[tree])
        np.testing.assert_array_equal(scaled.value[nodes], expected)


def test_threads_do_not_matter():
    training = random_training(40, 60)
    start = empty_model(training, **OPTIONS)
    models = []
    for threads in (1, 4):
        with Workers(threads) as workers:
            models.append(as_bytes(start.boosted(training.data, 6, workers)))
    assert models[0] == models[1]
