"""BILUO labels and spans: one stands for the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.engine.chain.constraints import constrain
from spacy_treecrf.labels.biluo import (
    biluo_labels,
    biluo_spans,
    prefix_and_name,
    without_cut_spans,
    write_span,
)
from tests.pipeline.random_labels import STRANGE_NAMES, biluo_sequences

ODD = st.one_of(
    st.none(),
    st.sampled_from(["", "O", "-", "B", "B-", "I-A", "L-A", "B-A", "U-A", "I-B", "X-A", "b-A"]),
    st.text(max_size=4),
)


def test_labels_of_a_name_are_what_the_engine_knows_as_biluo() -> None:
    labels = ["O", *(label for name in STRANGE_NAMES for label in biluo_labels(name))]
    assert len(set(labels)) == 1 + 4 * len(STRANGE_NAMES)
    constrain("biluo", labels, order=1)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("O", ("O", "")),
        (None, ("O", "")),
        ("", ("O", "")),
        ("B-", ("O", "")),
        ("X-A", ("O", "")),
        ("OTHER", ("O", "")),
        ("B-A", ("B", "A")),
        ("L-A-B:c d", ("L", "A-B:c d")),
        ("U--", ("U", "-")),
        ("I-B-I-", ("I", "B-I-")),
    ],
)
def test_name_begins_behind_the_first_hyphen(label: str | None, expected: tuple[str, str]) -> None:
    assert prefix_and_name(label) == expected


@given(biluo_sequences(max_size=30))
def test_spans_of_valid_labels_give_the_labels_again(labels: list[str]) -> None:
    again: list[str | None] = ["O"] * len(labels)
    for start, end, name in biluo_spans(labels):
        write_span(again, start, end, name)
    assert again == labels


@given(st.lists(ODD, max_size=20))
def test_any_labels_give_spans_in_order_that_do_not_overlap(labels: list[str | None]) -> None:
    covered = [i for start, end, _ in biluo_spans(labels) for i in range(start, end)]
    assert covered == sorted(set(covered))
    assert covered == [i for i, label in enumerate(labels) if prefix_and_name(label)[0] != "O"]
    assert all(name and start < end for start, end, name in biluo_spans(labels))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["B-A", "O"], [(0, 1, "A")]),
        (["B-A", "I-A"], [(0, 2, "A")]),
        (["I-A", "I-A", "O"], [(0, 2, "A")]),
        (["L-A", "L-A"], [(0, 1, "A"), (1, 2, "A")]),
        (["B-A", "L-B"], [(0, 1, "A"), (1, 2, "B")]),
        (["B-A", "B-A", "L-A"], [(0, 1, "A"), (1, 3, "A")]),
        (["B-A", "U-A", "L-A"], [(0, 1, "A"), (1, 2, "A"), (2, 3, "A")]),
        (["B-A", None, "L-A"], [(0, 1, "A"), (2, 3, "A")]),
    ],
)
def test_impossible_labels_give_the_spans_that_show(
    labels: list[str | None], expected: list[tuple[int, int, str]]
) -> None:
    assert biluo_spans(labels) == expected


def test_cut_spans_are_replaced_and_others_stay() -> None:
    labels = ["B-A", "L-A", "B-A", "I-A", "L-A", "U-A"]
    assert without_cut_spans(labels, [2, 4], None) == ["B-A", "L-A", None, None, None, "U-A"]
    assert without_cut_spans(labels, [0, 2, 5, 6], None) == labels
    assert without_cut_spans(labels, [1], "O") == ["O", "O", *labels[2:]]


@given(biluo_sequences(min_size=1, max_size=20), st.data())
def test_after_a_cut_both_sides_are_possible_sequences(
    labels: list[str], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(labels)))
    rest = [label or "O" for label in without_cut_spans(labels, [cut], None)]
    parts = [rest[:cut], rest[cut:]]
    for part in parts:
        again: list[str | None] = ["O"] * len(part)
        for start, end, name in biluo_spans(part):
            write_span(again, start, end, name)
        assert again == part
