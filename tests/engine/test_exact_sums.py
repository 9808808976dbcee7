"""Sums that no order of adding and no cutting into parts changes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.exact_sums import exact_terms, exact_total

VALUES = st.lists(st.floats(-1e12, 1e12, allow_subnormal=False), min_size=0, max_size=30)


@settings(max_examples=200, deadline=None)
@given(values=VALUES, cut=st.integers(0, 30))
def test_terms_of_parts_have_the_rounded_exact_sum_of_all(values: list[float], cut: int) -> None:
    array = np.array(values, np.float64)
    exact = float(sum(map(Fraction, values), Fraction(0)))
    terms = [exact_terms(part) for part in (array[cut:], array[:cut])]
    assert float(exact_total(array)) == exact
    assert float(exact_total(np.concatenate(terms))) == exact
    assert sum(map(len, terms)) <= max(1, len(values)) + 2


def test_axes_behind_the_first_are_summed_one_by_one() -> None:
    values = np.random.default_rng(0).normal(size=(7, 2, 3)) * 10.0 ** np.arange(7)[:, None, None]
    found = exact_total(np.concatenate([exact_terms(values[:4]), exact_terms(values[4:])]))
    np.testing.assert_array_equal(found, exact_total(values))
    np.testing.assert_allclose(found, values.sum(axis=0))


def test_what_is_no_number_stays_so() -> None:
    assert np.isneginf(exact_total(np.array([1.0, -np.inf])))
    assert np.isnan(exact_total(np.array([np.inf, -np.inf])))
    assert np.isneginf(exact_terms(np.array([1.0, -np.inf]))).any()
