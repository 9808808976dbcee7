"""Weights of docs, spans and tokens, and what a teacher says of docs, in the pipe's training."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus, Example

from spacy_treecrf.labels.doc_keys import LATTICE
from spacy_treecrf.pipeline.gold.soft_gold import (
    doc_weights,
    soft_content,
    soft_gold,
    store_lattice,
)
from tests.pipeline.tiny_pipes import corpus, new_nlp, pipe_of, tiny_config, train, trained_nlp
from tests.refusals import assert_refused


def rows_of(nlp: Any, examples: list[Example]) -> Any:
    nlp.initialize(lambda: examples)
    return pipe_of(nlp).learner._rows(examples)


def test_a_weight_of_a_span_makes_its_labels_soft() -> None:
    nlp = new_nlp()
    examples = corpus(nlp, "ents")
    doc = examples[0].reference
    york = next(ent for ent in doc.ents if len(ent) == 2)
    york._.treecrf_weight = 0.4
    data = rows_of(nlp, examples)
    labels = pipe_of(nlp).shim.labels
    soft = data.soft.node_table >= 0
    assert np.flatnonzero(soft).tolist() == [york.start, york.start + 1]
    weights = np.exp(data.soft.nodes[data.soft.node_table[york.start]])
    expected = np.full(len(labels), 0.6 / len(labels))
    expected[labels.index("B-PLACE")] += 0.4
    np.testing.assert_allclose(weights, expected, rtol=1e-5)
    assert (data.labels[soft] == -1).all()
    assert data.n_annotated == data.n_rows


def test_weights_of_tokens_and_docs_count() -> None:
    nlp = new_nlp()
    examples = corpus(nlp, "ents")
    examples[0].reference[1]._.treecrf_weight = 0.0
    examples[1].reference._.treecrf_weight = 2.5
    data = rows_of(nlp, examples)
    first, second = len(examples[0].reference), len(examples[1].reference)
    table = data.soft.nodes[data.soft.node_table[1]]
    np.testing.assert_allclose(table, table[0])  # says nothing
    assert np.flatnonzero(data.soft.node_table >= 0).tolist() == [1]
    assert (data.weights[first : first + second] == 2.5).all()
    assert (data.weights[:first] == 1.0).all()


def test_docs_without_weights_are_as_they_were() -> None:
    nlp = new_nlp()
    data = rows_of(nlp, corpus(nlp, "ents"))
    assert data.soft is None
    assert (data.weights == 1.0).all()


def test_weights_that_say_nothing_keep_a_wrong_label_from_being_learned() -> None:
    """All of "Ann" is wrong in one doc, which is worth nothing."""

    def probability(weight: float | None) -> float:
        nlp = new_nlp()
        examples = corpus(nlp, "ents")
        for example in examples:
            for ent in example.reference.ents:
                if ent.text.startswith("Ann"):
                    example.reference.ents = [e for e in example.reference.ents if e != ent]
                    for token in ent:
                        token._.treecrf_weight = weight
        nlp.initialize(lambda: examples)
        train(nlp, examples, 3)
        pipe, doc = pipe_of(nlp), nlp.make_doc("Ann saw Rome")
        return float(pipe.marginals(doc)[0, pipe.sequence_labels.index("O")])

    assert probability(0.0) < probability(0.5) < probability(None)


@pytest.mark.parametrize("task", ["ents", "tag"])
def test_a_student_learns_what_the_teacher_says_of_docs(task: str) -> None:
    teacher = trained_nlp(task)
    docs = [example.reference for example in corpus(teacher, task)]
    taught = [teacher(doc.copy()) for doc in docs]
    pipe_of(teacher).teach(taught)
    student = new_nlp(task, model={"soft_labels": "distill"})
    examples = [Example(student.make_doc(doc.text), doc) for doc in taught]
    student.initialize(lambda: examples)
    train(student, examples, 8)
    assert pipe_of(student).sequence_labels == pipe_of(teacher).sequence_labels
    for doc in docs:
        mine = pipe_of(student).marginals(student.make_doc(doc.text))
        theirs = pipe_of(teacher).marginals(teacher.make_doc(doc.text))
        np.testing.assert_allclose(mine, theirs, atol=0.1)


def test_lattices_survive_files_and_other_cuts_into_sequences(tmp_path: Path) -> None:
    teacher = trained_nlp(sequence="auto")
    docs = [teacher("Ann saw New York . Bob Lee left Paris ."), teacher("they slept .")]
    pipe = pipe_of(teacher)
    pipe.teach(docs)
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "taught.spacy")
    examples = list(Corpus(tmp_path / "taught.spacy")(teacher))
    n_rows = sum(len(doc) for doc in docs)
    ids = np.zeros(n_rows, np.int32)
    offsets = np.array([0, 4, 10, 13])  # the first doc is cut in two
    labels = list(reversed(pipe.shim.labels))
    found, soft = soft_gold(examples, ids, labels, offsets)
    assert soft is not None
    assert (found == -1).all()
    assert np.flatnonzero(soft.node_table >= 0).tolist() == [0, 4, 10]
    assert np.flatnonzero(soft.edge_table < 0).tolist() == [0, 4, 10]
    marginals = np.concatenate([pipe.marginals(doc) for doc in docs])[:, ::-1]
    np.testing.assert_allclose(np.exp(soft.nodes), marginals[[0, 4, 10]], atol=1e-5)
    # P(label) follows from P(label before) and the edges
    after = np.exp(soft.edges[soft.edge_table[1]])
    np.testing.assert_allclose(marginals[0] @ after, marginals[1], atol=1e-4)


@pytest.mark.parametrize("value", [-0.1, 1.5, "much", True])
def test_weights_out_of_range_are_refused(value: Any) -> None:
    nlp = new_nlp()
    examples = corpus(nlp, "ents")
    examples[0].reference[0]._.treecrf_weight = value
    nlp.initialize(lambda: examples)
    assert_refused(lambda: train(nlp, examples, 1), "treecrf_weight", repr(value), "0 to 1")


@pytest.mark.parametrize("value", [-0.1, float("inf"), 1e39, 10**400, np.float64("nan"), True])
def test_weights_of_docs_that_are_not_finite_are_refused(value: Any) -> None:
    nlp = new_nlp()
    examples = corpus(nlp, "ents")
    examples[0].reference._.treecrf_weight = value
    assert_refused(lambda: doc_weights(examples), "of a doc", repr(value), "0 or more, finite")


@pytest.mark.parametrize("kind", [float, np.float32, np.float64, np.int64])
def test_weights_may_be_numbers_of_numpy(kind: Any) -> None:
    nlp = new_nlp()
    examples = corpus(nlp, "ents")
    examples[0].reference._.treecrf_weight = kind(3)
    examples[1].reference[0]._.treecrf_weight = kind(0)
    data = rows_of(nlp, examples)
    first = len(examples[0].reference)
    assert (data.weights[:first] == 3.0).all()
    assert np.flatnonzero(data.soft.is_soft).tolist() == [first]


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": b"\0" * 4},
        {"rows": np.array([99], "<i4").tobytes()},
        {"edges": np.array([10**6], "<i4").tobytes()},
        {"pairs": np.array([-1.0], "<f4").tobytes()},
        {"pairs": b"\0" * 3},
        {"labels": None},
        {"labels": ["O"] * 9},
    ],
    ids=lambda change: next(iter(change)),
)
def test_damaged_lattices_are_refused(change: dict[str, Any]) -> None:
    teacher = trained_nlp()
    doc = teacher("Ann saw Rome")
    pipe_of(teacher).teach([doc])
    stored = doc.user_data[LATTICE]
    for key in ("rows", "edges", "pairs"):
        stored[key] = stored[key][:4]
    doc.user_data[LATTICE] = {**stored, **change}
    example = Example(Doc(doc.vocab, words=[token.text for token in doc]), doc)
    assert_refused(lambda: pipe_of(teacher).learner._rows([example]), LATTICE, "3 tokens")


@pytest.mark.parametrize("words", [["An", "nsaw", "Rome"], ["Ann", "saw", "Ro", "me"]], ids=len)
def test_lattices_of_other_tokens_are_refused(words: list[str]) -> None:
    teacher = trained_nlp()
    doc = teacher(Doc(teacher.vocab, words=["Ann", "saw", "Rome"], spaces=[False, True, False]))
    pipe_of(teacher).teach([doc])
    spaces = [word == "nsaw" or word == "saw" for word in words]
    example = Example(Doc(doc.vocab, words=words, spaces=spaces), doc)
    assert example.predicted.text == doc.text
    assert_refused(
        lambda: pipe_of(teacher).learner._rows([example]),
        "'Annsaw Rome'",
        "spacy_treecrf.Corpus.v1",
    )


def test_distilling_refuses_sequences_with_gaps_beside_weights() -> None:
    def work(meaning: str, gap: int, weighed: int) -> None:
        nlp = new_nlp("tag", model={"soft_labels": meaning})
        examples = corpus(nlp, "tag")
        examples[gap].reference[2].tag_ = ""
        examples[weighed].reference[0]._.treecrf_weight = 0.5
        nlp.initialize(lambda: examples)
        train(nlp, examples, 1)

    assert_refused(
        lambda: work("distill", 1, 1), "'left'", "'Bob Lee left Paris . '", "soft_labels"
    )
    work("distill", 1, 0)
    work("evidence", 1, 1)


def test_lattices_of_another_pipes_labels_are_refused() -> None:
    teacher = trained_nlp("ents")
    nlp = new_nlp("ents")
    nlp.add_pipe("treecrf", name="tagger", config=tiny_config("tag"))
    examples = corpus(nlp, "ents")
    for each, tagged in zip(examples, corpus(nlp, "tag"), strict=True):
        for token, other in zip(each.reference, tagged.reference, strict=True):
            token.tag_ = other.tag_
        taught = teacher(teacher.make_doc(each.reference.text.strip()))
        pipe_of(teacher).teach([taught])
        each.reference.user_data[LATTICE] = taught.user_data[LATTICE]
    nlp.initialize(lambda: examples)
    pipe_of(nlp).update(examples)
    assert_refused(
        lambda: pipe_of(nlp, "tagger").update(examples), "U-PERSON", "'tagger'", "D, N, P"
    )


@pytest.mark.parametrize("lost", [0.49, 0.51])
def test_labels_that_the_pipe_lacks_may_be_improbable_in_a_lattice(lost: float) -> None:
    doc = Doc(new_nlp().vocab, words=["Ann", "slept"])
    nodes = np.array([[1.0 - lost, 0.0, lost], [0.0, 1.0 - lost, lost]])
    store_lattice(doc, ["A", "B", "C"], nodes, np.zeros((2, 3, 3)))
    examples = [Example(Doc(doc.vocab, words=["Ann", "slept"]), doc)]

    def work() -> None:
        soft_gold(examples, np.zeros(2, np.int32), ["A", "B"], np.array([0, 2]), "mine")

    if lost > 0.5:
        assert_refused(work, "the labels C, which the pipe 'mine' with the labels A, B")
    else:
        work()


def test_other_architectures_refuse_weights() -> None:
    nlp = new_nlp(model={"@architectures": "spacy_treecrf.MEMM.v1"})
    examples = corpus(nlp, "ents")
    examples[0].reference[0]._.treecrf_weight = 0.5
    nlp.initialize(lambda: examples)
    assert_refused(lambda: train(nlp, examples, 1), "BoostedCRF.v1")


def weigh_half(examples: list[Example]) -> None:
    for example in examples[::2]:
        for token in example.reference:
            token._.treecrf_weight = 0.0


def weigh_docs(examples: list[Example]) -> None:
    for example in examples[::2]:
        example.reference._.treecrf_weight = 0.1


def teach_half(examples: list[Example]) -> None:
    teacher = trained_nlp(steps=1)
    for example in examples[::2]:
        taught = teacher(teacher.make_doc(example.reference.text))
        pipe_of(teacher).teach([taught])
        example.reference.user_data[LATTICE] = taught.user_data[LATTICE]


@pytest.mark.parametrize("change", [weigh_half, weigh_docs, teach_half])
def test_weights_and_lessons_between_updates_count(change: Callable[[list[Example]], None]) -> None:
    """A learner that keeps its rows from step to step learns what one without any learns."""

    def marginals(changes: bool, forgets: bool = False) -> Any:
        nlp = new_nlp()
        examples = corpus(nlp, "ents")
        nlp.initialize(lambda: examples)
        train(nlp, examples, 1)
        if changes:
            change(examples)
        if forgets:
            pipe_of(nlp)._learner = copy(pipe_of(nlp).learner)
        train(nlp, examples, 2)
        docs = [nlp.make_doc(example.reference.text) for example in examples]
        return np.concatenate([pipe_of(nlp).marginals(doc) for doc in docs])

    found = marginals(True)
    assert not np.array_equal(found, marginals(False))
    np.testing.assert_array_equal(found, marginals(True, forgets=True))


def test_a_weight_that_changes_again_counts_again() -> None:
    nlp = new_nlp()
    doc = corpus(nlp, "ents")[0].reference
    contents = [soft_content(doc)]
    for weight in (0.5, 0.25):
        doc[0]._.treecrf_weight = weight
        contents.append(soft_content(doc))
    doc[0]._.treecrf_weight = None
    assert contents[0] == soft_content(doc) == 0
    assert len(set(contents)) == 3
