"""Word vectors: read at training, and checked afterwards."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.sequences import MISSING_BIN
from spacy_treecrf.features.extractor import Extractor
from spacy_treecrf.features.token_features import create_token_features
from spacy_treecrf.features.vectors import Vectors
from tests.features.naive import decoded, numbers, offsets_of
from tests.refusals import assert_refused

VECTORS = {"a": [0.0, 5.0], "b": [1.0, 5.0], "c": [2.0, -5.0], "d": [3.0, np.nan]}


def nlp_with_vectors(width: int = 2) -> Language:
    nlp = spacy.blank("en")
    for word, vector in VECTORS.items():
        nlp.vocab.set_vector(word, np.resize(np.array(vector, "f"), width))
    return nlp


def only_vectors(kind: str = "numeric", bins: int = 4) -> Extractor:
    return create_token_features(
        {}, [], [], vectors=bins, vector_window=[-1, 0], vector_columns=kind
    )


def test_vectors_as_numeric_columns() -> None:
    doc = Doc(nlp_with_vectors().vocab, words=["a", "B", "c", "d", "zzz"])
    columns, feature_ids, numeric = numbers(only_vectors(), [doc])
    assert columns.numeric_names == ["vector0[-1]", "vector1[-1]", "vector0[0]", "vector1[0]"]
    assert feature_ids.shape == (5, 0)
    assert numeric.T.tolist() == [
        [MISSING_BIN, 1, 2, 3, 4],
        [MISSING_BIN, 2, 2, 1, MISSING_BIN],
        [1, 2, 3, 4, MISSING_BIN],
        [2, 2, 1, MISSING_BIN, MISSING_BIN],
    ]
    again = Columns.from_state(columns.to_state())
    assert again.numeric_names == columns.numeric_names


def test_vectors_have_at_most_their_bins() -> None:
    doc = Doc(nlp_with_vectors().vocab, words=["a", "b", "c", "d"])
    _, _, numeric = numbers(only_vectors(bins=2), [doc])
    assert numeric[:, 2].tolist() == [1, 1, 2, 2]
    _, _, numeric = numbers(only_vectors(bins=4), [doc], max_bins=2)
    assert numeric[:, 2].tolist() == [1, 1, 2, 2]


def test_vectors_as_indicators_and_their_state() -> None:
    doc = Doc(nlp_with_vectors().vocab, words=["a", "B", "c", "d", "zzz"])
    features = only_vectors("indicators", 2)
    columns, feature_ids, numeric = numbers(features, [doc])
    assert numeric.shape == (5, 0)
    found = [{n for n in names if "vector0[0]" in n} for names in decoded(feature_ids, columns)]
    assert found == [*[{"vector0[0]=0"}] * 2, *[{"vector0[0]=1"}] * 2, set()]
    loaded = only_vectors("indicators", 2)
    loaded.from_state(features.to_state())
    np.testing.assert_array_equal(loaded.encode([doc], offsets_of([doc]), columns)[0], feature_ids)


@pytest.mark.parametrize("kind", ["numeric", "indicators"])
def test_missing_or_other_vectors_are_refused_with_the_remedy(kind: str) -> None:
    features = only_vectors(kind)
    empty = Doc(spacy.blank("en").vocab, words=["a"])
    assert_refused(lambda: features.check(empty.vocab), "'vectors'", "[initialize] vectors")
    assert_refused(lambda: numbers(features, [empty]), "'vectors'")
    columns, _, _ = numbers(features, [Doc(nlp_with_vectors().vocab, words=["a", "b"])])
    assert_refused(lambda: features.encode([empty], np.array([0, 1]), columns), "'vectors'")
    wide = Doc(nlp_with_vectors(3).vocab, words=["a"])
    assert_refused(lambda: features.encode([wide], np.array([0, 1]), columns), "3", "2", "train")


def test_new_vectors_of_the_same_vocab_are_seen() -> None:
    nlp = nlp_with_vectors()
    features = only_vectors()
    doc = Doc(nlp.vocab, words=["a", "b", "c", "d", "zzz"])
    columns, _, numeric = numbers(features, [doc])
    nlp.vocab.set_vector("zzz", np.array([3.0, 5.0], "f"))
    again = features.encode([doc], offsets_of([doc]), columns)[1]
    assert numeric[4, 2] == MISSING_BIN
    assert again[4, 2] == 4


def test_floret_vectors() -> None:
    nlp = spacy.blank("en")
    data = np.arange(20, dtype="f").reshape(10, 2)
    nlp.vocab.vectors = spacy.vectors.Vectors(
        strings=nlp.vocab.strings, data=data, mode="floret", minn=2, maxn=3, hash_count=2
    )
    doc = Doc(nlp.vocab, words=["one", "two", "three"])
    _, _, numeric = numbers(only_vectors(), [doc])
    assert (numeric[:, 2:] != MISSING_BIN).all()


@pytest.mark.parametrize("attribute", ["ORTH", "LOWER", "NORM"])
def test_floret_vectors_are_those_that_spacy_gives_a_token(attribute: str) -> None:
    nlp = spacy.blank("en")
    data = np.random.default_rng(0).normal(size=(40, 2)).astype("f")
    nlp.vocab.vectors = spacy.vectors.Vectors(
        strings=nlp.vocab.strings, data=data, mode="floret", minn=2, maxn=3, attr=attribute
    )
    doc = nlp.make_doc("The Cat saw THE cat")
    keys = np.array([token.orth for token in doc], np.uint64)
    texts = [token.text for token in doc]
    source = Vectors(4, [0], "numeric")
    source.width = 2
    found = source.values(nlp.vocab, keys, texts, [text.lower() for text in texts])
    np.testing.assert_array_equal(found, [token.vector for token in doc])
