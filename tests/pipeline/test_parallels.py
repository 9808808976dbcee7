"""Evidence from places of a document that look alike, beside a naive twin."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Token

from spacy_treecrf.pipeline.evidence.agreement import repeated_words
from spacy_treecrf.pipeline.evidence.document_evidence import may_have_places
from spacy_treecrf.pipeline.evidence.opinion_pool import Together, evidence_of, types_of, words_of
from spacy_treecrf.pipeline.evidence.parallels import FEWEST, like_places
from spacy_treecrf.pipeline.sequencing import cut
from tests.pipeline.test_grow_features import WORDS, pipe_of, trained_nlp

NLP = spacy.blank("en")
VOCABULARY = ["Ann", "ROME", "Ann-1", "saw", "7.40", "12", ",", "(", "\n"]
sentences = st.lists(
    st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=8), min_size=1, max_size=6
)


def doc_of(texts: list[list[str]]) -> Doc:
    starts = [i == 0 for words in texts for i in range(len(words))]
    return Doc(NLP.vocab, words=[w for words in texts for w in words], sent_starts=starts)


def places_of(docs: list[Doc]) -> Together | None:
    return like_places(docs, words_of(docs), cut(docs, "auto"))


def is_name(token: Token) -> bool:
    return token.text != token.lower_


def look(doc: Doc, sentence: spacy.tokens.Span, i: int) -> str:
    if not sentence.start <= i < sentence.end:
        return "edge"
    if is_name(doc[i]):
        return "name"
    return "number" if any(map(str.isdigit, doc[i].text)) else f"word {doc[i].text}"


def naive_groups(docs: list[Doc]) -> set[frozenset[int]]:
    """The rows of names that go together, by one dict."""
    rows = defaultdict(set)
    passed = 0
    for number, doc in enumerate(docs):
        for token in filter(is_name, doc):
            sentence = token.sent
            first = past = token.i
            while first > sentence.start and is_name(doc[first - 1]):
                first -= 1
            while past < sentence.end and is_name(doc[past]):
                past += 1
            around = [look(doc, sentence, i) for i in (first - 1, first - 2, past, past + 1)]
            rows[number, token.i - first, past - token.i, tuple(around)].add(passed + token.i)
        passed += len(doc)
    return {frozenset(group) for group in rows.values() if len(group) >= FEWEST}


@given(st.lists(sentences, min_size=1, max_size=3))
def test_places_go_together_as_those_of_the_naive_twin(texts: list[list[list[str]]]) -> None:
    docs = [doc_of(one) for one in texts]
    found = places_of(docs)
    groups = defaultdict(set)
    if found is not None:
        ((weight, numbers),) = found.groups
        assert weight == 1.0
        for row, number in zip(found.rows.tolist(), numbers.tolist(), strict=True):
            groups[number].add(row)
    assert {frozenset(group) for group in groups.values()} == naive_groups(docs)


@given(sentences)
def test_docs_that_are_passed_over_quickly_have_no_places(texts: list[list[str]]) -> None:
    doc = doc_of(texts)
    words, offsets = words_of([doc]), cut([doc], "auto")
    has_any = like_places([doc], words, offsets) or repeated_words(words, offsets)
    assert may_have_places(doc, len(offsets) - 1) or has_any is None


def test_names_of_a_table_go_together() -> None:
    found = places_of([doc_of([["44.", "Bulgaria", "7.73"], ["45.", "New", "Wales", "7.40"]] * 3)])
    assert found is not None
    assert found.rows.tolist() == [1, 4, 5, 8, 11, 12, 15, 18, 19]
    assert len(set(found.groups[0][1].tolist())) == 3, "first and last words of names are apart"


def test_two_places_are_no_list_and_docs_do_not_count_together() -> None:
    row = ["1.", "Malta", "7.40"]
    assert places_of([doc_of([row, row]), doc_of([row])]) is None
    assert places_of([doc_of([["no", "names", "at", "all"]])]) is None


def test_docs_without_words_are_passed_over() -> None:
    rows = [["1.", "Malta", "7.40"]] * 3
    found = places_of([Doc(NLP.vocab), doc_of(rows), Doc(NLP.vocab)])
    assert found is not None
    assert found.rows.tolist() == [1, 4, 7]


def test_evidence_is_the_mean_of_the_places_over_the_own_opinion() -> None:
    labels = ["O", "U-LOC"]
    together = Together(np.array([0, 2, 3]), [(1.0, np.array([0, 0, 0]))])
    p = np.array([0.9, 0.5, 0.6, 0.0])
    found = evidence_of(together, np.stack([1 - p, p], axis=1), types_of(labels))
    np.testing.assert_allclose(found[:, 1], np.log([0.51 / 0.91, 1, 0.51 / 0.61, 51]), rtol=1e-5)
    assert not found[1].any()


def test_probabilities_are_those_of_all_labellings_with_the_evidence() -> None:
    nlp = trained_nlp(features=WORDS)
    pipe = pipe_of(nlp)
    pipe.agreement = pipe.parallels = 0.0
    doc = Doc(nlp.vocab, words=["Ann", "Rome", "1", "Ann"], sent_starts=[1, 1, 1, 1])
    plain, names = pipe.marginals(doc), pipe.shim.labels
    together = like_places([doc], words_of([doc]), cut([doc], pipe.sequence))
    assert together is not None
    evidence = 0.7 * evidence_of(together, plain, types_of(names))
    weights = {}
    for labelling, p in pipe.nbest(doc, len(names) ** len(doc)):
        ids = [names.index(label) for label in labelling]
        weights[tuple(ids)] = p * math.exp(sum(evidence[t, k] for t, k in enumerate(ids)))
    total = sum(weights.values())
    pipe.parallels = 0.7
    found = pipe.marginals(doc)
    assert np.abs(found - plain).max() > 1e-3
    for t, k in itertools.product(range(len(doc)), range(len(names))):
        wanted = sum(w for ids, w in weights.items() if ids[t] == k) / total
        assert found[t, k] == pytest.approx(wanted, abs=1e-5)
