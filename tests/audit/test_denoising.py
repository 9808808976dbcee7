"""Labels that are partly wrong, and the distribution of the true ones."""

from __future__ import annotations

import random

import numpy as np
import pytest

from spacy_treecrf import BoostedCRF
from spacy_treecrf.audit import denoise_sequences, denoising
from tests.audit.spoiled import QUICK
from tests.columnar.tiny_columns import tiny_rows


def noisy_data(share: float = 0.2) -> tuple[list, list, list]:
    """Feature dicts, true labels, and labels of which a share of the entities is dropped."""
    rng = random.Random(3)
    rows = tiny_rows(200, seed=2)
    X = [[{"word": row[0], "tag": row[1]} for row in own] for own in rows]
    true = [[row[2] for row in own] for own in rows]
    noisy = []
    for own in true:
        dropped = rng.random() < share
        noisy.append(["O" if dropped and label != "O" else label for label in own])
    return X, true, noisy


def wrong_labels(found: list, true: list) -> int:
    return sum(a != b for own, gold in zip(found, true, strict=True)
               for a, b in zip(own, gold, strict=True))  # fmt: skip


def doubt(model: BoostedCRF, X: list, true: list) -> float:
    """Mean of 1 - P(true label)."""
    chances = [
        position[label]
        for own, gold in zip(model.predict_marginals(X), true, strict=True)
        for position, label in zip(own, gold, strict=True)
    ]
    return 1.0 - float(np.mean(chances))


def test_most_wrong_labels_are_put_right():
    X, true, noisy = noisy_data()
    lattices = denoise_sequences(X, noisy, members=1, **QUICK)
    likely = [[lattice.labels[i] for i in lattice.nodes.argmax(axis=1)] for lattice in lattices]
    assert wrong_labels(noisy, true) > 40
    assert wrong_labels(likely, true) < 0.2 * wrong_labels(noisy, true)


def test_a_student_is_surer_of_the_truth_than_a_model_of_the_noisy_labels():
    X, true, noisy = noisy_data()
    lattices = denoise_sequences(X, noisy, members=1, **QUICK)
    student = BoostedCRF(soft_labels="distill", **QUICK).fit(X, lattices)
    plain = BoostedCRF(**QUICK).fit(X, noisy)
    assert doubt(student, X, true) < 0.5 * doubt(plain, X, true)


def test_lattices_come_in_the_order_of_the_sequences_and_are_distributions():
    X, _, noisy = noisy_data()
    noisy[3] = [None] * len(noisy[3])
    lattices = denoise_sequences(X, noisy, members=2, folds=3, **QUICK)
    assert [len(one) for one in lattices] == [len(own) for own in X]
    for one in lattices:
        np.testing.assert_allclose(one.nodes.sum(axis=1), 1.0, atol=1e-4)
        np.testing.assert_allclose(one.pairs.sum(axis=1), one.nodes[1:], atol=1e-4)
        np.testing.assert_allclose(one.pairs.sum(axis=2), one.nodes[:-1], atol=1e-4)


def test_same_seed_gives_the_same_lattices_whatever_the_threads():
    X, _, noisy = noisy_data()
    first, again = (
        denoise_sequences(X, noisy, members=1, folds=2, **{**QUICK, "threads": threads})
        for threads in (1, 2)
    )
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.nodes, other.nodes)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"noise": 0.0}, "noise is 0.0"),
        ({"noise": 1.0}, "noise is 1.0"),
        ({"sharpness": 0.0}, "sharpness is 0.0"),
        ({"sharpness": 11.0}, "sharpness is 11.0"),
        ({"order": 2}, "order is 2"),
        ({"documents": [1]}, "1 documents for 200 sequences"),
        ({"folds": 1}, "folds is 1"),
        ({"constraints": "observed"}, "constraints is 'observed'"),
        ({"spill": "somewhere"}, "spill is for training"),
    ],
)
def test_what_cannot_be_is_refused(wrong, message):
    X, _, noisy = noisy_data()
    with pytest.raises(ValueError, match=f"treecrf: {message}"):
        denoise_sequences(X, noisy, **{**QUICK, **wrong})


def test_sequences_of_other_lengths_and_too_large_lattices_are_refused(monkeypatch):
    X, _, noisy = noisy_data()
    with pytest.raises(ValueError, match=r"^treecrf: X\[0\]"):
        denoise_sequences(X, [noisy[0][:-1], *noisy[1:]])
    monkeypatch.setattr(denoising, "MOST_BYTES", 2**10)
    with pytest.raises(ValueError, match=r"^treecrf: the lattices of .* positions with 4 labels"):
        denoise_sequences(X, noisy)


def test_labels_that_are_all_unknown_are_refused():
    with pytest.raises(ValueError, match="nothing is annotated"):
        denoise_sequences([[{"a": "b"}]], [[None]])
