"""Phrase lists: matching against a naive twin, and what a training doc may know of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.features.entity_lists import N_BLOCKS, doc_id, pieces_of
from spacy_treecrf.features.extractor import Extractor
from spacy_treecrf.features.token_features import create_token_features
from tests.features.naive import decoded, make_docs, numbers, offsets_of
from tests.refusals import assert_refused


def only_gazetteers(**config: Any) -> Extractor:
    return create_token_features({}, [], [], **{"gazetteer_window": [0], **config})


def places(text: str | list[str], **lists: list[str] | Path) -> list[set[str]]:
    features = only_gazetteers(gazetteers=lists)
    docs = make_docs(text)
    columns, feature_ids, _ = numbers(features, docs)
    return [
        {n.replace("gazetteer.", "").replace("[0]", "") for n in names}
        for names in decoded(feature_ids, columns)
    ]


def test_phrases_longest_first_whatever_the_case_and_tokens() -> None:
    city = ["New York", "New York City", "york", "U.S."]
    assert places("in NEW york", city=city) == [set(), {"city=B"}, {"city=L"}]
    assert places("new York city York", city=city) == [
        {"city=B"}, {"city=I"}, {"city=L"}, {"city=U"},
    ]  # fmt: skip
    assert places("the U.S. U. S. U .S.", city=city) == [
        set(), {"city=U"}, {"city=B"}, {"city=L"}, {"city=B"}, {"city=L"},
    ]  # fmt: skip
    assert places(["New", "\n", "York", "Newer", "York's"], city=city) == [
        {"city=B"}, {"city=I"}, {"city=L"}, set(), set(),
    ]  # fmt: skip


def test_lists_do_not_disturb_each_other() -> None:
    lists = {f"list{i}": ["a b", "c"] if i % 2 else ["b c"] for i in range(40)}
    found = places("a b c", **lists)
    assert found[0] == {f"list{i}=B" for i in range(1, 40, 2)}
    assert found[1] == {f"list{i}={'L' if i % 2 else 'B'}" for i in range(40)}
    assert found[2] == {f"list{i}={'U' if i % 2 else 'L'}" for i in range(40)}


def naive_places(tokens: list[str], phrases: list[str]) -> list[str]:
    known = {pieces_of(phrase) for phrase in phrases}
    found, t = [""] * len(tokens), 0
    while t < len(tokens):
        ends = [
            e for e in range(t + 1, len(tokens) + 1) if pieces_of(" ".join(tokens[t:e])) in known
        ]
        if ends:
            n = ends[-1] - t
            found[t : ends[-1]] = ["U"] if n == 1 else ["B", *["I"] * (n - 2), "L"]
        t = ends[-1] if ends else t + 1
    return found


PIECES = st.sampled_from(["a", "b", "A", "1", ".", "a.b", "b1", "aa", "x"])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(PIECES, max_size=12), st.lists(st.lists(PIECES, min_size=1, max_size=4).map(" ".join))
)
def test_matches_are_those_of_the_naive_twin(tokens: list[str], phrases: list[str]) -> None:
    found = places(tokens, one=phrases)
    assert [next(iter(names), "one=")[4:] for names in found] == naive_places(tokens, phrases)


def test_matches_end_with_the_sequence() -> None:
    features = only_gazetteers(gazetteers={"city": ["New York"]})
    docs = make_docs("New York New York")
    offsets = np.array([0, 1, 4])
    columns = features.fit(docs, offsets, min_count=1, max_bins=255)
    feature_ids, _ = features.encode(docs, offsets, columns)
    assert [len(names) for names in decoded(feature_ids, columns)] == [0, 0, 1, 1]


TRAIN = ["Anna met Bob", "Bob left", "Cy saw Anna Bonn"]
ENTITIES = [[(0, 1, "PER"), (2, 3, "PER")], [(0, 1, "PER")], [(0, 1, "PER"), (3, 4, "A=B")]]


def learned() -> tuple[Extractor, Any]:
    features = only_gazetteers(gazetteer_from_entities=True)
    docs = make_docs(*TRAIN)
    features.learn(docs, ENTITIES)
    # without leave-one-out, so that every list has a column
    return features, features.fit(docs, offsets_of(docs), min_count=1, max_bins=255, training=False)


def test_training_docs_do_not_see_what_they_alone_have_taught() -> None:
    features, columns = learned()
    docs = make_docs(*TRAIN)
    seen = []
    for training in (True, False):
        feature_ids, _ = features.encode(docs, offsets_of(docs), columns, training=training)
        seen.append([bool(names) for names in decoded(feature_ids, columns)])
    # Anna is annotated in the first doc only, so the third one may know her; Bob in two docs
    assert seen[0] == [False, False, True, True, False, False, False, True, False]
    assert seen[1] == [True, False, True, True, False, True, False, True, True]


def test_a_block_of_documents_does_not_see_what_it_alone_has_taught() -> None:
    """Of 40 docs each ten that follow each other are a block; other docs see all of them."""
    features = only_gazetteers(gazetteer_from_entities=True)
    names = [f"Name{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(40)]
    # A doc has the names of those beside it, and is annotated with its own alone.
    texts = [" ".join(names[max(0, i - 1) : i + 2]) for i in range(40)]
    docs = make_docs(*texts)
    own = [text.split().index(name) for text, name in zip(texts, names, strict=True)]
    features.learn(docs, [[(t, t + 1, "PER")] for t in own])
    columns = features.fit(docs, offsets_of(docs), min_count=1, max_bins=255, training=False)
    feature_ids, _ = features.encode(docs, offsets_of(docs), columns, training=True)
    seen = [bool(found) for found in decoded(feature_ids, columns)]
    words = [(i, name) for i, text in enumerate(texts) for name in text.split()]
    size = 40 // N_BLOCKS
    assert seen == [names.index(name) // size != i // size for i, name in words]
    feature_ids, _ = features.encode(make_docs("Nameaa"), np.array([0, 1]), columns, training=True)
    assert decoded(feature_ids, columns) == [{"entities.PER[0]=U"}]


def test_blocks_keep_their_first_order_when_training_shuffles() -> None:
    texts = [f"Doc{chr(97 + i)} of Name{chr(97 + i)}" for i in range(12)]
    spans = [[(2, 3, "PER")]] * 12
    features, again = (only_gazetteers(gazetteer_from_entities=True) for _ in range(2))
    docs = make_docs(*texts)
    features.learn(docs, spans)
    again.learn(docs, spans)
    again.learn(docs[::-1], spans)
    learned, taught_again = (own.to_state()["gazetteers"] for own in (features, again))
    np.testing.assert_array_equal(taught_again["docs"], learned["docs"])
    np.testing.assert_array_equal(taught_again["phrase_owner"][::-1], learned["phrase_owner"])


def test_words_that_longer_entities_begin_and_end_with_have_lists_of_their_own() -> None:
    features = only_gazetteers(gazetteer_from_entities=True)
    docs = make_docs("the Bank of England", "bank England of", "Bank")
    features.learn(docs, [[(1, 4, "ORG")], [], [(0, 1, "ORG")]])
    columns = features.fit(docs, offsets_of(docs), min_count=1, max_bins=255, training=False)
    feature_ids, _ = features.encode(docs, offsets_of(docs), columns)
    both = {"entities.ORG[0]=U", "entity_words.ORG[0]=U"}
    assert decoded(feature_ids, columns) == [
        set(),
        {"entities.ORG[0]=B", "entity_words.ORG[0]=U"},
        {"entities.ORG[0]=I"},
        {"entities.ORG[0]=L", "entity_words.ORG[0]=U"},
        both,
        {"entity_words.ORG[0]=U"},
        set(),
        both,
    ]


def test_lists_of_files_of_before_have_documents_as_owners() -> None:
    features, columns = learned()
    state = features.to_state()
    ids = [doc_id(doc) for doc in make_docs(*TRAIN)]
    del state["gazetteers"]["docs"]
    # Each block has one of the three docs.
    owners = state["gazetteers"]["phrase_owner"].tolist()
    numbers_of = {1 + i * N_BLOCKS // 3: own for i, own in enumerate(ids)} | {0: 0}
    state["gazetteers"]["phrase_owner"] = np.array([numbers_of[own] for own in owners], np.uint64)
    loaded = only_gazetteers(gazetteer_from_entities=True)
    loaded.from_state(state)
    docs = make_docs(*TRAIN)
    for training in (True, False):
        np.testing.assert_array_equal(
            features.encode(docs, offsets_of(docs), columns, training=training)[0],
            loaded.encode(docs, offsets_of(docs), columns, training=training)[0],
        )


def test_a_document_given_twice_is_one_document() -> None:
    features = only_gazetteers(gazetteer_from_entities=True)
    docs = make_docs("Anna left", "Anna left")
    features.learn(docs, [[(0, 1, "PER")]] * 2)
    columns, feature_ids, _ = numbers(features, docs)
    assert columns.feature_names == []
    assert feature_ids.shape == (4, 0)


def test_sequences_inside_of_a_doc_have_the_doc_as_owner() -> None:
    features, columns = learned()
    docs = make_docs(*TRAIN)
    offsets = np.array([0, 1, 3, 4, 5, 7, 9])
    feature_ids, _ = features.encode(docs, offsets, columns, training=True)
    whole, _ = features.encode(docs, offsets_of(docs), columns, training=True)
    np.testing.assert_array_equal(feature_ids, whole)


def test_learned_lists_travel_in_the_state() -> None:
    features, columns = learned()
    loaded = only_gazetteers(gazetteer_from_entities=True)
    loaded.from_state(features.to_state())
    docs = make_docs(*TRAIN, "Bob and Bonn")
    for training in (True, False):
        for one, other in zip(
            features.encode(docs, offsets_of(docs), columns, training=training),
            loaded.encode(docs, offsets_of(docs), columns, training=training),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)


def test_files_are_read_once_and_kept_in_the_state(tmp_path: Path) -> None:
    path = tmp_path / "cities.txt"
    path.write_text("Köln\n\nNew York\n", encoding="utf8")
    features = only_gazetteers(gazetteers={"city": str(path)})
    docs = make_docs("KÖLN New York")
    columns, feature_ids, _ = numbers(features, docs)
    path.unlink()
    loaded = only_gazetteers(gazetteers={"city": str(path)})
    assert_refused(
        lambda: loaded.encode(docs, offsets_of(docs), columns), "gazetteer", "initialize"
    )
    assert_refused(lambda: loaded.check(docs[0].vocab), "'gazetteers'", "cities.txt", "'city'")
    loaded.from_state(features.to_state())
    loaded.check(docs[0].vocab)
    np.testing.assert_array_equal(loaded.encode(docs, offsets_of(docs), columns)[0], feature_ids)


def test_the_first_phrase_of_a_file_with_a_byte_order_mark_is_found(tmp_path: Path) -> None:
    path = tmp_path / "cities.txt"
    path.write_text("Gent\nKöln\n", encoding="utf-8-sig")
    assert places("Gent Köln", city=path) == places("Gent Köln", city=["Gent", "Köln"])


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    (tmp_path / "city.txt").write_text("Gent\nDen Haag\n", encoding="utf8")
    (tmp_path / "name.txt").write_text("Jan\n", encoding="utf8")
    (tmp_path / "note.md").write_text("Gent\n", encoding="utf8")
    assert places("Jan in Den Haag", nl=tmp_path) == [
        {"nl.name=U"}, set(), {"nl.city=B"}, {"nl.city=L"},
    ]  # fmt: skip
    (tmp_path / "none").mkdir()
    assert_refused(lambda: places("Jan", nl=tmp_path / "none"), "has no file *.txt")


def test_learning_needs_entities() -> None:
    features = only_gazetteers(gazetteer_from_entities=True)
    assert_refused(lambda: features.learn(make_docs("a"), None), "'gazetteer_from_entities'")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("phrase_pieces", np.array([0, 99, 0, 0], np.int32)),
        ("phrase_lengths", np.array([1, 1, 1, 2], np.int32)),
        ("phrase_lengths", np.array([1, 1, 2, 0], np.int32)),
        ("phrase_list", np.array([0, 0, 0, 2], np.int32)),
        ("phrase_owner", np.zeros(3, np.uint64)),
        ("lists", ["entities.PER"]),
        ("pieces", ["anna", "anna", "cy", "bonn"]),
        ("loaded", 1),
        ("docs", np.zeros(3, np.int32)),
    ],
)
def test_damaged_state_is_refused(field: str, value: Any) -> None:
    features, _ = learned()
    state = features.to_state()
    state["gazetteers"][field] = value
    assert_refused(lambda: features.from_state(state), "features.gazetteers")
