"""Few tokens by one kernel, and new words by few calls: the same cells as the ordinary way."""

from __future__ import annotations

import os
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc

from spacy_treecrf.features import extractor
from spacy_treecrf.features.batch import ORTH, Batch
from spacy_treecrf.features.document import KINDS, DocumentColumn, DocumentWords
from spacy_treecrf.features.extractor import Extractor
from spacy_treecrf.features.layout import tables_of
from spacy_treecrf.features.source import Source
from spacy_treecrf.features.token_features import create_token_features
from tests.features.naive import offsets_of

WORDS = ["Ann", "ann", "ANN", "saw", "Bob", "Smith", "in", "York", "<edge>", "x", "é9", "McX", "."]
NEW_WORDS = [*WORDS, "unseen", "Unseen", "ANNS", "yorks"]
TRAINING = ["Ann saw Bob Smith . ", "Bob in York saw ANN", "ann x é9 <edge> McX", "SMITH YORK ANN"]


@pytest.fixture(scope="module")
def nlp() -> Language:
    nlp = spacy.blank("en")
    paths = {"ann": 0b11, "Bob": 0b100101, "york": 0b1, "saw": 0}
    nlp.vocab.lookups.add_table("lexeme_cluster", paths)
    for i, word in enumerate(["Ann", "bob", "york", "unseen"]):
        nlp.vocab.set_vector(word, np.array([i, -i, np.inf if i == 2 else 0.5], "f"))
    return nlp


def new_features() -> Extractor:
    return create_token_features(
        {"ORTH": [0], "LOWER": [-1, 0, 1], "SHAPE": [0, 1], "IS_TITLE": [0], "LENGTH": [0]},
        [1, 3, 7],
        [2],
        clusters=[2, 0],
        cluster_window=[-1, 0],
        vectors=4,
        vector_window=[0],
        patterns={"digit": "[0-9]"},
        document=list(KINDS),
    )


def docs_of(nlp: Language, texts: list[list[str]]) -> list[Doc]:
    return [Doc(nlp.vocab, words=words) for words in texts]


TEXTS = st.lists(st.lists(st.sampled_from(NEW_WORDS), max_size=12), min_size=1, max_size=3)


@settings(max_examples=40, deadline=None)
@given(batches=st.lists(TEXTS, min_size=1, max_size=3))
def test_few_tokens_have_the_cells_of_the_ordinary_way(
    nlp: Language, batches: list[list[list[str]]]
) -> None:
    quick, plain = new_features(), new_features()
    training = docs_of(nlp, [text.split() for text in TRAINING])
    found = {}
    for features in (quick, plain):
        columns = features.fit(training, offsets_of(training), min_count=1, max_bins=255)
        found[features] = columns
    with pytest.MonkeyPatch.context() as patch:
        for texts in batches:  # rows that were found before are used again
            docs = docs_of(nlp, texts)
            patch.setattr(extractor, "QUICK_AFTER", -1)
            encoded = quick.encode(docs, offsets_of(docs), found[quick])
            patch.setattr(extractor, "QUICK_AFTER", 10**9)
            expected = plain.encode(docs, offsets_of(docs), found[plain])
            patch.undo()
            np.testing.assert_array_equal(encoded[0], expected[0])
            np.testing.assert_array_equal(encoded[1], expected[1])
    if any(word for texts in batches for text in texts for word in text):
        assert quick._cache is not None
        assert quick._cache.sources[0]._quick is not None, "new words went the ordinary way"


@settings(max_examples=40, deadline=None)
@given(words=st.lists(st.sampled_from(NEW_WORDS), min_size=1, max_size=12))
def test_new_words_get_the_numbers_that_reading_them_would_give(
    nlp: Language, words: list[str]
) -> None:
    features = new_features()
    training = docs_of(nlp, [text.split() for text in TRAINING])
    columns = features.fit(training, offsets_of(training), min_count=1, max_bins=255)
    docs = docs_of(nlp, [words])
    batch = Batch(docs, offsets_of(docs), [ORTH])
    positions = np.arange(len(words))
    tables = [tables_of(columns, features.sources) for _ in range(2)]
    for source, quick, plain in zip(features.sources, *tables, strict=True):
        if quick.row_bytes:
            found = source.numbered(batch, positions, quick.known)
            expected = Source.numbered(source, batch, positions, plain.known)
            np.testing.assert_array_equal(found.values, expected.values)
            quick.add(1, len(words), found)
            plain.add(1, len(words), expected)
            rows = slice(1 + len(words))
            np.testing.assert_array_equal(quick.feature_ids[rows], plain.feature_ids[rows])
            np.testing.assert_array_equal(quick.bins[rows], plain.bins[rows])


def test_what_is_forgotten_is_found_again(nlp: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractor, "QUICK_AFTER", -1)
    features = new_features()
    training = docs_of(nlp, [text.split() for text in TRAINING])
    columns = features.fit(training, offsets_of(training), min_count=1, max_bins=255)
    doc = Doc(nlp.vocab, words=NEW_WORDS)
    offsets = np.array([0, len(doc)])
    expected = features.encode([doc], offsets, columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extractor, "KEPT_WORDS", 0)
        features.forget()
    for _ in range(2):
        encoded = features.encode([doc], offsets, columns)
        np.testing.assert_array_equal(encoded[0], expected[0])
        np.testing.assert_array_equal(encoded[1], expected[1])


@pytest.mark.parametrize("setting", ["clusters", "vectors", "attrs", "document"])
def test_sources_without_some_columns_have_the_cells_of_the_ordinary_way(
    nlp: Language, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    given = {"clusters": [2, 0], "vectors": 4, "attrs": {"LOWER": [0, 1]}, "document": ["runs"]}
    given[setting] = {"clusters": [], "vectors": 0, "attrs": {}, "document": []}[setting]
    features = create_token_features(**given)
    training = docs_of(nlp, [text.split() for text in TRAINING])
    columns = features.fit(training, offsets_of(training), min_count=1, max_bins=255)
    doc = Doc(nlp.vocab, words=NEW_WORDS)
    expected = features.encode([doc], offsets_of([doc]), columns)
    monkeypatch.setattr(extractor, "QUICK_AFTER", -1)
    features._cache = None
    encoded = features.encode([doc], offsets_of([doc]), columns)
    np.testing.assert_array_equal(encoded[0], expected[0])
    np.testing.assert_array_equal(encoded[1], expected[1])


def test_vectors_that_replace_others_count(nlp: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractor, "QUICK_AFTER", -1)
    features = new_features()
    training = docs_of(nlp, [text.split() for text in TRAINING])
    columns = features.fit(training, offsets_of(training), min_count=1, max_bins=255)
    doc = Doc(nlp.vocab, words=["Ann", "unseen"])
    before = features.encode([doc], offsets_of([doc]), columns)[1]
    vectors = nlp.vocab.vectors
    kept = vectors.data
    try:
        # By dimension, as some files have them: then words take the ordinary way.
        vectors.data = np.asfortranarray(kept[::-1])
        found = features.encode([doc], offsets_of([doc]), columns)[1]
        assert (found != before).any()
        vectors.data = kept.copy()
        assert (features.encode([doc], offsets_of([doc]), columns)[1] == before).all()
    finally:
        vectors.data = kept


def test_copies_have_tables_of_their_own(nlp: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractor, "QUICK_AFTER", -1)
    features = new_features()
    training = docs_of(nlp, [text.split() for text in TRAINING])
    columns = features.fit(training, offsets_of(training), min_count=1, max_bins=255)
    first, second = docs_of(nlp, [["Ann", "saw", "Bob"], ["Ann", "saw", "Yorks", "Yorks"]])
    expected = [features.encode([doc], offsets_of([doc]), columns) for doc in (first, second)]
    twin = deepcopy(features)
    words = [source.words for source in twin.sources if isinstance(source, DocumentColumn)]
    assert words[0]._listed is None, "addresses of the original"
    del features
    for doc, own in zip((first, second), expected, strict=True):
        encoded = twin.encode([doc], offsets_of([doc]), columns)
        np.testing.assert_array_equal(encoded[0], own[0])
        np.testing.assert_array_equal(encoded[1], own[1])


def test_tables_that_grow_have_the_cells_of_the_ordinary_way(
    nlp: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = new_features()
    training = docs_of(nlp, [text.split() for text in TRAINING])
    columns = features.fit(training, offsets_of(training), min_count=1, max_bins=255)
    words = [f"{start}{i}" for i in range(700) for start in ("Ann", "york", "X")]
    docs = docs_of(nlp, [[*words[i : i + 7], "Ann", words[i]] for i in range(0, len(words), 7)])
    expected = [features.encode([doc], offsets_of([doc]), columns) for doc in docs]
    monkeypatch.setattr(extractor, "QUICK_AFTER", -1)
    quick = deepcopy(features)
    for doc, own in zip(docs, expected, strict=True):
        encoded = quick.encode([doc], offsets_of([doc]), columns)
        np.testing.assert_array_equal(encoded[0], own[0])
        np.testing.assert_array_equal(encoded[1], own[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_a_process_that_was_forked_in_the_midst_of_new_words_begins_anew(
    nlp: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extractor, "QUICK_AFTER", -1)
    features = new_features()
    training = docs_of(nlp, [text.split() for text in TRAINING])
    columns = features.fit(training, offsets_of(training), min_count=1, max_bins=255)
    doc = Doc(nlp.vocab, words=NEW_WORDS)
    expected = features.encode([doc], offsets_of([doc]), columns)
    features = deepcopy(features)
    features._cache = None
    for source in features.sources:
        source.forget(-1)
    describe = DocumentWords._describe

    def fork_and_describe(self: DocumentWords, texts: list[str]) -> Any:
        monkeypatch.undo()
        monkeypatch.setattr(extractor, "QUICK_AFTER", -1)
        child = os.fork()
        if not child:
            status = 1
            try:
                encoded = features.encode([doc], offsets_of([doc]), columns)
                status = int(any((a != b).any() for a, b in zip(encoded, expected, strict=True)))
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0, "the child crashed, or has other cells"
        return describe(self, texts)

    monkeypatch.setattr(DocumentWords, "_describe", fork_and_describe)
    encoded = features.encode([doc], offsets_of([doc]), columns)
    np.testing.assert_array_equal(encoded[0], expected[0])


def test_long_docs_between_short_ones_leave_no_stale_tables(
    nlp: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extractor, "QUICK_AFTER", -1)
    features = create_token_features({"LOWER": [0]}, document=list(KINDS))
    training = docs_of(nlp, [text.split() for text in TRAINING])
    columns = features.fit(training, offsets_of(training), min_count=1, max_bins=255)
    short = Doc(nlp.vocab, words=["Ann", "saw", "Bob", "Smith", "."])
    words = [f"Word{i}" for i in range(450)]
    long = Doc(nlp.vocab, words=["said", "In", "word440", *words])
    last = Doc(
        nlp.vocab,
        words=["Word440", "said", "Word441", ".", "In", "word440", "Word440", "Word441", "."],
    )
    twin = deepcopy(features)
    for doc in (short, short, long):
        features.encode([doc], offsets_of([doc]), columns)
    encoded = features.encode([last], np.array([0, 4, 9]), columns)
    expected = twin.encode([last], np.array([0, 4, 9]), columns)
    np.testing.assert_array_equal(encoded[0], expected[0])


@pytest.mark.parametrize("clusters", [[2, 0], [0, 2]])
def test_columns_of_clusters_are_those_of_the_model(
    nlp: Language, monkeypatch: pytest.MonkeyPatch, clusters: list[int]
) -> None:
    """A config may name them in another order than the one that the model was trained with."""
    learned = create_token_features({"LOWER": [0]}, clusters=[2, 0])
    training = docs_of(nlp, [text.split() for text in TRAINING])
    columns = learned.fit(training, offsets_of(training), min_count=1, max_bins=255)
    features = create_token_features({"LOWER": [0]}, clusters=clusters)
    features.from_state(learned.to_state())
    doc = Doc(nlp.vocab, words=NEW_WORDS)
    expected = learned.encode([doc], offsets_of([doc]), columns)
    monkeypatch.setattr(extractor, "QUICK_AFTER", -1)
    encoded = features.encode([doc], offsets_of([doc]), columns)
    np.testing.assert_array_equal(encoded[0], expected[0])


def test_indicators_of_vectors_have_the_cells_of_the_ordinary_way(
    nlp: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = create_token_features({"LOWER": [0]}, vectors=4, vector_columns="indicators")
    training = docs_of(nlp, [text.split() for text in TRAINING])
    columns = features.fit(training, offsets_of(training), min_count=1, max_bins=255)
    doc = Doc(nlp.vocab, words=NEW_WORDS)
    expected = features.encode([doc], offsets_of([doc]), columns)
    monkeypatch.setattr(extractor, "QUICK_AFTER", -1)
    encoded = deepcopy(features).encode([doc], offsets_of([doc]), columns)
    np.testing.assert_array_equal(encoded[0], expected[0])


def test_copies_hold_no_vectors(nlp: Language) -> None:
    features = new_features()
    training = docs_of(nlp, [text.split() for text in TRAINING])
    columns = features.fit(training, offsets_of(training), min_count=1, max_bins=255)
    features.encode(training, offsets_of(training), columns)
    assert all("_stamped" not in vars(source) for source in deepcopy(features).sources)
