"""Folds that judge each other: who learns from what, and which words are names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.models.calibration.folds import cut_into_folds, names_of

NAMES = st.sets(st.integers(0, 6), max_size=3)


@given(n=st.integers(2, 40), folds=st.integers(2, 8))
def test_each_unit_is_judged_once_and_learned_from_by_all_other_folds(n: int, folds: int) -> None:
    found = cut_into_folds(n, folds)
    assert [i for _, held in found for i in held] == list(range(n))
    assert all(sorted([*known, *held]) == list(range(n)) for known, held in found)
    sizes = [len(held) for _, held in found]
    assert max(sizes) - min(sizes) <= 1


@given(names=st.lists(NAMES, min_size=2, max_size=20), folds=st.integers(2, 5))
def test_units_are_left_out_exactly_if_they_share_a_name(names: list[set[int]], folds: int) -> None:
    for known, held in cut_into_folds(len(names), folds, names):
        for i in range(len(names)):
            shares = any(names[i] & names[j] for j in held)
            assert (i in known) == (i not in held and not shares)


def test_names_are_words_that_are_mostly_in_spans() -> None:
    units = [[("the", True), ("Who", True)], [("the", False)], [("the", False), ("Who", False)]]
    assert names_of(units) == [set(), set(), set()]
    assert names_of([*units, [("Who", True)]]) == [{"Who"}, set(), set(), {"Who"}]
