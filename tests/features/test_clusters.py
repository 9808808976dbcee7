"""Brown clusters: read at training, and kept by the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_treecrf.features import clusters as clusters_module
from spacy_treecrf.features.extractor import Extractor
from spacy_treecrf.features.token_features import create_token_features
from tests.features.naive import decoded, numbers, offsets_of
from tests.refusals import assert_refused

PATHS = {"the": 0b11, "berlin": 0b100101, "Bonn": 0b1, "none": 0}


def only_clusters() -> Extractor:
    return create_token_features({}, [], [], clusters=[2, 4, 0], cluster_window=[0])


def nlp_with_clusters() -> Language:
    nlp = spacy.blank("en")
    nlp.vocab.lookups.add_table("lexeme_cluster", PATHS)
    return nlp


def test_cluster_is_that_of_the_word_or_of_its_lower_case() -> None:
    nlp = nlp_with_clusters()
    doc = Doc(nlp.vocab, words=["THE", "Berlin", "Bonn", "bonn", "none"])
    columns, feature_ids, _ = numbers(only_clusters(), [doc])
    assert decoded(feature_ids, columns) == [
        {"cluster2[0]=11", "cluster4[0]=11", "cluster[0]=11"},
        {"cluster2[0]=10", "cluster4[0]=1010", "cluster[0]=101001"},
        {"cluster2[0]=1", "cluster4[0]=1", "cluster[0]=1"},
        set(),
        set(),
    ]


def test_clusters_of_unseen_words_travel_in_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    features = only_clusters()
    columns, _, _ = numbers(features, [Doc(nlp_with_clusters().vocab, words=["the", "the"])])
    monkeypatch.setattr(clusters_module, "registry", None)  # as if not installed
    loaded = only_clusters()
    loaded.from_state(features.to_state())
    doc = Doc(spacy.blank("en").vocab, words=["The", "other"])
    loaded.check(doc.vocab)
    feature_ids, _ = loaded.encode([doc], np.array([0, 2]), columns)
    assert len(decoded(feature_ids, columns)[0]) == 3
    assert decoded(feature_ids, columns)[1] == set()


def test_table_of_spacy_lookups_data() -> None:
    pytest.importorskip("spacy_lookups_data")
    features = create_token_features({}, [], [], clusters=[0], cluster_window=[0])
    doc = Doc(spacy.blank("en").vocab, words=["the"])
    columns, _, _ = numbers(features, [doc])
    assert columns.feature_names == ["cluster[0]=1101"]
    state = features.to_state()["lexemes"]["clusters"]
    assert len(state["words"]) > 100_000
    assert state["paths"].all()


def test_missing_cluster_table_is_refused_with_the_remedy() -> None:
    vocab = spacy.blank("fi").vocab
    assert_refused(lambda: only_clusters().check(vocab), "'clusters'", "'fi'", "pip install")
    features = only_clusters()
    columns, _, _ = numbers(features, [doc := Doc(nlp_with_clusters().vocab, words=["the"])])
    assert_refused(lambda: only_clusters().encode([doc], offsets_of([doc]), columns), "cluster")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("words", np.array([5, 4, 6], np.uint64)),
        ("words", np.array([5, 5, 6], np.uint64)),
        ("paths", np.array([1, 0, 1], np.uint32)),
        ("paths", np.ones(2, np.uint32)),
        ("loaded", None),
    ],
)
def test_damaged_cluster_state_is_refused(field: str, value: Any) -> None:
    features = only_clusters()
    features.check(nlp_with_clusters().vocab)
    state = features.to_state()
    state["lexemes"]["clusters"][field] = value
    assert_refused(lambda: features.from_state(state), f"features.lexemes.clusters.{field}")
