"""Confusion of spans: every span is counted once, with the span it agrees with most."""

from __future__ import annotations

from itertools import combinations, permutations

from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.evaluation.judging import Judged
from spacy_treecrf.evaluation.span_confusion import (
    BOTH,
    BOUNDARIES,
    MISSED,
    NOTHING,
    RIGHT,
    SPURIOUS,
    TYPE,
    matched,
    span_confusion,
)
from spacy_treecrf.evaluation.spans import sequence_spans, span_scores, total_score
from spacy_treecrf.labels.biluo import TokenSpan

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
pairs = st.lists(
    st.tuples(st.sampled_from([*LABELS, None]), st.sampled_from(LABELS)), min_size=1, max_size=9
)


def judged_of(*own: list[tuple[str | None, str]]) -> Judged:
    judged = Judged()
    judged.gold = [[gold for gold, _ in one] for one in own]
    judged.predicted = [[predicted for _, predicted in one] for one in own]
    return judged


@given(pairs)
def test_all_spans_are_counted_once_and_the_right_ones_are_right(
    own: list[tuple[str | None, str]],
) -> None:
    judged = judged_of(own)
    found = span_confusion(judged)
    total = total_score(span_scores(judged.gold, judged.predicted))
    assert found.kinds[RIGHT] == total.right
    assert sum(n for (gold, _), n in found.types.items() if gold != NOTHING) == total.gold
    assert sum(n for (_, own), n in found.types.items() if own != NOTHING) == total.predicted
    assert found.kinds[MISSED] == sum(found.types[name, NOTHING] for name in ("PER", "LOC"))
    assert found.kinds[SPURIOUS] == sum(found.types[NOTHING, name] for name in ("PER", "LOC"))
    assert sum(found.kinds.values()) == sum(found.types.values())
    table = found.table(found.names)
    assert sum(map(sum, table)) == sum(found.types.values())
    assert sum(found.shifts.values()) == sum(found.kinds.values()) - (
        found.kinds[MISSED] + found.kinds[SPURIOUS]
    )
    assert found.shifts[0, 0] == found.kinds[RIGHT] + found.kinds[TYPE]


@given(pairs)
def test_pairs_have_as_many_equal_spans_and_places_as_any_pairing(
    own: list[tuple[str | None, str]],
) -> None:
    """Against all ways to pair the spans."""
    judged = judged_of(own)
    gold, predicted = sequence_spans(judged.gold[0], judged.predicted[0])

    def agreement(chosen: list[tuple[TokenSpan, TokenSpan]]) -> tuple[int, int]:
        return sum(a == b for a, b in chosen), sum(a[:2] == b[:2] for a, b in chosen)

    few, many = sorted([gold, predicted], key=len)
    best = (0, 0)
    for n in range(len(few) + 1):
        for some in combinations(few, n):
            for others in permutations(many, n):
                best = max(best, agreement(list(zip(some, others, strict=True))))
    assert agreement([(a, b) for a, b in matched(gold, predicted) if a and b]) == best


def test_kinds_of_confusion() -> None:
    judged = judged_of(
        [("B-PER", "B-PER"), ("I-PER", "I-PER"), ("O", "O")],
        [("B-PER", "B-LOC"), ("I-PER", "I-LOC"), ("O", "O")],
        [("B-PER", "O"), ("I-PER", "B-PER"), ("O", "I-PER")],
        [("B-PER", "B-LOC"), ("I-PER", "O"), ("O", "O")],
        [("B-PER", "O"), ("I-PER", "O"), ("O", "B-LOC")],
    )
    found = span_confusion(judged)
    assert found.kinds == {RIGHT: 1, TYPE: 1, BOUNDARIES: 1, BOTH: 1, MISSED: 1, SPURIOUS: 1}
    assert found.shifts == {(0, 0): 2, (1, 1): 1, (0, -1): 1}
    assert found.names == ["LOC", "PER", NOTHING]
    assert found.table(found.names) == [[0, 0, 0], [2, 2, 1], [1, 0, 0]]
