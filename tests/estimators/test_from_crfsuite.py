"""Models of CRFsuite predict here what they predict there, and learn more."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pycrfsuite")

from spacy_treecrf import BoostedCRF
from spacy_treecrf.columnar.files import read_column_file
from spacy_treecrf.engine.fixed_grid import GRID
from tests.corpora.places import folder_with
from tests.crfsuite_models import TRAININGS, addresses, marginals, train_crfsuite
from tests.refusals import assert_refused

X, Y = addresses(80, seed=0)
UNSEEN = addresses(60, seed=1)[0]


def assert_the_same(model: BoostedCRF, tagger: Any, sequences: list[Any]) -> None:
    for items, found in zip(sequences, model.predict(sequences), strict=True):
        expected_labels = tagger.tag(items)
        if found != expected_labels:  # two sequences that are the best up to rounding
            tagger.set(items)
            best, other = tagger.probability(expected_labels), tagger.probability(found)
            assert other == pytest.approx(best, rel=1e-5)
    for items, rows in zip(sequences, model.predict_marginals(sequences), strict=True):
        for row, expected in zip(rows, marginals(tagger, items), strict=True):
            if any(map(math.isnan, expected.values())):
                continue  # CRFsuite's own sums overflow where weights are large, as AROW's may be
            assert row == pytest.approx(expected, abs=1e-5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.crfsuite"


@pytest.mark.parametrize(("algorithm", "parameters"), TRAININGS)
def test_labels_and_marginals_are_those_of_crfsuite(
    path: Path, algorithm: str, parameters: dict[str, Any]
) -> None:
    tagger = train_crfsuite(path, X, Y, algorithm, parameters)
    model = BoostedCRF.from_crfsuite(path)
    assert model.classes_ == tagger.labels()
    assert_the_same(model, tagger, [*X, *UNSEEN])


@pytest.mark.parametrize(("algorithm", "parameters"), TRAININGS)
def test_labels_and_marginals_of_chunks_are_those_of_crfsuite(
    path: Path, algorithm: str, parameters: dict[str, Any]
) -> None:
    folder = folder_with("conll2000")

    def part(name: str, n: int) -> tuple[list[Any], list[list[str]]]:
        sentences = read_column_file(folder / "conll2000" / name).sequences[:n]
        items = [
            [
                {
                    "word": row[0],
                    "tag": row[1],
                    "length": len(row[0]),
                    "around": [f"{d}{sentence[t + d][0]}" for d in (-1, 1) if 0 <= t + d < n_rows],
                }
                for t, row in enumerate(sentence)
            ]
            for sentence in sentences
            for n_rows in [len(sentence)]
        ]
        return items, [[row[-1] for row in sentence] for sentence in sentences]

    tagger = train_crfsuite(path, *part("train.txt", 150), algorithm, parameters)
    model = BoostedCRF.from_crfsuite(path)
    assert_the_same(model, tagger, part("test.txt", 150)[0])


def test_bare_lists_and_bytes_are_read_as_crfsuite_reads_them(path: Path) -> None:
    def bare(items: list[Any]) -> list[Any]:
        return [[f"w={item['word']}", *item["letters"], b"bytes", "zero\0byte"] for item in items]

    tagger = train_crfsuite(path, [bare(items) for items in X], Y)
    model = BoostedCRF.from_crfsuite(path)
    others = [[{"w=york": True, b"zero": 1}], [{"zero\0x": 2.0, "w": b"=york"}], [("r", "r", "k")]]
    assert_the_same(model, tagger, [*map(bare, UNSEEN), *others])


def test_weights_by_name_are_those_of_crfsuite(path: Path) -> None:
    info = train_crfsuite(path, X, Y).info()
    model = BoostedCRF.from_crfsuite(path)
    # CRFsuite tells six decimals, and leaves out what they do not show.
    found, expected = model.state_features_, info.state_features
    shown = {key: weight for key, weight in found.items() if key in expected}
    assert shown == pytest.approx(expected, abs=1e-6)
    assert all(abs(w) < 1e-6 for key, w in found.items() if key not in shown)
    assert model.transition_features_ == pytest.approx(info.transitions, abs=1e-6)


def test_a_stored_model_predicts_the_same_bit_for_bit(path: Path, tmp_path: Path) -> None:
    train_crfsuite(path, X, Y)
    model = BoostedCRF.from_crfsuite(path)
    expected = model.predict_marginals(UNSEEN)
    for compact in (False, True):
        model.save(tmp_path / "model.treecrf", compact=compact)
        assert BoostedCRF.load(tmp_path / "model.treecrf").predict_marginals(UNSEEN) == expected
    assert pickle.loads(pickle.dumps(model)).predict_marginals(UNSEEN) == expected


@pytest.mark.parametrize("family", ["separate", "joint"])
def test_boosting_goes_on_and_the_old_weights_stay(path: Path, tmp_path: Path, family: str) -> None:
    train_crfsuite(path, X[:8], Y[:8], parameters={"max_iterations": 3})
    model = BoostedCRF.from_crfsuite(path, family=family, rounds=5, warm_start=True)
    before = model.state_features_
    losses: list[float] = []
    model.set_params(callback=lambda info: losses.append(info.log_likelihood))
    model.fit(X, Y)
    assert model.rounds_ == 5
    assert model.model_.potentials.n_trees > 0
    assert losses == sorted(losses)
    assert model.state_features_ == pytest.approx(before, abs=0.5 / GRID)
    assert model.score(X, Y) == 1.0
    model.save(tmp_path / "model.treecrf")
    again = BoostedCRF.load(tmp_path / "model.treecrf")
    assert again.predict_marginals(UNSEEN) == model.predict_marginals(UNSEEN)
    more = again.set_params(rounds=7, warm_start=True).fit(X, Y)
    assert more.rounds_ == 7


def test_linear_rounds_go_on_from_the_old_weights(path: Path) -> None:
    train_crfsuite(path, X[:8], Y[:8], parameters={"max_iterations": 3})
    model = BoostedCRF.from_crfsuite(path, linear_rounds=3, rounds=3, warm_start=True)
    assert model.fit(X, Y).model_.potentials.n_trees == 0
    assert model.score(X, Y) > BoostedCRF.from_crfsuite(path).score(X, Y)


def test_a_boosted_model_scores_its_training_rows_as_later_ones(path: Path) -> None:
    """Trees and weights on the grid: what was added up in training is what is predicted."""
    plain = [[{"word": item["word"], "length": item["length"]} for item in items] for items in X]
    train_crfsuite(path, plain, Y)
    model = BoostedCRF.from_crfsuite(path, rounds=4, warm_start=True)
    last: list[float] = []
    model.set_params(callback=lambda info: last.append(info.log_likelihood)).fit(plain, Y)
    probabilities = [
        sum(p for labels, p in best if labels == gold)
        for best, gold in zip(model.predict_nbest(plain, n=50), Y, strict=True)
    ]
    n_rows = sum(map(len, Y))
    assert float(np.log(probabilities).sum()) / n_rows == pytest.approx(last[-1], abs=1e-6)


def test_values_that_an_attribute_cannot_have_are_refused_with_the_way_out(path: Path) -> None:
    nested = [[{"share": {"a": i / 7, "b": 1 - i / 7}} for i, _ in enumerate(y)] for y in Y]
    tagger = train_crfsuite(path, nested, Y)
    model = BoostedCRF.from_crfsuite(path)
    assert_refused(
        lambda: model.predict(nested), "X[0][1]", "'share:a'", "numbers=['share:a']", "0.142857"
    )
    assert_the_same(BoostedCRF.from_crfsuite(path, numbers=["share:a", "share:b"]), tagger, nested)
    for value in (float("nan"), float("inf"), 10**400):
        assert_refused(lambda value=value: model.predict([[{"share:a": value}]]), "finite")
    assert_refused(lambda: model.predict([[{"share": object()}]]), "object", error=TypeError)
    assert_refused(lambda: model.predict([[{1: "a"}]]), "keys", error=TypeError)
    assert_refused(lambda: model.predict([["a", 1]]), "X[0][0]", error=TypeError)
    large = BoostedCRF.from_crfsuite(path, numbers=["share:a"])
    assert_refused(lambda: large.predict([[{"share:a": 1e9}]]), "1e+09", "4096")


def test_a_missing_value_and_an_unknown_attribute_say_nothing(path: Path) -> None:
    train_crfsuite(path, X, Y)
    model = BoostedCRF.from_crfsuite(path)
    expected = model.predict_marginals([[{"word": "york"}]])
    item = {"word": "york", "title": None, "other": 0.3, "length": 0, "-1": {"digit": False}}
    assert model.predict_marginals([[item]]) == expected


def test_settings_that_a_model_of_crfsuite_cannot_have_are_refused(path: Path) -> None:
    train_crfsuite(path, X[:3], Y[:3])
    for name, value in (("order", 2), ("missing", "surrogate"), ("constraints", "bio")):
        parameters: dict[str, Any] = {"family": "joint", name: value}
        assert_refused(lambda p=parameters: BoostedCRF.from_crfsuite(path, **p), name)
    assert_refused(lambda: BoostedCRF.from_crfsuite(path, numbers=[3]), "numbers")  # type: ignore[list-item]
    assert_refused(lambda: BoostedCRF.from_crfsuite(path.with_name("none")), "none")
    path.write_bytes(b"other")
    assert_refused(lambda: BoostedCRF.from_crfsuite(path), "no model of CRFsuite", path.name)


def test_a_model_of_crfsuite_is_calibrated_by_held_out_data_alone(path: Path) -> None:
    train_crfsuite(path, X[:20], Y[:20])
    model = BoostedCRF.from_crfsuite(path)
    assert_refused(lambda: model.cross_calibrate(X[:20], Y[:20]), "rounds", "calibrate")
    assert model.calibrate(X[20:], Y[20:]).temperature_ != 1.0
