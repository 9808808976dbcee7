"""Docs in parts: nothing that is predicted depends on how batches are cut."""

from __future__ import annotations

from pathlib import Path

import pytest
import spacy

from spacy_treecrf.pipeline import pipe as pipes
from spacy_treecrf.pipeline.sequencing import by_tokens, starts_of
from tests.pipeline.tiny_pipes import CORPUS, corpus, new_doc, new_nlp, pipe_of, train, trained_nlp


def test_parts_hold_all_docs_in_order_and_few_tokens() -> None:
    nlp = new_nlp()
    docs = [nlp.make_doc("a " * n) for n in (3, 0, 5, 1, 1, 9, 2)]
    parts = [list(part) for part in by_tokens(docs, 4)]
    assert [doc for part in parts for doc in part] == docs
    assert all(sum(map(len, part[:-1])) < 4 for part in parts)
    assert list(by_tokens([], 4)) == [[]]


def test_parts_are_predicted_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = new_nlp()
    examples = corpus(nlp)
    nlp.initialize(lambda: examples)
    train(nlp, examples, 2)
    docs = [nlp.make_doc(example.reference.text) for example in examples]
    whole = pipe_of(nlp).predict(docs)
    monkeypatch.setattr(pipes, "BLOCK_TOKENS", 3)
    for one, other in zip(pipe_of(nlp).predict(docs), whole, strict=True):
        assert (one.labels, one.spans) == (other.labels, other.spans)
        assert one.span_probabilities == other.span_probabilities
        assert one.probabilities is not None
        assert one.probabilities.tolist() == other.probabilities.tolist()


def test_docs_are_cut_by_punctuation_where_they_have_no_boundaries() -> None:
    nlp = new_nlp()
    doc = new_doc(nlp, *CORPUS[1:3])
    assert starts_of(doc, "punctuation").tolist() == [0, 5]
    doc = nlp.make_doc("We left . They slept .")
    assert starts_of(doc, "punctuation").tolist() == [0, 3]
    assert starts_of(doc, "auto").tolist() == [0]


@pytest.mark.parametrize(
    ("task", "mode"), [("ents", "punctuation"), ("spans", "auto"), ("tag", "auto"), ("pos", "auto")]
)
def test_sentences_of_entities_are_found_by_punctuation_unless_it_is_set(
    task: str, mode: str
) -> None:
    assert pipe_of(new_nlp(task)).sequence == mode
    assert pipe_of(new_nlp(task, sequence="doc")).sequence == "doc"


def test_stored_pipes_keep_what_was_the_default_before(tmp_path: Path) -> None:
    nlp = trained_nlp(sequence="auto")
    nlp.to_disk(tmp_path)
    assert pipe_of(spacy.load(tmp_path)).sequence == "auto"
