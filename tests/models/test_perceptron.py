"""The perceptron as a model: it learns, comes again, votes, and goes into files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import PerceptronTagger
from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.storage import container
from tests.tiny import tiny_data, word_labels

X, _ = tiny_data(40)
NEW_X, _ = tiny_data(15, seed=1)
Y, NEW_Y = word_labels(X), word_labels(NEW_X)
KINDS: dict[str, dict[str, Any]] = {
    "averaged": {},
    "voted": {"method": "voted", "voters": 3},
    "order 0": {"order": 0},
    "beam": {"beam": 2},
    "marginal": {"predictor": "marginal"},
}


@pytest.fixture(scope="module", params=list(KINDS))
def fitted(request: pytest.FixtureRequest) -> PerceptronTagger:
    return PerceptronTagger(rounds=6, threads=1, **KINDS[request.param]).fit(X, Y)


def state(model: PerceptronTagger) -> bytes:
    return container.dump(model.model_.to_state())


def test_it_learns_and_has_probabilities(fitted: PerceptronTagger) -> None:
    assert fitted.rounds_ == 6
    assert fitted.score(X, Y) > 0.85
    for position in fitted.predict_marginals_single(NEW_X[0]):
        assert sum(position.values()) == pytest.approx(1.0, abs=1e-6)


def test_it_survives_its_file(fitted: PerceptronTagger, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    loaded = PerceptronTagger.load(tmp_path / "model")
    assert loaded.predict(NEW_X) == fitted.predict(NEW_X)
    assert loaded.predict_marginals(NEW_X) == fitted.predict_marginals(NEW_X)
    assert state(loaded) == state(fitted)


def test_same_seed_same_model() -> None:
    models = [PerceptronTagger(rounds=3, seed=seed, threads=1).fit(X, Y) for seed in (0, 0, 1)]
    assert state(models[0]) == state(models[1])
    assert state(models[0]) != state(models[2])


def test_training_goes_on_as_if_it_had_not_stopped() -> None:
    whole = PerceptronTagger(rounds=6, method="voted").fit(X, Y)
    parts = PerceptronTagger(rounds=2, method="voted").fit(X, Y)
    parts.set_params(rounds=6, warm_start=True).fit(X, Y)
    assert state(parts) == state(whole)


@pytest.mark.parametrize("usual", ["a", "b"])
def test_the_usual_label_wins_where_inputs_say_nothing(usual: str) -> None:
    """Whichever label has the lower number, which decides ties."""
    rare = {"a": "b", "b": "a"}[usual]
    X = [[{"word": "x"}] * 5] * 20
    y = [[usual, usual, rare, usual, usual]] * 20
    model = PerceptronTagger(order=0, threads=1).fit(X, y)
    assert set(model.predict(X)[0]) == {usual}


def test_votes_are_counted() -> None:
    model = PerceptronTagger(rounds=4, method="voted", voters=3, threads=1).fit(X, Y)
    voters = model.model_.voters
    assert len(voters) == 12
    counts = np.zeros((sum(map(len, NEW_X)), 3))
    for voter in voters:
        single = PerceptronTagger(rounds=4, method="voted", voters=3, threads=1)
        single.model_ = model.model_.__class__(
            model.model_.settings,
            model.model_.labels,
            model.model_.columns,
            model.model_.masks,
            model.model_.learned,
            (voter,),
        )
        labels = [y for sequence in single.predict(NEW_X) for y in sequence]
        counts[np.arange(len(labels)), [model.classes_.index(y) for y in labels]] += 1
    assert counts.sum() == 12 * len(counts)
    predicted = [y for sequence in model.predict(NEW_X) for y in sequence]
    assert predicted == [model.classes_[k] for k in counts.argmax(axis=1)]
    found = [list(m.values()) for sequence in model.predict_marginals(NEW_X) for m in sequence]
    np.testing.assert_allclose(found, (counts + 0.5) / (12 + 1.5), atol=1e-6)


def test_beam_of_all_labels_is_exact() -> None:
    exact = PerceptronTagger(rounds=4).fit(X, Y)
    wide = PerceptronTagger(rounds=4, beam=3).fit(X, Y)
    for name in ("weights", "totals"):
        for part in ("categorical", "numeric", "edges"):
            a, b = (m.model_.to_state()[name][part] for m in (exact, wide))
            assert np.array_equal(a, b), (name, part)
    assert exact.predict(NEW_X) == wide.predict(NEW_X)


def test_transitions_are_learned() -> None:
    X = [[{"o": f"first {s % 3}" if t == 0 else "any"} for t in range(5)] for s in range(30)]
    y = [[f"s{(s + t) % 3}" for t in range(5)] for s in range(30)]
    assert PerceptronTagger().fit(X, y).score(X, y) == 1.0
    assert PerceptronTagger(order=0).fit(X, y).score(X, y) < 0.8


def test_constraints_and_unannotated_positions() -> None:
    bio = [["B-X" if t == 0 else ("I-X" if t < 3 else "O") for t in range(len(y))] for y in Y]
    some = [[y if t % 2 else None for t, y in enumerate(labels)] for labels in bio]
    model = PerceptronTagger(constraints="bio").fit(X, some)
    for y in model.predict(NEW_X):
        assert y[0] != "I-X"


def test_held_out_data_choose_the_best_round() -> None:
    infos: list[RoundInfo] = []
    model = PerceptronTagger(rounds=8, patience=2, callback=infos.append).fit(X, Y, NEW_X, NEW_Y)
    values = [info.held_out_accuracy for info in infos]
    assert model.rounds_ == 1 + int(np.argmax(values))
    assert model.score(NEW_X, NEW_Y) == pytest.approx(max(values))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"method": "bagged"}, "'method' is 'bagged'; use one of 'averaged', 'voted'"),
        ({"beam": 0}, "'beam' is 0; use an integer from 1"),
        ({"beam": 2, "order": 0}, "'beam' is 2; use None with order=0"),
        ({"order": 2}, "'order' is 2"),
        ({"voters": 0}, "'voters' is 0"),
        ({"rounds": -1}, "'rounds' is -1"),
    ],
)
def test_bad_settings_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=rf"^treecrf: .*{says}"):
        PerceptronTagger(**changes).fit(X, Y)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("weights.edges", lambda s: s["weights"].update(edges=np.zeros((3, 3)))),
        ("weights.categorical", lambda s: s["weights"]["categorical"].fill(np.nan)),
        ("totals", lambda s: s["totals"]["edges"].fill(1e14)),
        ("steps", lambda s: s.update(steps=-1)),
        ("settings.method", lambda s: s["settings"].update(method=None)),
        ("voters", lambda s: s.update(voters={})),
    ],
)
def test_edited_field_of_a_file_is_named(field: str, change: Any, tmp_path: Path) -> None:
    model = PerceptronTagger(rounds=2).fit(X, Y)
    state_ = container.parse(container.dump(model.model_.to_state()))
    change(state_)
    (tmp_path / "model").write_bytes(container.dump(state_))
    with pytest.raises(ValueError, match=rf"^treecrf: .*{field}"):
        PerceptronTagger.load(tmp_path / "model")
