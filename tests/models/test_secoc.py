"""Output coding: what each variant can learn, and that threads, files and beams change nothing."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import SECOCCRF, BoostedCRF, PerceptronTagger
from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.models.model import TrainingInterrupted
from spacy_treecrf.storage import container
from tests.tiny import tiny_data, word_labels

LABELS = ("A", "B", "C", "D", "E")
X, _ = tiny_data(40)
NEW_X, _ = tiny_data(15, seed=1)
Y, NEW_Y = word_labels(X, LABELS), word_labels(NEW_X, LABELS)
BASE: dict[str, Any] = {"rounds": 5, "linear_rounds": 2, "min_rows": 1, "min_count": 1}
VARIANTS: dict[str, dict[str, Any]] = {
    "joint training": {},
    "iid": {"decoding": "l1", "base": BoostedCRF(**BASE, order=0)},
    "i-SECOC": {"decoding": "l1", "training": "columns"},
    "i-SECOC, separate": {"decoding": "hamming", "base": BoostedCRF(**BASE, family="separate")},
    "i-SECOC, joint decoding": {"training": "columns"},
    "c-SECOC(2), published": {"history": 2, "cascade": "training", "decoding": "likelihood"},
    "c-SECOC(all), ours": {"history": "all"},
    "perceptron": {"base": PerceptronTagger(rounds=4), "decoding": "l1"},
    "perceptron, cascade": {"base": PerceptronTagger(rounds=4), "history": 1},
}


def new(**changes: Any) -> SECOCCRF:
    return SECOCCRF(**{"base": BoostedCRF(**BASE), "bits": 6, "threads": 1, **changes})


@pytest.fixture(scope="module", params=list(VARIANTS))
def fitted(request: pytest.FixtureRequest) -> SECOCCRF:
    return new(**VARIANTS[request.param]).fit(X, Y)


def learned(model: SECOCCRF) -> bytes:
    return container.dump({**model.model_.to_state(), "settings": None})


def test_every_variant_learns_and_has_probabilities(fitted: SECOCCRF) -> None:
    assert fitted.score(X, Y) > 0.6  # five labels
    for position in fitted.predict_marginals_single(NEW_X[0]):
        assert sum(position.values()) == pytest.approx(1.0, abs=1e-6)
    (best, p), (_, q) = fitted.predict_nbest([NEW_X[0]], 2)[0]
    assert 0.0 <= q <= p <= 1.0
    assert len(best) == len(NEW_X[0])


def test_models_survive_their_files(fitted: SECOCCRF, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    loaded = SECOCCRF.load(tmp_path / "model")
    assert loaded.predict(NEW_X) == fitted.predict(NEW_X)
    assert loaded.predict_marginals(NEW_X) == fitted.predict_marginals(NEW_X)
    assert container.dump(loaded.model_.to_state()) == container.dump(fitted.model_.to_state())
    with pytest.raises(ValueError, match=r"^treecrf: .* holds a SECOC"):
        BoostedCRF.load(tmp_path / "model")


@pytest.mark.parametrize(
    "variant", ["joint training", "i-SECOC", "c-SECOC(all), ours", "perceptron"]
)
def test_threads_do_not_change_what_is_learned(variant: str) -> None:
    serial = new(**VARIANTS[variant]).fit(X, Y)
    parallel = new(**VARIANTS[variant], **{"threads": 3}).fit(X, Y)
    assert learned(serial) == learned(parallel)


@pytest.mark.parametrize("variant", ["joint training", "i-SECOC, joint decoding"])
def test_beam_of_all_labels_is_exact(variant: str) -> None:
    exact = new(**VARIANTS[variant], beam=None).fit(X, Y)
    wide = new(**VARIANTS[variant], beam=len(LABELS)).fit(X, Y)
    assert learned(exact) == learned(wide)
    assert exact.predict_marginals(NEW_X) == wide.predict_marginals(NEW_X)
    narrow = new(**VARIANTS[variant], beam=2).fit(X, Y)
    assert learned(narrow) != learned(exact)
    assert narrow.score(X, Y) > 0.6


def test_seeds_make_other_codes() -> None:
    one, other = (new(seed=seed).fit(X, Y) for seed in (0, 1))
    assert not np.array_equal(one.model_.code, other.model_.code)
    assert learned(one) == learned(new(seed=0).fit(X, Y))


def cycles(n: int, length: int, seed: int) -> tuple[list[list[dict[str, str]]], list[list[str]]]:
    """Three states in a circle, of which only the first one of a sequence can be seen."""
    rng = random.Random(seed)
    X, y = [], []
    for _ in range(n):
        first = rng.randrange(3)
        y.append([f"s{(first + t) % 3}" for t in range(length)])
        X.append([{"o": f"first {first}" if t == 0 else "any"} for t in range(length)])
    return X, y


def test_the_published_counterexample() -> None:
    """A bit of three states in a circle is no chain of two: 0 is followed by 0 and by 1.

    i-SECOC cannot learn it; joint decoding and joint training know the transitions of labels, and
    a cascade lets later bits see earlier ones.
    """
    train, test = cycles(60, 3, 0), cycles(30, 3, 1)
    base = BoostedCRF(rounds=20, linear_rounds=2, min_rows=1)
    published = SECOCCRF(decoding="l1", base=base).fit(*train).score(*test)
    cascade = SECOCCRF(decoding="l1", base=base, history="all", cascade="training").fit(*train)
    assert published < 0.7
    assert cascade.score(*test) > published + 0.2
    assert SECOCCRF(training="columns", base=base).fit(*train).score(*test) == 1.0
    assert SECOCCRF(history=1, base=base).fit(*train).score(*test) == 1.0
    assert SECOCCRF(base=base).fit(*train).score(*test) == 1.0
    assert BoostedCRF(rounds=20, min_rows=1).fit(*train).score(*test) == 1.0


def test_bits_go_on_where_they_stopped() -> None:
    seen: list[int] = []

    def stop(info: RoundInfo) -> None:
        seen.append(info.round)
        if info.round == 3:
            raise KeyboardInterrupt

    model = new(history=1, cascade="training", decoding="l1", callback=stop)
    with pytest.raises(TrainingInterrupted):
        model.fit(X, Y)
    assert seen == [1, 2, 3]
    assert model.rounds_ == 3
    assert model.score(X, Y) > 0.3  # three bits of six
    model.set_params(callback=None, warm_start=True).fit(X, Y)
    assert model.rounds_ == 6
    whole = new(history=1, cascade="training", decoding="l1").fit(X, Y)
    assert model.predict(NEW_X) == whole.predict(NEW_X)


def test_joint_training_goes_on() -> None:
    model = new(base=BoostedCRF(**{**BASE, "rounds": 3})).fit(X, Y)
    before = model.score(X, Y)
    model.set_params(base=BoostedCRF(**{**BASE, "rounds": 9}), warm_start=True).fit(X, Y)
    assert model.rounds_ == 9
    assert model.score(X, Y) >= before


@pytest.mark.parametrize("variant", ["joint training", "i-SECOC"])
def test_held_out_data_choose_the_best(variant: str) -> None:
    infos: list[RoundInfo] = []
    model = new(**VARIANTS[variant], callback=infos.append).fit(X, Y, NEW_X, NEW_Y)
    assert all(info.held_out_accuracy is not None for info in infos)
    assert 0 < model.rounds_ <= max(info.round for info in infos)


def test_unannotated_positions_are_learned_around() -> None:
    some = [[label if (s + t) % 3 else None for t, label in enumerate(y)] for s, y in enumerate(Y)]
    for changes in ({}, {"decoding": "l1"}):
        model = new(**changes).fit(X, some)
        assert model.score(X, Y) > 0.6


def test_constraints_hold() -> None:
    bio = [["B-X" if t == 0 else ("I-X" if t < 3 else "O") for t in range(len(y))] for y in Y]
    for changes in ({}, {"training": "columns"}):
        model = new(bits=None, constraints="bio", **changes).fit(X, bio)
        for y in model.predict(NEW_X):
            assert y[0] != "I-X"


def test_defaults_choose_for_themselves() -> None:
    model = SECOCCRF(threads=1, base=BoostedCRF(min_count=1, rounds=10)).fit(X, Y)
    assert model.model_.n_bits == 7
    assert model.model_.settings.training == "joint"
    assert repr(SECOCCRF(bits=9)) == "SECOCCRF(bits=9)"
    assert model.score(X, Y) > 0.6


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"bits": 2}, "use 3 bits or more"),
        ({"bits": 40}, "only 15 different bits"),
        ({"bits": 0}, "'bits' is 0"),
        ({"beam": 0}, "'beam' is 0; use an integer from 1 .* None for exact"),
        ({"history": -1}, "'history' is -1"),
        ({"history": "some"}, "'history' is 'some'; use an integer from 0 to 4096, or 'all'"),
        ({"history": 2, "training": "joint"}, "training='columns'"),
        ({"decoding": "l1", "training": "joint"}, "'decoding' is 'l1'"),
        ({"decoding": "nearest"}, "'decoding' is 'nearest'; use one of 'joint'"),
        ({"code": "hadamard"}, "'code' is 'hadamard'"),
        ({"base": "svm"}, "'base' is 'svm'; use 'boosted'"),
        ({"base": BoostedCRF(order=2)}, r"'base\.order' is 2"),
        ({"base": BoostedCRF(beam=3, family="separate")}, r"'base\.beam' is 3"),
        ({"base": PerceptronTagger(method="voted")}, r"'base\.method' is 'voted'"),
        ({"base": PerceptronTagger(), "training": "joint"}, "'columns' with a perceptron"),
        ({"decoding": "l1", "constraints": "observed"}, "no transitions to constrain"),
        ({"folds": 1}, "'folds' is 1"),
        ({"base": BoostedCRF(missing="surrogate")}, r"'base\.missing' is 'surrogate'"),
    ],
)
def test_bad_settings_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=rf"^treecrf: .*{says}"):
        new(**changes).fit(X, Y)


@pytest.mark.parametrize("n_labels", [1, 2])
def test_one_or_two_labels_need_no_code(n_labels: int) -> None:
    few = [[LABELS[t % n_labels] for t in range(len(y))] for y in Y]
    with pytest.raises(
        ValueError, match=r"^treecrf: output codes need 3 labels or more.*BoostedCRF"
    ):
        new(bits=None).fit(X, few)


def test_labels_that_never_occur_are_refused() -> None:
    model = new().fit(X, Y)
    recipe = model._recipe()
    data = Sequences.unlabelled(*model.model_.columns.encode(X))
    with pytest.raises(ValueError, match=r"^treecrf: label 'A' never occurs in the training data"):
        recipe.new(list(LABELS), model.model_.columns, data)
    with pytest.raises(
        ValueError, match=r"^treecrf: an output code cannot learn the new label 'F'"
    ):
        model.model_.with_labels([*LABELS, "F"])
    assert model.model_.with_labels(list(LABELS)) is model.model_


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("code", lambda s: s.update(code=s["code"] * 2)),
        ("code", lambda s: s["code"].__setitem__((slice(None), 0), 1)),  # a constant bit
        ("code", lambda s: s["code"].__setitem__(0, s["code"][1])),  # two labels of one word
        ("settings", lambda s: s["settings"].update(bits=7)),
        ("settings.history", lambda s: s["settings"].update(history=-5)),
        ("settings.learner", lambda s: s["settings"].update(learner="forest")),
        ("bit_edges", lambda s: s.update(bit_edges=s["bit_edges"][1:])),
        ("rounds", lambda s: s.update(rounds=7)),
        ("scale", lambda s: s.update(scale=-1.0)),
        ("bias", lambda s: s.update(bias=np.full(5, np.nan, np.float32))),
        ("edges", lambda s: s.update(edges=s["edges"][1:])),
        ("tree_class", lambda s: s["forest"]["tree_class"].__setitem__(0, 99)),
        ("feature", lambda s: s["forest"]["feature"].__setitem__(slice(None), 9999)),
        ("numeric", lambda s: s["linear"].update(numeric=s["linear"]["numeric"][1:])),
    ],
)
def test_edited_field_of_a_file_is_named(field: str, change: Any, tmp_path: Path) -> None:
    model = new(history=1, cascade="training", decoding="l1").fit(X, Y)
    state = container.parse(container.dump(model.model_.to_state()))
    change(state)
    (tmp_path / "model").write_bytes(container.dump(state))
    with pytest.raises(ValueError, match=rf"^treecrf: .*{field}"):
        SECOCCRF.load(tmp_path / "model")
