"""Constraints: what each scheme allows, and that training data always stays possible."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.chain.chain import Chain, log_normalizers
from spacy_treecrf.engine.chain.constraints import constrain, observed_transitions
from spacy_treecrf.engine.chain.decoding import viterbi
from tests.engine.enumeration import enumerate_paths

BIO = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
BILUO = ["O", "B-X", "I-X", "L-X", "U-X", "B-Y-Z", "I-Y-Z", "L-Y-Z", "U-Y-Z"]


def valid_bio(tags: tuple[str, ...]) -> bool:
    previous = ("O", *tags[:-1])
    return all(
        not tag.startswith("I-") or before in (f"B-{tag[2:]}", tag)
        for before, tag in zip(previous, tags, strict=True)
    )


def valid_biluo(tags: tuple[str, ...]) -> bool:
    open_type = None
    for tag in tags:
        prefix, name = tag[0], tag[2:] or None
        if (open_type is None) != (prefix in "OBU") or (prefix in "IL" and name != open_type):
            return False
        open_type = name if prefix in "BI" else None
    return open_type is None


@pytest.mark.parametrize(
    ("kind", "labels", "is_valid"), [("bio", BIO, valid_bio), ("biluo", BILUO, valid_biluo)]
)
@pytest.mark.parametrize("order", [1, 2])
def test_a_scheme_allows_its_valid_sequences_and_no_others(kind, labels, is_valid, order) -> None:
    chain = Chain(order, *constrain(kind, labels, order=order))
    for length in (1, 2, 3):
        scores = np.zeros((length, 1, len(labels)), dtype=np.float32)
        allowed = enumerate_paths(scores, chain).paths
        found = {tuple(labels[y] for y in path) for path in allowed}
        assert found == set(filter(is_valid, itertools.product(labels, repeat=length)))


def test_iobes_is_a_spelling_of_biluo() -> None:
    iobes = [{"L": "E", "U": "S"}.get(label[0], label[0]) + label[1:] for label in BILUO]
    for mask, same in zip(
        constrain("biluo", BILUO, order=1), constrain("biluo", iobes, order=1), strict=True
    ):
        assert mask.dtype == np.float32
        np.testing.assert_array_equal(mask, same)


def test_viterbi_obeys_the_scheme() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(scale=5, size=(2000, 1, len(BILUO))).astype(np.float32)
    offsets = np.arange(0, 2001, 10)
    labels, _ = viterbi(scores, offsets, Chain(1, *constrain("biluo", BILUO, order=1)))
    for first, last in itertools.pairwise(offsets.tolist()):
        assert valid_biluo(tuple(BILUO[y] for y in labels[first:last]))


def test_none_allows_everything() -> None:
    for mask in constrain("none", ["what", "ever"], order=2):
        assert not mask.any()


@pytest.mark.parametrize("label", ["X", "L-PER", "B-", "B", "-", "", "b-PER", "O-PER"])
def test_a_label_outside_of_the_scheme_is_named(label: str) -> None:
    with pytest.raises(ValueError, match=f"treecrf: label '{label}' does not follow"):
        constrain("bio", [*BIO, label], order=1)


def test_an_unknown_kind_lists_the_kinds() -> None:
    with pytest.raises(ValueError, match="'iob'; choose one of none, observed, bio, biluo"):
        constrain("iob", BIO, order=1)


def test_order_zero_cannot_obey_a_scheme() -> None:
    with pytest.raises(ValueError, match="needs a chain of order 1"):
        constrain("bio", BIO, order=0)
    for mask in constrain("observed", BIO, order=0):
        assert not mask.any()


def test_observed_needs_what_was_observed() -> None:
    with pytest.raises(ValueError, match="take them from observed_transitions"):
        constrain("observed", BIO, order=1)
    start, trans, end = np.ones(4, bool), np.ones((4, 4), bool), np.ones(4, bool)
    with pytest.raises(ValueError, match="there are 5 labels"):
        constrain(
            "observed", BIO, order=1, observed_start=start, observed_trans=trans, observed_end=end
        )


def test_observed_transitions_of_known_labels_are_those_that_occur() -> None:
    labels = np.array([0, 1, 1, 2, 0], dtype=np.int32)
    start, trans, end = observed_transitions(labels, np.array([0, 3, 3, 5]), 4)
    assert start.tolist() == [True, False, True, False]
    assert end.tolist() == [True, True, False, False]
    assert np.argwhere(trans).tolist() == [[0, 1], [1, 1], [2, 0]]
    masks = constrain(
        "observed",
        ["a", "b", "c", "d"],
        order=1,
        observed_start=start,
        observed_trans=trans,
        observed_end=end,
    )
    for mask, seen in zip(masks, (start, trans, end), strict=True):
        np.testing.assert_array_equal(mask == 0.0, seen)
        np.testing.assert_array_equal(mask == -np.inf, ~seen)


def test_next_to_an_unknown_label_everything_counts_as_seen() -> None:
    labels = np.array([0, -1, -1, 1, -1], dtype=np.int32)
    start, trans, end = observed_transitions(labels, np.array([0, 5]), 3)
    assert start.tolist() == [True, False, False]
    assert end.all()
    assert trans.tolist() == [[True] * 3, [True] * 3, [False, True, False]]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.integers(-1, 2), max_size=6), max_size=4), st.integers(1, 2))
@example([[-1, -1, -1]], 1)
@example([[-1]], 1)
@example([[-1, -1, 0], [1, -1, -1]], 2)
def test_every_training_sequence_stays_possible(sequences: list[list[int]], order: int) -> None:
    labels = np.array([y for sequence in sequences for y in sequence], dtype=np.int32)
    offsets = np.cumsum([0] + [len(sequence) for sequence in sequences])
    start, trans, end = observed_transitions(labels, offsets, 3)
    masks = constrain(
        "observed",
        ["a", "b", "c"],
        order=order,
        observed_start=start,
        observed_trans=trans,
        observed_end=end,
    )
    clamp = (labels[:, None] == np.arange(3)) | (labels[:, None] < 0)
    scores = np.zeros((len(labels), 1, 3), dtype=np.float32)
    log_z = log_normalizers(scores, offsets, Chain(order, *masks), clamp.astype(np.uint8))
    assert np.isfinite(log_z).all()
