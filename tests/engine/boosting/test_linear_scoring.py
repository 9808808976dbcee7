"""Linear scores of rows are the sums of their weights, however many labels there are."""

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.linear_scoring import add_linear_scores
from spacy_treecrf.engine.sequences import ABSENT, MISSING
from spacy_treecrf.engine.wide_rows import GOES_ON

N_ROWS, N_SLOTS, N_FEATURES = 7, 5, 11


def naive_scores(feature_ids, numeric, weights, bin_scores, row):
    """Features in the order of slots, those of rows behind included, then bins, in 32 bits."""
    total = np.zeros(weights.shape[1], np.float32)
    while row is not None:
        behind = None
        for feature in feature_ids[row].tolist():
            if 0 <= feature < len(weights):
                total += weights[feature]
            elif feature <= GOES_ON:
                behind = GOES_ON - feature
        row = behind
    return total


@pytest.mark.parametrize("n_labels", [1, 7, 8, 9, 15, 16, 17, 23, 24, 40])
@pytest.mark.parametrize("n_numeric", [0, 3])
def test_scores_equal_the_naive_sum(n_labels, n_numeric):
    draw = np.random.default_rng(n_labels)
    weights = draw.normal(size=(N_FEATURES, n_labels)).astype(np.float32)
    bin_scores = draw.normal(size=(n_numeric, 256, n_labels)).astype(np.float32)
    feature_ids = draw.integers(0, N_FEATURES + 3, (N_ROWS + 2, N_SLOTS)).astype(np.int32)
    feature_ids[1, 0], feature_ids[1, 2] = ABSENT, MISSING
    feature_ids[2, -1] = GOES_ON - N_ROWS  # two rows behind
    feature_ids[N_ROWS, -1] = GOES_ON - (N_ROWS + 1)
    numeric = draw.integers(0, 256, (N_ROWS, n_numeric)).astype(np.uint8)
    for first, last in ((0, N_ROWS), (2, 4), (3, 3)):
        out = np.zeros((last - first, n_labels), np.float32)
        add_linear_scores(feature_ids, numeric, weights, bin_scores, first, out)
        for row in range(first, last):
            expected = naive_scores(feature_ids, numeric, weights, bin_scores, row)
            for column, bin_ in enumerate(numeric[row].tolist()):
                expected += bin_scores[column, bin_]
            np.testing.assert_array_equal(out[row - first], expected)
