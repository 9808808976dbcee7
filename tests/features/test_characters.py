"""Character features and the character tokenizer."""

from __future__ import annotations

import re
import sys
import unicodedata
from itertools import groupby
from typing import Any

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.features.characters import class_of, create_character_features
from spacy_treecrf.features.tokenizer import CharacterTokenizer, word_pattern
from tests.features.naive import NLP, decoded, numbers, offsets_of
from tests.refusals import assert_refused

tokenize = CharacterTokenizer(NLP.vocab)
TEXTS = st.text(st.characters(codec="utf8"), max_size=12)


@given(TEXTS)
@settings(deadline=None)
def test_one_token_for_each_character_and_the_same_text(text: str) -> None:
    doc = tokenize(text)
    assert doc.text == text
    assert [token.text for token in doc] == list(text)
    assert not any(token.whitespace_ for token in doc)


# Letters of five scripts with their marks, joiners, and what stands between words.
SIGNS = "ab1'’·-_ é\u0301\u00ad\u200c\u200dहि\u094dน้ךָ\U00011131\U000e0100"


@given(TEXTS | st.text(SIGNS))
@settings(deadline=None)
def test_words_and_what_is_between_them_are_sentences_if_asked_for(text: str) -> None:
    doc = CharacterTokenizer(NLP.vocab, words=True)(text)
    assert doc.text == text
    assert [sentence.text for sentence in doc.sents] == naive_words(text)


def naive_words(text: str) -> list[str]:
    """Runs of what words have, and of the rest."""
    within: list[bool] = []
    for i, letter in enumerate(text):
        before = bool(within) and within[-1]
        if is_mark(letter) or letter in "\u00ad\u200c\u200d":
            within.append(before)  # also behind another one
        elif letter in "'’·":
            after = i + 1 < len(text) and text[i + 1].isalnum()
            within.append(before and after and text[i - 1] not in "'’·")
        else:
            within.append(letter.isalnum())
    return [
        "".join(text[i] for i in run) for _, run in groupby(range(len(text)), within.__getitem__)
    ]


def is_mark(letter: str) -> bool:
    return unicodedata.category(letter).startswith("M")


@pytest.mark.parametrize(
    "word",
    ["हिन्दी", "ไม้", "தமிழ்", "বাংলা", "كِتَابٌ", "שָׁלוֹם", "cafe\u0301s", "hy\u00adphen",
     "می\u200cخواهم", "ශ්\u200dරී", "col·legi", "L’Hospitalet", "rock'n'roll",
     "Ինչպե\u055eս", "ի\u055eնչ", "סה״כ", "ג׳ירפה", "pa\u2027per", "col\u0387legi"],
)  # fmt: skip
def test_words_of_all_scripts_stay_whole(word: str) -> None:
    doc = CharacterTokenizer(NLP.vocab, words=True)(f"«{word}», {word}")
    assert [sentence.text for sentence in doc.sents] == ["«", word, "», ", word]


def test_every_mark_goes_with_its_letter() -> None:
    marks = [letter for letter in map(chr, range(sys.maxunicode + 1)) if is_mark(letter)]
    assert all(word_pattern().fullmatch(f"a{mark}b") for mark in marks)
    assert not any(word_pattern().match(mark) for mark in marks)


@given(st.text(st.characters(max_codepoint=127)) | st.text("abé ’'-"))
@settings(deadline=None)
def test_texts_without_marks_are_cut_at_apostrophes_alone(text: str) -> None:
    found = [word.group() for word in word_pattern().finditer(text)]
    assert found == re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text)


def test_tokenizer_from_a_config_and_through_bytes_and_disk(tmp_path: Any) -> None:
    import spacy_treecrf.features.tokenizer  # noqa: F401  registers it

    config = {"nlp": {"tokenizer": {"@tokenizers": "spacy_treecrf.CharacterTokenizer.v1"}}}
    nlp = spacy.blank("en", config=config)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    loaded.from_bytes(nlp.to_bytes())
    texts = ["a b\n", "", " "]
    assert [[t.text for t in doc] for doc in loaded.pipe(texts)] == [list(t) for t in texts]


def naive(texts: list[str], n: int, window: list[int], around: list[int]) -> list[set[str]]:
    found = []
    for text in texts:
        for t in range(len(text)):
            names = set()
            for o in window:
                inside = 0 <= t + o < len(text)
                value = text[t + o].lower() if inside else "<edge>"
                names.add(f"char[{o}]={value}")
            for o in range(min(around), max(around) - n + 2):
                if t + o >= 0 and t + o + n <= len(text):
                    names.add(f"chars{n}[{o}]={text[t + o : t + o + n].lower()}")
            names.add(f"class[0]={class_of(text[t])}")
            if text[t].isupper():
                names.add("upper[0]=True")
            found.append(names)
    return found


@given(st.lists(st.text("abAB 1é", max_size=8), min_size=1, max_size=4), st.integers(2, 4))
@settings(max_examples=60, deadline=None)
def test_features_are_those_of_the_naive_twin(texts: list[str], n: int) -> None:
    features = create_character_features([-2, -1, 0, 1], [0], [n], [-2, 2])
    docs = [tokenize(text) for text in texts]
    columns, feature_ids, _ = numbers(features, docs)
    expected = naive(texts, n, [-2, -1, 0, 1], [-2, 2])
    assert decoded(feature_ids, columns) == expected
    again, _ = features.encode(docs[::-1], offsets_of(docs[::-1]), columns)
    assert decoded(again, columns) == naive(texts[::-1], n, [-2, -1, 0, 1], [-2, 2])


def naive_edges(text: str, n: int, around: list[int]) -> list[set[str]]:
    """N-grams of the text between two marks that hold a mark, and begin where others may."""
    marked, found = ["<", *text.lower(), ">"], []
    for t in range(len(text)):
        names = set()
        for o in range(min(around), max(around) - n + 2):
            start = t + 1 + o  # in the marked text
            if start >= 0 and start + n <= len(marked):
                gram = marked[start : start + n]
                # A text of n - 2 characters lies between both marks, and is seen as neither.
                if start == 0 and start + n < len(marked):
                    names.add(f"first{n}[0]={-t}:{''.join(gram[1:])}")
                if start + n == len(marked) and start > 0:
                    names.add(f"last{n}[0]={o}:{''.join(gram[:-1])}")
        found.append(names)
    return found


@given(
    st.lists(st.text("abAB 1é", max_size=8), min_size=1, max_size=4),
    st.integers(2, 4),
    st.sampled_from([[-2, 2], [-3, 1], [0, 4], [-5, -1]]),
)
@settings(max_examples=100, deadline=None)
def test_edges_of_ngrams_are_those_of_the_naive_twin(
    texts: list[str], n: int, around: list[int]
) -> None:
    features = create_character_features([0], [], [n], around, ngram_edges=True)
    docs = [tokenize(text) for text in texts]
    columns, feature_ids, _ = numbers(features, docs)

    def edges(rows: Any) -> list[set[str]]:
        seen = decoded(rows, columns)
        return [{name for name in names if name[:4] in ("firs", "last")} for names in seen]

    assert edges(feature_ids) == [found for t in texts for found in naive_edges(t, n, around)]
    again, _ = features.encode(docs[::-1], offsets_of(docs[::-1]), columns)
    backwards = [found for t in texts[::-1] for found in naive_edges(t, n, around)]
    assert edges(again) == backwards


def test_edges_are_off_unless_asked_for() -> None:
    columns, _, _ = numbers(create_character_features(), [tokenize("unit")])
    assert not any(name.startswith(("first", "last")) for name in columns.feature_names)


@pytest.mark.parametrize(
    ("text", "name"),
    [("a", "vowel"), ("É", "vowel"), ("b", "consonant"), ("7", "digit"), ("-", "punct"),
     (" ", "space"), ("\n", "space"), ("+", "symbol"), ("\u0301", "mark"), ("\x00", "other")],
)  # fmt: skip
def test_classes(text: str, name: str) -> None:
    assert class_of(text) == name


def test_case_can_be_kept() -> None:
    columns, _, _ = numbers(create_character_features([0], [], [2], lower=False), [tokenize("Ab")])
    assert set(columns.feature_names) >= {"char[0]=A", "char[0]=b", "chars2[0]=Ab"}
    assert not any(name.startswith("class") for name in columns.feature_names)


def test_bad_settings_are_refused() -> None:
    assert_refused(lambda: create_character_features(window=[]), "'window'")
    assert_refused(lambda: create_character_features(ngrams=[1]), "'ngrams'")
    assert_refused(lambda: create_character_features(ngram_edges=1), "'ngram_edges'")  # type: ignore[arg-type]
    assert_refused(lambda: create_character_features(ngrams=[9]), "'ngrams'", "ngram_window")


def test_defaults_encode_text() -> None:
    features = create_character_features()
    columns, feature_ids, _ = numbers(features, [tokenize("hyphenation")])
    assert feature_ids.shape == (11, len(columns.slot_keys))
    assert (feature_ids >= -1).all()
    assert np.count_nonzero(feature_ids >= 0) > 11 * 13


@pytest.mark.parametrize("lower", [True, False])
def test_groups_of_characters(lower: bool) -> None:
    groups = {"charge": ["kr", "de"], "small": ["ag"]}
    features = create_character_features(
        [0], [], [], [0], lower, groups=groups, group_window=[-1, 0]
    )
    columns, feature_ids, _ = numbers(features, [tokenize("Rga")])
    found = [
        {name for name in names if name.startswith("group") and "<edge>" not in name}
        for names in decoded(feature_ids, columns)
    ]
    assert found == [
        {"group.charge[0]=kr"} if lower else set(),
        {"group.small[0]=ag", *(["group.charge[-1]=kr"] if lower else [])},
        {"group.small[0]=ag", "group.small[-1]=ag"},
    ]


@pytest.mark.parametrize(
    "groups", [["kr"], {"a": "kr"}, {"a": ["kr", "rd"]}, {"a": [""]}, {"a": []}]
)
def test_bad_groups_are_refused(groups: Any) -> None:
    assert_refused(lambda: create_character_features(groups=groups), "'groups", "charge")
