"""Ids and bins of new rows, beside numpy's way of finding them."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_treecrf.features.kernels.bins import BinnedColumns, write_bins
from spacy_treecrf.features.kernels.text_values import TextColumns, write_ids


def firsts(sizes: list[int]) -> np.ndarray:
    return np.cumsum([0, *sizes], dtype=np.int64)


@pytest.mark.parametrize("seed", range(5))
def test_bins_are_those_of_searchsorted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = [np.sort(rng.integers(0, 20, n)).astype(float) for n in (0, 1, 7, 254)]
    cells = [[3], [0, 4], [1], [2, 5]]
    numbers = rng.integers(-1, 21, (4, 30)).astype(float)  # often equal to an edge
    numbers[rng.random(numbers.shape) < 0.2] = np.nan
    numbers[:, 0] = np.inf
    numbers[:, 1] = -np.inf
    columns = BinnedColumns(
        np.concatenate(edges),
        firsts([len(own) for own in edges]),
        np.concatenate(cells).astype(np.int64),
        firsts([len(own) for own in cells]),
    )
    out = np.full((30, 6), 99, np.uint8)
    write_bins(numbers, columns, out)
    for values, own, at in zip(numbers, edges, cells, strict=True):
        expected = np.where(np.isnan(values), 0, 1 + np.searchsorted(own, values, side="left"))
        for cell in at:
            assert out[:, cell].tolist() == expected.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_ids_are_those_of_each_value_at_each_offset(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = [[1, 4], [0], [2, 3, 5]]
    ids = [
        rng.integers(-1, 100, (n, len(own))).astype(np.int32)
        for n, own in zip((1, 9, 4), cells, strict=True)
    ]
    values = np.array([rng.integers(0, len(own), 12) for own in ids])
    columns = TextColumns(
        np.concatenate([own.ravel() for own in ids]),
        firsts([own.size for own in ids]),
        np.concatenate(cells).astype(np.int64),
        firsts([len(own) for own in cells]),
    )
    out = np.full((12, 6), -9, np.int32)
    write_ids(values, columns, out)
    expected = np.empty_like(out)
    for found, own, at in zip(values, ids, cells, strict=True):
        expected[:, at] = own[found]
    assert np.array_equal(out, expected)
