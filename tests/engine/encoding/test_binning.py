import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.feature_items import NAN, fit

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(FINITE, min_size=1, max_size=60), st.lists(FINITE), st.sampled_from([2, 4, 255]))
def test_bins_rise_with_the_value(values, others, max_bins):
    values = [*values, 0.5]  # not all are 1
    columns, _, numeric = fit(*({"x": v} for v in values), max_bins=max_bins)
    (edges,) = columns.bin_edges
    assert len(edges) <= max_bins - 1
    assert np.isfinite(edges).all()
    assert (np.diff(edges) > 0).all()
    bins = numeric[:, 0]
    assert bins.min() == 1
    assert set(bins.tolist()) == set(range(1, len(edges) + 2))
    ordered = np.sort(np.array(values + others))
    encoded = columns.encode([[{"x": float(v)} for v in ordered]])[2][:, 0].astype(int)
    assert (np.diff(encoded) >= 0).all()
    np.testing.assert_array_equal(encoded, 1 + np.searchsorted(edges, ordered, side="left"))
    if len(set(values)) <= max_bins:
        assert len(edges) == len(set(values)) - 1


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.sampled_from([2, 5, 255]))
def test_bin_values_are_standardised_means_of_the_bins(values, max_bins):
    values = np.array([*values, 0.5])
    columns, _, numeric = fit(*({"x": float(v)} for v in values), max_bins=max_bins)
    bins = numeric[:, 0]
    standardised = (values - values.mean()) / (values.std() or 1.0)
    assert columns.bin_values.shape == (1, 256)
    assert columns.bin_values[0, 0] == 0
    for b in range(1, 256):
        inside = standardised[bins == b]
        expected = inside.mean() if len(inside) else 0.0
        assert columns.bin_values[0, b] == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert columns.bin_values[0, bins].mean() == pytest.approx(0, abs=1e-6)


def test_nan_none_and_no_number_are_bin_0():
    columns, _, numeric = fit({"h": 2.5}, {"h": NAN}, {"h": None}, {}, {"h": np.float32(NAN)})
    assert numeric[:, 0].tolist() == [1, 0, 0, 0, 0]
    assert columns.encode([[{"h": NAN}, {"h": -7}]])[2].tolist() == [[0], [1]]


def test_a_column_of_nan_alone_has_one_bin():
    columns, _, numeric = fit({"h": NAN})
    assert numeric.tolist() == [[0]]
    assert columns.bin_edges[0].tolist() == []
    assert not columns.bin_values.any()
    assert columns.encode([[{"h": 3}]])[2].tolist() == [[1]]


def test_few_distinct_values_are_cut_midway():
    columns, _, numeric = fit(*({"h": v} for v in (3, 1, 2, 1, 10)))
    assert columns.bin_edges[0].tolist() == [1.5, 2.5, 6.5]
    assert numeric[:, 0].tolist() == [3, 1, 2, 1, 4]
    assert columns.encode([[{"h": 1.5}, {"h": 1.6}, {"h": 99}]])[2].ravel().tolist() == [1, 2, 4]


def test_many_distinct_values_are_cut_at_quantiles():
    columns, _, numeric = fit(*({"h": v} for v in range(10_000)), max_bins=10)
    assert columns.bin_edges[0].tolist() == [1000 * k - 0.5 for k in range(1, 10)]
    assert (np.bincount(numeric[:, 0])[1:] == 1000).all()
    assert len(fit(*({"h": v} for v in range(10_000)))[0].bin_edges[0]) == 254


def test_a_value_repeated_beyond_its_quantile_gets_a_bin():
    values = [0] * 1000 + list(range(1, 20))
    columns, _, numeric = fit(*({"h": v} for v in values), max_bins=5)
    assert columns.bin_edges[0].tolist() == [0.5]
    columns, _, numeric = fit(*({"h": -v} for v in values), max_bins=5)
    assert len(np.unique(numeric)) == len(columns.bin_edges[0]) + 1


def test_a_constant_numeric_column_has_bin_value_0():
    columns, _, numeric = fit({"h": 7.3}, {"h": 7.3}, {"h": 7.3})
    assert numeric[:, 0].tolist() == [1, 1, 1]
    assert not columns.bin_values.any()
