"""The boosted MEMM: what it presents, how it searches, its stored form, further labels."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.chain.chain import log_normalizers, path_scores
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.crf import CRFRecipe
from spacy_treecrf.models.memm.memm import MEMM, MEMMRecipe
from spacy_treecrf.models.memm.settings import MEMMSettings
from spacy_treecrf.models.model_kinds import model_from_state
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.storage import container
from tests.engine.training_data import Training, random_training

ONE = Workers(1)
SMALL = {"leaves": 6, "min_rows": 2, "linear_rounds": 2}
SHAPES = [
    {"order": 0},
    {"order": 1},
    {"order": 2},
    {"order": 4},
    {"order": 1, "right_to_left": True},
    {"order": 2, "right_to_left": True, "search": "beam", "beam_width": 3},
    {"order": 3, "search": "greedy"},
]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def fitted(training, rounds: int = 6, **settings) -> MEMM:
    recipe = MEMMRecipe(MEMMSettings(**{**SMALL, **settings}))
    model = recipe.new(training.labels, training.columns, training.data)
    return model.trainer(training.data, ONE).train(rounds)


def log_likelihood_of(model: MEMM, data) -> float:
    scores = model.scores(data, ONE)
    paths = path_scores(scores, data.offsets, data.labels, model.chain)
    return float(np.sum(paths - log_normalizers(scores, data.offsets, model.chain)))


@pytest.mark.parametrize("right_to_left", [False, True])
@pytest.mark.parametrize("order", [0, 1, 3])
def test_the_likelihood_of_training_is_that_of_the_presented_model(order, right_to_left) -> None:
    training = random_training(1)
    recipe = MEMMRecipe(MEMMSettings(**SMALL, order=order, right_to_left=right_to_left))
    model = recipe.new(training.labels, training.columns, training.data)
    trainer = model.trainer(training.data, ONE)
    for rounds in (0, 1, 5):
        trainer.train(rounds)
        expected = log_likelihood_of(trainer.model, training.data) / trainer.n_annotated
        assert trainer.log_likelihood == pytest.approx(expected, abs=1e-5)


@shapes
def test_normalizers_are_one(shape) -> None:
    """Labels one by one, each a probability: nothing is left to normalise."""
    training = random_training(2)
    model = fitted(training, **shape)
    log_z = log_normalizers(model.scores(training.data, ONE), training.data.offsets, model.chain)
    np.testing.assert_allclose(log_z, 0.0, atol=1e-4)


def test_order_zero_is_the_boosted_crf_of_order_zero() -> None:
    training = random_training(3)
    memm = fitted(training, order=0)
    settings = Settings(**SMALL, family="separate", order=0)
    crf = CRFRecipe(settings).new(training.labels, training.columns, training.data)
    crf = crf.trainer(training.data, ONE).train(6)
    one, other = (Predictor(model, ONE).marginals(training.data) for model in (memm, crf))
    np.testing.assert_allclose(one, other, atol=1e-6)


def switches(n: int, seed: int = 0) -> Training:
    """A word "switch" changes the label, all others leave it as it was: only history tells."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        on = np.cumsum(rng.random(8) < 0.4) % 2
        changed = np.diff(on, prepend=0) != 0
        X.append([{"word": "switch" if c else f"w{rng.integers(5)}"} for c in changed])
        y.extend(on.tolist())
    columns, offsets, feature_ids, numeric = fit_columns(X)
    labels = np.array(y, np.int32)
    data = Sequences(offsets, feature_ids, numeric, labels, np.ones(len(labels), np.float32))
    return Training(columns, data, ["off", "on"])


def right(model: MEMM, data: Sequences) -> float:
    return float((Predictor(model, ONE).labels(data) == data.labels).mean())


@pytest.mark.parametrize("search", ["exact", "greedy"])
def test_previous_labels_help(search) -> None:
    training = switches(60)
    assert right(fitted(training, order=0, search=search), training.data) < 0.8
    assert right(fitted(training, order=1, search=search), training.data) == 1.0


@shapes
def test_a_stored_model_predicts_the_same(shape) -> None:
    training = random_training(5)
    model = fitted(training, constraints="observed" if shape["order"] else "none", **shape)
    loaded = model_from_state(container.parse(container.dump(model.to_state())))
    assert isinstance(loaded, MEMM)
    assert loaded.settings == model.settings
    for call in ("scores", "labels", "marginals"):
        expected = getattr(Predictor(model, ONE), call)(training.data)
        np.testing.assert_array_equal(
            getattr(Predictor(loaded, ONE), call)(training.data), expected
        )
    assert container.dump(loaded.to_state()) == container.dump(model.to_state())


@shapes
def test_a_stored_model_learns_on_as_if_it_had_not_been_stored(shape) -> None:
    training = random_training(6)
    model = fitted(training, 3, **shape)
    loaded = MEMM.from_state(container.parse(container.dump(model.to_state())))
    straight = fitted(training, 6, **shape)
    further = loaded.trainer(training.data, ONE).train(6)
    assert container.dump(further.to_state()) == container.dump(straight.to_state())


def test_threads_change_nothing() -> None:
    training = random_training(7)
    model = fitted(training, order=2)
    with Workers(3) as three:
        recipe = MEMMRecipe(MEMMSettings(**SMALL, order=2))
        new = recipe.new(training.labels, training.columns, training.data)
        other = new.trainer(training.data, three).train(6)
        np.testing.assert_array_equal(
            other.scores(training.data, three), model.scores(training.data, ONE)
        )


@shapes
def test_further_labels_are_improbable_and_leave_the_others_as_they_were(shape) -> None:
    training = random_training(8)
    model = fitted(training, **shape)
    wider = model.with_labels([*training.labels, "new", "newer"])
    assert wider.labels == [*training.labels, "new", "newer"]
    before = Predictor(model, ONE).marginals(training.data)
    after = Predictor(wider, ONE).marginals(training.data)
    assert after[:, 3:].max() < 0.1
    rest = after[:, :3] / after[:, :3].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rest, before, atol=0.05)
    assert model.with_labels(training.labels) is model
    trained = wider.trainer(training.data, ONE).train(8)
    assert trained.rounds == 8


def test_partly_annotated_sequences_teach_what_is_known() -> None:
    full = switches(60)
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(full.data.n_rows) < 0.4, -1, full.data.labels).astype(np.int32)
    partial = replace(full, data=replace(full.data, labels=labels))
    assert right(fitted(partial, order=1), full.data) == 1.0


@pytest.mark.parametrize("search", ["exact", "beam", "greedy"])
def test_constraints_hold_in_every_search(search) -> None:
    training = random_training(10, n_labels=3, noise=0.5)
    labels = np.arange(training.data.n_rows, dtype=np.int32)
    for begin, end in itertools.pairwise(training.data.offsets):
        labels[begin:end] = np.arange(end - begin) % 3
    training = replace(training, data=replace(training.data, labels=labels))
    model = fitted(training, 1, order=1, constraints="observed", search=search, beam_width=2)
    predicted = Predictor(model, ONE).labels(training.data)
    np.testing.assert_array_equal(predicted, labels)  # the only sequence that is allowed


@pytest.mark.parametrize("right_to_left", [False, True])
def test_beams_say_what_exact_decoding_says(right_to_left) -> None:
    training = random_training(11)
    exact = fitted(training, order=2, search="exact", right_to_left=right_to_left)
    settings = replace(exact.settings, search="beam", beam_width=9)
    beam = replace(exact, settings=settings)
    one, other = Predictor(exact, ONE), Predictor(beam, ONE)
    np.testing.assert_array_equal(other.labels(training.data), one.labels(training.data))
    for (paths, log_p), (found, found_log_p) in zip(
        one.nbest(training.data, 1), other.nbest(training.data, 1), strict=True
    ):
        np.testing.assert_array_equal(found, paths)
        np.testing.assert_allclose(found_log_p, log_p, atol=1e-4)


def test_a_search_keeps_to_allowed_labels_read_from_either_end() -> None:
    training = random_training(12)
    data = training.data
    allowed = np.ones((data.n_rows, 3), np.uint8)
    allowed[np.arange(0, data.n_rows, 3)] = [0, 0, 1]
    for right_to_left in (False, True):
        model = fitted(training, order=1, search="greedy", right_to_left=right_to_left)
        beams = model.search(data, ONE, allowed)
        assert beams is not None
        assert (beams.labels[::3, 0] == 2).all()
        assert (beams.labels[:, 0] != 2).any()


def test_too_many_labels_for_exact_decoding_are_searched_or_refused() -> None:
    assert MEMMSettings(order=2).width(5) == 0
    assert MEMMSettings(order=2, beam_width=7).width(50) == 7
    assert MEMMSettings(order=2, search="greedy").width(2) == 1
    MEMMSettings(order=4).check_labels(1000)
    with pytest.raises(ValueError, match=r"^treecrf: .*'beam'.*lower the order"):
        MEMMSettings(order=4, search="exact").check_labels(100)


def test_many_labels_and_a_high_order_are_decoded_without_all_histories() -> None:
    """50 labels, order 3: exact decoding would hold 6 million scores a position."""
    rng = np.random.default_rng(0)
    training = random_training(13, n_sequences=40)
    labels = rng.integers(0, 50, training.data.n_rows).astype(np.int32)
    training = replace(
        training,
        data=replace(training.data, labels=labels),
        labels=[f"L{k:02}" for k in range(50)],
    )
    model = fitted(training, 2, order=3, beam_width=4)
    marginals = Predictor(model, ONE).marginals(training.data)
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0, atol=1e-6)
    best = Predictor(model, ONE).nbest(training.data, 3)
    assert all(len(paths) <= 3 for paths, _ in best)


def test_another_kind_of_model_is_not_continued() -> None:
    training = random_training(14)
    crf = CRFRecipe(Settings()).new(training.labels, training.columns, training.data)
    with pytest.raises(ValueError, match=r"^treecrf: only a MEMM"):
        MEMMRecipe(MEMMSettings()).continued(crf)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("order", 5),
        ("order", -1),
        ("order", 1.0),
        ("right_to_left", 1),
        ("search", "viterbi"),
        ("search", None),
        ("beam_width", 0),
        ("beam_width", 2.5),
        ("dev_share", -0.1),
        ("dev_share", 1.0),
        ("dev_share", "half"),
        ("leaves", 0),
        ("step", "conjugate"),
        ("step", None),
        ("shrinkage", 0),
        ("monitor", "loss"),
        ("constraints", "iob"),
    ],
)
def test_bad_settings_are_refused_by_name(name, value) -> None:
    with pytest.raises(ValueError, match=rf"^treecrf: setting '{name}' is "):
        MEMMSettings(**{name: value})
