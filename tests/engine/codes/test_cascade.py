"""Cascade columns hold a bit's neighbours inside of its sequence."""

from __future__ import annotations

import numpy as np

from spacy_treecrf.engine.codes.cascade import BINS, WINDOW, cascade_bin_values, cascade_columns


def test_neighbours_are_those_of_the_sequence() -> None:
    p = np.array([[0.0, 0.5], [0.5, 0.5], [1.0, 0.1], [0.9, 0.9]], np.float32)
    columns = cascade_columns(p, np.array([0, 3, 4]))
    assert columns.shape == (4, 2 * WINDOW)
    middle = (BINS + 1) // 2
    assert columns[:, :3].tolist() == [
        [0, 1, middle],
        [1, middle, BINS],
        [middle, BINS, 0],
        [0, columns[3, 1], 0],
    ]
    assert middle < columns[3, 1] < BINS


def test_bins_rise_with_the_probability_and_values_with_the_bins() -> None:
    p = np.linspace(0.0, 1.0, 101, dtype=np.float32)[:, None]
    bins = cascade_columns(p, np.array([0, 101]))[:, 1].astype(int)
    assert np.all(np.diff(bins) >= 0)
    assert (bins[0], bins[-1]) == (1, BINS)
    values = cascade_bin_values(2)
    assert values.shape == (2 * WINDOW, 256)
    assert np.all(np.diff(values[0, 1 : BINS + 1]) > 0)
    assert values[0, 0] == 0.0
