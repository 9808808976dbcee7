"""Regions, phrases and scores."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.audit.phrases import Phrases, clear_label
from spacy_treecrf.audit.ranking import kind_of, score_of, support
from spacy_treecrf.audit.regions import differing_regions


@st.composite
def span_lists(draw: st.DrawFn) -> list[tuple[int, int, str]]:
    cuts = sorted(draw(st.sets(st.integers(0, 12), max_size=8)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    return [(a, b, draw(st.sampled_from("XY"))) for a, b in pairs]


@given(annotated=span_lists(), suggested=span_lists())
def test_regions_hold_all_differing_spans_and_do_not_overlap(annotated, suggested):
    found = differing_regions(annotated, suggested)
    for before, after in pairwise(found):
        assert before.end <= after.start
    both = set(annotated) & set(suggested)
    assert [s for one in found for s in one.annotated] == [s for s in annotated if s not in both]
    assert [s for one in found for s in one.suggested] == [s for s in suggested if s not in both]
    for one in found:
        spans = [*one.annotated, *one.suggested]
        assert one.start == min(span[0] for span in spans)
        assert one.end == max(span[1] for span in spans)
        for t in range(one.start, one.end):
            assert any(a <= t < b for a, b, _ in spans)


def test_kinds():
    assert kind_of((), ((0, 1, "X"),)) == "missing"
    assert kind_of(((0, 1, "X"),), ()) == "spurious"
    assert kind_of(((0, 1, "X"),), ((0, 1, "Y"),)) == "type"
    assert kind_of(((0, 2, "X"),), ((0, 1, "X"),)) == "boundary"


@given(p=st.floats(0.0, 1.0), q=st.floats(0.0, 0.9), more=st.floats(0.01, 0.1))
def test_scores_rise_with_the_suggestion_and_fall_with_the_annotation(p, q, more):
    assert score_of(p, q + more, "type") > score_of(p, q, "type")
    assert score_of(p + more, q, "type") < score_of(p, q, "type")
    assert score_of(p, q, "spurious") < score_of(p, q, "type")


def test_other_places_support_a_suggestion():
    many = Counter({"X": 8, "Y": 1})
    assert support(many, Counter(), "X", "Y") > 0 > support(many, Counter(), "Y", "X")
    assert support(many, Counter({"X": 3}), "X", "Y") > support(many, Counter(), "X", "Y")
    assert support(Counter(), Counter(), "X", "Y") == pytest.approx(0.0)


def phrases() -> Phrases:
    words = [["New", "York", "is", "new"], ["in", "New", "York"], ["New", "York", "City"]]
    spans = [[(0, 2, "LOC")], [], [(0, 3, "LOC")]]
    return Phrases(words, spans, [[True] * len(own) for own in words], [0, 0, 1])


def test_phrases_are_counted_where_they_are_whole_or_outside():
    every, nearby = phrases().elsewhere(1, 1, 3, "O")
    assert every == Counter({"LOC": 1})  # and not within New York City
    assert nearby == Counter({"LOC": 1})
    every, nearby = phrases().elsewhere(0, 0, 2, "LOC")
    assert every == Counter({"O": 1})
    assert phrases().elsewhere(0, 2, 3, None) == (Counter(), Counter())


def test_positions_without_annotation_do_not_count():
    words = [["Rome"], ["Rome"]]
    found = Phrases(words, [[(0, 1, "LOC")], []], [[True], [False]], [0, 1])
    assert found.elsewhere(0, 0, 1, "LOC")[0] == Counter()


def test_a_label_is_clear_if_nearly_all_of_several_places_have_it():
    assert clear_label(Counter({"X": 2})) is None
    assert clear_label(Counter({"X": 4, "Y": 1})) == "X"
    assert clear_label(Counter({"X": 3, "Y": 2})) is None


def test_a_place_that_all_others_contradict_is_doubtful():
    words = [["in", "Rome"]] * 5
    spans = [[(1, 2, "LOC")]] * 4 + [[]]
    found = Phrases(words, spans, [[True, True]] * 5, range(5))
    assert [list(found.doubtful(s)) for s in range(4)] == [[]] * 4
    [(place, label)] = found.doubtful(4)
    assert (place.start, place.end, place.label, label) == (1, 2, "O", "LOC")
