"""Docs, labels and surroundings that nobody planned: a defined result, or a clear message."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.features.tokenizer import create_character_tokenizer
from spacy_treecrf.pipeline.tasks import make_task
from tests.pipeline.random_labels import STRANGE_NAMES
from tests.pipeline.tiny_pipes import (
    CORPUS,
    SPAN_TASKS,
    TASKS,
    corpus,
    labels_on,
    new_doc,
    new_nlp,
    pipe_of,
    probabilities_on,
    spans_on,
    tiny_config,
    train,
    trained_nlp,
)


@cache
def knowing(task: str) -> Language:
    """A trained pipeline for tests that do not change it."""
    return trained_nlp(task)


def assert_answers(nlp: Language, task: str, doc: Doc) -> None:
    """Every question about a doc has a sound answer."""
    pipe = pipe_of(nlp)
    doc = nlp(doc)
    labels = labels_on(doc, task)
    assert set(labels) <= set(pipe.sequence_labels)
    rows = pipe.marginals(doc)
    assert rows.shape == (len(doc), len(pipe.sequence_labels))
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-5)
    assert all(p is not None and 0.0 <= p <= 1.0 + 1e-6 for p in probabilities_on(doc, task))
    (best, p), *_ = pipe.nbest(doc, 2)
    assert len(best) == len(doc)
    assert 0.0 <= p <= 1.0 + 1e-6


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    "words",
    [[], [" "], ["\n\n", " ", "\t"], ["Ann"], ["unheard"], ["🙂"], ["a" * 5000], ["\u0000"]],
    ids=["empty", "blank", "whitespace", "one word", "unknown", "emoji", "long word", "zero"],
)
def test_odd_docs_are_annotated(task: str, words: list[str]) -> None:
    nlp = knowing(task)
    assert_answers(nlp, task, Doc(nlp.vocab, words=words))
    mixed = [new_doc(nlp, CORPUS[0]), Doc(nlp.vocab, words=words), Doc(nlp.vocab)]
    alone = [nlp(doc.copy()) for doc in mixed]
    for one, piped in zip(alone, nlp.pipe(mixed), strict=True):
        assert labels_on(one, task) == labels_on(piped, task)


@pytest.mark.parametrize("task", SPAN_TASKS)
def test_whitespace_alone_is_no_span(task: str) -> None:
    nlp = knowing(task)
    for text in ("", " ", "\n \n"):
        assert spans_on(nlp(text), task) == []


@pytest.mark.parametrize("task", TASKS)
def test_odd_docs_can_be_trained_on(task: str) -> None:
    nlp = new_nlp(task)
    empty = Doc(nlp.vocab)
    blank = Doc(nlp.vocab, words=[" ", "\n"], spaces=[False, False])
    odd = [Example(empty, Doc(nlp.vocab)), Example(blank, blank.copy())]
    examples = [*odd, *corpus(nlp, task), *odd[::-1]]
    nlp.initialize(lambda: examples)
    train(nlp, examples, 4)
    nlp.update(odd[:1])
    assert nlp.evaluate(examples)["treecrf_score"] == 1.0
    assert nlp.evaluate(odd)["treecrf_nll"] is None or task in SPAN_TASKS


@pytest.mark.parametrize("family", ["separate", "joint"])
def test_a_doc_of_200_000_tokens(family: str) -> None:
    nlp = trained_nlp(steps=1, model={"family": family})
    words = [token.text for token in new_doc(nlp, CORPUS[0])] + ["they", "slept", "."] * 25
    n_copies = 200_000 // len(words)
    doc = nlp(Doc(nlp.vocab, words=words * n_copies))
    assert len(doc) == 200_000
    ents = doc.ents
    assert [(ent.start, ent.end, ent.label_) for ent in ents] == [
        place
        for first in range(0, len(doc), len(words))
        for place in ((first, first + 1, "PERSON"), (first + 2, first + 4, "PLACE"))
    ]
    probabilities = [ent._.treecrf_prob for ent in ents]
    assert min(probabilities) > 0.5
    # the same words, and a long way to either end of the doc
    assert probabilities[200:-200:2] == pytest.approx(probabilities[200:-200:2][::-1], rel=1e-5)
    of_tokens = doc.user_data["treecrf_prob"]
    assert of_tokens.shape == (len(doc),)
    assert 0.5 < of_tokens.min() <= of_tokens.max() <= 1.0 + 1e-6


def test_evaluating_docs_without_gold_labels() -> None:
    nlp = trained_nlp()
    unknown = [Example(new_doc(nlp, s), new_doc(nlp, s)) for s in CORPUS]
    scores = nlp.evaluate(unknown)
    assert scores["treecrf_nll"] is None
    assert scores["treecrf_score"] is None
    assert pipe_of(nlp).get_loss(unknown, None) == (0.0, 0.0)
    assert pipe_of(nlp).score([])["treecrf_nll"] is None


@pytest.mark.parametrize("task", TASKS)
def test_no_examples_at_all(task: str) -> None:
    nlp = new_nlp(task)
    with pytest.raises(TypeError, match="E930"):
        nlp.initialize(lambda: [])
    for label in "AB":
        pipe_of(nlp).add_label(label)
    nlp.initialize()
    assert pipe_of(nlp).labels == ("A", "B")
    assert pipe_of(nlp).update([]) == {"treecrf": 0.0}
    pipe_of(nlp).finish_update(None)
    doc = Doc(nlp.vocab, words=["a", "b"])
    np.testing.assert_allclose(pipe_of(nlp).marginals(doc).sum(axis=1), 1.0)


def test_a_pipe_that_learned_nothing_says_so() -> None:
    nlp = new_nlp()
    for work in (
        lambda: nlp("Ann"),
        lambda: pipe_of(nlp).marginals(nlp.make_doc("Ann")),
        lambda: pipe_of(nlp).nbest(nlp.make_doc("Ann")),
        lambda: nlp.update(corpus(nlp)),
        lambda: nlp.evaluate(corpus(nlp)),
    ):
        with pytest.raises(ValueError, match=r"^treecrf: the pipe has learned nothing yet"):
            work()
    with pytest.raises(TypeError):
        pipe_of(trained_nlp()).update(["Ann"])  # type: ignore[list-item]


@pytest.mark.parametrize("task", ["tag", "ents", "spans", "ext:tiny_kind"])
def test_labels_with_strange_characters(task: str, tmp_path: Path) -> None:
    nlp = new_nlp(task)
    names = STRANGE_NAMES
    examples = []
    for i, name in enumerate(names):
        reference = Doc(nlp.vocab, words=["so", f"word{i}", "it", "is"])
        labels = ["O", f"U-{name}", "O", "O"] if task in SPAN_TASKS else ["x", name, "x", "x"]
        make_task(task).annotate(reference, labels)
        examples.append(Example(Doc(nlp.vocab, words=[t.text for t in reference]), reference))
    nlp.initialize(lambda: examples)
    train(nlp, examples, 6)
    nlp.to_disk(tmp_path)
    for pipeline in (nlp, spacy.load(tmp_path)):
        assert set(names) <= set(pipe_of(pipeline).labels)
        for i, name in enumerate(names):
            doc = pipeline(Doc(pipeline.vocab, words=["so", f"word{i}", "it", "is"]))
            assert labels_on(doc, task)[1] == (f"U-{name}" if task in SPAN_TASKS else name)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("model", [{}, {"order": 0}, {"family": "joint", "order": 3}])
def test_a_label_set_of_one(task: str, model: dict[str, Any]) -> None:
    nlp = new_nlp(task, model=model)
    label = {"pos": "NOUN", "ents": "U-A", "spans": "U-A"}.get(task, "A")
    reference = Doc(nlp.vocab, words=["one", "two"])
    make_task(task).annotate(reference, [label, label])
    examples = [Example(Doc(nlp.vocab, words=["one", "two"]), reference)]
    nlp.initialize(lambda: examples)
    assert len(pipe_of(nlp).labels) == 1
    train(nlp, examples, 3)
    doc = nlp(Doc(nlp.vocab, words=["one", "two"]))
    assert labels_on(doc, task) == [label, label]
    if task not in SPAN_TASKS:
        assert probabilities_on(doc, task) == [1.0, 1.0]
    assert_answers(nlp, task, Doc(nlp.vocab, words=["other", "one", "words"]))


@pytest.mark.parametrize("task", TASKS)
def test_a_model_loaded_with_another_tokenizer(task: str) -> None:
    nlp = knowing(task)
    letters = spacy.blank("xx")
    letters.tokenizer = create_character_tokenizer()(letters)
    letters.add_pipe("treecrf", config=tiny_config(task))
    pipe_of(letters).from_bytes(pipe_of(nlp).to_bytes())
    doc = letters.make_doc("Ann saw New York .")
    assert len(doc) == 18
    assert_answers(letters, task, doc)
    scores = letters.evaluate(corpus(letters, task))
    assert scores["treecrf_nll"] > 0.0


def test_missing_word_vectors() -> None:
    nlp = new_nlp(features={"vectors": 4})
    examples = corpus(nlp)
    with pytest.raises(ValueError, match=r"^treecrf: setting 'vectors' needs word vectors"):
        nlp.initialize(lambda: examples)
    for i, word in enumerate(["Ann", "Rome", "saw"]):
        nlp.vocab.set_vector(word, np.arange(3, dtype=np.float32) + i)
    nlp.initialize(lambda: examples)
    train(nlp, examples, 2)
    without = new_nlp(features={"vectors": 4})
    pipe_of(without).from_bytes(pipe_of(nlp).to_bytes(exclude=["vocab"]), exclude=["vocab"])
    with pytest.raises(ValueError, match=r"^treecrf: setting 'vectors' needs word vectors"):
        without("Ann saw Rome")
    without.vocab.set_vector("Ann", np.zeros(5, np.float32))
    with pytest.raises(ValueError, match="have 5 dimensions, those of training had 3"):
        without("Ann saw Rome")


def test_missing_cluster_tables() -> None:
    nlp = new_nlp(features={"clusters": [4, 0]})
    examples = corpus(nlp)
    with pytest.raises(ValueError, match=r"^treecrf: setting 'clusters' needs the table"):
        nlp.initialize(lambda: examples)
    nlp.vocab.lookups.add_table("lexeme_cluster", {"Ann": 0b10110, "Bob": 0b10111, "Rome": 0b01})
    nlp.initialize(lambda: examples)
    train(nlp, examples, 2)
    names = pipe_of(nlp).shim.trained.columns.feature_names
    assert any(name.startswith("cluster4[0]=") for name in names)
    without = new_nlp(features={"clusters": [4, 0]})  # the model has the table
    pipe_of(without).from_bytes(pipe_of(nlp).to_bytes(exclude=["vocab"]), exclude=["vocab"])
    doc = new_doc(without, CORPUS[0])
    np.testing.assert_array_equal(
        pipe_of(without).marginals(doc), pipe_of(nlp).marginals(new_doc(nlp, CORPUS[0]))
    )


def test_docs_of_several_vocabs_are_refused() -> None:
    nlp = trained_nlp()
    docs = [new_doc(nlp, CORPUS[0]), new_doc(spacy.blank("xx"), CORPUS[0])]
    with pytest.raises(ValueError, match=r"^treecrf: the docs of a batch have different vocabs"):
        list(nlp.pipe(docs))
