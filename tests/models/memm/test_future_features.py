"""The MEMM with future features: what it presents, its stored form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scripts.reproduce.future_bits import FutureBits, bit_features
from spacy_treecrf.engine.chain.chain import log_normalizers, path_scores
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.memm.label_history import turned_round
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.memm.future_features import FutureMEMM, FutureRecipe
from spacy_treecrf.models.memm.memm import MEMMRecipe
from spacy_treecrf.models.memm.settings import FutureSettings, MEMMSettings
from spacy_treecrf.models.model_kinds import model_from_state
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.storage import container
from tests.engine.training_data import Training, random_training

ONE = Workers(1)
SMALL = {"min_rows": 1, "bag": 3}
SHAPES = [
    {"order": 0},
    {"order": 1},
    {"order": 2},
    {"order": 1, "right_to_left": True},
    {"order": 2, "search": "beam", "beam_width": 2},
    {"order": 1, "search": "greedy", "right_to_left": True},
    {"order": 1, "bag": None},
]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def bits(problem: str = "or", n: int = 150) -> Training:
    sequences = FutureBits(problem, length=10, bag=3, seed=2).sample(n)
    columns, offsets, feature_ids, numeric = fit_columns([bit_features(r) for r in sequences])
    y = np.array([int(label) for r in sequences for label in r.labels["label"]], np.int32)
    data = Sequences(offsets, feature_ids, numeric, y, np.ones(len(y), np.float32))
    return Training(columns, data, ["0", "1"])


def bits_for(shape: dict) -> Training:
    """Labels depend on what the model of this shape reads later."""
    training = bits()
    if shape.get("right_to_left"):
        return replace(training, data=turned_round(training.data))
    return training


def new_model(training: Training, **settings) -> FutureMEMM:
    recipe = FutureRecipe(FutureSettings(**{**SMALL, **settings}))
    return recipe.new(training.labels, training.columns, training.data)


def fitted(training: Training, rounds: int = 40, **settings) -> FutureMEMM:
    return new_model(training, **settings).trainer(training.data, ONE).train(rounds)


def accuracy(model: FutureMEMM, data: Sequences) -> float:
    return float((Predictor(model, ONE).labels(data) == data.labels).mean())


@pytest.mark.parametrize(
    ("training", "settings"),
    [
        (bits("or", 60), {"detector_rounds": 2}),
        (bits("xor", 60), {"order": 1, "max_alpha": 1e5, "max_eta": 1e5}),
        (random_training(3, n_sequences=25), {"leaves": 3, "patience": 1, "dev_share": 0.5}),
        (bits("or", 30), {"dev_share": 0.0, "patience": 1, "max_alpha": 1e-3}),
    ],
    ids=["or", "xor, long steps", "three labels", "nothing held out"],
)
def test_training_goes_on_from_any_round_of_any_phase(training: Training, settings: dict) -> None:
    """Also where detectors grow, where a phase goes back to its best round, and at the end."""
    trainer = new_model(training, **settings).trainer(training.data, ONE)
    stored = []
    trainer.train(25, lambda _: stored.append(trainer.model.to_state()))
    courses = [state["course"] for state in stored]
    assert any(len(course["growing"]) for course in courses)
    assert any(len(state["detectors"]["label"]) for state in stored)
    for state in stored[::2]:
        model = FutureMEMM.from_state(container.parse(container.dump(state)))
        again = model.trainer(training.data, ONE)
        again.train(25)
        assert container.dump(again.model.to_state()) == container.dump(trainer.model.to_state())


def test_other_data_begin_a_new_phase_of_trees() -> None:
    training = bits("or", 60)
    trainer = new_model(training).trainer(training.data, ONE)
    trainer.train(40)
    assert trainer.model.potentials.course.finished
    other = trainer.model.trainer(bits("xor", 60).data, ONE)
    other.train(trainer.model.rounds + 1)
    assert other.model.rounds == trainer.model.rounds + 1
    assert len(other.model.potentials.course.growing) == 0


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("growing", np.array([7], np.int32), r"'course\.growing': expected values from 0"),
        ("ready", np.array([True]), r"'course\.ready': expected an array of shape \(0,\)"),
        ("best", {"trees": 10**6, "detectors": 0}, r"'course\.best\.trees': expected an integer"),
        ("best", {"trees": 0, "detectors": 1}, r"'course\.best': expected the detectors that"),
        ("tried", np.array([-1], np.int32), r"'course\.tried': expected values from 0"),
        ("stalled", -1, r"'course\.stalled': expected an integer"),
        ("digest", np.zeros(16, np.uint8), r"'course\.digest': expected an array of shape"),
    ],
)
def test_a_course_of_another_training_is_refused(field: str, value: object, message: str) -> None:
    state = fitted(bits(n=60)).to_state()
    assert len(state["course"]["growing"]) == 0
    state["course"] |= {"before": [], field: value}
    with pytest.raises(ValueError, match=message):
        FutureMEMM.from_state(state)


def test_trees_that_test_detectors_of_later_rounds_are_refused() -> None:
    """Going on adds detectors in their order, and kernels check no bounds."""
    state = fitted(bits(n=60)).to_state()
    for forest in state["detectors"]["forests"]:
        forest["tree_round"] = np.full_like(forest["tree_round"], 10**6)
    state["course"]["best"] = {"trees": len(state["forest"]["tree_class"]), "detectors": 0}
    state["course"]["before"] = []
    with pytest.raises(ValueError, match="trees that test detectors of earlier rounds"):
        FutureMEMM.from_state(state)


@pytest.mark.parametrize("right_to_left", [False, True])
@pytest.mark.parametrize("order", [0, 2])
def test_the_likelihood_of_training_is_that_of_the_presented_model(order, right_to_left) -> None:
    """Round by round, also while detectors are growing."""
    training = bits_for({"right_to_left": right_to_left})
    model = new_model(training, order=order, right_to_left=right_to_left)
    data = training.data.subset(np.arange(100))
    trainer = model.trainer(data, ONE, training.data.subset(np.arange(100, 150)))
    detectors = set()
    for rounds in range(0, 40, 3):
        trainer.train(rounds)
        now = trainer.model
        scores = now.scores(data, ONE)
        log_z = log_normalizers(scores, data.offsets, now.chain)
        np.testing.assert_allclose(log_z, 0.0, atol=1e-4)
        total = path_scores(scores, data.offsets, data.labels, now.chain).sum()
        assert trainer.log_likelihood == pytest.approx(total / trainer.n_annotated, abs=1e-5)
        detectors.add(len(now.potentials.detectors))
    assert max(detectors) > 0


def test_what_comes_later_is_learned_and_without_detectors_it_is_not() -> None:
    both = bits("or", n=400)
    unseen = both.data.subset(np.arange(150, 400))
    training = replace(both, data=both.data.subset(np.arange(150)))
    future = fitted(training, 100, order=0)
    assert accuracy(future, unseen) > 0.99
    window = MEMMRecipe(MEMMSettings(order=0, min_rows=1)).new(
        training.labels, training.columns, training.data
    )
    window = window.trainer(training.data, ONE).train(40)
    assert (Predictor(window, ONE).labels(unseen) == unseen.labels).mean() < 0.85


@shapes
def test_a_stored_model_predicts_the_same(shape) -> None:
    training = bits_for(shape)
    model = fitted(training, **shape)
    assert model.potentials.detectors
    loaded = model_from_state(container.parse(container.dump(model.to_state())))
    assert isinstance(loaded, FutureMEMM)
    assert loaded.settings == model.settings
    for call in ("scores", "labels", "marginals"):
        expected = getattr(Predictor(model, ONE), call)(training.data)
        found = getattr(Predictor(loaded, ONE), call)(training.data)
        np.testing.assert_array_equal(found, expected)
    assert container.dump(loaded.to_state()) == container.dump(model.to_state())
    assert loaded.describe_detectors() == model.describe_detectors()


def test_training_goes_on_from_a_stored_model() -> None:
    training = bits()
    first = fitted(training, 12, order=0)
    loaded = FutureMEMM.from_state(container.parse(container.dump(first.to_state())))
    further = loaded.trainer(training.data, ONE).train(80)
    assert further.rounds > first.rounds
    assert accuracy(further, training.data) > 0.99


@shapes
def test_further_labels_are_improbable_and_leave_the_others_as_they_were(shape) -> None:
    training = bits_for(shape)
    model = fitted(training, **shape)
    wider = model.with_labels(["0", "1", "new"])
    before = Predictor(model, ONE).marginals(training.data)
    after = Predictor(wider, ONE).marginals(training.data)
    assert after[:, 2].max() < 0.5
    rest = after[:, :2] / after[:, :2].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rest, before, atol=0.15)
    assert np.abs(rest - before).mean() < 0.01
    labels = training.data.labels.copy()
    labels[::7] = 2
    trained = wider.trainer(replace(training.data, labels=labels), ONE).train(wider.rounds + 3)
    assert trained.labels == ["0", "1", "new"]


@pytest.mark.parametrize("longest", [1, 2, 4])
@pytest.mark.parametrize("bag", [6, None])
def test_sequences_may_be_shorter_than_the_bag(bag, longest) -> None:
    training = random_training(1, n_sequences=40, longest=longest)
    model = fitted(training, 15, order=1, bag=bag)
    scores = model.scores(training.data, ONE)
    assert np.isfinite(scores).all()


def test_labels_that_never_change_are_learned_without_detectors() -> None:
    training = random_training(2)
    constant = replace(training.data, labels=np.ones(training.data.n_rows, np.int32))
    model = fitted(replace(training, data=constant), 20, order=1)
    assert (Predictor(model, ONE).labels(constant) == 1).all()
    assert not model.potentials.detectors


def test_a_label_that_the_held_out_part_lacks_does_no_harm() -> None:
    training = bits()
    data = training.data
    half = data.n_sequences // 2
    train, held = data.subset(np.arange(half)), data.subset(np.arange(half, data.n_sequences))
    held = replace(held, labels=np.ones(held.n_rows, np.int32))
    model = new_model(training, order=1).trainer(train, ONE, held).train(20)
    marginals = Predictor(model, ONE).marginals(train)
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bag", 0),
        ("bag", -1),
        ("bag", 2.5),
        ("bag", True),
        ("detector_start", np.nan),
        ("detector_rounds", 0),
        ("max_alpha", 0.0),
        ("max_beta", -1.0),
        ("max_eta", np.inf),
        ("order", 5),
    ],
)
def test_bad_settings_are_refused_by_name(name, value) -> None:
    with pytest.raises(ValueError, match=rf"^treecrf: setting '{name}' is "):
        FutureSettings(**{name: value})
