"""Parts of sequences, joined again, are the sequences as they were."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_treecrf.engine.sequences import ABSENT, Sequences, join_sequences
from spacy_treecrf.engine.wide_rows import GOES_ON


def held_by(data: Sequences, row: int) -> list[int]:
    """The features of a row, also of the rows where it goes on."""
    ids = data.feature_ids[row].tolist()
    own = [feature for feature in ids if feature >= 0]
    return own + held_by(data, GOES_ON - ids[-1]) if ids[-1] <= GOES_ON else own


def wide(n_rows: int, width: int, first: int) -> Sequences:
    """One sequence, whose second row goes on in another."""
    ids = np.arange(first, first + (n_rows + 1) * width, dtype=np.int32).reshape(-1, width)
    ids[1, -1] = GOES_ON - n_rows
    ids[n_rows, -1] = ABSENT
    return Sequences.unlabelled(np.array([0, n_rows]), ids, np.full((n_rows, 1), first, np.uint8))


@pytest.mark.parametrize("widths", [(3, 3), (3, 5), (6, 2)])
def test_wide_rows_go_on_behind_all_rows(widths: tuple[int, int]) -> None:
    parts = [wide(3, widths[0], 100), wide(2, widths[1], 200)]
    joined = join_sequences(parts)
    assert joined.offsets.tolist() == [0, 3, 5]
    expected = [held_by(part, row) for part in parts for row in range(part.n_rows)]
    assert [held_by(joined, row) for row in range(5)] == expected
    assert joined.numeric[:, 0].tolist() == [100] * 3 + [200] * 2


def test_parts_of_sequences_join_to_the_whole() -> None:
    rng = np.random.default_rng(1)
    offsets = np.array([0, 3, 4, 9, 12])
    data = Sequences(
        offsets,
        rng.integers(-1, 9, (12, 4)).astype(np.int32),
        rng.integers(0, 9, (12, 2)).astype(np.uint8),
        rng.integers(-1, 3, 12).astype(np.int32),
        rng.random(12).astype(np.float32),
    )
    joined = join_sequences([data.part(0, 1), data.part(1, 3), data.part(3, 4)])
    assert joined.digest().tolist() == data.digest().tolist()
