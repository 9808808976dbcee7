"""Fit and encode of word features against the token-by-token twin."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.sequences import ABSENT
from spacy_treecrf.features import cached_source
from spacy_treecrf.features.token_features import create_token_features
from tests.features.naive import (
    NLP,
    base_columns,
    decoded,
    make_docs,
    naive_names,
    numbers,
    offsets_of,
)

WORDS = ["the", "The", "THE", "Bonn", "U.S.", "1984", " ", "\n", "a", "é=b", "x[0]=y", "😀", "LOC"]
CONFIG: dict[str, Any] = {
    "attrs": {"LOWER": [-2, 0, 1], "SHAPE": [-1, 0, 3], "IS_TITLE": [0], "TAG": [-1, 0, 5]},
    "prefixes": [1, 3],
    "suffixes": [2],
    "affix_window": [-1, 0],
    "patterns": {"year": "^[0-9]{4}$"},
}

words = st.sampled_from(WORDS) | st.text(st.characters(codec="utf8"), min_size=1, max_size=4)


@st.composite
def cut_docs(draw: st.DrawFn) -> tuple[list[Doc], np.ndarray]:
    """Docs with tags, cut into sequences at any token."""
    docs, cuts, n = [], {0}, 0
    for tokens in draw(st.lists(st.lists(words, max_size=8), min_size=1, max_size=4)):
        tags = draw(
            st.lists(st.sampled_from(["", "NN", "VB"]), min_size=len(tokens), max_size=len(tokens))
        )
        docs.append(Doc(NLP.vocab, words=tokens, tags=tags) if tokens else Doc(NLP.vocab))
        cuts |= {n + c for c in draw(st.sets(st.integers(0, len(tokens))))}
        n += len(tokens)
        cuts.add(n)
    return docs, np.array(sorted(cuts), np.int64)


@settings(max_examples=60, deadline=None)
@given(cut_docs(), cut_docs(), st.integers(1, 3))
def test_features_are_those_of_the_naive_twin(train: Any, other: Any, min_count: int) -> None:
    features = create_token_features(**CONFIG)
    columns = features.fit(*train, min_count=min_count, max_bins=255)
    naive = base_columns(**CONFIG)
    counts = Counter(name for names in naive_names(*train, naive) for name in names)
    known = {name: n for name, n in counts.items() if n >= min_count}
    assert dict(zip(columns.feature_names, columns.counts.tolist(), strict=True)) == known
    assert sorted(columns.counts.tolist(), reverse=True) == columns.counts.tolist()
    for docs, offsets in (train, other, train):
        feature_ids, numeric = features.encode(docs, offsets, columns)
        assert feature_ids.dtype == np.int32
        assert numeric.shape == (len(feature_ids), 0)
        expected = [names & set(known) for names in naive_names(docs, offsets, naive)]
        assert decoded(feature_ids, columns) == expected


@settings(max_examples=20, deadline=None)
@given(cut_docs())
def test_columns_round_trip_through_their_state_and_encode_the_same(train: Any) -> None:
    features = create_token_features(**CONFIG)
    columns = features.fit(*train, min_count=1, max_bins=255)
    again = Columns.from_state(columns.to_state())
    loaded = create_token_features(**CONFIG)
    loaded.from_state(features.to_state())
    for one, other in zip(
        features.encode(*train, columns), loaded.encode(*train, again), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_features_of_equal_count_are_in_order_of_slots_and_appearance() -> None:
    columns, _, _ = numbers(
        create_token_features({"LOWER": [0], "ORTH": [0]}, [], []), make_docs("b a c a")
    )
    assert columns.feature_names == [
        "lower[0]=a", "orth[0]=a", "lower[0]=b", "lower[0]=c", "orth[0]=b", "orth[0]=c",
    ]  # fmt: skip


def test_window_ends_with_the_sequence_not_with_the_doc() -> None:
    features = create_token_features({"LOWER": [-1, 0, 1]}, [], [])
    docs = make_docs("a b c")
    offsets = np.array([0, 1, 3])
    columns = features.fit(docs, offsets, min_count=1, max_bins=255)
    assert decoded(features.encode(docs, offsets, columns)[0], columns) == [
        {"lower[-1]=<edge>", "lower[0]=a", "lower[1]=<edge>"},
        {"lower[-1]=<edge>", "lower[0]=b", "lower[1]=c"},
        {"lower[-1]=b", "lower[0]=c", "lower[1]=<edge>"},
    ]


@pytest.mark.parametrize("texts", [[], [[]], [[], ["one"], []], [[" "]], [["\n", "\t"], []]])
def test_empty_docs_single_tokens_and_whitespace(texts: list[list[str]]) -> None:
    features = create_token_features(document=["case", "repeated", "neighbours", "heading"])
    docs = make_docs(*texts)
    columns, feature_ids, numeric = numbers(features, docs)
    assert len(feature_ids) == len(numeric) == sum(map(len, texts))
    assert feature_ids.shape[1] == len(columns.slot_keys)
    assert (feature_ids >= ABSENT).all()
    assert (feature_ids < len(columns.feature_names)).all()
    Columns.from_state(columns.to_state())


def test_unknown_words_are_absent() -> None:
    features = create_token_features({"LOWER": [0]}, [], [])
    columns, _, _ = numbers(features, make_docs("a b"))
    feature_ids, _ = features.encode(make_docs("zzz a"), np.array([0, 2]), columns)
    assert feature_ids[:, 0].tolist() == [ABSENT, columns.feature_names.index("lower[0]=a")]


def test_other_columns_and_other_vocabs_get_rows_of_their_own() -> None:
    features = create_token_features({"LOWER": [0], "TAG": [0]}, [], [])
    first, _, _ = numbers(features, make_docs("a b b"))
    second = features.fit(docs := make_docs("c a a"), offsets_of(docs), min_count=1, max_bins=255)
    for columns in (first, second, first):
        for vocab in (NLP.vocab, Vocab(), NLP.vocab):
            doc = Doc(vocab, words=["b", "a", "new"], tags=["X", "X", "X"])
            encoded, _ = features.encode([doc], np.array([0, 3]), columns)
            known = set(columns.feature_names)
            expected = [{f"lower[0]={word}"} & known for word in ("b", "a", "new")]
            assert decoded(encoded, columns) == expected


def test_full_cache_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_source, "MAX_CACHED_ROWS", 3)
    features = create_token_features({"LOWER": [-1, 0]}, [], [])
    docs = make_docs("a b c d", "e f g h", "a f c h")
    columns, feature_ids, _ = numbers(features, docs)
    for doc, rows in zip(docs, np.split(feature_ids, 3), strict=True):
        encoded, _ = features.encode([doc], np.array([0, 4]), columns)
        np.testing.assert_array_equal(encoded, rows)


def test_cache_survives_an_error_while_reading() -> None:
    def read(doc: Doc) -> Any:
        if doc[0].text == "bad":
            raise RuntimeError("user error")
        return [{"key": "value"} for _ in doc]

    features = create_token_features({"LOWER": [0], "TAG": [0]}, [], [], function=read)
    columns, feature_ids, _ = numbers(features, make_docs("a b"))
    with pytest.raises(RuntimeError, match="user error"):
        features.encode(make_docs("bad b"), np.array([0, 2]), columns)
    np.testing.assert_array_equal(
        features.encode(make_docs("a b"), np.array([0, 2]), columns)[0], feature_ids
    )


def test_columns_of_another_config_are_refused() -> None:
    columns, _, _ = numbers(create_token_features({"LOWER": [-1, 0]}, [], []), make_docs("a b"))
    other = create_token_features({"LOWER": [0]}, [], [])
    with pytest.raises(ValueError, match=r"treecrf: the model knows features 'lower\[-1\]'"):
        other.encode(make_docs("a b"), np.array([0, 2]), columns)


def test_docs_of_different_vocabs_and_wrong_offsets_are_refused() -> None:
    features = create_token_features()
    docs = [*make_docs("a"), Doc(Vocab(), words=["a"])]
    with pytest.raises(ValueError, match="treecrf: the docs of a batch have different vocabs"):
        features.fit(docs, np.array([0, 1, 2]), min_count=1, max_bins=255)
    for offsets in ([0, 1], [1, 2], [0, 3], [0, 2, 1, 2], []):
        with pytest.raises(ValueError, match="treecrf: offsets"):
            features.fit(make_docs("a b"), np.array(offsets, np.int64), min_count=1, max_bins=255)


def test_reads_annotations_of_other_pipes_only() -> None:
    assert not create_token_features({"LOWER": [0], "NORM": [0], "SPACY": [0]}).reads_annotations
    assert create_token_features({"LOWER": [0], "TAG": [0]}).reads_annotations
    assert create_token_features(function=lambda doc: [{}] * len(doc)).reads_annotations


def test_all_attributes_can_be_read() -> None:
    from spacy_treecrf.features.attributes import TOKEN_ATTRS
    from spacy_treecrf.features.lexemes import LEXEME_ATTRS

    features = create_token_features({attr: [-1, 0] for attr in (*LEXEME_ATTRS, *TOKEN_ATTRS)})
    doc = Doc(
        NLP.vocab,
        words=["Anna", "saw", "Bonn"],
        tags=["NNP", "VBD", "NNP"],
        pos=["PROPN", "VERB", "PROPN"],
        morphs=["Number=Sing", "", ""],
        lemmas=["Anna", "see", "Bonn"],
        heads=[1, 1, 1],
        deps=["nsubj", "ROOT", "dobj"],
        ents=["B-PER", "O", "B-LOC"],
    )
    columns, feature_ids, _ = numbers(features, [doc])
    found = decoded(feature_ids, columns)[0]
    for name in ("tag[0]=NNP", "pos[0]=PROPN", "dep[0]=nsubj", "ent_type[0]=PER", "ent_iob[0]=3"):
        assert name in found
    assert {"morph[0]=Number=Sing", "lemma[0]=Anna", "sent_start[0]=1", "length[0]=4"} <= found
    assert {"is_title[0]=True", "is_alpha[0]=True", "spacy[0]=1", "prefix[0]=A"} <= found
