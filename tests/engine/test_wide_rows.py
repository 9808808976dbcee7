"""Rows that go on in further rows: nothing that is learned or predicted depends on the layout."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import (
    SECOCCRF,
    BoostedCRF,
    BoostedMEMM,
    FutureFeatureMEMM,
    PerceptronTagger,
)
from spacy_treecrf.engine import wide_rows
from spacy_treecrf.engine.encoding import columns, tallying
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.memm.label_history import LabelHistory, turned_round
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.wide_rows import GOES_ON, ROW_CELLS, suitable_width
from spacy_treecrf.estimators.base import SequenceEstimator
from spacy_treecrf.storage import container

FEW: dict[str, Any] = {"min_rows": 1, "min_count": 1, "rounds": 4}


def wide_data(n: int = 30, seed: int = 0) -> tuple[list[list[Any]], list[list[str]]]:
    """Sequences whose rows have up to 5 flags, some 25, and one of the first 60."""
    draw = random.Random(seed)
    X, y = [], []
    for s in range(n):
        sizes = [draw.choice([0, 2, 3, 5, 5, 25]) for _ in range(draw.randint(1, 5))]
        sizes[0] = 60 if s == 3 else sizes[0]
        rows = [draw.sample(range(80), size) for size in sizes]
        X.append([{"w": f"w{draw.randrange(4)}", **{f"f{i}": True for i in row}} for row in rows])
        y.append(["ABC"[(len(row) + sum(row[:2])) % 3] for row in rows])
    return X, y


X, Y = wide_data()


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also small tables have the best width."""
    for module in (wide_rows, columns, tallying):
        monkeypatch.setattr(module, "LARGE", 0)
    monkeypatch.setattr(wide_rows, "LOOSE", 1)


def rows_of(feature_ids: np.ndarray, n_rows: int) -> list[list[int]]:
    """The features of each row, in order, wherever they are."""
    found = []
    for row in range(n_rows):
        at, held = row, []
        while at >= 0:
            cells = feature_ids[at].tolist()
            at = GOES_ON - cells[-1] if cells[-1] <= GOES_ON else -1
            held += [cell for cell in cells if cell >= 0]
        found.append(held)
    return found


def encoded(X: list[Any]) -> Sequences:
    return Sequences.unlabelled(*fit_columns(X)[1:])


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> tuple[Sequences, Sequences]:
    """The same sequences in a table as wide as the widest row, and in a narrow one."""
    wide = encoded(X)
    monkeypatch.setattr(wide_rows, "LARGE", 0)
    monkeypatch.setattr(wide_rows, "LOOSE", 1)
    return wide, encoded(X)


def test_narrow_tables_hold_the_same(both: tuple[Sequences, Sequences]) -> None:
    wide, tight = both
    assert wide.feature_ids.shape == (wide.n_rows, 61)
    assert tight.feature_ids.shape[1] < 30
    assert len(tight.feature_ids) > tight.n_rows
    assert tight.feature_ids.size < wide.feature_ids.size / 2
    assert rows_of(tight.feature_ids, tight.n_rows) == rows_of(wide.feature_ids, wide.n_rows)


@pytest.mark.parametrize("change", ["part", "subset", "turned round", "history"])
def test_sequences_take_their_further_rows_along(
    both: tuple[Sequences, Sequences], change: str
) -> None:
    def changed(data: Sequences) -> Sequences:
        if change == "part":
            return data.part(2, 9).part(1, 5)
        if change == "subset":
            return data.subset(np.array([7, 3, 3, 0])).subset(np.array([2, 1]))
        if change == "turned round":
            return turned_round(data)
        return LabelHistory(3, 2).rows(data)

    wide, tight = (changed(data) for data in both)
    assert np.array_equal(wide.offsets, tight.offsets)
    assert len(tight.feature_ids) > tight.n_rows
    assert rows_of(tight.feature_ids, tight.n_rows) == rows_of(wide.feature_ids, wide.n_rows)


def test_ordinary_tables_stay_as_they_are() -> None:
    assert suitable_width(np.array([3, 900_000]), 0) == 900_000  # small
    usual = np.random.default_rng(0).integers(5, 60, 10**6)
    assert suitable_width(usual, 30) == 59  # large, but not hollow
    assert suitable_width(np.full(10**6, 20), 0) == 20
    usual[7] = 5000
    assert 30 < suitable_width(usual, 30) < 80
    assert suitable_width(np.append(np.zeros(10**6, np.int64), 10**6), 0) == ROW_CELLS


KINDS: dict[str, SequenceEstimator] = {
    "crf": BoostedCRF(**FEW, linear_rounds=2),
    "crf, joint": BoostedCRF(**FEW, family="joint", order=2, linear_rounds=0),
    "crf, large trees": BoostedCRF(**FEW, leaves=100),
    "crf, imputation": BoostedCRF(**FEW, missing="imputation"),
    "crf, instance weighting": BoostedCRF(**FEW, missing="instance_weighting"),
    "memm": BoostedMEMM(**FEW, order=2),
    "memm, beam": BoostedMEMM(**FEW, search="beam", right_to_left=True),
    "future": FutureFeatureMEMM(**{**FEW, "rounds": 12}, bag=2, patience=1, dev_share=0.3),
    "perceptron": PerceptronTagger(rounds=3, min_count=1),
    "secoc": SECOCCRF(base=BoostedCRF(**FEW), bits=3),
    "secoc, cascade": SECOCCRF(base=BoostedCRF(**FEW), bits=3, training="columns", history=1),
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_models_do_not_depend_on_the_layout(kind: str, request: pytest.FixtureRequest) -> None:
    def learned() -> bytes:
        state = model.fit(X, Y).model_.to_state()
        state.get("course", {}).pop("digest", None)  # of the table
        return container.dump(state)

    test = wide_data(10, seed=1)[0]
    model = KINDS[kind]
    stored, expected = learned(), model.predict_marginals(test)
    request.getfixturevalue("narrow")
    assert learned() == stored
    assert model.predict_marginals(test) == expected
