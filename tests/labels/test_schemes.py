"""Spans are those that conlleval finds, in every scheme."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.labels.biluo import biluo_spans
from spacy_treecrf.labels.schemes import (
    SCHEMES,
    are_span_labels,
    as_ioe2,
    conll_spans,
    scheme_of,
    spelled,
    to_bio,
)


@pytest.mark.parametrize(
    ("labels", "spans"),
    [
        ("B-X I-X O B-Y", [(0, 2, "X"), (3, 4, "Y")]),
        ("I-X I-X O I-Y", [(0, 2, "X"), (3, 4, "Y")]),  # IOB1
        ("I-X B-X I-X", [(0, 1, "X"), (1, 3, "X")]),  # IOB1: B only between two of a kind
        ("B-X L-X U-Y U-Y", [(0, 2, "X"), (2, 3, "Y"), (3, 4, "Y")]),  # BILUO
        ("B-X E-X S-Y", [(0, 2, "X"), (2, 3, "Y")]),  # BIOES
        ("B-X I-Y", [(0, 1, "X"), (1, 2, "Y")]),
        ("E-X E-X", [(0, 1, "X"), (1, 2, "X")]),
        ("B I O B", [(0, 2, ""), (3, 4, "")]),
        ("B-X-Y I-X-Y", [(0, 2, "X-Y")]),
        ("O O", []),
        ("", []),
    ],
)
def test_spans_of_every_scheme(labels: str, spans: list[tuple[int, int, str]]) -> None:
    assert conll_spans(labels.split()) == spans


def conlleval_starts_and_ends(tags: list[tuple[str, str]]) -> tuple[list[int], list[int]]:
    """The subroutines startOfChunk and endOfChunk of conlleval.pl, rule by rule."""
    starts, ends = [], []
    previous, previous_type = "O", ""
    for i, (tag, type_) in enumerate([*tags, ("O", "")]):
        pair = previous + tag
        end = pair in {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}
        end |= previous not in "O." and previous_type != type_
        end |= pair in {"ES", "BS", "IS"} or previous == "S"
        end |= pair == "EB"
        start = pair in {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}
        start |= tag not in "O." and previous_type != type_
        start |= tag == "S" or pair in {"SI", "SE", "SB", "EB"}
        if end and previous != "O":
            ends.append(i)
        if start and tag != "O":
            starts.append(i)
        previous, previous_type = tag, type_
    return starts, ends


@given(st.lists(st.tuples(st.sampled_from("BIESO"), st.sampled_from(["X", "Y"])), max_size=12))
def test_spans_begin_and_end_where_conlleval_begins_and_ends_them(
    tags: list[tuple[str, str]],
) -> None:
    tags = [(tag, "" if tag == "O" else name) for tag, name in tags]
    found = conll_spans([tag if tag == "O" else f"{tag}-{name}" for tag, name in tags])
    starts, ends = conlleval_starts_and_ends(tags)
    assert [start for start, _, _ in found] == starts
    assert [end for _, end, _ in found] == ends


@given(st.lists(st.sampled_from(["O", "B-X", "I-X", "L-X", "U-X", "B-Y", "I-Y"]), max_size=10))
def test_bio_has_the_same_spans_and_is_its_own_bio(labels: list[str]) -> None:
    bio = to_bio(labels)
    assert conll_spans(bio) == conll_spans(labels)
    assert to_bio(bio) == bio


@given(st.lists(st.sampled_from(["O", "B-X", "I-X", "L-X", "U-X", "B-Y", "I-Y"]), max_size=10))
def test_ioe2_has_the_same_spans_and_an_end_for_each(labels: list[str]) -> None:
    ioe2 = as_ioe2(labels)
    assert conll_spans(ioe2) == conll_spans(labels)
    assert {label[0] for label in ioe2 if label} <= set("IOE")
    assert sum(label is not None and label[0] == "E" for label in ioe2) == len(conll_spans(labels))


def test_what_is_not_annotated_stays_so_in_ioe2() -> None:
    assert as_ioe2(["B", "I", None, "B"]) == ["I", "E", None, "E"]


def test_well_formed_biluo_has_the_spans_that_the_pipe_sees() -> None:
    labels = ["B-X", "I-X", "L-X", "U-X", "O", "U-Y", "B-Y", "L-Y"]
    assert conll_spans(labels) == biluo_spans(labels)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["O", "B-X", None], True),
        (["I-X"], True),
        (["O", "B", "I"], True),
        (["O"], False),
        ([], False),
        (["NN", "B-X"], False),
        (["K-S", "AH0", "_"], False),  # letters to sounds
        (["B-X", "B"], False),
        (["E", "S", "_"], False),
        (["S", "E"], False),
    ],
)
def test_labels_of_spans_are_told_from_others(labels: list[str | None], expected: bool) -> None:
    assert are_span_labels(labels) is expected


@pytest.mark.parametrize(
    ("sequences", "scheme"),
    [
        (["B-X I-X O", "O I-X", "B-Y"], "BIO"),  # one stray I
        (["I-X", "O B-X"], "BIO"),
        (["I-X", "I-Y B-X"], "BIO"),
        (["I-X B-X I-X O I-Y", "O"], "IOB1"),
        (["I-X I-X"], "IOB1"),
        (["B I O", "I"], "BIO"),
        (["I O I B"], "IOB1"),
        (["? I-X"], "BIO"),  # of what follows a token without a label, nothing is known
        (["I-X", "? B-X"], "IOB1"),
        (["O", ""], "BIO"),
        (["I-X", "B-X E-X"], "BIOES"),
        (["I-X E-X O", "E-Y E-Y"], "IOE2"),
        (["I-X", "U-X"], "BILUO"),
    ],
)
def test_the_scheme_of_sequences(sequences: list[str], scheme: str) -> None:
    labels = [[None if y == "?" else y for y in own.split()] for own in sequences]
    assert scheme_of(labels) == scheme


ANY_LABEL = st.one_of(
    st.sampled_from(["O", None]),
    st.builds("{}-{}".format, st.sampled_from("BBIIESLU"), st.sampled_from("XY")),
)
BIO_LABEL = st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y", None])


@given(
    st.one_of(
        st.lists(st.lists(ANY_LABEL, max_size=6), max_size=4),
        st.lists(st.lists(BIO_LABEL, max_size=6), max_size=4),
    ),
    st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"]), max_size=8),
)
def test_what_is_written_in_the_scheme_of_sequences_keeps_it(
    sequences: list[list[str | None]], new: list[str]
) -> None:
    scheme = scheme_of(sequences)
    assert scheme in SCHEMES
    spans = conll_spans(new)
    written = spelled(spans, len(new), scheme)
    assert conll_spans(written) == spans
    assert scheme_of([*sequences, list(written)]) == scheme


@given(
    st.lists(BIO_LABEL, min_size=1, max_size=8),
    st.lists(st.lists(BIO_LABEL, max_size=6), max_size=3),
)
def test_stray_labels_beside_a_well_formed_sequence_do_not_change_its_scheme(
    labels: list[str | None], others: list[list[str | None]]
) -> None:
    spans = conll_spans(labels)
    well_formed = list(spelled(spans, len(labels), "BIO"))
    assert scheme_of([well_formed]) == "BIO"
    if spans:
        assert scheme_of([*others, well_formed]) == "BIO"
