"""McNemar's test against exact fractions and known values."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.evaluation.significance import mcnemar, mcnemar_on_tokens


def test_known_value() -> None:
    found = mcnemar(1, 9)
    assert found.p_exact == pytest.approx(2 * 11 / 1024)
    assert found.chi2 == pytest.approx(4.9)
    assert found.p_chi2 == pytest.approx(0.026857, abs=1e-6)


@given(st.integers(0, 60), st.integers(0, 60))
def test_exact_p_is_the_binomial_sum(b: int, c: int) -> None:
    n = b + c
    tail = sum(math.comb(n, k) for k in range(min(b, c) + 1)) / 2**n
    assert mcnemar(b, c).p_exact == pytest.approx(min(1.0, 2 * tail))
    assert mcnemar(b, c).p_exact == mcnemar(c, b).p_exact


def test_large_counts_neither_overflow_nor_lose_the_result() -> None:
    found = mcnemar(50_000, 51_000)
    assert found.p_exact == pytest.approx(found.p_chi2, rel=0.01)


def test_no_disagreement_is_no_difference() -> None:
    assert mcnemar(0, 0).p_exact == 1.0
    assert mcnemar(3, 3).p_exact == 1.0
    assert mcnemar(3, 3).p_chi2 == 1.0


def test_only_annotated_tokens_that_one_gets_right_count() -> None:
    gold = [["A", "A", "B", None], ["B", "B"]]
    a = [["A", "B", "B", "A"], ["A", "C"]]
    b = [["A", "A", "A", "B"], ["B", "A"]]
    found = mcnemar_on_tokens(gold, a, b)
    assert (found.only_a, found.only_b) == (1, 2)


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="treecrf: counts -1 and 2"):
        mcnemar(-1, 2)
