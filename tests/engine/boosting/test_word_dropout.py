"""Rare values that a share of the training rows does not see."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from spacy_treecrf.engine.boosting.word_dropout import RARE_ROWS, with_unknown_words
from spacy_treecrf.engine.row_storage import IN_MEMORY, RowStorage
from spacy_treecrf.engine.sequences import ABSENT, MISSING, Sequences
from spacy_treecrf.engine.wide_rows import GOES_ON
from tests.tiny import new, tiny_data

COUNTS = np.array([RARE_ROWS + 5, RARE_ROWS, RARE_ROWS - 1, 3, 2])


def sequences(ids: npt.NDArray[np.int32], n_rows: int) -> Sequences:
    offsets = np.array([0, n_rows // 2, n_rows])
    return Sequences.unlabelled(offsets, ids, np.zeros((n_rows, 0), np.uint8))


def random_ids(n_rows: int, n_slots: int = 3) -> npt.NDArray[np.int32]:
    """Cells that hold features, nothing, or a missing value."""
    drawn = np.random.default_rng(1).integers(MISSING, len(COUNTS), (n_rows, n_slots))
    return drawn.astype(np.int32)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_rare_cells_of_drawn_rows_are_absent_and_others_stay(share: float) -> None:
    ids = random_ids(2000)
    found = with_unknown_words(sequences(ids, 2000), COUNTS, share, 7, IN_MEMORY).feature_ids
    drawn = np.random.default_rng(7).random(2000) < share
    for row in range(2000):
        for slot in range(3):
            feature = ids[row, slot]
            rare = feature >= 0 and COUNTS[feature] < RARE_ROWS
            expected = ABSENT if rare and drawn[row] else feature
            assert found[row, slot] == expected
    assert np.mean(drawn) == pytest.approx(share, abs=0.05)


def test_rows_that_go_on_are_drawn_as_a_whole() -> None:
    """Row 0 goes on in row 4 and that in row 5; row 1 goes on in row 6."""
    ids = np.full((7, 3), 4, np.int32)
    ids[0, 2], ids[4, 2], ids[1, 2] = GOES_ON - 4, GOES_ON - 5, GOES_ON - 6
    for seed in range(20):
        found = with_unknown_words(sequences(ids, 4), COUNTS, 0.5, seed, IN_MEMORY).feature_ids
        drawn = np.random.default_rng(seed).random(4) < 0.5
        whole = np.array([*drawn, drawn[0], drawn[0], drawn[1]])
        expected = np.where(whole[:, None] & (ids >= 0), ABSENT, ids)
        assert np.array_equal(found, expected)


def test_the_seed_decides_and_neither_threads_nor_storage(tmp_path: Path) -> None:
    X, y = tiny_data(40)
    drops = {"word_dropout": 0.5, "min_rows": 1}
    first = new(**drops, threads=1).fit(X, y).predict_marginals(X)
    assert new(**drops, threads=2).fit(X, y).predict_marginals(X) == first
    assert new(**drops, spill=str(tmp_path)).fit(X, y).predict_marginals(X) == first
    assert new(**drops, seed=1).fit(X, y).predict_marginals(X) != first
    assert new(min_rows=1).fit(X, y).predict_marginals(X) != first


def test_columns_that_stay_known_count_more() -> None:
    """A word and its letter say the same; with dropout, new words are judged by the letter."""
    words = [f"{letter}{i}" for i in range(8) for letter in "ab"]
    X = [[{"word": word, "letter": word[0]} for word in words] for _ in range(4)]
    y = [["A" if word[0] == "a" else "B" for word in words] for _ in range(4)]
    unknown = [[{"word": "a99", "letter": "a"}]]
    settings = {"min_count": 1, "rounds": 2, "linear_rounds": 2, "order": 0}
    plain, drops = (
        new(**settings, word_dropout=share).fit(X, y).predict_marginals(unknown)[0][0]["A"]
        for share in (0.0, 0.8)
    )
    assert drops > plain + 0.01


def test_spilled_rows_are_the_same(tmp_path: Path) -> None:
    data = sequences(random_ids(50), 50)
    kept = [
        with_unknown_words(data, COUNTS, 0.5, 3, storage).feature_ids
        for storage in (IN_MEMORY, RowStorage(str(tmp_path)))
    ]
    assert np.array_equal(*kept)
