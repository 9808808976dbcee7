"""Letters aligned with phonemes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.corpora.aligner import (
    SILENT,
    Aligner,
    expected_counts,
    fit_aligner,
    without_stress,
)
from tests.corpora.phonemes import phonemes_of

WORDS = [
    ("box", "B AA1 K S"),
    ("fox", "F AA1 K S"),
    ("ox", "AA1 K S"),
    ("cob", "K AA1 B"),
    ("cone", "K OW1 N"),
    ("bone", "B OW1 N"),
    ("phone", "F OW1 N"),
    ("son", "S AH1 N"),
    ("on", "AA1 N"),
    ("knob", "N AA1 B"),
    ("ebb", "EH1 B"),
    ("hen", "HH EH1 N"),
    ("pen", "P EH1 N"),
    ("hop", "HH AA1 P"),
    ("keep", "K IY1 P"),
]
PAIRS = [(spelling, phonemes.split()) for spelling, phonemes in WORDS]
words = st.tuples(
    st.text("abc", min_size=1, max_size=5),
    st.lists(st.sampled_from(["A0", "A1", "B", "K"]), max_size=7),
)


def alignments(n: int, m: int) -> Iterator[tuple[int, ...]]:
    """All ways for n letters to stand for 0, 1 or 2 phonemes each, m in all."""
    return (sizes for sizes in itertools.product(range(3), repeat=n) if sum(sizes) == m)


def probability(aligner: Aligner, spelling: str, phonemes: Sequence[str], sizes) -> float:
    total, place = 1.0, 0
    plain = [aligner.phonemes[without_stress(p)] for p in phonemes]
    n = len(aligner.phonemes)
    for letter, size in zip(spelling, sizes, strict=True):
        sounds = plain[place : place + size]
        place += size
        chunk = [0, 1 + sum(sounds[:1]), 1 + n + n * sum(sounds[:1]) + sum(sounds[1:])][size]
        total *= aligner.table[aligner.letters[letter] * aligner.n_chunks + chunk]
    return total


def random_aligner(seed: int) -> Aligner:
    letters, phonemes = {"a": 0, "b": 1, "c": 2}, {"A": 0, "B": 1, "K": 2}
    aligner = Aligner(letters, phonemes, np.zeros(0), [])
    table = np.random.default_rng(seed).random((3, aligner.n_chunks)) + 0.01
    aligner.table = (table / table.sum(axis=1, keepdims=True)).ravel()
    return aligner


@settings(max_examples=60, deadline=None)
@given(st.lists(words, min_size=1, max_size=4), st.integers(0, 99))
def test_counts_likelihood_and_best_alignment_are_those_of_enumeration(pairs, seed):
    aligner = random_aligner(seed)
    expected = np.zeros_like(aligner.table)
    likelihood = 0.0
    for (spelling, phonemes), labels in zip(pairs, aligner.align(pairs), strict=True):
        ways = list(alignments(len(spelling), len(phonemes)))
        weights = [probability(aligner, spelling, phonemes, sizes) for sizes in ways]
        if not ways:
            assert labels is None
            continue
        likelihood += math.log(sum(weights))
        sizes = [0 if label == SILENT else label.count("-") + 1 for label in labels]
        best = probability(aligner, spelling, phonemes, sizes)
        assert best == pytest.approx(max(weights))
        for way, weight in zip(ways, weights, strict=True):
            _add_counts(expected, aligner, spelling, phonemes, way, weight / sum(weights))
    counts, total = expected_counts(aligner.table, aligner._groups(pairs))
    np.testing.assert_allclose(counts, expected, atol=1e-9)
    assert total == pytest.approx(likelihood)


def _add_counts(counts, aligner, spelling, phonemes, sizes, weight) -> None:
    place, n = 0, len(aligner.phonemes)
    plain = [aligner.phonemes[without_stress(p)] for p in phonemes]
    for letter, size in zip(spelling, sizes, strict=True):
        sounds = plain[place : place + size]
        place += size
        chunk = [0, 1 + sum(sounds[:1]), 1 + n + n * sum(sounds[:1]) + sum(sounds[1:])][size]
        counts[aligner.letters[letter] * aligner.n_chunks + chunk] += weight


@settings(max_examples=40, deadline=None)
@given(st.lists(words, min_size=1, max_size=8))
def test_labels_give_back_the_phonemes_in_order_and_likelihood_never_falls(pairs):
    if not any(phonemes for _, phonemes in pairs):
        pairs = [*pairs, ("a", ["A1"])]
    aligner = fit_aligner(pairs, rounds=5)
    for (spelling, phonemes), labels in zip(pairs, aligner.align(pairs), strict=True):
        if labels is None:
            assert len(phonemes) > 2 * len(spelling)
        else:
            assert len(labels) == len(spelling)
            assert phonemes_of(labels) == phonemes
            assert all(label.count("-") <= 1 for label in labels)
    for likelihoods in aligner.likelihoods:
        for before, after in itertools.pairwise(likelihoods):
            assert after >= before - 1e-9 * abs(before)


def test_likelihood_rises_in_every_round_on_words() -> None:
    aligner = fit_aligner(PAIRS, rounds=6)
    assert len(aligner.likelihoods) == 2
    first = aligner.likelihoods[0]
    assert len(first) == 6
    assert all(after > before for before, after in itertools.pairwise(first))


def test_silent_letters_and_joint_phonemes_are_found() -> None:
    aligned = dict(zip(dict(PAIRS), fit_aligner(PAIRS, rounds=10).align(PAIRS), strict=True))
    assert aligned["box"] == ["B", "AA1", "K-S"]
    assert aligned["knob"] == ["_", "N", "AA1", "B"]
    assert aligned["bone"] == ["B", "OW1", "N", "_"]
    assert aligned["ebb"] in (["EH1", "B", "_"], ["EH1", "_", "B"])


def test_stress_is_kept_but_shared_in_learning() -> None:
    pairs = [("a", ["A0"]), ("a", ["A1"]), ("ab", ["A2", "B"])]
    assert fit_aligner(pairs).align(pairs) == [["A0"], ["A1"], ["A2", "B"]]


def test_what_is_rare_is_ruled_out() -> None:
    pairs = [("ab", ["A1", "B"])] * 50 + [("ab", ["K", "K"])]
    assert fit_aligner(pairs).align(pairs)[-1] == ["K", "K"]
    strict = fit_aligner(pairs, min_share=0.1, min_joint_share=0.1).align(pairs)
    assert strict[0] == ["A1", "B"]
    assert strict[-1] is None


def test_unknown_letters_and_phonemes_cannot_be_aligned() -> None:
    aligner = fit_aligner(PAIRS)
    assert aligner.align([("zoo", ["S"]), ("box", ["XX"]), ("", [])]) == [None, None, None]


def test_nothing_to_align_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^treecrf: there is nothing to align"):
        fit_aligner([])
