"""Evidence from the other places of a word in its document, beside a naive twin."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_treecrf.pipeline.evidence.agreement import SAME_NEIGHBOUR, repeated_words
from spacy_treecrf.pipeline.evidence.opinion_pool import LEAST, evidence_of, types_of, words_of
from spacy_treecrf.pipeline.sequencing import cut
from tests.pipeline.test_grow_features import WORDS, pipe_of, trained_nlp

LABELS = ["O", "B-PER", "L-PER", "U-PER", "U-LOC"]
TYPES = ["O", "PER", "PER", "PER", "LOC"]


def made_docs() -> list[Doc]:
    vocab = spacy.blank("en").vocab
    drawn = np.random.default_rng(0)
    words = ["Ann", "ANN", "ann", "Rome", "saw", "Bob", "."]
    docs = []
    for length in (30, 1, 12):
        chosen = [words[i] for i in drawn.integers(len(words), size=length)]
        starts = (drawn.random(length) < 0.2).tolist()
        docs.append(Doc(vocab, words=chosen, sent_starts=[True, *starts[1:]]))
    return docs


def naive_evidence(docs: list[Doc], marginals: np.ndarray) -> list[list[float]]:
    probable = [
        {kind: sum(p for p, t in zip(row, TYPES, strict=True) if t == kind) for kind in set(TYPES)}
        for row in marginals.tolist()
    ]
    rows: list[list[float]] = []
    first = 0
    for doc in docs:
        for token in doc:
            others = [
                other
                for other in doc
                if other.lower_ == token.lower_ and other.text != other.lower_ and other != token
            ]
            if token.text == token.lower_ or not others:
                rows.append([0.0] * len(LABELS))
                continue
            total, places = dict(probable[first + token.i]), 1.0
            for other in others:
                weight = 1.0
                for side in (-1, 1):
                    weight += SAME_NEIGHBOUR * is_same(beside(token, side), beside(other, side))
                places += weight
                for kind in total:
                    total[kind] += weight * probable[first + other.i][kind]
            own = probable[first + token.i]
            rows.append(
                [math.log((total[kind] / places + LEAST) / (own[kind] + LEAST)) for kind in TYPES]
            )
        first += len(doc)
    return rows


def beside(token: spacy.tokens.Token, side: int) -> str | None:
    """The word beside a token in its sentence."""
    i = token.i + side
    inside = token.sent.start <= i < token.sent.end
    return token.doc[i].lower_ if inside else None


def is_same(a: str | None, b: str | None) -> bool:
    return a is not None and a == b


def test_evidence_is_that_of_the_naive_twin() -> None:
    docs = made_docs()
    n = sum(map(len, docs))
    marginals = np.random.default_rng(1).dirichlet(np.ones(len(LABELS)), size=n)
    repeated = repeated_words(words_of(docs), cut(docs, "auto"))
    assert repeated is not None
    found = evidence_of(repeated, marginals, types_of(LABELS))
    np.testing.assert_allclose(found, naive_evidence(docs, marginals), atol=1e-5)


def test_words_of_other_documents_and_without_capitals_say_nothing() -> None:
    vocab = spacy.blank("en").vocab
    docs = [Doc(vocab, words=["Ann", "saw", "ann", "."]), Doc(vocab, words=["Ann", "saw"])]
    assert repeated_words(words_of(docs), cut(docs, "auto")) is None


def test_labels_of_one_type_have_one_number() -> None:
    assert types_of(["O", "B-PER", "U-LOC", "L-PER"]).tolist() == [0, 1, 2, 1]


def test_probabilities_are_those_of_all_labellings_with_the_evidence() -> None:
    nlp = trained_nlp(features=WORDS)
    pipe = pipe_of(nlp)
    pipe.agreement = 0.0
    doc = Doc(nlp.vocab, words=["Ann", "saw", "Ann", "."])
    plain = pipe.marginals(doc)
    pipe.agreement = 0.7
    offsets = cut([doc], pipe.sequence)
    assert len(offsets) == 2
    repeated = repeated_words(words_of([doc]), offsets)
    assert repeated is not None
    names = pipe.shim.labels
    evidence = 0.7 * evidence_of(repeated, plain, types_of(names))
    pipe.agreement = 0.0
    weights = {}
    for labelling, p in pipe.nbest(doc, len(names) ** len(doc)):
        ids = [names.index(label) for label in labelling]
        weights[tuple(ids)] = p * math.exp(sum(evidence[t, k] for t, k in enumerate(ids)))
    total = sum(weights.values())
    pipe.agreement = 0.7
    for t, k in itertools.product(range(len(doc)), range(len(names))):
        wanted = sum(w for ids, w in weights.items() if ids[t] == k) / total
        assert pipe.marginals(doc)[t, k] == pytest.approx(wanted, abs=1e-5)
    best = max(weights, key=lambda ids: weights[ids])
    assert pipe.predict([doc])[0].labels == [names[k] for k in best]
