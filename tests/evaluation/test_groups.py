"""Scores of groups: the counts of a plain reading, and intervals around them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.evaluation.groups import (
    LENGTH_GROUPS,
    SEQUENCE_LENGTH_GROUPS,
    label_groups,
    length_group,
    sequence_length_group,
    span_groups,
    token_groups,
    word_is_known,
)
from spacy_treecrf.evaluation.judging import Judged
from spacy_treecrf.evaluation.spans import SpanScore, span_scores
from spacy_treecrf.labels.schemes import conll_spans

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
sequences = st.lists(
    st.lists(st.tuples(st.sampled_from([*LABELS, None]), st.sampled_from(LABELS)), min_size=1),
    min_size=1,
    max_size=6,
)


def judged_of(pairs: list[list[tuple[str | None, str]]]) -> Judged:
    judged = Judged()
    judged.gold = [[gold for gold, _ in own] for own in pairs]
    judged.predicted = [[predicted for _, predicted in own] for own in pairs]
    return judged


@given(sequences)
def test_groups_by_type_are_the_scores_by_type(pairs: list[list[tuple[str | None, str]]]) -> None:
    judged = judged_of(pairs)
    expected = span_scores(judged.gold, judged.predicted)
    found = span_groups(judged, lambda s, span: span[2], list(expected), resamples=0)
    assert {own.name: own.score for own in found} == expected
    for own in found:
        score = expected[own.name]
        assert own.precision.value == (score.precision if score.predicted else None)
        assert own.recall.value == (score.recall if score.gold else None)
        assert own.f1.value == (score.f1 if score.gold or score.predicted else None)


@given(sequences)
def test_groups_by_length_share_out_all_spans(pairs: list[list[tuple[str | None, str]]]) -> None:
    judged = judged_of(pairs)
    found = span_groups(
        judged, lambda s, span: length_group(span[1] - span[0]), LENGTH_GROUPS, resamples=0
    )
    gold = [end - start for labels in judged.gold for start, end, _ in conll_spans(labels)]
    assert [own.score.gold for own in found] == [
        gold.count(1),
        gold.count(2),
        gold.count(3),
        sum(length > 3 for length in gold),
    ]


@given(sequences)
def test_tokens_of_groups_are_counted_where_they_are_annotated(
    pairs: list[list[tuple[str | None, str]]],
) -> None:
    judged = judged_of(pairs)
    names = ["even", "odd"]
    found = token_groups(judged, lambda s, i: names[i % 2], names, resamples=0)
    for group, own in enumerate(found):
        inside = [(a, b) for own in pairs for i, (a, b) in enumerate(own) if a and i % 2 == group]
        right = sum(a == b for a, b in inside)
        assert own.score == SpanScore(right, len(inside), len(inside))
    by_label = {own.name: own.score for own in label_groups(judged, LABELS, resamples=0)}
    annotated = [pair for own in pairs for pair in own if pair[0] is not None]
    for label in LABELS:
        assert by_label[label] == SpanScore(
            annotated.count((label, label)),
            sum(b == label for _, b in annotated),
            sum(a == label for a, _ in annotated),
        )


def test_intervals_are_around_the_values_of_groups_that_have_any() -> None:
    rows = [[("B-PER", "B-PER"), ("O", "B-LOC")], [("B-PER", "O"), ("O", "O")]] * 20
    judged = judged_of(rows)  # type: ignore[arg-type]
    per, loc, org = span_groups(
        judged, lambda s, span: span[2], ["PER", "LOC", "ORG"], resamples=200, seed=1
    )
    assert per.recall.value == 0.5
    assert per.recall.low is not None
    assert per.recall.high is not None
    assert per.recall.low < 0.5 < per.recall.high
    assert per.precision.value == 1.0
    assert loc.precision.value == 0.0
    assert loc.recall.value is None  # none in the gold annotation
    assert org.f1.value is None


@pytest.mark.parametrize("length", range(1, 80))
def test_every_length_has_one_of_the_groups(length: int) -> None:
    assert length_group(length) in LENGTH_GROUPS
    name = sequence_length_group(length)
    assert name in SEQUENCE_LENGTH_GROUPS
    low, _, high = name.partition(" to ")
    assert length >= int(low.split()[0])
    assert not high or length <= int(high)


def test_words_are_known_by_features_of_the_word_itself() -> None:
    known = word_is_known(["orth[0]=Rome", "lower[-1]=oslo", "lower[0]=bern", "suffix2[0]=aa"])
    assert known is not None
    assert [known(word) for word in ("Rome", "rome", "Oslo", "BERN", "aa")] == [
        True,
        False,
        False,
        True,
        False,
    ]
    of_columns = word_is_known(["1.word[0]=A=B", "2[0]=N"])
    assert of_columns is not None
    assert of_columns("A=B")
    assert not of_columns("N")
    assert word_is_known(["char[0]=a"]) is None
