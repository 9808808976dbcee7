"""Probabilities of the pipe are those of enumerating all label sequences."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from spacy_treecrf.labels.biluo import TokenSpan, write_span
from spacy_treecrf.pipeline.annotation.annotating import annotate
from spacy_treecrf.pipeline.annotation.combining import best_combinations
from spacy_treecrf.pipeline.annotation.confidence import register_extensions, span_probability
from spacy_treecrf.pipeline.annotation.predictions import Prediction
from spacy_treecrf.pipeline.pipe import TreeCRF
from tests.engine.enumeration import Enumeration, enumerate_paths
from tests.pipeline.tiny_pipes import (
    CORPUS,
    TASKS,
    labels_on,
    new_doc,
    pipe_of,
    probabilities_on,
    spans_on,
    trained_nlp,
)

# Four tokens and two sentences: few enough label sequences to enumerate
FOUR = "Ann|N|O saw|V|O New|N|O York|N|O"
TWO = ("Paris|N|O Lee|N|O slept|V|O", "we|D|O left|V|O")
MODELS: dict[str, dict[str, Any]] = {
    "separate": {"family": "separate"},
    "joint": {"family": "joint"},
    "second order": {"family": "joint", "order": 2},
    "order 0": {"order": 0},
    "free": {"constraints": "none"},
    "marginal": {"predictor": "marginal"},
}


def unsure(task: Any = "ents", model: dict[str, Any] | None = None, **config: Any) -> Language:
    """A pipe that has learned so little that no label is certain."""
    return trained_nlp(task, steps=1, rounds_per_step=1, model=model, **config)


def enumerated(
    pipe: TreeCRF, doc: Doc, allowed: list[list[str] | None] | None = None
) -> list[Enumeration]:
    """All label sequences of each sequence of a doc. allowed: by token, None for all labels."""
    data = pipe.encode([doc])
    scores = pipe.model.predict(data)
    names = pipe.sequence_labels
    mask = np.ones((len(doc), len(names)), np.uint8)
    for i, some in enumerate(allowed or []):
        if some is not None:
            mask[i] = [name in some for name in names]
    return [
        enumerate_paths(scores[a:b], pipe.shim.trained.chain, mask[a:b])
        for a, b in itertools.pairwise(data.offsets.tolist())
    ]


def probability_of_span(
    pipe: TreeCRF, paths: Enumeration, length: int, start: int, end: int, name: str
) -> float:
    labels: list[str | None] = [None] * length
    write_span(labels, start, end, name)
    ids = [pipe.sequence_labels.index(label) if label else None for label in labels]
    return paths.probability_that(
        lambda path: all(i is None or i == y for i, y in zip(ids, path, strict=True))
    )


@pytest.mark.parametrize(
    ("task", "model"), [*(("ents", model) for model in MODELS.values()), ("spans", {})]
)
def test_span_probability_is_the_sum_over_label_sequences(task: str, model: dict[str, Any]) -> None:
    nlp = unsure(task, model)
    pipe = pipe_of(nlp)
    doc = new_doc(nlp, FOUR)
    (paths,) = enumerated(pipe, doc)
    for start, end in itertools.combinations(range(5), 2):
        for name in pipe.labels:
            expected = probability_of_span(pipe, paths, 4, start, end, name)
            assert 0.0 < expected < 1.0
            assert pipe.span_probability(doc[start:end], name) == pytest.approx(expected, rel=1e-4)
    nlp(doc)
    for span in spans_on(doc, task):
        expected = probability_of_span(pipe, paths, 4, span.start, span.end, span.label_)
        assert span._.treecrf_prob == pytest.approx(expected, rel=1e-4)
        assert pipe.span_probability(span) == pytest.approx(expected, rel=1e-4)


def test_spans_are_found_and_have_a_probability_in_each_model() -> None:
    for model in MODELS.values():
        doc = trained_nlp(model=model)
        found = doc(new_doc(doc, CORPUS[1], CORPUS[0])).ents
        assert [ent.text for ent in found] == ["Bob Lee", "Paris", "Ann", "New York"]
        assert all(ent._.treecrf_prob > 0.5 for ent in found)


@pytest.mark.parametrize("model", [MODELS["order 0"], MODELS["free"], MODELS["marginal"]])
def test_no_span_runs_from_one_sentence_into_the_next(model: dict[str, Any]) -> None:
    nlp = trained_nlp(model=model)
    doc = nlp(new_doc(nlp, "Ann|N|O saw|V|O New|N|O", "York|N|O left|V|O Rome|N|O"))
    assert doc.ents
    assert not any(ent.start < 3 < ent.end for ent in doc.ents)
    for ent in doc.ents:
        assert ent._.treecrf_prob == pytest.approx(pipe_of(nlp).span_probability(ent), rel=1e-5)


def test_what_cannot_be_a_span_has_probability_0() -> None:
    nlp = trained_nlp()
    pipe = pipe_of(nlp)
    doc = new_doc(nlp, *TWO)
    assert pipe.span_probability(doc[2:4], "PERSON") == 0.0  # of two sentences
    assert pipe.span_probability(doc[5:5], "PERSON") == 0.0
    assert pipe.span_probability(doc[0:2], "PERSON") > 0.5
    tagger = trained_nlp("tag")
    with pytest.raises(ValueError, match="only entities and spans"):
        pipe_of(tagger).span_probability(new_doc(tagger, FOUR)[0:1], "N")


def test_probability_of_a_label_that_the_pipe_does_not_have_is_refused() -> None:
    nlp = trained_nlp()
    doc = new_doc(nlp, *TWO)
    with pytest.raises(ValueError, match="no label 'UNHEARD', but PERSON, PLACE; use one"):
        pipe_of(nlp).span_probability(doc[0:2], "UNHEARD")
    with pytest.raises(ValueError, match="did you mean 'PERSON'"):
        pipe_of(nlp).span_probability(doc[0:2], "PERSONS")
    with pytest.raises(ValueError, match="the span has no label; name one"):
        pipe_of(nlp).span_probability(doc[0:2])


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_nbest_are_the_best_of_all_labellings_of_all_sentences(model: dict[str, Any]) -> None:
    nlp = unsure("ents", model)
    pipe = pipe_of(nlp)
    doc = new_doc(nlp, *TWO)
    names = pipe.sequence_labels
    first, second = enumerated(pipe, doc)
    every = [
        ([names[y] for y in (*a, *b)], p * q)
        for a, p in zip(first.paths, first.probabilities, strict=True)
        for b, q in zip(second.paths, second.probabilities, strict=True)
        if p * q > 1e-7
    ]
    every.sort(key=lambda pair: -pair[1])
    found = pipe.nbest(doc, 12)
    assert len(found) == 12
    assert [p for _, p in found] == pytest.approx([p for _, p in every[:12]], rel=1e-4)
    probability = {tuple(labels): p for labels, p in every}
    for labels, p in found:
        assert p == pytest.approx(probability[tuple(labels)], rel=1e-4)
    assert len({tuple(labels) for labels, _ in found}) == 12


def test_nbest_has_no_more_than_all_labellings() -> None:
    nlp = unsure()
    pipe = pipe_of(nlp)
    doc = Doc(nlp.vocab, words=["Ann"])
    found = pipe.nbest(doc, 100)
    assert {tuple(labels) for labels, _ in found} == {("O",), ("U-PERSON",), ("U-PLACE",)}
    assert math.fsum(p for _, p in found) == pytest.approx(1.0, abs=1e-6)
    assert pipe.nbest(Doc(nlp.vocab), 3) == [([], 1.0)]
    for n in (0, -1, 1.5, 2.0, True, "2", None):
        with pytest.raises(ValueError, match=rf"^treecrf: nbest got n={n!r}; use a whole number"):
            pipe.nbest(doc, n)  # type: ignore[arg-type]


@pytest.mark.parametrize("task", TASKS)
def test_marginals_are_distributions_and_give_the_tokens_probabilities(task: str) -> None:
    nlp = unsure(task)
    pipe = pipe_of(nlp)
    doc = new_doc(nlp, FOUR)
    rows = pipe.marginals(doc)
    assert rows.shape == (4, len(pipe.sequence_labels))
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-6)
    (paths,) = enumerated(pipe, doc)
    for t, row in enumerate(rows):
        for y, p in enumerate(row):
            assert p == pytest.approx(paths.probability_that(lambda q: q[t] == y), abs=1e-6)  # noqa: B023
    nlp(doc)
    chosen = [pipe.sequence_labels.index(label or "") for label in labels_on(doc, task)]
    assert [token._.treecrf_prob for token in doc] == pytest.approx(
        rows[np.arange(4), chosen], abs=1e-6
    )


def test_probabilities_of_a_doc_with_preset_entities_are_given_these() -> None:
    nlp = unsure()
    pipe = pipe_of(nlp)
    doc = new_doc(nlp, FOUR)
    doc.ents = [Span(doc, 3, 4, label="PLACE")]
    (paths,) = enumerated(pipe, doc, [None, None, None, ["U-PLACE"]])
    nlp(doc)
    labels = [pipe.sequence_labels.index(label or "") for label in labels_on(doc, "ents")]
    assert [
        pipe.sequence_labels[y] for y in max(zip(paths.scores, paths.paths, strict=True))[1]
    ] == [pipe.sequence_labels[y] for y in labels]
    for t, y in enumerate(labels):
        expected = paths.probability_that(lambda path: path[t] == y)  # noqa: B023
        assert doc[t]._.treecrf_prob == pytest.approx(expected, abs=1e-5)
    made = [ent for ent in doc.ents if ent.start < 3]
    assert made
    for ent in made:
        expected = probability_of_span(pipe, paths, 4, ent.start, ent.end, ent.label_)
        assert ent._.treecrf_prob == pytest.approx(expected, rel=1e-4)
    assert doc.ents[-1]._.treecrf_prob is None  # it is not the model's


def test_sentences_are_sequences_of_their_own() -> None:
    nlp = unsure()
    pipe = pipe_of(nlp)
    both = new_doc(nlp, *TWO)
    unbroken = Doc(nlp.vocab, words=[token.text for token in both])
    in_sentences = pipe.marginals(both)
    alone = [pipe.marginals(new_doc(nlp, sentence)) for sentence in TWO]
    np.testing.assert_allclose(in_sentences, np.concatenate(alone), atol=1e-9)
    in_one = pipe.marginals(unbroken)
    assert np.abs(in_sentences - in_one).max() > 1e-3
    pipe.sequence = "doc"
    np.testing.assert_array_equal(pipe.marginals(both), in_one)
    pipe.sequence = "sentence"
    np.testing.assert_array_equal(pipe.marginals(both), in_sentences)
    with pytest.raises(ValueError, match="needs sentence boundaries"):
        pipe.marginals(unbroken)


@pytest.mark.parametrize("probabilities", [True, False])
def test_min_prob_leaves_improbable_spans_out(probabilities: bool) -> None:
    nlp = unsure()
    found = [nlp(new_doc(nlp, sentence)).ents for sentence in CORPUS]
    values = sorted(ent._.treecrf_prob for ents in found for ent in ents)
    least = (values[0] + values[-1]) / 2
    strict = unsure(min_prob=least, probabilities=probabilities)
    for sentence, ents in zip(CORPUS, found, strict=True):
        doc = strict(new_doc(strict, sentence))
        probable = [ent for ent in ents if ent._.treecrf_prob >= least]
        assert [(ent.start, ent.end, ent.label_) for ent in doc.ents] == [
            (ent.start, ent.end, ent.label_) for ent in probable
        ]
        assert all(token.ent_iob_ for token in doc)
    assert values[0] < least < values[-1]


@pytest.mark.parametrize("task", TASKS)
def test_probabilities_false_sets_none(task: str) -> None:
    nlp = trained_nlp(task, probabilities=False)
    doc = nlp(new_doc(nlp, CORPUS[0]))
    assert labels_on(doc, task) == labels_on(trained_nlp(task)(new_doc(nlp, CORPUS[0])), task)
    extension = [key for key in doc.user_data if "treecrf_prob" in key]
    assert not extension


@pytest.mark.parametrize("task", TASKS)
def test_probabilities_are_stored_with_docs(task: str) -> None:
    nlp = trained_nlp(task)
    doc = nlp(new_doc(nlp, CORPUS[0]))
    (again,) = DocBin(docs=[doc], store_user_data=True).get_docs(nlp.vocab)
    assert probabilities_on(again, task) == probabilities_on(doc, task)
    assert None not in probabilities_on(again, task)


def test_tokens_that_were_merged_have_no_probability() -> None:
    nlp = trained_nlp()
    doc = nlp(new_doc(nlp, CORPUS[0]))
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[2:4])
    assert [token._.treecrf_prob for token in doc] == [None] * 4
    assert new_doc(nlp, CORPUS[0])[0]._.treecrf_prob is None


def test_spans_of_a_doc_that_was_cut_out_have_no_probability_of_others() -> None:
    nlp = trained_nlp()
    doc = nlp(new_doc(nlp, CORPUS[1], CORPUS[1]))
    first, *_, same, last = doc.ents
    assert (first.text, last.text) == ("Bob Lee", "Paris")
    assert first.text == same.text
    part = doc[same.start :].as_doc(copy_user_data=True)
    assert [ent._.treecrf_prob for ent in part.ents] == [None, None]
    whole = doc[:].as_doc(copy_user_data=True)
    assert [ent._.treecrf_prob for ent in whole.ents] == [ent._.treecrf_prob for ent in doc.ents]


@pytest.mark.parametrize("tied", [False, True])
def test_combinations_are_those_of_all_pairs_sorted(tied: bool) -> None:
    rng = random.Random(3)

    def log_p() -> float:
        return float(-rng.randrange(4)) if tied else -rng.random()

    choices = [
        sorted(((["x"] * k + [str(i)], log_p()) for i in range(7)), key=lambda c: -c[1])
        for k in range(4)
    ]
    every = [(sum(p for _, p in some), some) for some in itertools.product(*choices)]
    every.sort(key=lambda item: -item[0])
    for n in (1, 3, 50, 10_000):
        found = best_combinations(choices, n)
        expected = [[label for labels, _ in some for label in labels] for _, some in every[:n]]
        np.testing.assert_allclose(
            np.log([p for _, p in found]), [p for p, _ in every[:n]], atol=1e-12
        )
        assert tied or [labels for labels, _ in found] == expected
        assert len({tuple(labels) for labels, _ in found}) == len(found)


def test_nbest_of_a_doc_has_limits_that_are_named() -> None:
    nlp = trained_nlp()
    pipe = pipe_of(nlp)
    with pytest.raises(ValueError, match=r"^treecrf: nbest got n=100001; .* from 1 to 100000"):
        pipe.nbest(nlp.make_doc("Ann"), 100_001)
    doc = Doc(nlp.vocab, ["Ann"] * 1000)
    with pytest.raises(ValueError, match=r"n=100000 for 1000 positions; use n of at most 33554"):
        pipe.nbest(doc, 100_000)


PLACES = {"A": (0, 1), "B": (4, 7), "KEPT": (8, 9)}  # their characters


class OtherSpans:
    """A task of one's own, which gives the spans that it made in an order of its own."""

    constraints = "biluo"

    def __init__(self, kept: int) -> None:
        self.kept = kept

    def annotate_spans(self, doc: Doc, spans: Sequence[TokenSpan]) -> list[Span]:
        made = [Span(doc, start, end, label=name) for start, end, name in spans]
        made.sort(key=len, reverse=True)
        return [Span(doc, 4, 5, label="KEPT")] * self.kept + made


@pytest.mark.parametrize("kept", [0, 1])
def test_tasks_may_give_spans_in_any_order_and_others(kept: int) -> None:
    register_extensions()
    doc = Doc(Vocab(), words=["a", "b", "c", "d", "e"])
    spans: list[TokenSpan] = [(0, 1, "A"), (2, 4, "B")]
    prediction = Prediction(["U-A", "O", "B-B", "L-B", "O"], spans, np.full(5, 0.5), [0.1, 0.9])
    annotate(doc, prediction, OtherSpans(kept), min_prob=0.0, probabilities=True)  # type: ignore[arg-type]
    found = {name: span_probability(doc, *place, name) for name, place in PLACES.items()}
    assert found == {"A": 0.1, "B": 0.9, "KEPT": None}
