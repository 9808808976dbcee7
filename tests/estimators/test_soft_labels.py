"""Soft labels, lattices and annotators in `BoostedCRF.fit`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spacy_treecrf import BoostedCRF, BoostedMEMM, Lattice, PerceptronTagger
from spacy_treecrf.estimators.soft_targets import soft_targets
from tests.estimators.small_estimators import ITEM, KINDS, X, Y, new
from tests.refusals import assert_refused

NAMES = sorted({label for labels in Y for label in labels})
IDS = {label: i for i, label in enumerate(NAMES)}


def certain(y: list[list[str]]) -> list[list[dict[str, float]]]:
    return [[{label: 1.0} for label in labels] for labels in y]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("meaning", ["evidence", "distill"])
def test_certain_distributions_teach_what_labels_teach(kind: Any, meaning: str) -> None:
    plain = new(**kind).fit(X, Y)
    soft = new(**kind, soft_labels=meaning).fit(X, certain(Y))
    assert soft.classes_ == plain.classes_
    for mine, other in zip(soft.predict_marginals(X), plain.predict_marginals(X), strict=True):
        for a, b in zip(mine, other, strict=True):
            assert list(a.values()) == pytest.approx(list(b.values()), abs=1e-3)


def test_weights_of_1_are_labels_and_weights_of_0_are_gaps() -> None:
    gaps = [[None if t % 3 == 1 else label for t, label in enumerate(own)] for own in Y]
    weighed = [[(label, 0.0 if t % 3 == 1 else 1.0) for t, label in enumerate(own)] for own in Y]
    expected, found = new().fit(X, gaps), new().fit(X, weighed)
    for mine, other in zip(found.predict_marginals(X), expected.predict_marginals(X), strict=True):
        for a, b in zip(mine, other, strict=True):
            assert list(a.values()) == pytest.approx(list(b.values()), abs=1e-3)


def test_a_weight_spreads_the_rest_over_all_labels() -> None:
    _, soft = soft_targets([[("A", 0.4), {"B": 2.0, "A": 6.0}, "B", None]], {"A": 0, "B": 1}, "y")
    np.testing.assert_allclose(np.exp(soft.nodes), [[0.7, 0.3], [6.0, 2.0]], rtol=1e-6)
    assert soft.node_table.tolist() == [0, 1, -1, -1]


def test_distilling_a_constant_distribution_learns_it() -> None:
    q = {"A": 0.7, "B": 0.3}
    items = [[ITEM] * 3] * 40
    model = BoostedCRF(rounds=40, min_count=1, soft_labels="distill").fit(items, [[q] * 3] * 40)
    for position in model.predict_marginals_single([ITEM] * 3):
        assert position["A"] == pytest.approx(0.7, abs=0.02)


def test_evidence_prefers_what_is_likelier_everywhere() -> None:
    q = {"A": 0.7, "B": 0.3}
    items = [[ITEM] * 3] * 40
    model = BoostedCRF(rounds=40, min_count=1).fit(items, [[q] * 3] * 40)
    assert all(p["A"] > 0.9 for p in model.predict_marginals_single([ITEM] * 3))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_lattices_hold_the_distribution_of_the_teacher(kind: Any) -> None:
    teacher = new(**kind).fit(X, Y)
    for x, lattice in zip(X, teacher.predict_lattices(X), strict=True):
        assert len(lattice) == len(x)
        marginals = [list(p.values()) for p in teacher.predict_marginals_single(x)]
        np.testing.assert_allclose(lattice.nodes, marginals, atol=1e-5)
        np.testing.assert_allclose(lattice.pairs.sum(axis=1), lattice.nodes[1:], atol=1e-5)
        np.testing.assert_allclose(lattice.pairs.sum(axis=2), lattice.nodes[:-1], atol=1e-5)


@pytest.mark.parametrize("kind", [{}, {"family": "joint"}], ids=str)
def test_lattices_give_label_sequences_the_probability_that_the_teacher_gives(kind: Any) -> None:
    teacher = new(**kind).fit(X, Y)
    short = [x[:4] for x in X[:5]]
    for lattice, best in zip(
        teacher.predict_lattices(short), teacher.predict_nbest(short, 3), strict=True
    ):
        for path, probability in best:
            ids = [lattice.labels.index(label) for label in path]
            own = lattice.nodes[0, ids[0]]
            for t in range(1, len(ids)):
                own *= lattice.pairs[t - 1, ids[t - 1], ids[t]] / lattice.nodes[t - 1, ids[t - 1]]
            assert own == pytest.approx(probability, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_student_comes_near_to_the_teacher_of_its_lattices(kind: Any) -> None:
    teacher = new(rounds=8).fit(X, Y)
    student = new(**{**kind, "rounds": 30, "soft_labels": "distill"})
    student.fit(X, teacher.predict_lattices(X))
    gaps = [
        abs(a[label] - b[label])
        for mine, other in zip(
            student.predict_marginals(X), teacher.predict_marginals(X), strict=True
        )
        for a, b in zip(mine, other, strict=True)
        for label in NAMES
    ]
    assert np.mean(gaps) < 0.02


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_sequences_without_positions_have_lattices_of_none(kind: Any) -> None:
    teacher = new(**kind).fit(X, Y)
    assert [len(lattice) for lattice in teacher.predict_lattices([[]])] == [0]
    mixed = teacher.predict_lattices([[], X[0], [], X[1], []])
    for found, alone in zip((mixed[1], mixed[3]), teacher.predict_lattices(X[:2]), strict=True):
        np.testing.assert_allclose(found.nodes, alone.nodes, atol=1e-6)
        np.testing.assert_allclose(found.pairs, alone.pairs, atol=1e-6)


def test_lattices_of_a_beam_are_those_of_the_chain_without_it() -> None:
    teacher = new(family="separate", beam=1).fit(X, Y)
    assert teacher.model_.chain.pruned
    for lattice in teacher.predict_lattices(X):
        np.testing.assert_allclose(lattice.pairs.sum(axis=1), lattice.nodes[1:], atol=1e-5)
        np.testing.assert_allclose(lattice.pairs.sum(axis=2), lattice.nodes[:-1], atol=1e-5)
        assert (lattice.nodes > 0.0).all()


def test_a_lattice_may_lack_labels_that_others_have() -> None:
    lattice = Lattice(
        ["B", "A"], np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([[[0.1, 0.1], [0.4, 0.4]]])
    )
    labels, soft = soft_targets([lattice, ["C"]], {"A": 0, "B": 1, "C": 2}, "y")
    assert labels.tolist() == [-1, -1, 2]
    np.testing.assert_allclose(np.exp(soft.nodes), [[0.8, 0.2, 0.0]], rtol=1e-6)
    np.testing.assert_allclose(
        np.exp(soft.edges), [[[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ({}, ["weights of at least 0"]),
        ({"A": -1.0}, ["weights of at least 0"]),
        ({"A": 0.0}, ["one is above 0"]),
        ({"A": float("nan")}, ["weights of at least 0"]),
        ({"A": "much"}, ["weights of at least 0"]),
        (("A", 1.5), ["from 0", "to 1"]),
        (("A",), ["from 0", "to 1"]),
        ((None, 0.5), ["from 0", "to 1"]),
        (("A", True), ["from 0", "to 1"]),
        ({2.5: 1.0}, ["all of one type"]),
        ({3: 1.0}, ["all of one type"]),
    ],
)
def test_malformed_soft_labels_are_refused(label: Any, words: list[str]) -> None:
    assert_refused(lambda: new().fit([[ITEM, ITEM]], [["A", label]]), "y[0][1]", *words)


def test_malformed_lattices_are_refused() -> None:
    assert_refused(lambda: Lattice(["A"], [[1.0]], [[[1.0]]]), "pairs", "(0, 1, 1)")
    assert_refused(lambda: Lattice(["A"], [[-1.0]], np.zeros((0, 1, 1))), "nodes", "probabilities")
    assert_refused(lambda: Lattice(["A"], [["x"]], np.zeros((0, 1, 1))), "nodes", "no numbers")
    assert_refused(
        lambda: Lattice(["A", "B", "A"], [[0.5, 0.2, 0.3]], np.zeros((0, 3, 3))), "['A', 'B', 'A']"
    )


def test_soft_labels_are_refused_where_they_say_nothing() -> None:
    soft = certain(Y)
    for model in (BoostedMEMM(rounds=2), PerceptronTagger(rounds=2)):
        assert_refused(lambda model=model: model.fit(X, soft), "y holds soft labels", "BoostedCRF")
    assert_refused(lambda: new().fit(X, Y, X, soft), "y_dev holds soft labels")
    assert_refused(lambda: new().fit(X, Y).score(X, soft), "y holds soft labels")
    gap = [[{"A": 1.0}, None]]
    assert_refused(
        lambda: new(soft_labels="distill").fit([[ITEM, ITEM]], gap), "y[0][1] is None", "evidence"
    )


def test_soft_labels_that_constraints_forbid_are_refused() -> None:
    y = [[{"O": 1.0}, {"I-X": 1.0}], ["B-X", "O"]]
    for meaning in ("evidence", "distill"):
        assert_refused(
            lambda meaning=meaning: new(constraints="bio", soft_labels=meaning).fit(
                [[ITEM, ITEM]] * 2, y
            ),
            "constraints='bio'",
        )


def test_observed_constraints_allow_all_that_has_weight() -> None:
    y = [[{"A": 0.9}, {"B": 0.8, "A": 0.2}, {"B": 0.9, "C": 0.1}]]
    model = new(constraints="observed").fit([[ITEM] * 3], y)
    start, trans, end = model.model_.masks
    assert np.isfinite(start).tolist() == [True, False, False]
    assert np.isfinite(trans).tolist() == [
        [True, True, True],
        [False, True, True],
        [False, False, False],
    ]
    assert np.isfinite(end).tolist() == [False, True, True]


def test_a_student_with_observed_constraints_can_say_what_its_teacher_says() -> None:
    teacher = new(rounds=8, constraints="observed").fit(X, Y)
    student = new(rounds=30, constraints="observed", soft_labels="distill")
    student.fit(X, teacher.predict_lattices(X))
    assert student.classes_ == teacher.classes_
    for mine, other in zip(student.model_.masks, teacher.model_.masks, strict=True):
        assert not np.any(np.isfinite(mine) & ~np.isfinite(other))
    start, trans, end = student.model_.masks
    for path in teacher.predict(X):
        ids = [student.classes_.index(label) for label in path]
        assert np.isfinite(start[ids[0]])
        assert np.isfinite(end[ids[-1]])
        assert np.isfinite(trans[ids[:-1], ids[1:]]).all()
    same = [a == b for a, b in zip(student.predict(X), teacher.predict(X), strict=True)]
    assert np.mean(same) > 0.9


def test_annotators_confusions_are_learned() -> None:
    """One annotator is always right, one often takes "B" for "A"."""
    rng = np.random.default_rng(0)
    items, given, who, truth = [], [], [], []
    for s in range(300):
        x = rng.integers(0, 10, 6)
        labels = ["A" if word < 5 else "B" for word in x]
        wrong = ["A" if label == "B" and rng.random() < 0.4 else label for label in labels]
        careless = s % 3 == 0
        items.append([{"word": f"w{word}"} for word in x])
        truth.append(labels)
        given.append(wrong if careless else labels)
        who.append("careless" if careless else "careful")
    model = BoostedCRF(rounds=20).fit(items, given, annotators=who)
    assert model.confusions_["careless"]["B"]["A"] == pytest.approx(0.4, abs=0.08)
    assert model.confusions_["careful"]["B"]["A"] < 0.05
    assert model.confusions_["careless"]["A"]["B"] < 0.05
    assert model.score(items, truth) > 0.99
    assert not hasattr(model.fit(items, truth), "confusions_")


def test_annotators_are_named_for_each_sequence_of_plain_labels() -> None:
    assert_refused(lambda: new().fit(X, Y, annotators=["one"]), "annotators names 1")
    assert_refused(
        lambda: new().fit(X, certain(Y), annotators=["one"] * len(X)), "plain labels with"
    )
